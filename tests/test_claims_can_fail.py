"""Every claim on a made network in which its opposite was built in, where it must not hold. Claims about single trials,
pushes, latent causes, windows and cue combination also where they hold; the others do in test_figures."""

from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
import torch
from made_networks import AlignedSwaps, ForgetsUntilCue, ResponseWalks, made, nearest_counts
from synthetic_networks import SyntheticNetworks

from lapsus import rng
from lapsus.circular import embed
from lapsus.errors import LapsusError
from lapsus.evaluation.sample_sizes import QUICK_FIGURES
from lapsus.mechanism import cue_grid as on_cues
from lapsus.mechanism.activity import activity_dataset
from lapsus.mechanism.synthetic import synthetic_population
from lapsus.paper import claim_statistics, claims, windows
from lapsus.paper.roles import Networks
from lapsus.paper.verdicts import criteria
from lapsus.zoo import load

pytestmark = pytest.mark.filterwarnings("ignore:The torch reference runs")


def judged(id, compute):
    return claims.judge_networks(id, {"made": compute}).verdict


def written(role, network, **task):
    """A network that is written down, in a role of the paper."""
    model, sizes = made(network, **task), replace(QUICK_FIGURES, commitment_conditions=24, commitment_groups=48)
    return Networks({role: lambda: model}, {role: "made"}, sizes)


# --- Networks in which the opposite of a claim was built in ---


class OtherAnswers(SyntheticNetworks):
    """Every network answers as another one should, noise or not."""

    def responses(self, role, conditions, trials, *, seed=0, noise_scale=1.0):
        own = super().responses(role, conditions, trials, seed=seed, noise_scale=noise_scale)
        none = role in ("feature-constant-30", "feature-two-layer-constant-30")
        plays = "feature-none" if none else "feature-constant-30"
        return super().responses(plays, conditions, trials, seed=seed).assign(probability=own["probability"])


class Noise(SyntheticNetworks):
    """Activity has nothing to do with the trial."""

    def simulate(self, role, conditions, trials, *, seed=0, noise_scale=1.0):
        data = super().simulate(role, conditions, trials, seed=seed, noise_scale=noise_scale)
        noise = np.random.default_rng(seed).standard_normal(data["activity"].shape).astype(np.float32)
        return data.assign(activity=(("trial", "time", "unit"), noise))


class TurnsWithoutSwaps(SyntheticNetworks):
    """Planes turn parallel at the cue in networks without swaps only, and far items are the more aligned ones."""

    def turns_parallel(self, role):
        return not super().turns_parallel(role)

    def lean(self, role, gap):
        return 1.5 - 1.2 * gap / np.pi if "smooth" in role else np.full(len(gap), 1.4)


class OppositeColoursShare(SyntheticNetworks):
    """The normal of the rings is the same for opposite fixed colours, and so are the planes of the rings."""

    turn = 1.0


class FallsBack(SyntheticNetworks):
    """Swaps are misbound, and late in delay 2 the planes, which turned at the cue as those of `plays` do, are those of
    delay 1 again."""

    def __init__(self, *roles, plays=None):
        super().__init__((*roles, *([] if plays is None else [plays])))
        self.plays = plays

    def simulate(self, role, conditions, trials, *, seed=0, noise_scale=1.0):
        if isinstance(conditions, int):
            return synthetic_population("misbinding", trials=800)
        data = super().simulate(self.plays or role, conditions, trials, seed=seed, noise_scale=noise_scale)
        back = np.where(data["time"].to_numpy() > 18, 10, np.arange(data.sizes["time"]))
        return data.assign(activity=(("trial", "time", "unit"), data["activity"].to_numpy()[:, back]))


