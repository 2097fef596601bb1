"""How are the planes of the two items' colours aligned before and after the cue (Fig 3)?"""

from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd
import xarray as xr
from markupsafe import Markup
from matplotlib import colormaps
from matplotlib.axes import Axes

from lapsus.evaluation.sample_sizes import FULL, SampleSizes
from lapsus.evaluation.simulation import Simulated, simulate_design
from lapsus.mechanism.activity import cue_onset, two_items
from lapsus.mechanism.clock import Clock
from lapsus.mechanism.designs import alignment_grid
from lapsus.mechanism.drawing import interval, time_axis
from lapsus.mechanism.plane_alignment import (
    AdjustedAlignment,
    SigmoidFit,
    adjusted_alignment,
    bin_means,
    bootstrap_alignment,
    places,
    plane_alignment,
    pre_and_post_cue,
    shuffle_null,
    sigmoid_against_flat,
)
from lapsus.mechanism.registry import Mechanism, Panel, Question, Term
from lapsus.plots.style import GREY, legend_above
from lapsus.statistics.intervals import limits
from lapsus.tasks import IndexCued
from lapsus.training.model import Model

__all__ = [
    "QUESTION",
    "Planes",
    "alignment_at_places",
    "alignment_by_distance",
    "alignment_panel",
    "network_planes",
    "plane_points",
    "recording_planes",
    "with_bootstrap",
]


@dataclass(frozen=True)
class Planes:
    """|cos| of the two items' colour planes over time: times [time], curve and its s.d. over rotations [distance, time]
    at each probe distance (degrees); before and after the cue [distance]; onset of the cue in steps from its offset.
    shuffled [2, time]: where 95 % of curves of shuffled colours lie (the last distance). These are as published, with
    the bias that lapsus.mechanism.plane_alignment describes; adjusted: without it, of a recording."""

    degrees: tuple[int, ...]
    before: np.ndarray
    after: np.ndarray
    mean_before: float
    mean_after: float
    sigmoid: SigmoidFit
    onset: float
    trials: int
    rotations: int
    times: np.ndarray = field(default_factory=lambda: np.empty(0))
    curve: np.ndarray = field(default_factory=lambda: np.empty((0, 0)))
    sd: np.ndarray = field(default_factory=lambda: np.empty((0, 0)))
    shuffled: np.ndarray = field(default_factory=lambda: np.empty((0, 0)))
    adjusted: AdjustedAlignment | None = None

    def row(self) -> dict:
        """Columns of a table."""
        return {"aligned_before": self.mean_before, "aligned_after": self.mean_after}


def network_planes(model: Model, sizes: SampleSizes = FULL, seed: int = 0) -> Planes:
    """Alignment of the two items' planes over time, at each probe distance (index-cued: one)."""
    index = isinstance(model.task, IndexCued)
    shown = {}
    for k, degrees in enumerate((180,) if index else sizes.degrees):
        conditions = alignment_grid() if index else alignment_grid(np.radians(degrees), sizes.rotations)
        shown[degrees] = simulate_design(model, conditions, 8 if index else 1, seed + k)
    return _planes(shown, None if index else "configuration", sizes.shuffles, seed)


def recording_planes(dataset: xr.Dataset, sizes: SampleSizes = FULL, seed: int = 0) -> Planes:
    """The same of a recording, at each distance between the places of its trials (180° where they are not given)."""
    groups = places(dataset)
    apart = np.degrees(np.nan_to_num(two_items(dataset).probe_distance, nan=np.pi)).round().astype(int)
    shown = {int(degrees): dataset.isel(trial=np.flatnonzero(apart == degrees)) for degrees in np.unique(apart)}
    adjusted = adjusted_alignment(_from_stimulus(dataset), groups=groups, repeats=sizes.shuffles, seed=seed)
    return replace(_planes(shown, groups, sizes.shuffles, seed), adjusted=adjusted)


def _planes(datasets: dict[int, xr.Dataset], groups: str | None, shuffles: int, seed: int) -> Planes:
    """Of trials at each probe distance (degrees); null of the last."""
    shown = [_from_stimulus(dataset) for dataset in datasets.values()]
    curves = [plane_alignment(dataset, groups=groups) for dataset in shown]
    time = curves[0]["time"].to_numpy()
    null = shuffle_null(shown[-1], repeats=shuffles, seed=seed, groups=groups)
    mean = np.stack([curve.mean("group").to_numpy() for curve in curves])
    before, after = (
        np.array(values) for values in zip(*((a.mean(), b.mean()) for a, b in map(pre_and_post_cue, curves)))
    )
    return Planes(
        degrees=tuple(datasets),
        before=before,
        after=after,
        mean_before=float(before.mean()),
        mean_after=float(after.mean()),
        sigmoid=sigmoid_against_flat(time, mean),
        onset=float(cue_onset(shown[-1])),
        trials=shown[-1].sizes["trial"],
        rotations=curves[0].sizes["group"],
        times=time,
        curve=mean,
        sd=np.stack([curve.std("group").to_numpy() for curve in curves]),
        shuffled=limits(null.to_numpy()),
    )


def with_bootstrap(dataset: xr.Dataset, repeats: int) -> xr.Dataset:
    """`alignment [time]` of any recording or simulation, and its bootstrap samples `resampled [repeat, time]`."""
    alignment = plane_alignment(dataset).isel(group=0, drop=True)
    resampled = bootstrap_alignment(dataset, repeats=repeats)
    return xr.Dataset({"alignment": alignment, "resampled": resampled}, attrs={"trials": dataset.sizes["trial"]})


