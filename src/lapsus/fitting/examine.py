"""What was understood of a trial table, and what can be done with it: a look before a fit or a discovery."""

import html
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from lapsus.fitting.fitting import as_trials, fit
from lapsus.fitting.result import Fit
from lapsus.trials import Trials

__all__ = ["Examination", "SetSize", "examine"]

# Trials that the quick fit looks at; of larger tables an even sample of the rows.
_MOST = 4000
# Below so many trials of a set size `lapsus discover` refuses; below so many swaps a report says that they are few.
LEAST_TRIALS, FEW_SWAPS = 30, 50


@dataclass(frozen=True)
class SetSize:
    """Trials of one set size: how many, of how many subjects, how far apart its items are (degrees: least, median and
    most of the reported and of the probe feature), and how many of its responses are expected to be swaps (95 %
    interval; None without non-targets)."""

    items: int
    trials: int
    subjects: int
    report_distance: tuple[float, float, float] | None
    probe_distance: tuple[float, float, float] | None
    swaps: float | None
    swaps_low: float | None
    swaps_high: float | None


@dataclass(frozen=True)
class Examination:
    """What `examine` found. `text` is what `lapsus doctor` prints.

    >>> lapsus.examine(lapsus.Trials([0.1] * 20, [[0.0, 2.0]] * 20)).set_sizes[0].trials
    20
    """

    source: str
    trials: int
    subjects: int
    columns: dict[str, str]
    others: list[str]
    feature: str
    unit: str
    probe: str | None
    probe_unit: str | None
    set_sizes: list[SetSize]
    recommended: int | None
    analyses: dict[str, str]
    dropped: dict[str, int]
    notes: list[str]

    def to_dict(self) -> dict:
        """For JSON."""
        return asdict(self)

    def text(self) -> str:
        """In sentences and two small tables."""
        subjects = f"{self.subjects} subject{'s' * (self.subjects != 1)}"
        lines = [f"{self.source}: {self.trials:,} trials of {subjects}.", *self.notes, ""]
        lines.append("Columns that are used: " + ", ".join(_taken(self.columns)) + ".")
        if self.others:
            lines.append("Kept, for `by` and `where`: " + ", ".join(self.others) + ".")
        probe = f"the probe feature ({self.probe}) in {self.probe_unit}" if self.probe else "no probe feature"
        lines += [f"The reported feature ({self.feature}) is in {self.unit}; {probe}.", ""]
        degrees = "degrees of orientation" if self.unit == "degrees of orientation" else "degrees"
        lines.append(f"Distances between items in {degrees}:")
        lines.append(
            "items   trials   subjects   distance: reported          of the probe               swaps expected"
        )
        for size in self.set_sizes:
            swaps = "–" if size.swaps is None else f"{size.swaps:,.0f} [{size.swaps_low:,.0f}, {size.swaps_high:,.0f}]"
            of_report, of_probe = _range(size.report_distance), _range(size.probe_distance)
            lines.append(
                f"{size.items:>5}   {size.trials:>6,}   {size.subjects:>8}   {of_report:<25}  {of_probe:<25}  {swaps}"
            )
        lines += ["", "What the table allows:"]
        lines += [f"  {name:<12} {what}" for name, what in self.analyses.items()]
        return "\n".join(lines)

    def __repr__(self) -> str:
        sizes = ", ".join(str(size.items) for size in self.set_sizes)
        return f"Examination({self.source}: {self.trials} trials, {self.subjects} subjects, set sizes {sizes})"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.text())}</pre>"


def examine(trials: Trials | pd.DataFrame | str | Path) -> Examination:
    """Look at a trial table, or at its file: which columns were taken for what, in which unit, how far items are
    apart, how many swaps to expect (by a quick fit with one swap rate for each set size), and which analyses it allows.

    >>> import lapsus
    >>> lapsus.examine(lapsus.trials.observer_path()).recommended
    2
    """
    trials = as_trials(trials)
    swaps = _expected_swaps(trials)
    sizes = []
    for items in np.unique(trials.set_size):
        rows = trials[trials.set_size == items]
        several = items > 1
        expected = swaps.get(int(items), {})
        sizes.append(
            SetSize(
                items=int(items),
                trials=len(rows),
                subjects=len(np.unique(rows.subject)),
                report_distance=_spread(rows.distance("report"), rows.degrees) if several else None,
                probe_distance=_spread(rows.distance("probe"), rows.probe_degrees)
                if several and rows.probe is not None
                else None,
                swaps=expected.get("expected"),
                swaps_low=expected.get("low"),
                swaps_high=expected.get("high"),
            )
        )
    usable = [size for size in sizes if size.swaps is not None and size.trials >= LEAST_TRIALS]
    recommended = max(usable, key=lambda size: size.swaps or 0.0).items if usable else None
    has_probe = trials.probe is not None
    return Examination(
        source=str(trials.source),
        trials=len(trials),
        subjects=len(np.unique(trials.subject)),
        columns={name: trials.called.get(name, name) for name in trials.columns if name not in trials.conditions},
        others=[str(name) for name in trials.conditions],
        feature=trials.feature_name,
        unit=_unit(trials.unit),
        probe=trials.probe_name if has_probe else None,
        probe_unit=_unit(trials.probe_unit) if has_probe else None,
        set_sizes=sizes,
        recommended=recommended,
        analyses=_analyses(trials, sizes, recommended),
        dropped=trials.dropped,
        notes=trials.notes,
    )


