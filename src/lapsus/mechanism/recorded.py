"""What the analyses take of a recording: the time bins and trials that are complete, and few enough numbers."""

import numpy as np
import xarray as xr

from lapsus.errors import LapsusError
from lapsus.mechanism.activity import items
from lapsus.mechanism.outcomes import outcomes
from lapsus.recordings.layout import left_out

__all__ = ["analysable", "complete", "describe"]

# Share of trials that a time bin must have to be looked at; trials without one of these bins are left out.
MOST_TRIALS = 0.9
# Numbers that are analysed at most, and time bins: with several copies in double precision, about 1 GB.
MOST_NUMBERS, MOST_BINS = 10_000_000, 100
# Swaps that most questions need.
FEW_SWAPS = 20


def analysable(dataset: xr.Dataset) -> xr.Dataset:
    """A recording without the bins and trials that its mask (`recorded [trial, time]`) leaves incomplete.

    Where it is large, neighbouring bins are added, and then units are replaced by their leading principal components,
    in units of the s.d. of a Poisson count; `notes` says so.
    """
    dataset = complete(dataset)
    if dataset["activity"].size > MOST_NUMBERS and "readout" not in dataset:
        return _smaller(dataset)
    return dataset


def complete(dataset: xr.Dataset) -> xr.Dataset:
    """A recording with the time bins that nine tenths of trials have, and the trials that have all of these."""
    if "recorded" not in dataset:
        return dataset
    notes = _notes(dataset)
    recorded = dataset["recorded"].transpose("trial", "time").to_numpy()
    bins = np.flatnonzero(recorded.mean(0) >= MOST_TRIALS)
    if len(bins) == 0:
        raise LapsusError("No time bin is within nine tenths of the trials; align to an event that all of them share.")
    trials = np.flatnonzero(recorded[:, bins].all(1))
    if len(bins) < recorded.shape[1]:
        notes.append(left_out(recorded.shape[1] - len(bins), "time bin", "that more than a tenth of trials lack"))
    if len(trials) < len(recorded):
        notes.append(left_out(len(recorded) - len(trials), "trial", "without some of the other time bins"))
    whole = len(bins) == recorded.shape[1] and len(trials) == len(recorded)
    kept = (dataset if whole else dataset.isel(trial=trials, time=bins)).drop_vars("recorded")
    return kept.assign_attrs(notes="\n".join(notes))


def _notes(dataset: xr.Dataset) -> list[str]:
    return [line for line in str(dataset.attrs.get("notes", "")).splitlines() if line]


def _smaller(dataset: xr.Dataset) -> xr.Dataset:
    counts = dataset["activity"].transpose("trial", "time", "unit").to_numpy()
    groups = _groups_of_bins(dataset["epoch"].to_numpy(), int(np.ceil(counts.shape[1] / MOST_BINS)))
    trials, units = len(counts), counts.shape[2]
    kept = int(np.clip(MOST_NUMBERS // (trials * len(groups)), 1, units))
    in_bin = lambda group: counts[:, group].sum(1, dtype=np.float32)  # one at a time: all would not fit
    mean = np.mean([in_bin(group).mean(0) for group in groups], 0)
    scale = 1 / np.sqrt(np.maximum(mean, 1e-3))
    covariance = np.zeros((units, units))
    for group in groups:
        z = (in_bin(group) - mean) * scale
        covariance += z.T @ z
    spectrum, vectors = np.linalg.eigh(covariance)
    axes = (vectors[:, ::-1][:, :kept] * scale[:, None]).astype(np.float32)
    reduced = np.stack([(in_bin(group) - mean) @ axes for group in groups], 1)
    share = spectrum[::-1][:kept].sum() / spectrum.sum()
    note = (
        f"{units:,} units in {counts.shape[1]} bins are analysed as {kept} principal components ({100 * share:.0f} % of"
        f" the variance) in {len(groups)} bins"
    )
    first = [group[0] for group in groups]
    smaller = dataset.drop_dims("unit").isel(time=first)
    smaller = smaller.assign(activity=(("trial", "time", "unit"), reduced))
    return smaller.assign_attrs(notes="\n".join([*_notes(dataset), note]))


def _groups_of_bins(epoch: np.ndarray, size: int) -> list[np.ndarray]:
    """Runs of at most `size` neighbouring bins of one epoch."""
    edges = np.flatnonzero(np.append(True, epoch[1:] != epoch[:-1]))
    runs = np.split(np.arange(len(epoch)), edges[1:])
    return [run[k : k + size] for run in runs for k in range(0, len(run), size)]


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' * (count != 1)}"


def describe(dataset: xr.Dataset, analysed: xr.Dataset) -> tuple[list[str], dict]:
    """What a recording has, as sentences and as numbers: neurons, spikes/s, trials, swaps; and notes about what of it
    is `analysed`."""
    shown = items(dataset)
    swaps = int(outcomes(shown.response, shown.report, shown.cued).swap.sum())
    facts: dict = {"units": dataset.sizes["unit"], "trials": dataset.sizes["trial"], "swaps": swaps}
    text = f"Recording: {_counted(facts['units'], 'neuron')}"
    if "rate" in dataset.coords:
        facts["spikes_per_second"] = float(dataset["rate"].mean())
        text += f" with {facts['spikes_per_second']:.1f} spikes/s on average"
    text += f", {_counted(facts['trials'], 'trial')}, {swaps:,} of which are surely swaps"
    if "bin" in dataset.attrs:
        text += f", in bins of {1000 * dataset.attrs['bin']:.0f} ms"
    said = [f"{text}."]
    if swaps < FEW_SWAPS:
        said.append(f"Fewer than {FEW_SWAPS} swaps: most questions about them cannot be answered.")
    notes = _notes(analysed)
    facts["notes"] = notes
    return said + [f"{note}." for note in notes], facts
