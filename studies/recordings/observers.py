"""Two observers whose swaps are decided early or late by construction, recorded: what does a comparison of the networks
of a discovery say?

    python observers.py [--sessions 8] [--keep]

Both observers are networks that ship, in which noise is switched off in part of the trial. What happens without noise
is fixed by what was there before, so

    early   has noise up to the end of the first delay: every swap is decided before the cue,
    late    has noise from the end of the cue on: every swap is decided after it.

Each session is written as an NWB file of 100 neurons, up to the trial with the 40th swap, and compared, as
`lapsus discover TABLE --recording FILE` does it, with one network of each objective that is matched: other networks
than the observers, which ship. Right is "energy" for the early and "diffusion" for the late one. With --keep the
answers are put into observers.csv.
"""

import argparse
import tempfile
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from lapsus import load, simulate
from lapsus.mechanism.activity import two_items
from lapsus.mechanism.outcomes import outcomes
from lapsus.mechanism.resemblance import resemblance, single_trials
from lapsus.pipeline.recording import GivenRecording
from lapsus.recordings import spike_session, write_nwb
from lapsus.training.experiment import Noise
from lapsus.training.model import Model

__all__ = ["MATCHED", "OBSERVERS", "observer", "write_session"]

TABLE = Path(__file__).resolve().parent / "observers.csv"
# Observer: the network, the epochs without noise, and the objective of the networks that it should resemble.
OBSERVERS = {
    "early": ("open-index-swap-10", ("cue", "response"), "energy"),
    "late": ("index-swap-10", ("prestimulus", "stimulus", "delay", "cue"), "diffusion"),
}
# Networks that stand for those of a discovery, none of them an observer.
MATCHED = {"energy": "open-index-swap-5", "diffusion": "index-swap-10@2"}
UNITS, SWAPS, GAIN = 100, 40, 10.0


def observer(name: str) -> Model:
    """The model of an observer."""
    network, silent, _ = OBSERVERS[name]
    model = load(network)
    noise = Noise(first=model.noise.first, last=model.noise.last, **dict.fromkeys(silent, 0.0))
    return Model(model.task, model.behaviour, model.network, model.encoder, noise, model.objective)


def write_session(path: Path, name: str, seed: int, units: int = UNITS, swaps: int = SWAPS) -> None:
    """A session of an observer as an NWB file with so many swaps."""
    made = simulate(observer(name), 40 * swaps, 1, seed, threads=1)
    items = two_items(made)
    swapped = np.flatnonzero(outcomes(items.response, items.report, items.cued).swap)
    spikes, trials = spike_session(made.isel(trial=slice(0, swapped[swaps - 1] + 1)), units=units, gain=GAIN, seed=seed)
    write_nwb(path, spikes, trials, f"{name} observer, seed {seed}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=8, help="of each observer")
    parser.add_argument("--keep", action="store_true", help="put the answers into observers.csv")
    given = parser.parse_args()
    kinds = {objective: [partial(single_trials, load(network))] for objective, network in MATCHED.items()}
    rows = []
    for number in range(given.sessions):
        for name, (network, _, expected) in OBSERVERS.items():
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "made.nwb"
                write_session(path, name, 200 + number)
                found = resemblance(GivenRecording.read(path, {}).windows, kinds, seed=number)
            rows.append({"observer": name, "network": network, "seed": 200 + number, "expected": expected})
            rows[-1] |= {"answer": found.kind, "nearest": found.nearest, "score": found.scores[expected][0]}
            rows[-1] |= {"swaps": found.swaps, "units": found.units}
            print(rows[-1], found.why, flush=True)
            if given.keep:
                pd.DataFrame(rows).to_csv(TABLE, index=False, float_format="%.4g")
    print(f"{sum(row['answer'] == row['expected'] for row in rows)} of {len(rows)} right")


if __name__ == "__main__":
    main()
