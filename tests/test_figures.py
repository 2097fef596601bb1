"""Every figure from networks with a known mechanism: drawn, saved, and judged as built; and from networks that lack
what it needs."""

import json
import tomllib
from dataclasses import replace
from importlib.resources import files

import matplotlib
import numpy as np
import pandas as pd
import pytest
from figure_files import check_figure
from synthetic_networks import SyntheticNetworks
from typer.testing import CliRunner

matplotlib.use("agg")

from matplotlib import pyplot as plt

from lapsus.circular import distance
from lapsus.cli import app
from lapsus.errors import LapsusError, LapsusWarning
from lapsus.evaluation.sample_sizes import QUICK_FIGURES
from lapsus.mechanism import designs
from lapsus.mechanism.activity import items
from lapsus.networks import DendriticTree
from lapsus.paper import claims, cyclic, fig2, fig3, fig4, prediction, schedule
from lapsus.paper.reproduce import FIGURES, reproduce
from lapsus.paper.roles import LABELS, Networks, role_of
from lapsus.paper.verdicts import criteria
from lapsus.plots.style import WHEEL, style
from lapsus.tasks import CueCombination, FeatureCued


@pytest.fixture(autouse=True)
def closed_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def networks():
    return SyntheticNetworks()


SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in ("fig2", "fig4", "table1", "architecture", "cyclic")]


@pytest.mark.parametrize("name", ["task", "bns", *SLOW, "unimodal", "schedule"])
def test_figure_is_saved_with_its_numbers(name, networks, tmp_path):
    found = reproduce(networks, [name], tmp_path)
    check_figure(tmp_path, name)
    assert (tmp_path / f"{name}.csv").exists() != (name in ("task", "architecture", "bns"))  # drawings have no numbers
    for path in tmp_path.glob("*.csv"):
        table = pd.read_csv(path)
        numbers = table.select_dtypes("number").drop(columns=["x", "y", "low", "high"], errors="ignore")
        assert len(table) and numbers.notna().any().all(), "a column without a single number"
    assert all(claim.value is not None for claim in found)


@pytest.mark.slow
def test_claims_follow_the_mechanism_that_was_built_in(networks):
    """Swaps are misselections; targets are met exactly; planes turn parallel with swaps only; PC3 turns by half the
    fixed colour."""
    found = {claim.id: claim for claim in claims.evaluate_claims(networks, {"fig2", "fig3", "fig4", "unimodal"})}
    for id in (
        "swap-function-smooth-0",
        "swap-function-constant-05",
        "optimal-unimodal",
        "distance-ablation",
        "noise-ablation",
        "noise-removal",
        "mse-averages",
        "mse-one-mode",
        "index-rise-10",
        "index-rise-only",
        "index-stays-high",
        "close-more-aligned",
        "not-misbinding",
        "after-cue",
        "two-rings",
        "rings-apart",
        "normal-above-random",
        "normal-either-role",
        "normal-shared",
        "normal-separates",
        "axis-separates",
        "architecture-two-layer",
    ):
        assert found[id].verdict == "holds", found[id]
        assert found[id].low <= found[id].value <= found[id].high


def test_the_network_is_the_unit():
    one = claims.judge_networks("normal-separates", {"a": (0.9, 0.88, 0.92)})
    assert (one.verdict, one.networks, one.holding) == ("holds", 1, 1.0)
    values = (0.95, 0.94, 0.96), (0.9, 0.89, 0.91), (0.6, 0.58, 0.62)
    three = claims.judge_networks("normal-separates", dict(zip(("a", "a@2", "a@3"), values)))
    assert (three.verdict, three.networks, three.seeds) == ("undecided", 3, 3)
    assert three.holding == pytest.approx(2 / 3)
    # By hand: Student's interval of three values.
    assert three.value == pytest.approx(np.mean([0.95, 0.9, 0.6]))
    half = 4.302653 * np.std([0.95, 0.9, 0.6], ddof=1) / np.sqrt(3)
    assert (three.low, three.high) == pytest.approx((three.value - half, three.value + half), rel=1e-5)
    # Networks of one seed are no further units: many of them make no interval narrower.
    alone = claims.judge_networks("normal-separates", dict(zip("abc", values)))
    assert (alone.seeds, alone.networks, alone.low, alone.high, alone.verdict) == (1, 3, 0.58, 0.96, "undecided")
    twice = {name: (v, v - 0.01, v + 0.01) for name, v in (("a", 0.95), ("b", 0.85), ("a@2 + b@2", 0.9))}
    both = claims.judge_networks("normal-separates", twice)
    assert (both.seeds, both.networks) == (2, 3) and both.low == pytest.approx(both.high) == pytest.approx(0.9)

    class Seed(SyntheticNetworks):
        """The first seed has both roles, the second only one of its own."""

        def __init__(self, sources):
            super().__init__(tuple(sources))
            object.__setattr__(self, "sources", sources)

    sets = [
        Seed({"feature-smooth-0": "a", "feature-none": "b"}),
        Seed({"feature-smooth-0": "a", "feature-none": "b@2"}),
    ]
    found = {claim.id: claim for claim in claims.evaluate_claims(sets, {"fig2"})}
    assert found["swap-function-none"].networks == found["swap-function-none"].seeds == 2
    assert found["swap-function-smooth-0"].networks == 1


