"""The page of a discovery with a design, and its figures."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lapsus import circular
from lapsus.designs import Variable
from lapsus.evaluation.design_match import DesignMatch, Group, groups_of, responses_to_trials
from lapsus.files import to_toml
from lapsus.fitting.density import DensityFit, conditions_of
from lapsus.mechanism.clock import Clock
from lapsus.mechanism.designed import DesignMechanism
from lapsus.mechanism.drawing import percent
from lapsus.plots.panels import Picture, picture
from lapsus.plots.style import BLACK, BLUE, GREY, PAGE_POINTS, VERMILION, lettered, style
from lapsus.report.page import MARK, render
from lapsus.report.parts import shortened, table, versions
from lapsus.zoo import Run

__all__ = ["DesignNetwork", "calibration_figure", "density_figure", "design_page", "design_sentences"]


@dataclass(frozen=True)
class DesignNetwork:
    """One network: its run, how it compares with the density and the data, and its mechanism."""

    run: Run
    objective: str
    match: DesignMatch
    mechanism: DesignMechanism | None
    without: str = ""


def design_sentences(networks: list[DesignNetwork]) -> list[str]:
    """What networks agree on, where they differ, and what follows from their objectives alone."""
    matched = [network for network in networks if network.match.matched]
    said = [f"{len(matched)} of {len(networks)} networks answer as the subjects do."]
    for network in networks:
        found = network.mechanism
        if found is None:
            said.append(f"{network.run.path.name}: {network.without}.")
            continue
        what = "the mode that a response belongs to" if found.outcome == "mode" else "the variance of responses"
        fixed = percent(found.commitment.at(0.0))
        text = f"{network.run.path.name}: {fixed} of {what} is fixed when the response epoch begins"
        carried = found.transplant
        if carried is not None and carried.carrier is not None:
            parts = {"x": "the forming response carries it", "m": "memory carries it", "neither": "neither part alone"}
            text += f"; {parts[carried.carrier]}"
        said.append(f"{text}{'' if network.match.matched else ' (not matched: do not interpret)'}.")
    if any(network.objective == "diffusion" for network in networks):
        said.append(
            "Under the diffusion objective, noise before the response epoch cannot decide the response: this follows"
            " from the objective, whatever the data."
        )
    if len({network.objective for network in matched}) > 1:
        said.append("Where matched networks of both objectives differ, behaviour does not determine the mechanism.")
    return said


# Colours of the objectives' networks, and what is drawn in black and grey.
_COLOURS = {"diffusion": BLUE, "energy": VERMILION}
_MOST_GROUPS, _BINS, _SAMPLES = 4, 36, 32


def _deviations(variable: Variable, values: np.ndarray, middle: np.ndarray) -> np.ndarray:
    """Responses minus their expected value: radians, or the table's own unit."""
    if variable.kind == "circular":
        return np.asarray(circular.wrap(values - middle)) * variable.period / (2 * np.pi)
    return variable.decode(values) - variable.decode(middle)


class _Responses:
    """Responses of the data, the density and networks to the same trials, as deviations from the density's mean."""

    def __init__(self, density: DensityFit, networks: Sequence[DesignNetwork] = (), seed: int = 0):
        design = density.design
        rows = np.arange(len(design))
        if len(rows) > 2000:
            rows = np.sort(np.random.default_rng(seed).choice(rows, 2000, replace=False))
        self.design = design.only(rows)
        behaviour = density.behaviour
        conditions = conditions_of(self.design)
        drawn = behaviour.sample(conditions, _SAMPLES, torch.Generator().manual_seed(seed))
        means = behaviour.values(behaviour.optimal(conditions).T[:, :, None])
        sources = {"density": drawn}
        for network in networks:
            sources[network.objective] = responses_to_trials(network.run.model(), design, rows, _SAMPLES, seed)
        self.of: dict[str, dict[str, np.ndarray]] = {}
        for variable in behaviour.responses:
            middle = means[variable.name].numpy()
            own = {"data": _deviations(variable, self.design.values[variable.name][:, None], middle)}
            for name, x_T in sources.items():
                own[name] = _deviations(variable, behaviour.values(x_T)[variable.name].numpy(), middle)
            self.of[variable.name] = own