def _unit(unit: str) -> str:
    """The unit of the table itself, in words."""
    return "degrees of orientation" if unit == "degrees_180" else unit


def _expected_swaps(trials: Trials) -> dict[int, dict[str, float]]:
    """The expected number of swaps at each set size, from a fit of one swap rate each."""
    several = trials[trials.set_size > 1]
    if not len(several):
        return {}
    looked = several[np.unique(np.linspace(0, len(several) - 1, min(len(several), _MOST)).astype(int))]
    found = fit(looked, "constant", "von_mises", sets="offsets", bias=False, progress=False)
    assert isinstance(found, Fit)  # of all trials together, not one a subject
    counts = {}
    for items in np.unique(looked.set_size):
        at = looked.set_size == items
        share = (several.set_size == items).sum() / at.sum()
        counts[int(items)] = {k: share * v for k, v in found.count_swaps(at).items()}
    return counts


def _taken(columns: dict[str, str]) -> list[str]:
    """Columns with what the table calls them; numbered ones that follow one another as the first to the last."""
    runs: list[list[str]] = []
    for name in columns:
        stem, _, number = name.rpartition("_")
        if runs and number.isdigit() and runs[-1][-1] == f"{stem}_{int(number) - 1}":
            runs[-1].append(name)
        else:
            runs.append([name])
    taken = []
    for run in runs:
        ours, theirs = (" to ".join(dict.fromkeys((names[0], names[-1]))) for names in (run, [columns[n] for n in run]))
        taken.append(ours if ours == theirs else f"{ours} (from {theirs})")
    return taken


def _spread(distance: np.ndarray, degrees: float) -> tuple[float, float, float]:
    values = np.abs(distance[:, 1:]) * degrees
    values = values[np.isfinite(values)]
    return float(values.min()), float(np.median(values)), float(values.max())


def _range(values: tuple[float, float, float] | None) -> str:
    return "–" if values is None else f"{values[0]:.0f}° to {values[2]:.0f}° (median {values[1]:.0f}°)"


def _analyses(trials: Trials, sizes: list[SetSize], recommended: int | None) -> dict[str, str]:
    """Which commands the table is fit for, each with a sentence."""
    swap = any(size.items > 1 for size in sizes)
    subjects = len(np.unique(trials.subject))
    models = "constant, report" + (", probe, both" if trials.probe is not None else "")
    found = {"fit": f"swap models {models}" if swap else "precision and guesses: no trial has a second item to swap"}
    if trials.probe is None and swap:
        found["fit"] += "; swaps by similarity of the cue need target_probe and non_target_probe_1, …"
    found["by subject"] = f"{subjects} subjects" if subjects > 1 else "no: there is one subject"
    if "subject" not in trials.columns:
        found["by subject"] = "no: there is no column subject"
    comparable = [str(name) for name, values in trials.conditions.items() if 2 <= values.nunique() <= 12]
    found["conditions"] = (
        ", ".join(f'`by="{name}"`' for name in comparable) if comparable else "no column with 2 to 12 values"
    )
    if recommended is None:
        found["discover"] = f"no: it needs {LEAST_TRIALS} trials with two items or more"
        return found
    size = next(size for size in sizes if size.items == recommended)
    found["discover"] = f"yes; `set_size={recommended}` has most swaps to learn from"
    if recommended > 2:
        found["discover"] += f", {recommended} items of which its network shows two"
    if (size.swaps or 0) < FEW_SWAPS:
        found["discover"] += f", but about {size.swaps:.0f} are few: what it says of them will be uncertain"
    return found
