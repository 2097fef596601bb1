"""Figure 2: networks reproduce swap errors; ablations of task-optimal networks do not."""

from functools import lru_cache

import numpy as np
import pandas as pd
import xarray as xr
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

__all__ = ["ablations", "figure", "fitted_swap_function", "swap_curves", "swap_function", "tables"]

SWAP_NETWORKS = (
    "feature-none",
    "feature-constant-30",
    "feature-constant-05",
    "feature-smooth-0",
    "feature-smooth-2",
    "feature-smooth-1",
)
CLOUD_NETWORKS = ("feature-optimal", "feature-none", "feature-constant-05", "feature-smooth-0")
DISTANCES = {"π/6": np.pi / 6, "π/20": np.pi / 20, "π/50": np.pi / 50, "π/100": np.pi / 100}
NOISES = (2, 5, 10, 15)
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
def samples(networks: Networks, role: str, probe_distance: float, noise_scale: float = 1.0) -> xr.Dataset:
    """Final samples of one condition: target at (0, 0), distractor's report at -2 pi / 3."""
    return networks.responses(role, pair(probe_distance), networks.sizes.shown_samples, seed=3, noise_scale=noise_scale)


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
    cases = [("distance", name, value, 1.0) for name, value in DISTANCES.items()]
    cases += [("noise", f"×{level}", np.pi / 4, float(np.sqrt(level))) for level in NOISES]
    rows = []
    for kind, level, gap, scale in cases:
        two, swaps = modes_by_condition(networks, "feature-optimal", gap, scale)
        low, high = proportion_interval(two.sum(), len(two))
        rows.append((kind, level, two.mean(), float(low), float(high), swaps))
    return pd.DataFrame(rows, columns=["ablation", "level", "share", "low", "high", "swap_rate"])


def tables(networks: Networks) -> dict[str, pd.DataFrame]:
    """All numbers of the figure, by the name of their file."""
    found = {}
    curves = [swap_function(networks, role).assign(network=role) for role in SWAP_NETWORKS if role in networks]
    if curves:
        found["A-swap-functions"] = pd.concat(curves, ignore_index=True)
        if networks.sizes.fitted_trials:
            fits = [
                fitted_swap_function(networks, role).assign(network=role) for role in SWAP_NETWORKS if role in networks
            ]
            found["A-fitted"] = pd.concat(fits, ignore_index=True)
    clouds = []
    for role in CLOUD_NETWORKS:
        for name, gap in (("close", np.pi / 4), ("far", np.pi)):
            if role in networks:
                x = samples(networks, role, gap)["x_T"].to_numpy()
                clouds.append(pd.DataFrame({"network": role, "probe": name, "x1": x[:, 0], "x2": x[:, 1]}))
    if clouds:
        found["C-samples"] = pd.concat(clouds, ignore_index=True)
    if "feature-optimal" in networks:
        found["DE-ablations"] = ablations(networks)
    return found


# --- Panels ---


def swap_curves(
    ax: Axes, curves: dict[str, pd.DataFrame], fitted: dict[str, pd.DataFrame] | None = None, fitted_trials: int = 0
) -> Axes:
    """Swap rate against probe distance, one colour a network: counted by nearest item (dots, 95 % interval), target
    (dotted) and, where given, p(swap) of a BNS model fitted to `fitted_trials` trials with its 95 % band (solid)."""
    for role, table in curves.items():
        colour, where = colour_of(role), np.degrees(table["distance"])
        error = np.maximum([table["rate"] - table["low"], table["high"] - table["rate"]], 0)
        line = "" if fitted else "-"
        ax.errorbar(
            where,
            table["rate"],
            error,
            color=colour,
            fmt="o" + line,
            ms=2,
            elinewidth=0.7,
            label=LABELS.get(role, role),
        )
        if fitted:
            own = fitted[role]
            ax.plot(np.degrees(own["distance"]), own["p_swap"], color=colour)
            ax.fill_between(np.degrees(own["distance"]), own["p_low"], own["p_high"], color=colour, alpha=0.2, lw=0)
        if "target" in table:
            ax.plot(where, table["target"], color=colour, ls=(0, (1, 1.2)), lw=1.4)
    trials = max(int(table["trials"].sum()) for table in curves.values())
    ax.set(xlabel="probe distance (°)", ylabel="swap rate", ylim=(-0.01, None), xticks=[45, 90, 135, 180])
    solid = f", solid: BNS fit (n = {fitted_trials:,})" if fitted else ""
    ax.set_title(f"dots: nearest item (n = {trials:,}), dotted: target{solid}", fontsize=6)
    ax.legend(ncols=2, loc="upper right", columnspacing=0.8, handlelength=1.2)
    return ax