def density_figure(density: DensityFit, networks: Sequence[DesignNetwork] = ()) -> Figure:
    """Responses about their expected value, by response (rows) and by group of trials (columns): data, density,
    networks."""
    found = _Responses(density, networks)
    groups = groups_of(found.design)[:_MOST_GROUPS]
    variables = density.behaviour.responses
    with style(PAGE_POINTS):
        figure, axes = plt.subplots(
            len(variables),
            len(groups),
            figsize=(2.1 * len(groups) + 0.4, 1.75 * len(variables) + 0.3),
            layout="constrained",
            squeeze=False,
            sharex="row",
            sharey="row",
        )
        for row, variable in zip(axes, variables):
            for ax, group in zip(row, groups):
                _histograms(ax, variable, found.of[variable.name], group)
            row[0].set_ylabel(f"{lettered(variable.name)}\ndensity")
        for ax, group in zip(axes[0], groups):
            ax.set_title(f"{lettered(group.name)} ({len(group.rows):,})")
        handles, labels = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=len(labels))
    return figure


def _histograms(ax: Axes, variable: Variable, sources: dict[str, np.ndarray], group: Group) -> None:
    """The data as grey bars, everything else as steps."""
    if variable.kind == "circular":
        edges = np.linspace(-variable.period / 2, variable.period / 2, _BINS + 1)
    else:
        low, high = np.quantile(sources["data"], [0.002, 0.998])
        edges = np.linspace(low, high, _BINS + 1)
    for name, values in sources.items():
        heights = np.histogram(values[group.rows], edges, density=True)[0]
        if name == "data":
            ax.stairs(heights, edges, fill=True, color="0.8", label="data")
        else:
            colour, line = (BLACK, (0, (3, 2))) if name == "density" else (_COLOURS.get(name, GREY), "-")
            ax.stairs(heights, edges, color=colour, ls=line, lw=1.1, label=_LABELS.get(name, name))
    ax.set_yscale("symlog", linthresh=0.02 * float(ax.get_ylim()[1]))
    ax.set_xlabel("response − expected" + _UNITS.get(variable.period if variable.kind == "circular" else 0.0, ""))


# Period of an angle → how its unit is written.
_UNITS = {2 * np.pi: " (rad)", 180.0: " (degrees)", 360.0: " (degrees)"}
_LABELS = {"density": "learned density", "diffusion": "network, diffusion", "energy": "network, energy"}


def calibration_figure(density: DensityFit) -> Figure:
    """Coverage of held-out responses by regions of each probability, and their positions in the density."""
    with style(PAGE_POINTS):
        figure, axes = plt.subplots(
            1, 1 + len(density.position), figsize=(2.4 * (1 + len(density.position)), 2.1), layout="constrained"
        )
        levels = np.linspace(0.05, 0.99, 20)
        axes[0].plot([0, 1], [0, 1], color=GREY, lw=0.7)
        axes[0].plot(levels, [density.coverage(level)[0] for level in levels], "o-", ms=2.5, color=BLUE)
        axes[0].set(xlabel="probability of the region", ylabel="held-out responses inside", aspect="equal")
        for ax, (name, values) in zip(axes[1:], density.position.items()):
            ax.hist(values, 20, range=(0, 1), density=True, color="0.8")
            ax.axhline(1, color=GREY, lw=0.7)
            ax.set(xlabel="probability of a smaller response", ylabel="density", title=lettered(name))
    return figure


