"""Experiments described by a file: reading them, learning a density, a task, networks and their mechanism."""

import math

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import integrate

import lapsus
from lapsus import circular
from lapsus.behaviour.learned import LearnedDensity, log_projected_normal, other_mode
from lapsus.designs import Design, DesignFile, Variable, guess_design, pack, read_design, read_table, unpack
from lapsus.errors import LapsusError
from lapsus.fitting import density as density_module
from lapsus.fitting.density import (
    Candidate,
    conditions_of,
    fit_density,
    load_density,
    modes_of,
    responses_of,
    save_density,
)
from lapsus.tasks.designed import designed_task
from lapsus.training.build import build


def motion(trials, opposite=0.05, sd=15.0, seed=0):
    """Reports of a direction of motion, some of them of the opposite one."""
    rng = np.random.default_rng(seed)
    direction = rng.uniform(0, 360, trials)
    coherence = rng.choice([0.2, 0.8], trials)
    flipped = rng.random(trials) < opposite
    response = (direction + 180 * flipped + sd * rng.standard_normal(trials)) % 360
    return pd.DataFrame({"direction": direction, "coherence": coherence, "response": response, "flipped": flipped})


def intervals(trials, seed=0):
    """Reproductions of an interval, pulled to the mean and skewed."""
    rng = np.random.default_rng(seed)
    interval = rng.choice([0.4, 0.6, 0.8, 1.0], trials)
    noise = np.exp(0.1 * rng.gamma(2, 1, trials) - 0.2)
    return pd.DataFrame({"interval": interval, "response": (0.8 + 0.7 * (interval - 0.8)) * noise})


MOTION = {
    "response": {"column": "response", "kind": "circular", "period": 360},
    "stimulus": [
        {"column": "direction", "kind": "circular", "period": 360, "epoch": "stimulus"},
        {"column": "coherence", "kind": "categorical", "epoch": ["stimulus"]},
    ],
    "epochs": {"stimulus": 0.25, "delay": 0.75, "response": 2.0},
}
INTERVAL = {
    "response": {"column": "response", "kind": "linear"},
    "stimulus": [{"column": "interval", "kind": "linear", "epoch": "ready"}],
    "epochs": {"ready": "interval", "response": 2.0},
}


def design(table, file=MOTION):
    return Design.of(DesignFile.model_validate(file), table)


@pytest.fixture
def few(monkeypatch):
    """Two candidates, so that a fit takes a second."""
    tried = [Candidate("one mode and guesses", 2, True, 0), Candidate("two modes and guesses", 3, True, 0)]
    monkeypatch.setattr(density_module, "candidates", lambda responses: tried)
    monkeypatch.setattr(density_module, "_UPDATES", 200)


# --- The file ---


def test_variables_keep_their_values():
    for kind, values in (
        ("circular", pd.Series([0.0, 90.0, 270.0])),
        ("linear", pd.Series([1.0, 2.0, 5.0])),
        ("categorical", pd.Series(["valid", "invalid", "valid"])),
    ):
        variable = Variable.of("x", values, kind, period=360.0 if kind == "circular" else None)
        assert list(variable.decode(variable.encode(values))) == pytest.approx(values.tolist())
    with_log = Variable.of("rt", pd.Series([0.5, 1.0, 2.0]), "linear", log=True)
    assert with_log.decode(np.zeros(1))[0] == pytest.approx(1.0)


def test_a_design_is_guessed_from_the_columns_and_its_text_is_read_again(tmp_path):
    table = motion(400).assign(subject=np.arange(400) % 4, rt=0.5, trial=np.arange(400))
    found = guess_design(table)
    assert found.subject == "subject"
    assert [stimulus.column for stimulus in found.stimulus] == ["direction", "coherence", "flipped"]
    assert [stimulus.kind for stimulus in found.stimulus] == ["circular", "categorical", "categorical"]
    assert found.response[0].kind == "circular" and found.response[0].period == 360
    (tmp_path / "design.toml").write_text(found.text())
    assert read_design(tmp_path / "design.toml") == found


