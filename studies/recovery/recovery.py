"""Is the mechanism that the analyses name the one that was built in? Confusion matrices over systems that are known.

    python recovery.py populations [--seeds 3] [--trials 2000] [--keep]
    python recovery.py trained     # networks that ship and do not swap, made to, each in one set of trials
    python recovery.py written     # networks whose equations were written down
    python recovery.py recordings  # 100 neurons and 400 trials of each of these, and of networks that ship and swap

*Populations* are linear and have swaps of a known kind (lapsus.mechanism.synthetic). *Trained* networks are those that
ship without swaps; in a share of trials they are shown exchanged colours (misbinding), have their state at the cue
exchanged for that of such a trial (misselection), hear the other cue (cue-time noise), have their state
exchanged for that of a trial with the other cue in the middle of delay 2 (late switch), or their response alone is
exchanged (response-time noise). *Written* networks throw a die at a known moment (written_networks.py)
and can be asked all that `lapsus discover` asks: when swaps are decided, what carries them, which kind they are. What
is right was written down before any was looked at:

    misbinding           "misbinding"         decided before the cue   carried by memory
    misselection         "misselection"       decided at the cue       carried by memory
    cue-time noise       "misinterpretation"  decided at the cue       carried by memory
    late switch          "late switch"        decided after the cue    carried by memory
    response-time noise  "no mark"            decided after the cue    carried by the response

*Recordings* are 400 trials of 100 neurons that mix a system's activity at random and fire Poisson spikes, 10 a second,
as `lapsus simulate --nwb` writes them. Systems are the above at swap rates of 15 and 30 %, at noise that leaves memory
in place (trained networks at their own), and networks that were trained to swap. What is right for the latter is
what is found by intervening in them.

With --keep the rows replace those of the same systems in recovery.csv, of which recovery_tables.py makes the tables and
the figure.

"cannot tell" is neither right nor wrong, and is counted separately. `noise` is the s.d. of each unit at each step
where colours have radius one; of trained networks, how many times their own noise.
"""

import argparse
import itertools
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import torch
import xarray as xr
from written_networks import MECHANISMS as WRITTEN, written_network

from lapsus import load, simulate
from lapsus.circular import wrap
from lapsus.errors import LapsusError
from lapsus.evaluation.sample_sizes import SampleSizes
from lapsus.mechanism.activity import cue_onset, two_items
from lapsus.mechanism.asking import analyse, swaps_most_at
from lapsus.mechanism.decoding import decoding
from lapsus.mechanism.error_type import classify_swaps
from lapsus.mechanism.outcomes import outcomes
from lapsus.mechanism.registry import Mechanism
from lapsus.mechanism.replay import conditions_at_one_pair
from lapsus.mechanism.resemblance import single_trials
from lapsus.mechanism.synthetic import MECHANISMS, synthetic_population
from lapsus.recordings import Session, count_spikes, spike_session
from lapsus.statistics.swaps import nearest_item
from lapsus.zoo.shipped import shipped_names

TABLE = Path(__file__).resolve().parent / "recovery.csv"

RIGHT = {
    "misbinding": "misbinding",
    "prior inclination": "prior inclination",
    "misselection": "misselection",
    "cue-time noise": "misinterpretation",
    "late switch": "late switch",
    "response-time noise": "no mark",
}
WHEN = dict(zip(WRITTEN, (*2 * ("before the cue",), *2 * ("at the cue",), *2 * ("after the cue",))))
WHAT = dict(zip(WRITTEN, "mmmmmx"))
ANSWERS = (*MECHANISMS, "no mark", "mixed", "none of these", "cannot tell", "no answer")
RATES, NOISES = (0.01, 0.03, 0.1, 0.3), (0.5, 2.0, 4.0, 8.0)
SCALES = (1.0, 2.0)
# Of recordings: neurons, trials, spikes/s.
UNITS, RECORDED, GAIN = 100, 400, 10.0
RECORDED_RATES, RECORDED_NOISES, RECORDED_RADII = (0.15, 0.3), (0.5, 2.0), (20.0, 10.0)
# The rule for recordings was changed after seeds 0 and 1 had been looked at.
FRESH = 2
# Networks that were trained to swap, of whose trials 60 are swaps, and what is found by intervening in them.
SWAPS = 60
SWAPPING = {
    "open-index-swap-10": "prior inclination",
    "open-feature-smooth-2": "mixed",
    "persistent-index-swap-10": "late switch",
    "persistent-feature-smooth-2": "late switch",
}
# Of written networks, fewer: each is asked three questions.
WRITTEN_RATES, RADII = (0.03, 0.1, 0.3), (20.0, 10.0, 5.0)
STEP = 0.54  # s.d. of the noise of a step before cue offset