class Leaning(SyntheticNetworks):
    """Before the cue each colour leans into the other's plane by another amount on each trial, and swaps are likelier
    (or, with a negative effect, less likely) the larger it is."""

    def __init__(self, effect):
        super().__init__(("feature-smooth-2",))
        self.effect = effect

    def simulate(self, role, conditions, trials, *, seed=0, noise_scale=1.0):
        given = {name: np.repeat(values, trials, 0) for name, values in conditions.items()}
        rng, count = np.random.default_rng(seed), len(given["cued"])
        lean = 0.4 * rng.standard_normal((count, 1))
        u, axes = embed(given["report"]), np.linalg.qr(np.random.default_rng(1).standard_normal((6, 6)))[0]
        held = (u[:, 0] + lean * u[:, 1]) @ axes[:2] + (u[:, 1] + lean * u[:, 0]) @ axes[2:4]
        swap = rng.random(count) < 1 / (1 + np.exp(1.0 - self.effect * lean[:, 0]))
        recalled = np.where(swap, 1 - given["cued"], given["cued"])
        activity = held[:, None] + 0.1 * rng.standard_normal((count, 6, 6))
        table = {"cued": given["cued"] + 1, "response": given["report"][np.arange(count), recalled]}
        for name in ("report", "probe"):
            table |= {f"{name}_{k + 1}": given[name][:, k] for k in range(2)}
        table["configuration"] = given["configuration"]
        epoch = np.array(["delay"] * 4 + ["cue", "denoise"])
        return activity_dataset(activity, pd.DataFrame(table), time=np.arange(6) - 5, epoch=epoch)


@pytest.mark.parametrize("effect, verdict", [(4.0, "holds"), (-4.0, "does not hold"), (0.0, None)])
@pytest.mark.slow
def test_alignment_predicts_swaps(effect, verdict):
    found = judged("alignment-predicts-swaps", claim_statistics.prediction_ratio(Leaning(effect), "feature-smooth-2"))
    assert found == verdict if verdict else found != "holds"


def test_alignment_push_fails_where_memory_is_not_read(monkeypatch):
    nearest_counts(monkeypatch)
    model = made(ResponseWalks())
    networks = Networks({"feature-smooth-2": lambda: model}, {"feature-smooth-2": "walks"}, QUICK_FIGURES)
    value, low, high = claim_statistics.alignment_push(networks, "feature-smooth-2")
    assert abs(value) < 0.02 and judged("alignment-push", (value, low, high)) != "holds"


def test_alignment_push_holds_where_the_cue_swaps_aligned_colours(monkeypatch):
    nearest_counts(monkeypatch)
    found = claim_statistics.alignment_push(written("feature-smooth-2", AlignedSwaps(1.0)), "feature-smooth-2")
    assert found[0] > 0.1 and judged("alignment-push", found) == "holds"


def test_commitment_claims_hold_where_they_should(monkeypatch):
    """A response that walks from the first step has decided much before the cue; one that is erased until cue offset
    and then walks for long, hardly anything."""
    nearest_counts(monkeypatch)
    walks = written("index-attended", ResponseWalks())
    forgets = written("index-constant-10", ForgetsUntilCue(), denoise=40)
    assert judged("latent-before-cue", claim_statistics.fixed_at_end_of(walks, "index-attended", "delay")) == "holds"
    assert judged("dice-after-cue", claim_statistics.fixed_at_end_of(forgets, "index-constant-10", "cue")) == "holds"


class Windows(SyntheticNetworks):
    """Task-optimal networks whose planes turn as those of the network `plays` do."""

    def __init__(self, plays):
        super().__init__((*list(windows.WINDOWS)[:2], plays))
        self.plays = plays

    def simulate(self, role, conditions, trials, *, seed=0, noise_scale=1.0):
        return super().simulate(self.plays, conditions, trials, seed=seed, noise_scale=noise_scale)


@pytest.mark.slow
def test_windows_no_rise_holds_where_planes_stay():
    assert judged("windows-no-rise", claim_statistics.windows_rise(Windows("feature-none"))) == "holds"


CUES = ("cue-combination-median", "cue-combination-p95", "cue-combination-modes")


def combines_cues():
    model, sizes = load("cue-combination"), replace(QUICK_FIGURES, cue_grid=10, cue_modes_grid=24, cue_samples=1600)
    return Networks({"cue-combination": lambda: model}, {"cue-combination": "made"}, sizes)


def posterior(model, conditions, trials, seed):
    return model.behaviour.sample(conditions, trials, rng.generator(seed, "made"))


def averages(model, conditions, trials, seed):
    """Between the modes of the posterior, where it has two."""
    mean = posterior(model, conditions, 400, seed).mean(-1, keepdim=True)
    noise = torch.randn((*mean.shape[:-1], trials), generator=rng.generator(seed, "noise"))
    return mean + 0.3 * noise


@pytest.mark.slow
def test_cue_combination_claims_hold_for_samples_of_the_posterior(monkeypatch):
    monkeypatch.setattr(on_cues, "respond", posterior)
    for id in CUES:
        assert judged(id, claims.CLAIMS[id].compute(combines_cues())) == "holds"