def test_radians_and_orientations_have_their_periods():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"orientation": rng.uniform(0, 180, 500), "response": rng.uniform(-np.pi, np.pi, 500)})
    found = guess_design(table)
    assert found.stimulus[0].period == 180
    assert found.response[0].period == pytest.approx(2 * np.pi)


BAD = {
    "has no column 'nothing'": {"response": {"column": "nothing"}},
    "must not overlap": {
        "epochs": {"stimulus": {"start": 0, "stop": 0.5}, "delay": {"start": 0.3, "stop": 1.0}, "response": 2.0}
    },
    "more than its period of 90": {"response": {"column": "response", "kind": "circular", "period": 90}},
    "the same value in every trial": {"stimulus": [{"column": "same", "kind": "linear", "epoch": "stimulus"}]},
    "is not an epoch": {"stimulus": [{"column": "direction", "kind": "circular", "epoch": "cue", "period": 360}]},
    "the last epoch": {"stimulus": [{"column": "direction", "kind": "circular", "epoch": "response", "period": 360}]},
    "durations are in seconds": {"epochs": {"stimulus": 250, "response": 2000}},
    "must be positive": {"epochs": {"stimulus": -0.2, "response": 2.0}},
    "the network would see nothing": {"stimulus": [{"column": "direction", "kind": "circular", "period": 360}]},
    "at least two epochs": {"epochs": {"response": 2.0}},
    "should hold numbers": {"stimulus": [{"column": "word", "kind": "linear", "epoch": "stimulus"}]},
    "have no logarithm": {"response": {"column": "signed", "kind": "linear", "log": True}},
    "twice": {"stimulus": [MOTION["stimulus"][0], MOTION["stimulus"][0]]},
}


@pytest.mark.parametrize("words", BAD)
def test_a_malformed_design_gets_a_sentence(words):
    table = motion(300).assign(same=1.0, word="a", signed=np.linspace(-1, 1, 300))
    with pytest.raises(LapsusError, match=words):
        design(table, MOTION | BAD[words])


def test_unknown_keys_and_files_get_a_sentence(tmp_path):
    (tmp_path / "design.toml").write_text('[response]\ncolumn = "x"\nkinds = "circular"\n[epochs]\na = 1.0\nb = 2.0\n')
    with pytest.raises(LapsusError, match="kinds"):
        read_design(tmp_path / "design.toml")
    with pytest.raises(LapsusError, match="no such file"):
        read_table(tmp_path / "nothing.csv")
    (tmp_path / "table.xlsx").write_text("x")
    with pytest.raises(LapsusError, match=r"\.csv, \.tsv or \.parquet"):
        read_table(tmp_path / "table.xlsx")
    with pytest.raises(LapsusError, match="response"):
        guess_design(pd.DataFrame({"a": [1.0, 2.0]}))


def test_missing_responses_are_left_out_and_counted():
    table = motion(400)
    table.loc[:9, "response"] = np.nan
    found = design(table)
    assert len(found) == 390
    assert found.dropped == {"response is missing": 10}
    with pytest.raises(LapsusError, match="at least 200"):
        design(table[:150])


def test_the_previous_trial_is_that_of_the_same_subject():
    table = motion(400).assign(subject=np.repeat([1, 2], 200))
    file = MOTION | {
        "subject": "subject",
        "stimulus": [*MOTION["stimulus"], {"column": "direction", "kind": "circular", "period": 360, "previous": True}],
    }
    found = design(table, file)
    assert len(found) == 398
    previous = next(variable for variable in found.stimuli if variable.name == "previous direction")
    expected = np.concatenate([table.direction[:199], table.direction[200:399]])
    assert previous.decode(found.values["previous direction"]) == pytest.approx(expected)