def alignment_at_places(simulated: Simulated, trials: int, repeats: int) -> xr.Dataset:
    """`with_bootstrap` of a network whose items have fixed places (index-cued), from the stimuli on."""
    return with_bootstrap(_from_stimulus(simulated(alignment_grid(), trials, seed=5)), repeats)


def alignment_by_distance(simulated: Simulated, degrees: tuple[int, ...], rotations: int) -> xr.DataArray:
    """Alignment over time of a feature-cued network: [distance (degrees), rotation, time], from the stimuli on."""
    found = []
    for k, apart in enumerate(degrees):
        conditions = alignment_grid(np.radians(apart), rotations)
        dataset = _from_stimulus(simulated(conditions, 1, seed=6 + k))
        found.append(plane_alignment(dataset, groups="configuration").rename(group="rotation"))
    return xr.concat(found, pd.Index(degrees, name="distance"), coords="minimal", compat="override").assign_attrs(
        trials=len(conditions["cued"]) // rotations
    )


def plane_points(simulated: Simulated, degrees: float | None, time: float, trials: int) -> xr.DataArray:
    """Mean activity for each cued item and reported colour in three components (Fig 3A, B): [item, bin, component].
    degrees: between the places, None for index-cued networks."""
    apart = None if degrees is None else float(np.radians(degrees))
    return bin_means(simulated(alignment_grid(apart, 1), trials, seed=12), time)


def _from_stimulus(dataset: xr.Dataset) -> xr.Dataset:
    """Without the steps before anything is shown: there is no plane yet."""
    return dataset.isel(time=np.flatnonzero(~np.isin(dataset["epoch"].to_numpy(), ("initial", "prestimulus"))))


# --- Words and panels ---


def _sentence(found: Planes, _: Mechanism) -> str:
    text = "Planes: "
    if (right := found.adjusted) is not None:
        text += (
            f"|cos| of the two items' planes, the other colour removed, is {interval(right.before)} before the cue and"
            f" {interval(right.after)} after it; shuffled colours give {interval(right.null_before)} and"
            f" {interval(right.null_after)}. The published statistic, which has a bias, gives"
        )
    else:
        text += "the planes of the two items' colours have |cos|"
    text += f" {found.mean_before:.2f} before the cue and {found.mean_after:.2f} after it"
    if len(found.degrees) > 1:
        text += f" ({found.before[0]:.2f} for items {found.degrees[0]}° apart and {found.before[-1]:.2f} for"
        text += f" {found.degrees[-1]}°, before it)"
    return text + "."


def alignment_panel(ax: Axes, found: Planes, clock: Clock = Clock(), *, spread: bool = True) -> Axes:  # noqa: B008
    """|cos| of the two items' planes, one line per probe distance (with its s.d. over rotations), and what shuffled
    colours give."""
    times = clock.shown(found.times)
    shades = colormaps["viridis"](np.linspace(0.1, 0.8, len(found.curve)))
    for shade, degrees, mean, sd in zip(shades, found.degrees, found.curve, found.sd):
        if spread:
            ax.fill_between(times, mean - sd, mean + sd, color=shade, alpha=0.18, lw=0)
        ax.plot(times, mean, color=shade, label=f"{degrees}°")
    if len(found.shuffled):
        ax.fill_between(times, *found.shuffled, color=GREY, alpha=0.2, lw=0, label="shuffled")
    else:
        ax.axhline(0.5, color=GREY, lw=0.5, ls=(0, (3, 2)))
    ax.set_yticks([0, 0.5, 1])
    if len(found.curve):
        legend_above(ax, columns=3)
    return time_axis(ax, clock, "plane alignment |cos|", found.onset, bottom=0)


QUESTION = Question(
    name="alignment",
    title="How are the two items' planes aligned?",
    definition="|cos| of the angle between the planes in which the colours of the two items are held.",
    in_recording="The same planes are fitted to a recording whose items have the same places in many trials.",
    answer=Planes,
    ask=lambda network: network_planes(network.model, network.sizes, network.seed),
    read=lambda recording: recording_planes(recording.dataset, recording.sizes, recording.seed),
    sentence=_sentence,
    panels=lambda answer, found: [Panel(lambda ax: alignment_panel(ax, answer, found.clock))],
    caption=(
        "Alignment of the planes that hold the two items' colours (1 parallel, 0 perpendicular; grey: 95 % of curves"
        " whose colours were shuffled), mean ± s.d. over rotations of the places."
    ),
    unknown="How the planes of the two colours are aligned cannot be said",
    default=False,
    needs_swaps=False,
    terms=(
        Term(
            "plane alignment",
            "each item's colour moves activity within a plane; |cos| is 1 where the two planes are parallel, 0 where"
            " they are perpendicular, about 0.5 where they have nothing to do with each other.",
            "A decoder of one item's colour works for the other one where planes are aligned, and fails elsewhere.",
            Markup('<path d="M6 40l30-10 24 8-30 10zM6 20l30-10 24 8-30 10z"/><path d="M72 6v36l16-8V-2z"/>'),
            r"\bplanes\b|\|cos\|",
        ),
    ),
    statistics={
        "mean_before": "Plane alignment |cos| before the cue",
        "mean_after": "Plane alignment |cos| after the cue",
    },
    gallery=lambda found: f"planes aligned {found.mean_before:.2f} before the cue, {found.mean_after:.2f} after",
)