def answer(dataset: xr.Dataset, seed: int) -> str:
    """Which type the analysis says; "no answer" where it refuses."""
    try:
        answers = {"error_type": classify_swaps(dataset, every=60, repeats=100, seed=seed)}
        return Mechanism(**answers, decoding=decoding(dataset, every=60, seed=seed)).error or "cannot tell"
    except LapsusError:
        return "no answer"


# --- Linear populations ---


def made(mechanism: str, rate: float, noise: float, trials: int, seed: int) -> xr.Dataset:
    """A population with swaps of this kind in a share `rate` of trials."""
    options = {"trials": trials, "noise": noise, "seed": seed}
    if mechanism != "response-time noise":
        return synthetic_population(RIGHT[mechanism], swap_probability=rate, **options)
    dataset = synthetic_population(swap_probability=0.0, **options)
    found, rng = two_items(dataset), np.random.default_rng([seed, 1])
    report = np.where(rng.random(trials) < rate, found.distractor, found.target)
    return dataset.assign(response=("trial", wrap(report + 0.1 * rng.standard_normal(trials))))


def populations(seeds: int, trials: int) -> Iterator[dict]:
    for mechanism, rate, noise, seed in itertools.product(RIGHT, RATES, NOISES, range(seeds)):
        said = answer(made(mechanism, rate, noise, trials, seed), seed)
        yield {"mechanism": mechanism, "swap rate": rate, "noise": noise, "seed": seed, "said": said}


# --- Trained networks without swaps, made to swap ---


def imposed(name: str, scale: float, trials: int, seed: int) -> dict[str, xr.Dataset]:
    """Trials of a network as they are, with exchanged colours, and with the other cue: the same trials, the same
    noise."""
    model = load(name)
    given = conditions_at_one_pair(model, trials, swaps_most_at(model), seed)
    shown = {
        "own": given,
        "exchanged": given | {"report": given["report"].flip(1)},
        "other cue": given | {"cued": 1 - given["cued"]},
    }
    return {key: simulate(model, one, 1, seed, scale, threads=1) for key, one in shown.items()}


def swapped(mechanism: str, found: dict[str, xr.Dataset], rate: float, seed: int) -> xr.Dataset:
    """Swaps of this kind in a share `rate` of the trials."""
    own, source = found["own"], found["other cue" if mechanism in ("cue-time noise", "late switch") else "exchanged"]
    swap = np.random.default_rng([seed, 2]).random(own.sizes["trial"]) < rate
    began = {"misbinding": own["time"].to_numpy()[0], "late switch": 20, "response-time noise": np.inf}
    later = own["time"].to_numpy() >= began.get(mechanism, cue_onset(own))
    activity = np.where((swap[:, None] & later)[..., None], source["activity"], own["activity"])
    response = np.where(swap, source["response"], own["response"])
    return own.assign(activity=(own["activity"].dims, activity), response=("trial", response))


def own_swaps(dataset: xr.Dataset) -> float:
    """Share of trials that the analyses take for swaps."""
    items = two_items(dataset)
    return float(outcomes(items.response, items.report, items.cued).swap.mean())