def test_values_that_mean_nothing_was_shown_are_not_shown():
    table = motion(400)
    table.loc[::2, "direction"] = -999
    file = MOTION | {"stimulus": [MOTION["stimulus"][0] | {"missing": -999}, MOTION["stimulus"][1]]}
    found = design(table, file)
    assert len(found) == 400
    assert np.isnan(found.values["direction"][::2]).all() and np.isfinite(found.values["direction"][1::2]).all()


# --- The density ---


def test_the_projected_normal_is_the_angle_of_a_gaussian():
    for ratio in (1e-3, 0.7, 4.0, 16.0):
        total, _ = integrate.quad(
            lambda angle, ratio=ratio: math.exp(
                log_projected_normal(torch.tensor([angle]).double(), torch.tensor([ratio]).double()).item()
            ),
            -math.pi,
            math.pi,
            points=[0.0],
        )
        assert total == pytest.approx(1.0, abs=1e-6)
    drawn = np.random.default_rng(0).standard_normal((400_000, 2)) + np.array([1.5, 0])
    heights, edges = np.histogram(np.arctan2(drawn[:, 1], drawn[:, 0]), 24, (-np.pi, np.pi), density=True)
    middles = torch.from_numpy((edges[:-1] + edges[1:]) / 2)
    found = log_projected_normal(middles, torch.tensor(1.5).double()).exp().numpy()
    assert found == pytest.approx(heights, abs=0.01)


def test_its_gradient_is_that_of_finite_differences():
    angle = torch.linspace(-3.1, 3.1, 9).double().requires_grad_()
    ratio = torch.linspace(0.1, 12.0, 9).double().requires_grad_()
    assert torch.autograd.gradcheck(log_projected_normal, (angle, ratio))


def random_density(kinds, parts=3, members=2, seed=0):
    responses = tuple(Variable(f"y{k}", kind) for k, kind in enumerate(kinds))
    inputs = (Variable("a", "circular"), Variable("b", "linear"), Variable("c", "categorical", levels=("u", "v")))
    from lapsus.behaviour.learned import sizes

    count = sizes(responses, inputs, 4, parts).count
    weights = 0.8 * np.random.default_rng(seed).standard_normal((members, count))
    return LearnedDensity(responses, inputs, pack(weights), parts=parts, hidden=4, members=members)


@pytest.mark.parametrize("kinds", [("circular",), ("linear",), ("circular", "linear")])
def test_responses_are_drawn_from_the_density(kinds):
    behaviour = random_density(kinds)
    conditions = {"a": torch.tensor([0.4]), "b": torch.tensor([0.3]), "c": torch.tensor([1.0])}
    x_T = behaviour.sample(conditions, 200_000, torch.Generator().manual_seed(0))
    values = behaviour.values(x_T)
    # The mean of 1 over the density of samples is the volume of the space, as far as they cover it.
    edges = {"circular": np.linspace(-np.pi, np.pi, 13), "linear": np.linspace(-1.5, 1.5, 13)}
    sample = np.stack([values[variable.name][0].numpy() for variable in behaviour.responses], 1)
    counts, _ = np.histogramdd(sample, [edges[kind] for kind in kinds])
    fine = {kind: np.linspace(edge[0], edge[-1], 241) for kind, edge in edges.items()}
    middles = [(fine[kind][:-1] + fine[kind][1:]) / 2 for kind in kinds]
    mesh = np.stack([part.ravel() for part in np.meshgrid(*middles, indexing="ij")], 1)
    repeated = {name: value.expand(len(mesh)) for name, value in conditions.items()}
    given = {variable.name: torch.from_numpy(mesh[:, k]) for k, variable in enumerate(behaviour.responses)}
    heights = behaviour.log_density(repeated, given).exp().numpy().reshape([240] * len(kinds))
    cell = np.prod([part[1] - part[0] for part in middles])
    for axis in range(len(kinds)):
        heights = np.add.reduceat(heights, np.arange(0, 240, 20), axis)
    assert heights * cell == pytest.approx(counts / 200_000, abs=0.006)