# --- Every claim, where it must fail ---


def _same(build, *ids):
    """One made set of networks for several claims, made when it is first asked for."""
    build = cache(build)
    return dict.fromkeys(ids, build)


FAILING = {
    **_same(
        OtherAnswers,
        *(id for id in criteria() if id.startswith(("swap-function", "mse", "architecture"))),
        *("optimal-unimodal", "distance-ablation", "noise-ablation", "noise-removal"),
    ),
    **_same(
        Noise,
        *("after-cue", "two-rings", "rings-apart", "normal-above-random", "normal-either-role"),
        *("normal-separates", "axis-separates"),
    ),
    **_same(
        TurnsWithoutSwaps,
        *("index-rise-05", "index-rise-10", "index-rise-only", "feature-rise-smooth", "feature-rise-only"),
        *("close-more-aligned", "alignment-follows-swaps"),
    ),
    **_same(
        lambda: OppositeColoursShare(("feature-smooth-0",), replace(QUICK_FIGURES, ring_colours=8)),
        *("normal-shared", "components-shared", "cyclic"),
    ),
    **_same(lambda: FallsBack("index-constant-05", "index-constant-10"), "index-stays-high", "not-misbinding"),
    "windows-aligned": lambda: FallsBack("feature-optimal-20", plays="feature-smooth-2"),
    "windows-no-rise": lambda: Windows("feature-smooth-2"),
    "alignment-predicts-swaps": lambda: Leaning(-4.0),
    "alignment-push": lambda: written("feature-smooth-2", AlignedSwaps(-1.0)),
    "dice-after-cue": lambda: written("index-constant-10", ResponseWalks()),
    "latent-before-cue": lambda: written("index-attended", ForgetsUntilCue()),
    **_same(combines_cues, *CUES),
}


@pytest.mark.slow
@pytest.mark.parametrize("id", criteria())
def test_every_claim_fails_where_its_opposite_was_built_in(id, monkeypatch):
    """With a value and its interval, which is all on the wrong side: not for want of a network."""
    if id in ("alignment-push", "dice-after-cue", "latent-before-cue"):
        nearest_counts(monkeypatch)
    monkeypatch.setattr(on_cues, "respond", averages)
    networks = FAILING[id]()
    roles = next(unit for unit in claims.CLAIMS[id].units if any(role in networks for role in unit))
    assert judged(id, claims.CLAIMS[id].compute(networks, *roles)) == "does not hold"


def test_values_are_kept_by_network_and_not_believed_when_it_changed(tmp_path, monkeypatch):
    """A run that was cut goes on; other weights, or another statistic, are computed anew."""
    asked = []

    def compute(networks, role):
        asked.append(networks.sources[role])
        if len(asked) == 2:
            raise KeyboardInterrupt
        return 0.9, 0.88, 0.92

    id = "normal-separates"
    monkeypatch.setattr(claims, "CLAIMS", {id: claims.Test("fig4", compute, (("feature-smooth-0",),))})
    monkeypatch.setattr(claims, "criteria", lambda: {id: {}})
    models = [made(ResponseWalks()) for _ in range(2)]
    sets = [
        Networks({"feature-smooth-0": lambda model=model: model}, {"feature-smooth-0": name}, QUICK_FIGURES)
        for name, model in zip("ab", models)
    ]
    file = tmp_path / "values.json"
    with pytest.raises(KeyboardInterrupt):
        claims.evaluate_claims(sets, values=file)
    (found,) = claims.evaluate_claims(sets, values=file)
    assert asked == ["a", "b", "b"] and found.networks == 2 and set(found.each) == {"a", "b"}
    models[0].network.readout.mul_(-1)
    claims.evaluate_claims(sets, values=file)
    assert asked == ["a", "b", "b", "a"]
    longer = [one.at_delay(20) for one in sets]
    assert (
        [one.model("feature-smooth-0").task.delay for one in longer]
        == [20, 20]
        != [one.model("feature-smooth-0").task.delay for one in sets]
    )
    claims.evaluate_claims(longer, values=file)
    claims.evaluate_claims(sets, values=file)  # both are kept
    assert asked == ["a", "b", "b", "a", "a", "b"]
    file.write_text('{"a": 1}')
    with pytest.raises(LapsusError, match=r"values\.json"):
        claims.evaluate_claims(sets, values=file)
