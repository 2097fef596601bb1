import math

import numpy as np
import pytest
import torch
from scipy import stats

from lapsus import AttendedIndexCued, FeatureCued, IndexCued, check_task, circular, rng
from lapsus.errors import LapsusError
from lapsus.tasks import CueCombination, Range
from lapsus.tasks.delayed_estimation import sample_features
from lapsus.tasks.durations import drawn, fixed, varying

TASKS = [
    IndexCued(),
    IndexCued(encoding="scalar"),
    IndexCued(items=1),
    IndexCued(items=4),
    FeatureCued(),
    FeatureCued(items=1),
    FeatureCued(items=6, probe_margin=0.3, report_margin=0),
    FeatureCued(kappa=5.0, prestimulus=0, delay=0, denoise=1),
    AttendedIndexCued(attention=Range(2, 6)),
    FeatureCued(delay=Range(3, 40), cue={"from": 2, "to": 8}),
]


@pytest.mark.parametrize("task", TASKS, ids=str)
def test_check(task):
    check_task(task)


@pytest.mark.parametrize("items, margin", [(2, math.pi / 4), (3, 0.5), (6, 0.3), (7, 0.85)])
def test_features_keep_their_margin_and_are_uniform(items, margin):
    z = sample_features(20_000, items, margin, rng.generator("x")).double()
    assert z.shape == (20_000, items) and float(z.min()) >= -math.pi and float(z.max()) < math.pi
    gaps = [circular.distance(z[:, i], z[:, j]) for i in range(items) for j in range(i)]
    assert min(float(gap.min()) for gap in gaps) >= margin - 1e-5
    for item in range(items):
        assert stats.kstest(z[:, item].numpy(), stats.uniform(-math.pi, 2 * math.pi).cdf).pvalue > 1e-4


def test_two_items_have_uniform_distances_as_rejection_would_give():
    z = sample_features(50_000, 2, math.pi / 4, rng.generator("y")).double()
    distance = circular.distance(z[:, 0], z[:, 1]).numpy()
    assert stats.kstest(distance, stats.uniform(math.pi / 4, 3 * math.pi / 4).cdf).pvalue > 1e-4


def test_three_items_match_rejection_sampling():
    margin, uniform = 0.8, np.random.default_rng(0)
    z = uniform.uniform(-math.pi, math.pi, (200_000, 3))
    apart = np.stack([circular.distance(z[:, i], z[:, j]) for i, j in ((0, 1), (0, 2), (1, 2))], 1)
    rejected = apart[(apart >= margin).all(1)][:, 0]
    ours = sample_features(len(rejected), 3, margin, rng.generator("z")).double()
    assert stats.ks_2samp(rejected, circular.distance(ours[:, 0], ours[:, 1]).numpy()).pvalue > 1e-4


def test_first_weights_of_the_palimpsest_see_all_angles_alike():
    """A location's image under W_p keeps its distances when all locations turn, to the harmonics that are kept
    whole."""
    for seed in range(5):
        task = FeatureCued()
        W_p = task.encoder(rng.generator(seed)).probe_weight.detach().double()
        torch.testing.assert_close(W_p @ W_p.T, torch.eye(6, dtype=torch.double), atol=1e-6, rtol=0)
        angles = torch.arange(48) * (2 * math.pi / 48)
        image = task._tuning(angles).double() @ W_p.T
        for turn in (4, 16, 24):
            distance = (image - image.roll(turn, 0)).norm(dim=1)
            assert float(distance.std() / distance.mean()) < 0.01
    # Random weights, by which the encoder once started, differ by tens of per cent between directions.
    random = task._tuning(angles).double() @ torch.randn(16, 6, generator=rng.generator("random")).double()
    distance = (random - random.roll(24, 0)).norm(dim=1)
    assert float(distance.std() / distance.mean()) > 0.1
    for projection, curves in ((20, 16), (16, 16), (3, 5), (4, 3)):
        W = (
            FeatureCued(projection=projection, tuning_curves=curves)
            .encoder(rng.generator("sizes"))
            .probe_weight.detach()
            .double()
        )
        gram = W @ W.T if projection <= curves else W.T @ W
        torch.testing.assert_close(gram, torch.eye(len(gram), dtype=torch.double), atol=1e-5, rtol=0)


def test_palimpsest_is_the_papers_sum():
    task = FeatureCued(items=2)
    conditions = task.sample(3, rng.generator("s"))
    stimuli = task.stimuli(conditions)
    preferred = np.arange(16) * 2 * np.pi / 16 - np.pi
    for c in range(3):
        zp, zr = conditions["probe"][c].numpy(), conditions["report"][c].numpy()
        S = sum(np.exp(np.cos(zp[n] - preferred)[:, None] + np.cos(zr[n] - preferred)[None, :]) for n in range(2))
        np.testing.assert_allclose(stimuli["stimulus"][c], S, rtol=1e-5)
        stripe = np.exp(np.cos(zp[int(conditions["cued"][c])] - preferred))
        np.testing.assert_allclose(stimuli["cue"][c], np.tile(stripe[:, None], (1, 16)), rtol=1e-5)
    encoder = task.encoder(rng.generator("e"))
    s = encoder(stimuli)["stimulus"]
    W_p, W_r = encoder.probe_weight.detach(), encoder.report_weight.detach()
    torch.testing.assert_close(s[0], (W_p @ stimuli["stimulus"][0] @ W_r.T).flatten())