def test_packed_numbers_come_back_and_damaged_ones_are_refused():
    values = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)
    assert np.array_equal(unpack(pack(values), "x"), values)
    for damaged in ("", "3x4:", "9999999x9999999:abc", pack(values)[:-3]):
        with pytest.raises(LapsusError, match="damaged"):
            unpack(damaged, "behaviour.weights")


@pytest.mark.slow
def test_modes_that_are_there_are_found_and_none_is_invented(few):
    table = motion(2000, opposite=0.05)
    found = fit_density(design(table))
    assert found.kept == "two modes and guesses"
    _, low, high = found.modes.rate
    assert low <= table.flipped.mean() <= high
    assert (found.modes.count == 2).mean() > 0.9
    assert np.degrees(np.nanmedian(np.abs(found.modes.offset))) == pytest.approx(180, abs=15)
    alone = fit_density(design(motion(2000, opposite=0.0)))
    assert (alone.modes.count > 1).mean() <= 0.05
    assert "one mode" in alone.modes.sentence(alone.design.responses[0])


@pytest.mark.slow
def test_the_density_is_calibrated_and_a_wrong_one_is_not(few, tmp_path):
    used = design(motion(2000, opposite=0.05))
    found = fit_density(used)
    inside, low, high = found.coverage(0.9)
    assert 0.88 <= inside <= 0.92 and low < inside < high
    # The same density for other stimuli is wrong.
    shifted = used.only(np.roll(np.arange(len(used)), 7))
    own = found.behaviour.log_density(conditions_of(used), responses_of(used)).mean()
    other = found.behaviour.log_density(conditions_of(shifted), responses_of(used)).mean()
    assert own > other + 1
    save_density(found, tmp_path / "density.json")
    again = load_density(tmp_path / "density.json", used)
    assert torch.equal(
        again.behaviour.mixture(conditions_of(used)).means, found.behaviour.mixture(conditions_of(used)).means
    )
    assert again.sentences() == found.sentences()


def test_basins_are_those_of_brute_force():
    rng = np.random.default_rng(0)
    for closed in (True, False):
        for _ in range(20):
            curve = rng.random(30)
            peak = int(rng.integers(30))
            for place in range(30):
                low, high = sorted((peak, place))
                ways = [curve[low : high + 1].min()]
                if closed:
                    ways.append(min(curve[high:].min(), curve[: low + 1].min()))
                assert density_module._lowest_on_the_way(curve, peak, closed)[place] == max(ways)


def test_two_modes_of_numbers_are_counted():
    weights = np.zeros((1, 8))  # direct [2 features + 1, 2 parts × 3] would be 18: the shape says
    with pytest.raises(LapsusError, match="does not fit"):
        LearnedDensity((Variable("y", "linear"),), (Variable("a", "linear"),), pack(weights), parts=2)
    direct = np.zeros((3, 2, 3))
    direct[-1, :, 1] = [-2.5, 2.5]  # places
    direct[-1, :, 2] = -3.0  # narrow
    two = LearnedDensity((Variable("y", "linear"),), (Variable("a", "linear"),), pack(direct.reshape(1, -1)), parts=2)
    found = modes_of(two, {"a": torch.zeros(3)})
    assert (found.count == 2).all()
    assert found.second == pytest.approx([0.5] * 3, abs=0.02)
    direct[-1, :, 1] = 0.0
    one = LearnedDensity((Variable("y", "linear"),), (Variable("a", "linear"),), pack(direct.reshape(1, -1)), parts=2)
    assert (modes_of(one, {"a": torch.zeros(3)}).count == 1).all()


# --- The task and the network ---


