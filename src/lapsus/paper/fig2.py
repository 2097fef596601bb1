"""Figure 2: networks reproduce swap errors; ablations of task-optimal networks do not."""

from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lapsus.errors import LapsusError
from lapsus.fitting import fit
from lapsus.mechanism import responses
from lapsus.mechanism.designs import MARGIN, pair
from lapsus.paper.roles import LABELS, Networks
from lapsus.plots.axes import cloud
from lapsus.plots.style import TEXT_WIDTH, colour_of, letter, note, panel, style, wheel_key
from lapsus.statistics.intervals import proportion_interval

SWAP_NETWORKS = (
    "feature-none",
    "feature-constant-30",
    "feature-constant-05",
    "feature-smooth-0",
    "feature-smooth-2",
    "feature-smooth-1",
)
CLOUD_NETWORKS = ("feature-optimal", "feature-none", "feature-constant-05", "feature-smooth-0")
CLOSE, FAR = np.pi / 4, np.pi
DISTANCES = {"π/6": np.pi / 6, "π/20": np.pi / 20, "π/50": np.pi / 50, "π/100": np.pi / 100}
NOISES = {f"×{level}": float(np.sqrt(level)) for level in (2, 5, 10, 15)}  # of the variance
SNAPSHOTS = (0, 8, 16, 24, 32, 40)


# --- Numbers ---


@lru_cache(maxsize=64)
def swap_function(networks: Networks, role: str) -> pd.DataFrame:
    """Swap rate by probe distance of a network, with `target`, the mean of its target's probability over the same
    trials."""
    return responses.swap_function(networks.answers(role), networks.sizes.swap_conditions, networks.sizes.swap_trials)


@lru_cache(maxsize=64)
def fitted_swap_function(networks: Networks, role: str) -> pd.DataFrame:
    """p(swap) by probe distance from BNS fitted to a network's responses, as in the paper: distance, p_swap, p_low,
    p_high."""
    dataset = networks.responses(role, networks.sizes.fitted_trials, 1, seed=4)
    columns = ["cued", "report_1", "report_2", "probe_1", "probe_2", "response"]
    found = fit(dataset[columns].to_dataframe().reset_index(drop=True), model="probe", uniform=False, progress=False)
    return found.swap_function(np.linspace(MARGIN, np.pi, 25))


@lru_cache(maxsize=64)
def _samples(networks: Networks, role: str, probe_distance: float, noise_scale: float = 1.0) -> np.ndarray:
    """Final responses x_T [trial, 2] to one condition: target at (0, 0), distractor's report at -2 pi / 3."""
    shown = networks.sizes.shown_samples
    return networks.responses(role, pair(probe_distance), shown, seed=3, noise_scale=noise_scale)["x_T"].to_numpy()


def modes_by_condition(
    networks: Networks, role: str, probe_distance: float | None, noise_scale: float = 1.0
) -> tuple[np.ndarray, float]:
    """Which conditions have two modes, one at each item [condition], and the share of swaps.

    probe_distance None: conditions as the task draws them.
    """
    sizes = networks.sizes
    return responses.modes_by_condition(
        networks.answers(role), sizes.ablated_conditions, sizes.ablated_trials, probe_distance, noise_scale
    )


@lru_cache(maxsize=8)
def ablations(networks: Networks) -> pd.DataFrame:
    """Second modes at the distractor under each ablation: columns ablation, level, share (of conditions), low, high,
    swap_rate. Noise levels multiply its variance."""
    cases = [("distance", name, gap, 1.0) for name, gap in DISTANCES.items()]
    cases += [("noise", name, CLOSE, scale) for name, scale in NOISES.items()]
    rows = []
    for kind, level, gap, scale in cases:
        two, swaps = modes_by_condition(networks, "feature-optimal", gap, scale)
        low, high = proportion_interval(two.sum(), len(two))
        rows.append((kind, level, two.mean(), float(low), float(high), swaps))
    return pd.DataFrame(rows, columns=["ablation", "level", "share", "low", "high", "swap_rate"])


# --- Panels ---


def swap_curves(
    ax: Axes, curves: dict[str, pd.DataFrame], fitted: dict[str, pd.DataFrame] | None = None, fitted_trials: int = 0
) -> Axes:
    """Swap rate against probe distance, one colour per network: counted by nearest item (dots, 95 % interval), target
    (dotted) and, where given, p(swap) of a BNS model fitted to `fitted_trials` trials with its 95 % band (solid)."""
    looks = {"fmt": "o" if fitted else "o-", "ms": 2, "elinewidth": 0.7}
    for role, table in curves.items():
        colour, where = colour_of(role), np.degrees(table["distance"])
        error = np.maximum([table["rate"] - table["low"], table["high"] - table["rate"]], 0)
        ax.errorbar(where, table["rate"], error, color=colour, label=LABELS.get(role, role), **looks)
        ax.plot(where, table["target"], color=colour, ls=(0, (1, 1.2)), lw=1.4)
        if fitted:
            own = fitted[role]
            ax.plot(np.degrees(own["distance"]), own["p_swap"], color=colour)
            ax.fill_between(np.degrees(own["distance"]), own["p_low"], own["p_high"], color=colour, alpha=0.2, lw=0)
    trials = max(int(table["trials"].sum()) for table in curves.values())
    ax.set(xlabel="probe distance (°)", ylabel="swap rate", ylim=(-0.01, None), xticks=[45, 90, 135, 180])
    solid = f", solid: BNS fit (n = {fitted_trials:,})" if fitted else ""
    ax.set_title(f"dots: nearest item (n = {trials:,}), dotted: target{solid}", fontsize=6)
    ax.legend(ncols=2, loc="upper right", columnspacing=0.8, handlelength=1.2)
    return ax