def test_feature_cued_items_have_no_order():
    task = FeatureCued(items=3)
    conditions = task.sample(5, rng.generator("o"))
    order = torch.tensor([2, 0, 1])
    shuffled = {
        "probe": conditions["probe"][:, order],
        "report": conditions["report"][:, order],
        "cued": torch.argsort(order)[conditions["cued"]],
    }
    for epoch, S in task.stimuli(conditions).items():
        torch.testing.assert_close(S, task.stimuli(shuffled)[epoch])


def test_scalar_encoding_shows_the_angles_and_the_cue_a_learned_vector():
    task = IndexCued(encoding="scalar")
    conditions = task.sample(4, rng.generator("i"))
    encoder = task.encoder(rng.generator("e"))
    encoded = encoder(task.stimuli(conditions))
    torch.testing.assert_close(encoded["stimulus"], torch.cat([conditions["report"], torch.zeros(4, 4)], 1))
    torch.testing.assert_close(encoded["cue"][:, 2:], encoder.cue[conditions["cued"]])
    assert not encoded["cue"][:, :2].any()


def test_table_has_the_cued_items_colour_as_target():
    table = FeatureCued().table(FeatureCued().sample(50, rng.generator("t")))
    assert set(table["cued"]) == {1, 2}
    np.testing.assert_array_equal(table["target"], np.where(table["cued"] == 1, table["report_1"], table["report_2"]))


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: FeatureCued(items=8), "task.probe_margin = 0.7854 rad is impossible for 8 items"),
        (lambda: IndexCued(items=10), "task.report_margin"),
        (lambda: AttendedIndexCued(attention=-3), "task.attention has 0 to 10,000 steps, not -3"),
        (lambda: IndexCued(delay=-1), "task.delay has 0 to 10,000 steps, not -1"),
        (lambda: IndexCued(denoise=0), "task.denoise has 1 to 10,000 steps, not 0"),
        (lambda: IndexCued(items=0), "task.items must be from 1 to 64"),
        (lambda: FeatureCued(report_margin=-0.1), "task.report_margin must be at least 0"),
    ],
)
def test_impossible_tasks_are_refused_in_words(make, message):
    with pytest.raises(LapsusError, match=message):
        make()


def test_the_check_names_what_is_wrong():
    class ShownWhileDenoising(IndexCued):
        def stimuli(self, conditions):
            return {"denoise": conditions["report"]}

    with pytest.raises(LapsusError, match="Nothing can be shown during 'denoise'"):
        check_task(ShownWhileDenoising())

    class Global(IndexCued):
        def sample(self, count, generator):
            own = torch.Generator().manual_seed(next(seeds))
            return super().sample(count, own)

    seeds = iter(range(100))
    with pytest.raises(LapsusError, match="generator it is given"):
        check_task(Global())
    with pytest.raises(LapsusError, match="has no encoder, epochs"):
        check_task(object())


def test_a_task_that_varies_is_a_family_of_tasks():
    task = FeatureCued(delay={"from": 3, "to": 40}, cue={"from": 5, "to": 5}, stimulus=4.0)
    assert varying(task) == {"delay": Range(3, 40), "cue": Range(5, 5)}
    assert task.epochs == FeatureCued(delay=21, stimulus=4).epochs  # the middle, where nothing was drawn
    assert fixed(task, delay=80) == FeatureCued(delay=80, stimulus=4) and not varying(fixed(task))
    delays = [drawn(task, rng.generator(draw)).delay for draw in range(2000)]
    assert stats.chisquare(np.bincount(delays, minlength=41)[3:]).pvalue > 1e-3 and (min(delays), max(delays)) == (
        3,
        40,
    )
    assert drawn(FeatureCued(), rng.generator(0)) == FeatureCued()
    assert drawn(CueCombination(stimulus=Range(2, 3)), rng.generator(0)).stimulus in (2, 3)
    attended = AttendedIndexCued(stimulus=Range(2, 5), attention={"from": 4, "to": 8})
    assert attended.epochs == AttendedIndexCued(stimulus=3, attention=6).epochs
    assert list(varying(attended)) == ["stimulus", "attention"] and list(attended.epochs)[2] == "attention"


@pytest.mark.parametrize(
    "duration, words",
    [
        ({"from": 9, "to": 3}, "goes from 9 to 3"),
        ({"from": -1, "to": 3}, "has 0 to 10,000 steps, not -1"),
        ({"from": 1.5, "to": 3}, "task.delay.from = 1.5"),
        ({"from": 1}, "needs `from` and `to`"),
        ({"low": 1, "high": 2}, "it has low, high"),
        ("long", "must be a whole number of steps"),
        (True, "must be a whole number of steps"),
        (math.nan, "must be a whole number of steps"),
        (math.inf, "must be a whole number of steps"),
    ],
)
def test_a_duration_that_is_none_is_said(duration, words):
    with pytest.raises(LapsusError, match=r"task\.delay") as error:
        IndexCued(delay=duration)
    assert words in str(error.value)


def test_the_denoising_delay_has_at_least_one_step_whatever_is_drawn():
    with pytest.raises(LapsusError, match=r"task\.denoise has 1 to 10,000 steps, not 0"):
        IndexCued(denoise=Range(0, 3))
    with pytest.raises(LapsusError, match="has no epoch pause; it has: prestimulus"):
        fixed(IndexCued(), pause=3)