def test_stimuli_are_shown_in_their_epochs_and_only_there():
    used = design(motion(300))
    task = build("task", designed_task(used, 2))
    assert task.epochs == {"stimulus": 5, "delay": 15, "response": 40}
    conditions = task.sample(8, torch.Generator().manual_seed(0))
    encoded = task.encoder(torch.Generator().manual_seed(0))(task.stimuli(conditions))
    assert list(encoded) == ["stimulus"]
    assert encoded["stimulus"].shape == (8, task.stimulus_size)
    table = task.table(conditions)
    assert set(table.columns) == {"direction", "coherence"}
    assert set(table.coherence) <= {"0.2", "0.8"}
    assert table.direction.between(0, 360).all()
    lapsus.check_task(task)


def test_durations_of_the_table_are_those_of_the_trials():
    used = design(intervals(600), INTERVAL)
    task = build("task", designed_task(used, 1))
    for steps in (8, 12, 16, 20):
        own = task.with_steps({"ready": steps})
        assert own.epochs["ready"] == steps
        shown = own.table(own.sample(50, torch.Generator().manual_seed(1))).interval
        assert shown.to_numpy() == pytest.approx(steps * 0.05)


@pytest.fixture(scope="module")
def discovery(tmp_path_factory):
    """A discovery with tiny networks."""
    from lapsus.pipeline import designed

    folder = tmp_path_factory.mktemp("designed")
    motion(400, opposite=0.2).to_csv(folder / "motion.csv", index=False)
    (folder / "motion.toml").write_text(DesignFile.model_validate(MOTION).text())
    patch = pytest.MonkeyPatch()
    tried = [Candidate("two modes and guesses", 3, True, 0), Candidate("one mode", 1, False, 0)]
    patch.setattr(density_module, "candidates", lambda responses: tried)
    patch.setattr(density_module, "_UPDATES", 60)
    patch.setattr(designed, "_PREAMBLE", 4)
    patch.setattr(designed, "_HORIZON", 1)
    patch.setattr(designed, "_updates", lambda describe, seconds, threads: 6)
    said = []
    ask = lambda: designed.discover_design(
        folder / "motion.csv", folder / "motion.toml", output=folder / "found", minutes=1, say=said.append
    )
    found = ask()
    first = found.report.read_text()
    again = ask()
    patch.undo()
    return found, again, first, said


@pytest.mark.slow
def test_a_discovery_goes_from_a_table_to_a_page_and_is_not_repeated(discovery):
    found, again, first, said = discovery
    assert {network.objective for network in found.networks} == {"diffusion", "energy"}
    assert all(not network.match.matched for network in found.networks)  # after six updates
    assert found.sentences[0] == "0 of 2 networks answer as the subjects do."
    assert "Made by lapsus" in first
    assert sum("fitting" in text or text.strip() == "modes and guesses" for text in said) <= 2
    assert again.to_dict() == found.to_dict()
    assert all(network.run.update == network.run.experiment.updates for network in again.networks)


@pytest.mark.slow
def test_what_the_objective_implies_is_said_of_diffusion_alone(discovery):
    from lapsus.report.designed import design_sentences

    networks = discovery[0].networks
    said = "this follows from the objective"
    assert said in " ".join(design_sentences(networks))
    assert said not in " ".join(design_sentences([n for n in networks if n.objective == "energy"]))


def test_responses_belong_to_the_mode_that_they_are_near():
    direct = np.zeros((4, 2, 5))  # features of an angle, and a constant
    direct[0, 0, 1], direct[1, 0, 2] = 1.0, 1.0  # the first part follows the angle
    direct[0, 1, 1], direct[1, 1, 2] = -1.0, -1.0  # the second is opposite
    direct[-1, 1, 0] = -2.0
    behaviour = LearnedDensity(
        (Variable("y", "circular"),), (Variable("a", "circular"),), pack(direct.reshape(1, -1)), parts=2
    )
    conditions = {"a": torch.tensor([0.0, 1.0, -2.0])}
    near = 2.5 * circular.embed(conditions["a"]).T[:, :, None]
    assert other_mode(behaviour, conditions, near).max() < 0.01
    assert other_mode(behaviour, conditions, -near).min() > 0.99