def _frame(ax: Axes, role: str) -> None:
    for spine in ax.spines.values():
        spine.set(visible=True, color=colour_of(role), linewidth=1.2)


def _swap_panel(ax: Axes, networks: Networks) -> Axes:
    curves = {role: swap_function(networks, role) for role in SWAP_NETWORKS if role in networks}
    if not curves:
        raise LapsusError("no feature-cued diffusion network")
    fitted_trials = networks.sizes.fitted_trials
    fitted = {role: fitted_swap_function(networks, role) for role in curves} if fitted_trials else None
    return swap_curves(ax, curves, fitted, fitted_trials)


def _samples_panel(ax: Axes, networks: Networks, role: str, gap: float, noise: float = 1.0) -> Axes:
    x = samples(networks, role, gap, noise)["x_T"].to_numpy()
    cloud(ax, x, limit=max(3.6, float(np.quantile(np.abs(x), 0.995)) * 1.05))
    _frame(ax, role)
    return ax


def _snapshots(axes: list[Axes], networks: Networks) -> None:
    """Six moments of the second delay; trials are coloured by their final response."""
    role = "feature-smooth-0"
    if role not in networks:
        for ax in axes:
            note(ax, f"no network {role}")
        return
    x, time, response = responses.paths(networks.of(role), pair(np.pi / 4), networks.sizes.shown_samples)
    for ax, t in zip(axes, SNAPSHOTS, strict=True):
        step = int(np.abs(time - t * time[-1] / SNAPSHOTS[-1]).argmin())
        cloud(ax, x[:, step], colours=response)
        ax.set_title(f"t = {time[step]}")
        _frame(ax, role)


def figure(networks: Networks) -> Figure:
    """Figure 2 of the paper."""
    from matplotlib import pyplot as plt

    with style():
        fig = plt.figure(figsize=(TEXT_WIDTH, 6.0))
        top, middle, bottom = fig.add_gridspec(
            3, 1, height_ratios=(1.3, 1, 2.0), hspace=0.3, left=0.07, right=0.98, top=0.95, bottom=0.02
        )
        a = fig.add_subplot(top.subgridspec(1, 2, width_ratios=(1.7, 1))[0])
        panel(a, _swap_panel, networks)
        letter(a, "A")
        key = fig.add_subplot(top.subgridspec(1, 2, width_ratios=(1.7, 1))[1])
        key.axis("off")
        wheel_key(key, (0.3, 0.32, 0.55, 0.55), "response, or item's report feature")
        key.text(
            0.57,
            0.08,
            f"○ cued item   □ distractor\nn = {networks.sizes.shown_samples} samples a panel",
            transform=key.transAxes,
            ha="center",
            va="top",
            fontsize=6,
        )
        row = middle.subgridspec(1, len(SNAPSHOTS), wspace=0.08)
        axes = [fig.add_subplot(row[k]) for k in range(len(SNAPSHOTS))]
        _snapshots(axes, networks)
        letter(axes[0], "B")
        left, right = bottom.subgridspec(1, 2, width_ratios=(4, 5), wspace=0.14)
        cells = left.subgridspec(2, 4, wspace=0.08, hspace=0.05)
        for k, role in enumerate(CLOUD_NETWORKS):
            for j, (name, gap) in enumerate((("close, 45°", np.pi / 4), ("far, 180°", np.pi))):
                ax = fig.add_subplot(cells[k // 2, 2 * (k % 2) + j])
                panel(ax, _samples_panel, networks, role, gap)
                ax.set_title((LABELS[role] + "\n" if j == 0 else "\n") + name, fontsize=6, loc="left")
                if k == 0 and j == 0:
                    letter(ax, "C", y=1.12)
        cells = right.subgridspec(2, 5, wspace=0.08, hspace=0.05)
        ablated = [(0, "task-optimal, probe at", name, "feature-optimal", gap, 1.0) for name, gap in DISTANCES.items()]
        ablated += [
            (1, "task-optimal, noise variance", f"×{scale}", "feature-optimal", np.pi / 4, float(np.sqrt(scale)))
            for scale in NOISES
        ]
        ablated += [(1, "smooth 0,", "noise ×0", "feature-smooth-0", np.pi / 4, 0.0)]
        for k, (line, heading, name, role, gap, scale) in enumerate(ablated):
            column = k - line * len(DISTANCES)
            ax = panel(fig.add_subplot(cells[line, column]), _samples_panel, networks, role, gap, scale)
            first = column == 0
            ax.set_title((heading if first or scale == 0 else "") + "\n" + name, fontsize=6, loc="left")
            if first:
                letter(ax, "DE"[line], y=1.12)
    return fig