def trained(seeds: int, trials: int) -> Iterator[dict]:
    names = [name for name in shipped_names() if "no-swap" in name]
    for name, scale, seed in itertools.product(names, SCALES, range(seeds)):
        found = imposed(name, scale, trials, seed)
        own = own_swaps(found["own"])  # noise that is not their own makes networks swap by themselves
        # A network that nobody trained to favour an item has no code for it.
        imposable = [mechanism for mechanism in RIGHT if mechanism != "prior inclination"]
        for mechanism, rate in itertools.product(imposable, RATES):
            said = answer(swapped(mechanism, found, rate, seed), seed)
            facts = {"network": name, "mechanism": mechanism, "swap rate": rate, "noise": scale, "own swaps": own}
            yield facts | {"seed": seed, "said": said}


# --- Written networks ---


def written(seeds: int, trials: int) -> Iterator[dict]:
    sizes = SampleSizes(replay_conditions=16, groups=32, replays=4, donors=64, single_trials=trials, every=8)
    for mechanism, rate, radius, seed in itertools.product(WRITTEN, WRITTEN_RATES, RADII, range(seeds)):
        model = written_network(mechanism, rate, radius)
        found = analyse(model, only=("commitment", "transplant", "error_type"), sizes=sizes, seed=seed, threads=1)
        when = "no answer"
        if found.commitment is not None:
            half, onset = found.commitment.half_time, found.commitment.cue_onset
            when = "before the cue" if half < onset else "at the cue" if half <= 0 else "after the cue"
        facts = {"mechanism": mechanism, "swap rate": rate, "noise": round(STEP / radius, 3), "seed": seed}
        said = "no answer" if found.error_type is None else found.error or "cannot tell"
        yield facts | {"said": said, "when": when, "carried by": found.carrier or "no answer"}


# --- Recordings ---


def read(dataset: xr.Dataset, seed: int) -> dict:
    """What is said of a recording of these trials, and how many of them are surely swaps."""
    spikes, trials = spike_session(dataset, units=UNITS, gain=GAIN, seed=seed)
    recording = count_spikes(Session.of(spikes, trials), "50ms")
    found = analyse(recording, only=("error_type", "decoding"), seed=seed)
    said = "no answer" if found.error_type is None else found.error or "cannot tell"
    return {"seed": seed, "said": said, "swaps": round(own_swaps(recording) * recording.sizes["trial"])}


def with_swaps(name: str, seed: int) -> xr.Dataset:
    """Trials of a network that was trained to swap, more of them swaps than it makes."""
    dataset = single_trials(load(name), 4000, seed)
    items = two_items(dataset)
    swap = outcomes(items.response, items.report, items.cued).swap
    chosen = np.concatenate([np.flatnonzero(swap)[:SWAPS], np.flatnonzero(~swap)[: RECORDED - SWAPS]])
    return dataset.isel(trial=np.sort(chosen))


def recordings(seeds: int, trials: int) -> Iterator[dict]:
    for seed in range(FRESH, FRESH + seeds):
        for mechanism, rate, noise in itertools.product(RIGHT, RECORDED_RATES, RECORDED_NOISES):
            dataset = made(mechanism, rate, noise, RECORDED, seed)
            facts = {"network": "population", "mechanism": mechanism, "swap rate": rate, "noise": noise}
            yield facts | read(dataset, seed)
        for mechanism, rate, radius in itertools.product(WRITTEN, RECORDED_RATES, RECORDED_RADII):
            dataset = simulate(written_network(mechanism, rate, radius), RECORDED, 1, seed, threads=1)
            facts = {"network": "written", "mechanism": mechanism, "swap rate": rate, "noise": round(STEP / radius, 3)}
            yield facts | read(dataset, seed)
        for name in ("persistent-index-no-swap", "persistent-feature-no-swap"):
            found = imposed(name, 1.0, RECORDED, seed)
            for mechanism, rate in itertools.product(RIGHT, RECORDED_RATES):
                if mechanism != "prior inclination":
                    facts = {"network": name, "mechanism": mechanism, "swap rate": rate, "noise": 1.0}
                    yield facts | read(swapped(mechanism, found, rate, seed), seed)
        for name in SWAPPING:
            yield {"network": name, "mechanism": name, "noise": 1.0} | read(with_swaps(name, seed), seed)


