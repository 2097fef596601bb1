"""Every figure from networks with a known mechanism: drawn, saved, and judged as built; and from networks that lack
what it needs."""

import json

import matplotlib
import numpy as np
import pandas as pd
import pytest
from figure_files import check_figure
from synthetic_networks import SyntheticNetworks
from typer.testing import CliRunner

matplotlib.use("agg")

from matplotlib import pyplot as plt

from lapsus.analysis.activity import items
from lapsus.circular import distance
from lapsus.errors import LapsusError
from lapsus.paper import claims, fig2, fig3, fig4, prediction, schematics
from lapsus.paper.reproduce import FIGURES, reproduce
from lapsus.paper.roles import LABELS, Networks, role_of
from lapsus.paper.verdicts import criteria
from lapsus.plots.style import WHEEL, style
from lapsus.study import designs


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Sizes that take seconds; what is drawn is the same."""
    monkeypatch.setattr(fig2, "FITTED_TRIALS", 0)
    monkeypatch.setattr(fig3, "ROTATIONS", 2)
    monkeypatch.setattr(fig3, "DEGREES", (45, 165))
    monkeypatch.setattr(prediction, "DEGREES", (45, 165))
    monkeypatch.setattr(fig3, "REPEATS", 20)
    monkeypatch.setattr(fig3, "INDEX_TRIALS", 2)
    monkeypatch.setattr(fig4, "DECODED_TRIALS", 800)
    monkeypatch.setattr(fig4, "COLOURS", 4)
    monkeypatch.setattr(fig4, "ROTATIONS", 1)
    monkeypatch.setattr(prediction, "ROTATIONS", 1)
    monkeypatch.setattr(claims, "REPEATS", 60)
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def networks():
    return SyntheticNetworks()


@pytest.mark.parametrize("name", ["task", "fig2", "fig4", "table1", "unimodal", "cyclic", "schedule"])
def test_figure_is_saved_with_its_numbers(name, networks, tmp_path):
    found = reproduce(networks, [name], tmp_path)
    check_figure(tmp_path, name)
    tables = [pd.read_csv(path) for path in tmp_path.glob(f"{name}*.csv")]
    assert name == "task" or tables
    for table in tables:
        numbers = table.select_dtypes("number")
        assert len(table) and numbers.notna().any().all(), "a column without a single number"
    assert all(claim.value is not None for claim in found)


def test_claims_follow_the_mechanism_that_was_built_in(networks):
    """Swaps are misselections; targets are met exactly; planes turn parallel with swaps only; PC3 turns by half the
    fixed colour."""
    found = {claim.id: claim for claim in claims.evaluate_claims(networks, {"fig2", "fig3", "fig4", "unimodal"})}
    for id in (
        "swap-function-smooth-0",
        "swap-function-constant-05",
        "optimal-unimodal",
        "noise-removal",
        "mse-averages",
        "mse-one-mode",
        "close-more-aligned",
    ):
        assert found[id].verdict == "holds", found[id]
        assert found[id].low <= found[id].value <= found[id].high


def test_claims_fail_where_the_opposite_was_built_in(networks):
    class Swapping(SyntheticNetworks):
        """The "task-optimal" network swaps, and the one trained with squared error too."""

        def responses(self, role, conditions, trials, **options):
            played = (
                "feature-constant-30"
                if role.endswith("optimal")
                else "feature-smooth-0"
                if role.endswith("mse")
                else role
            )
            return super().responses(played, conditions, trials, **options)

    found = {claim.id: claim for claim in claims.evaluate_claims(Swapping(), {"fig2", "unimodal"})}
    for id in ("optimal-unimodal", "mse-one-mode"):
        assert found[id].verdict == "does not hold", found[id]


def test_every_claim_can_be_computed_and_belongs_to_a_figure():
    assert set(claims.CLAIMS) <= set(criteria())
    assert {figure for figure, _ in claims.CLAIMS.values()} <= set(FIGURES)


def test_without_networks_figures_say_so_and_claims_are_undecided(tmp_path):
    empty = SyntheticNetworks(())
    for claim in reproduce(empty, ["fig2", "fig3", "fig4", "windows", "cyclic", "prediction"], tmp_path):
        assert claim.verdict == "undecided" and claim.statistic.startswith("not computed: no ")


def test_no_swap_trials_are_a_note_in_the_panel():
    class Careful(SyntheticNetworks):
        def _respond(self, role, *args):
            return super()._respond("index-none" if role.startswith("index") else "feature-none", *args)

    fig = fig4.figure(Careful())
    written = [text.get_text().replace("\n", " ") for ax in fig.axes for text in ax.texts]
    assert sum("no swap trials" in text for text in written) >= 4
    prediction_texts = [
        text.get_text().replace("\n", " ") for ax in prediction.figure(Careful()).axes for text in ax.texts
    ]
    assert any("no swap trials" in text for text in prediction_texts)


def test_a_recording_is_drawn_over_the_networks():
    from lapsus.analysis.synthetic import synthetic_population

    fig = fig3.figure(SyntheticNetworks(("index-constant-10",)), synthetic_population(trials=600))
    assert any(
        text.get_text() == "recording" for ax in fig.axes if ax.get_legend() for text in ax.get_legend().get_texts()
    )


def test_unknown_figure_is_refused_with_a_hint(networks):
    with pytest.raises(LapsusError, match="Did you mean fig3"):
        reproduce(networks, ["fig33"])


def test_command_line(monkeypatch, tmp_path):
    from lapsus.cli import app

    monkeypatch.setattr(Networks, "shipped", classmethod(lambda cls, seed: SyntheticNetworks(("feature-none",))))
    result = CliRunner().invoke(app, ["reproduce", "fig2", "--claims-only", "--json"])
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert set(found[0]) == {"id", "claim", "statistic", "value", "low", "high", "paper", "verdict"}
    assert found[0]["id"] == "swap-function-none" and found[0]["verdict"] == "holds"
    result = CliRunner().invoke(app, ["reproduce", "schedule", "-o", str(tmp_path / "out")])
    assert result.exit_code == 0 and (tmp_path / "out" / "schedule.csv").is_file()
    assert isinstance(CliRunner().invoke(app, ["reproduce", "--runs", str(tmp_path / "none")]).exception, LapsusError)


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
        schematics.noise_schedule(plt.figure().add_subplot())
    assert dict(matplotlib.rcParams) == before


def test_fitted_swap_function_recovers_the_target(networks, monkeypatch):
    monkeypatch.setattr(fig2, "FITTED_TRIALS", 600)
    found = fig2.fitted_swap_function(networks, "feature-constant-30")
    assert found["p_low"].mean() < 0.3 < found["p_high"].mean() and found["p_swap"].mean() == pytest.approx(
        0.3, abs=0.07
    )


def test_swap_curves_accept_and_return_axes(networks):
    ax = plt.figure().add_subplot()
    assert fig2.swap_curves(ax, {"feature-smooth-0": fig2.swap_function(networks, "feature-smooth-0")}) is ax


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
    monkeypatch.setattr("lapsus.paper.roles.shipped", lambda which: there if which == "paper" else {})
    assert Networks.shipped(which="persistent").sources == {}
    assert Networks.shipped().sources == {"index-none": "a", "index-optimal": "b"}
    assert Networks.shipped(2).sources == {"index-none": "a@2", "index-optimal": "b"}
    with pytest.raises(LapsusError, match="seeds 1, 2"):
        Networks.shipped(3)
