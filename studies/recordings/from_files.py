"""Is a recording in a file assigned to the kind of network that it was simulated from?

    python from_files.py [--files 8] [--keep]

Networks that the kinds are not learnt from are written as NWB files of 100 neurons, as `lapsus simulate --nwb` writes
them, up to the trial with the 40th swap; with --correct N, the first 40 swaps and the first N correct trials. Every
file is analysed by

    lapsus analyse FILE --against persistent=…,open=…,misbinding,prior inclination --json

where the kinds leave out the network of the file and those of its seed (where another seed ships). With --keep the
answers are put into from_files.csv, and files that have an answer there are not made again.
"""

import argparse
import itertools
import json
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "recovery"))

from written_networks import written_network

from lapsus import load, simulate
from lapsus.mechanism.activity import two_items
from lapsus.mechanism.outcomes import outcomes
from lapsus.recordings import spike_session, write_nwb
from lapsus.zoo.shipped import shipped_names

TABLE = HERE / "from_files.csv"
UNITS, SWAPS, GAIN = 100, 40, 10.0
PATTERNS = {"persistent": "persistent-index-swap-", "open": "open-index-swap-"}
BUILT = ("misbinding", "prior inclination")


def tested() -> list[tuple[str, str]]:
    """Kind and network of each file, a few of each kind in turn."""
    names = {kind: [name for name in shipped_names() if name.startswith(own)] for kind, own in PATTERNS.items()}
    return [(kind, name) for kind, own in names.items() for name in own] + [(kind, "written") for kind in BUILT]


def against(kind: str, network: str) -> str:
    """The kinds, each of the networks that a file is not from."""
    parts = []
    for name, pattern in PATTERNS.items():
        networks = [one for one in shipped_names() if one.startswith(pattern)]
        if name == kind:
            own = [one for one in networks if one.partition("@")[2] != network.partition("@")[2]]
            networks = own or [one for one in networks if one != network]
        parts.append(f"{name}={'+'.join(networks)}")
    return ",".join([*parts, *BUILT])


def write_file(path: Path, kind: str, network: str, seed: int, correct: int | None) -> None:
    """A recording of a network with so many swaps, and correct trials where their number is given."""
    model = written_network(kind, 0.1, 10.0) if network == "written" else load(network)
    made = simulate(model, 1500, 1, seed)
    items = two_items(made)
    outcome = outcomes(items.response, items.report, items.cued)
    swaps = np.flatnonzero(outcome.swap)[:SWAPS]
    rows = np.arange(swaps[-1] + 1)
    if correct is not None:
        rows = np.sort(np.concatenate([swaps, np.flatnonzero(outcome.correct)[:correct]]))
    spikes, trials = spike_session(made.isel(trial=rows), units=UNITS, gain=GAIN, seed=seed)
    write_nwb(path, spikes, trials, f"{network}, seed {seed}")


def answer(kind: str, network: str, seed: int, correct: int | None) -> dict:
    """What `lapsus analyse` says of one file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "made.nwb"
        write_file(path, kind, network, seed, correct)
        command = [sys.executable, "-m", "lapsus", "analyse", str(path), "--against", against(kind, network)]
        found = json.loads(subprocess.run([*command, "--json"], check=True, stdout=subprocess.PIPE).stdout)
    # No kind has a score where a file has too few trials to be compared.
    score = found["scores"].get(kind, [None])[0]
    row = {"kind": kind, "network": network, "seed": seed, "answer": found["kind"], "score": score}
    return row | {name: found[name] for name in ("swaps", "correct", "units")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=8, help="files of each kind, its networks in turn")
    parser.add_argument("--networks", nargs="+", default=[], help="of the files, only those of these networks")
    parser.add_argument("--correct", type=int, help="correct trials of each file [those up to the last swap]")
    parser.add_argument("--keep", action="store_true", help="put the answers into from_files.csv")
    given = parser.parse_args()
    warnings.simplefilter("ignore")  # written networks run on the torch reference
    rows = pd.read_csv(TABLE).to_dict("records") if given.keep and TABLE.exists() else []
    recorded = "to the last swap" if given.correct is None else f"{given.correct} correct"
    done = {(row["kind"], row["network"], row["seed"], row["recorded"]) for row in rows}
    for number, kind in itertools.product(range(given.files), (*PATTERNS, *BUILT)):
        networks = [name for own, name in tested() if own == kind]
        network, seed = networks[number % len(networks)], 100 + number
        if (given.networks and network not in given.networks) or (kind, network, seed, recorded) in done:
            continue
        rows.append(answer(kind, network, seed, given.correct) | {"recorded": recorded})
        print(rows[-1], flush=True)
        if given.keep:
            pd.DataFrame(rows).to_csv(TABLE, index=False, float_format="%.4g")
    named = [(row["answer"], row["kind"]) for row in rows if row["recorded"] == recorded]
    right = sum(name == kind for name, kind in named)
    wrong = sum(name in (*PATTERNS, *BUILT) for name, _ in named) - right
    print(f"{right} of {len(named)} right, {wrong} wrong")


if __name__ == "__main__":
    main()