def test_drawings_show_the_defaults_of_the_classes():
    """Numbers in schematics.toml that the package also has."""
    drawn = tomllib.loads((files("lapsus.paper") / "schematics.toml").read_text(encoding="utf-8"))
    said = {name: " ".join(item["text"] for item in one["items"] if "text" in item) for name, one in drawn.items()}
    inner, outer = DendriticTree(1).branching
    for text in (f"{inner * outer} leaves", f"{inner} branches", f"n = {DendriticTree(1).units}"):
        assert text in said["neuron"]
    for name, task in (("task", FeatureCued()), ("cues", CueCombination())):
        for steps in task.epochs.values():
            assert f"{steps} steps, {0.05 * steps:.2f} s" in said[name]
    lengths = [item["rectangle"][2] for item in drawn["timeline"]["items"] if "rectangle" in item]
    assert lengths == list(FeatureCued().epochs.values())


def test_every_claim_can_be_computed_and_belongs_to_a_figure():
    assert set(claims.CLAIMS) == set(criteria())
    assert {test.figure for test in claims.CLAIMS.values()} <= set(FIGURES)


@pytest.mark.slow
def test_without_networks_there_are_no_empty_figures_and_claims_are_not_tested(tmp_path):
    empty = SyntheticNetworks(())
    for name, reason in (("fig2", "no feature-cued diffusion network"), ("prediction", "no network feature-smooth-2")):
        with pytest.warns(LapsusWarning, match=f"{name} is not drawn, as it would be empty: {reason}."):
            reproduce(empty, [name], tmp_path)
    # fig4 begins with a scheme, which needs no network.
    for claim in reproduce(empty, ["fig4"], tmp_path):
        assert claim.verdict == "not tested" and claim.statistic.startswith("not computed: no ")
    assert {path.name for path in tmp_path.iterdir()} == {"fig4.pdf", "fig4.png", "fig4.csv"}


def test_progress_names_every_step_and_the_share_before_it(tmp_path):
    """Shares begin at nothing, never fall and do not reach all before the last step is done."""
    empty, told = SyntheticNetworks(()), []
    with pytest.warns(LapsusWarning, match="cyclic is not drawn"):
        found = reproduce(
            empty, ["schedule", "cyclic"], tmp_path, further=[empty], progress=lambda *step: told.append(step)
        )
    names, shares = zip(*told)
    assert names == ("schedule", "cyclic", *(f"claim {claim.id}" for claim in found)) and len(found) >= 1
    assert shares[0] == 0 and list(shares) == sorted(shares) and shares[-1] < 1