def _swap_panel(ax: Axes, networks: Networks) -> Axes:
    curves = {role: swap_function(networks, role) for role in networks.those_of(SWAP_NETWORKS)}
    if not curves:
        raise LapsusError("no feature-cued diffusion network")
    fitted_trials = networks.sizes.fitted_trials
    fitted = {role: fitted_swap_function(networks, role) for role in curves} if fitted_trials else None
    return swap_curves(ax, curves, fitted, fitted_trials)


def _cloud(ax: Axes, x: np.ndarray, role: str, **options: Any) -> Axes:
    cloud(ax, x, **options)
    ax.spines[:].set(visible=True, color=colour_of(role), linewidth=1.2)
    return ax


def _samples_panel(ax: Axes, networks: Networks, role: str, gap: float, noise: float = 1.0) -> Axes:
    x = _samples(networks, role, gap, noise)
    return _cloud(ax, x, role, limit=max(3.6, float(np.quantile(np.abs(x), 0.995)) * 1.05))


def _snapshots(axes: np.ndarray, networks: Networks) -> None:
    """Six moments of the second delay; trials are coloured by their final response."""
    role = "feature-smooth-0"
    if role not in networks:
        for ax in axes:
            note(ax, f"no network {role}")
        return
    x, time, response = responses.paths(networks.of(role), pair(CLOSE), networks.sizes.shown_samples)
    for ax, t in zip(axes, SNAPSHOTS):
        step = int(np.abs(time - t * time[-1] / SNAPSHOTS[-1]).argmin())
        _cloud(ax, x[:, step], role, colours=response)
        ax.set_title(f"t = {time[step]}")


def figure(networks: Networks) -> Figure:
    """Figure 2 of the paper."""
    optimal, smooth = "feature-optimal", "feature-smooth-0"
    with style():
        fig = plt.figure(figsize=(TEXT_WIDTH, 6.0))
        top, middle, bottom = fig.add_gridspec(
            3, 1, height_ratios=(1.3, 1, 2.0), hspace=0.3, left=0.07, right=0.98, top=0.95, bottom=0.02
        )
        a, key = top.subgridspec(1, 2, width_ratios=(1.7, 1)).subplots()
        letter(panel(a, _swap_panel, networks), "A")
        key.axis("off")
        wheel_key(key, (0.3, 0.32, 0.55, 0.55), "response, or item's report feature")
        shown = f"○ cued item   □ distractor\nn = {networks.sizes.shown_samples} samples per panel"
        key.text(0.57, 0.08, shown, ha="center", va="top", fontsize=6)
        snapshots = middle.subgridspec(1, len(SNAPSHOTS), wspace=0.08).subplots()
        _snapshots(snapshots, networks)
        letter(snapshots[0], "B")
        left, right = bottom.subgridspec(1, 2, width_ratios=(4, 5), wspace=0.14)
        clouds = left.subgridspec(2, 4, wspace=0.08, hspace=0.05).subplots()
        cells = [
            (role, name, gap) for role in CLOUD_NETWORKS for name, gap in (("close, 45°", CLOSE), ("far, 180°", FAR))
        ]
        for ax, (role, name, gap) in zip(clouds.flat, cells):
            panel(ax, _samples_panel, networks, role, gap).set_title(f"{LABELS[role]}\n{name}", fontsize=6, loc="left")
        ablated = right.subgridspec(2, 5, wspace=0.08, hspace=0.05).subplots()
        closer = [(f"task-optimal\nprobe at {name}", optimal, gap) for name, gap in DISTANCES.items()]
        noisier = [(f"task-optimal\nnoise {name}", optimal, CLOSE, scale) for name, scale in NOISES.items()]
        noisier.append(("smooth 0\nnoise ×0", smooth, CLOSE, 0.0))
        for ax, (title, *case) in zip((*ablated[0, :-1], *ablated[1]), (*closer, *noisier)):
            panel(ax, _samples_panel, networks, *case).set_title(title, fontsize=6, loc="left")
        ablated[0, -1].axis("off")
        for ax, name in zip((clouds[0, 0], *ablated[:, 0]), "CDE"):
            letter(ax, name, y=1.12)
    return fig