def drift() -> str:
    """Networks that throw no die: how often the noise in memory alone brings a response nearer to the other item."""
    lines = []
    for radius in RADII:
        data = simulate(written_network("misbinding", 1e-9, radius), 500, 4, threads=1)
        nearest, _ = nearest_item(data["response"].to_numpy(), np.stack([data["report_1"], data["report_2"]], 1))
        lines.append(f"{np.mean(nearest != data['cued'].to_numpy() - 1):.1%} at a noise of {STEP / radius:.3f}")
    return f"Nearer to the other item without a die: {', '.join(lines)}."


# --- Tables ---


def judged(table: pd.DataFrame) -> pd.DataFrame:
    """With what is right: `expected` is what should be said; of written networks also when, and what carries it."""
    found = table.assign(expected=table["mechanism"].map(RIGHT | SWAPPING))
    if "when" in table:
        found["expected when"] = table["mechanism"].map(WHEN)
        found["expected carrier"] = table["mechanism"].map(WHAT)
    found["right"] = found["said"] == found["expected"]
    found["wrong"] = ~found["right"] & ~found["said"].isin(["cannot tell", "no answer"])  # no answer is not wrong
    return found


def describe(table: pd.DataFrame) -> str:
    table = judged(table)
    built_in = [name for name in RIGHT | SWAPPING if name in set(table["mechanism"])]
    said = pd.crosstab(table["mechanism"], table["said"]).reindex(index=built_in, columns=ANSWERS, fill_value=0)
    shares = table.groupby(["swap rate", "noise"])[["right", "wrong"]].mean().round(2).unstack("noise")
    lines = [said.to_string(), shares.to_string()]
    for column, expected in (("when", "expected when"), ("carried by", "expected carrier")):
        if column in table:
            lines.append(pd.crosstab(table["mechanism"], table[column]).reindex(list(RIGHT)).to_string())
            share = (table[column] == table[expected]).mean()
            lines[-1] += f"\n{share:.0%} right"
    lines.append(f"Kind: {table['right'].mean():.0%} right, {table['wrong'].mean():.0%} wrong of {len(table)}.")
    return "\n\n".join(lines)


def keep(systems: str, table: pd.DataFrame) -> None:
    """Replace what is kept of these systems."""
    columns = ["systems", "network", "mechanism", "swap rate", "noise", "seed", "said", "expected", "own swaps"]
    columns += ["when", "expected when", "carried by", "expected carrier", "swaps"]
    others = pd.read_csv(TABLE).query("systems != @systems")
    kept = pd.concat([others, judged(table).assign(systems=systems)]).reindex(columns=columns)
    kept.sort_values("systems", kind="stable").to_csv(TABLE, index=False, float_format="%.6g")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "systems", choices=["populations", "trained", "written", "recordings"], nargs="?", default="populations"
    )
    parser.add_argument("--seeds", type=int, help="of each system (3; of trained networks, which have their own, 1)")
    parser.add_argument("--trials", type=int, default=2000)
    parser.add_argument("--keep", action="store_true", help="put the rows in recovery.csv")
    given = parser.parse_args()
    warnings.simplefilter("ignore")  # written networks run on the torch reference
    torch.set_num_threads(1)
    systems = {"populations": populations, "trained": trained, "written": written, "recordings": recordings}
    seeds = given.seeds or (1 if given.systems == "trained" else 3)
    table = pd.DataFrame(systems[given.systems](seeds, given.trials))
    if given.keep:
        keep(given.systems, table)
    print(describe(table))
    if given.systems == "written":
        print(drift())


if __name__ == "__main__":
    main()