def test_an_interrupt_says_what_was_kept_and_how_to_go_on(tmp_path, monkeypatch):
    def cut_off(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(cyclic, "figure", cut_off)
    said = CliRunner().invoke(app, ["reproduce", "schedule", "cyclic", "-o", str(tmp_path)])
    assert said.exit_code == 130 and f"what is in {tmp_path} is whole" in said.output
    assert "`lapsus reproduce cyclic` makes the rest" in said.output and (tmp_path / "schedule.pdf").exists()


@pytest.mark.slow
def test_no_swap_trials_are_a_note_in_the_panel():
    class Careful(SyntheticNetworks):
        def _respond(self, role, *args):
            return super()._respond("index-none" if role.startswith("index") else "feature-none", *args)

    fig = fig4.figure(Careful())
    written = [text.get_text().replace("\n", " ") for ax in fig.axes for text in ax.texts]
    assert sum("no swap trials" in text for text in written) >= 3
    prediction_texts = [
        text.get_text().replace("\n", " ") for ax in prediction.figure(Careful()).axes for text in ax.texts
    ]
    assert any("no swap trials" in text for text in prediction_texts)


@pytest.mark.slow
def test_a_recording_is_drawn_over_the_networks():
    from lapsus.mechanism.synthetic import synthetic_population

    fig = fig3.figure(SyntheticNetworks(("index-constant-10",)), synthetic_population(trials=600))
    assert any(
        text.get_text() == "recording" for ax in fig.axes if ax.get_legend() for text in ax.get_legend().get_texts()
    )


def test_unknown_figure_is_refused_with_a_hint(networks):
    with pytest.raises(LapsusError, match="Did you mean fig3"):
        reproduce(networks, ["fig33"])


@pytest.mark.slow
def test_command_line(monkeypatch, tmp_path):
    made = lambda cls, collection, folders=(), trust=False: [SyntheticNetworks(("feature-none",))]
    monkeypatch.setattr(Networks, "every_seed", classmethod(made))
    result = CliRunner().invoke(app, ["reproduce", "fig2", "--claims-only", "--json"])
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    keys = {"id", "claim", "statistic", "value", "low", "high", "paper", "verdict"}
    keys |= {"networks", "seeds", "holding", "each"}
    assert set(found[0]) == keys
    assert found[0]["id"] == "swap-function-none" and found[0]["verdict"] == "holds"
    result = CliRunner().invoke(app, ["reproduce", "schedule", "-o", str(tmp_path / "out")])
    assert result.exit_code == 0 and (tmp_path / "out" / "schedule.csv").is_file()
    result = CliRunner().invoke(app, ["reproduce", "--runs", str(tmp_path / "none")])
    assert result.exit_code == 2 and "is not a folder" in result.output


# --- Designs and roles ---


def test_alignment_grid_holds_all_pairs_beyond_the_margin_with_both_cues():
    found = designs.alignment_grid(np.radians(75), 3)
    assert len(found["cued"]) == 3 * 24 * 19 * 2 and found["cued"].mean() == 0.5
    assert distance(found["report"][:, 0], found["report"][:, 1]).min() >= np.pi / 4 - 1e-9
    np.testing.assert_allclose(distance(found["probe"][:, 0], found["probe"][:, 1]), np.radians(75))


def test_ring_design_fixes_one_colour():
    found = designs.ring_design(np.array([0.5, -1.0]), np.array([[0, 1.0], [0, 2.0]]))
    for colour, value in enumerate((0.5, -1.0)):
        assert np.unique(found["report"][found["fixed_colour"] == colour, 0]) == pytest.approx(value)


def test_shipped_experiments_fill_every_role():
    from lapsus.training.experiment import read_experiment, shipped_experiments

    roles = {role_of(read_experiment(name).model_dump(exclude_none=True)) for name in shipped_experiments()}
    assert set(LABELS) - {"feature-constant-08"} <= roles


def test_untrained_network_goes_through_the_same_door():
    from lapsus.training import Model, read_experiment

    model = Model.of(read_experiment("index-swap-10")).requires_grad_(False)
    found = Networks({"index-constant-10": lambda: model})
    dataset = found.simulate("index-constant-10", designs.alignment_grid(), 1)
    assert dataset.sizes["trial"] == 912 and "configuration" in dataset
    light = found.responses("index-constant-10", 64, 4)
    assert light["probability"].to_numpy() == pytest.approx(0.1) and items(light).swap.shape == (256,)


# --- Style ---


def test_wheel_has_even_lightness_and_closes():
    colours = WHEEL.colors
    luminance = np.where(colours <= 0.04045, colours / 12.92, ((colours + 0.055) / 1.055) ** 2.4) @ [
        0.2126,
        0.7152,
        0.0722,
    ]
    assert luminance.std() / luminance.mean() < 0.06
    assert np.abs(colours[0] - colours[-1]).max() < 0.05


def test_style_leaves_the_users_settings_alone():
    before = dict(matplotlib.rcParams)
    with style():
        schedule.figure(SyntheticNetworks(()))
    assert dict(matplotlib.rcParams) == before


@pytest.mark.slow
def test_fitted_swap_function_recovers_the_target():
    networks = SyntheticNetworks(("feature-constant-30",), replace(QUICK_FIGURES, fitted_trials=600))
    found = fig2.fitted_swap_function(networks, "feature-constant-30")
    assert found["p_low"].mean() < 0.3 < found["p_high"].mean() and found["p_swap"].mean() == pytest.approx(
        0.3, abs=0.07
    )


def test_swap_curves_accept_and_return_axes(networks):
    ax = plt.figure().add_subplot()
    assert fig2.swap_curves(ax, {"feature-smooth-0": fig2.swap_function(networks, "feature-smooth-0")}) is ax


@pytest.mark.parametrize("collection", ["paper", "persistent"])
def test_claims_take_whatever_seeds_of_a_collection_ship(collection):
    sets = Networks.every_seed(collection)
    assert len(sets) >= 3 and all(one.loaders for one in sets)
    assert len({one.sources["feature-none"] for one in sets}) == len(sets)


def test_networks_of_another_seed_are_taken_where_they_are(monkeypatch):
    def facts(name, seed, kind):
        return {
            "config": {
                "name": name,
                "seed": seed,
                "task": {"kind": "index-cued"},
                "behaviour": {"kind": "bns"},
                "stage": [{"updates": 10, "objective": {"kind": kind}}],
            }
        }

    there = {"a": facts("a", 1, "diffusion"), "a@2": facts("a", 2, "diffusion"), "b": facts("b", 1, "task-optimal")}
    monkeypatch.setattr("lapsus.paper.roles.shipped", lambda collection: there if collection == "paper" else {})
    assert Networks.shipped(collection="persistent").sources == {}
    assert Networks.shipped().sources == {"index-none": "a", "index-optimal": "b"}
    assert Networks.shipped(2).sources == {"index-none": "a@2", "index-optimal": "b"}
    with pytest.raises(LapsusError, match="seeds 1, 2"):
        Networks.shipped(3)