def _mechanism_figure(networks: Sequence[DesignNetwork]) -> Figure | None:
    """When the outcome is fixed and what carries it, one line per network."""
    answered = [network for network in networks if network.mechanism is not None]
    if not answered:
        return None
    clock = Clock()
    with style(PAGE_POINTS):
        figure, (when, carried) = plt.subplots(1, 2, figsize=(6.9, 2.3), layout="constrained", width_ratios=[2.2, 1])
        for place, network in enumerate(answered):
            assert network.mechanism is not None
            colour, curve = _COLOURS.get(network.objective, GREY), network.mechanism.commitment
            times = clock.shown(curve.times)
            when.fill_between(times, curve.low, curve.high, color=colour, alpha=0.2, lw=0)
            when.plot(times, curve.share, "o-", ms=2.5, color=colour, label=lettered(network.run.path.name))
            moved = network.mechanism.transplant
            if moved is None:
                continue
            for shift, (value, low, high), label in (
                (-0.12, moved.carried_by_m, "memory"),
                (0.12, moved.carried_by_x, "response"),
            ):
                filled = colour if label == "memory" else "white"
                carried.plot([low, high], [place + shift] * 2, color=colour, lw=1.2)
                carried.plot(value, place + shift, "o", color=colour, mfc=filled, ms=4)
        when.axvline(0, color=GREY, lw=0.6, ls=(0, (3, 2)))
        when.set(xlabel="time from the onset of the response epoch (s)", ylabel="share of the outcome fixed")
        when.set_ylim(-0.05, 1.05)
        when.legend(loc="upper left")
        carried.set(yticks=range(len(answered)), ylim=(len(answered) - 0.5, -0.5), xlim=(-0.15, 1.15))
        carried.set_yticklabels([lettered(network.run.path.name) for network in answered])
        carried.set_xlabel("share carried")
        carried.set_title("● memory, ○ response")
    return figure


def design_page(density: DensityFit, networks: Sequence[DesignNetwork], sentences: list[str], source: str) -> str:
    """The page of a discovery with a design."""
    mechanism = _mechanism_figure(networks)
    pictures: dict[str, Picture | None] = {
        "density": picture(
            density_figure(density, _one_each(networks)),
            "Responses about their expected value. Grey: data. Dashed: learned density. Lines: networks, shown the same"
            " trials. The axis is logarithmic above a fiftieth of the highest value, so that rare modes show.",
        ),
        "calibration": picture(
            calibration_figure(density),
            "Calibration on held-out trials. Left: share of responses in regions of each probability. Right: the"
            " density's probability of a smaller response, which is uniform where the density is right.",
        ),
        "mechanism": None
        if mechanism is None
        else picture(
            mechanism,
            "Left: share of the outcome that noise up to each time has fixed, with 95 % bands over conditions. Right:"
            " share of the difference between unlike trials of one condition that memory and the forming response take"
            " along when they are transplanted.",
        ),
    }
    compared = density.comparison
    context: dict[str, Any] = {
        "title": f"{' and '.join(v.name for v in density.behaviour.responses)}: a mechanism from a design",
        "source": shortened(source),
        "sentences": sentences,
        "fitted": density.sentences(),
        "pictures": pictures,
        "comparison": table(
            "Densities compared on held-out trials",
            ["density", "log density per trial", "difference from the kept one"],
            [
                [row["name"], f"{row.log_density:.3f}", f"{row.difference:+.4f} ± {row.error:.4f}"]
                for _, row in compared.iterrows()
            ],
        ),
        "matches": table(
            "Networks beside density and data",
            ["network", "matched", "energy excess", "90 % regions hold", "another mode", "what is off"],
            [_match_row(network) for network in networks],
        ),
        "config": "\n".join(
            line if len(line) <= 160 else f"{line[:150]} … ]"
            for line in to_toml(networks[0].run.experiment.model_dump(exclude_none=True)).splitlines()
        )
        if networks
        else "",
        "versions": table("Versions", ["what", "version"], versions(networks[0].run.experiment)) if networks else None,
        "mark": MARK,
    }
    return render(context, "designed.html")


def _one_each(networks: Sequence[DesignNetwork]) -> list[DesignNetwork]:
    """The first network of each objective."""
    return list({network.objective: network for network in reversed(networks)}.values())[::-1]


def _match_row(network: DesignNetwork) -> list[str]:
    match = network.match
    modes = "–" if match.modes is None else f"{100 * match.modes[0]:.1f} % ({100 * match.modes[1]:.1f} % due)"
    return [
        network.run.path.name,
        "yes" if match.matched else "no",
        f"{100 * match.excess:.1f} %",
        percent(match.coverage["all trials"]),
        modes,
        " ".join(match.problems) or "nothing",
    ]
