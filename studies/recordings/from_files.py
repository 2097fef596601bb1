"""Is a recording in a file assigned to the kind of network that it was simulated from?

    python from_files.py [--files 3] [--keep]

Networks that the kinds are not learnt from are written as NWB files of 100 neurons, as `lapsus simulate --nwb` writes
them, up to the trial with the 40th swap. Every file is analysed by

    lapsus analyse FILE --against persistent=…,open=…,misbinding,prior inclination --json

where the kinds leave out the network of the file and those of its seed (where another seed ships). With --keep the
answers are put into from_files.csv.
"""

import argparse
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


def write_file(path: Path, kind: str, network: str, seed: int) -> None:
    """A recording of a network with so many swaps."""
    model = written_network(kind, 0.1, 10.0) if network == "written" else load(network)
    made = simulate(model, 1500, 1, seed)
    items = two_items(made)
    swaps = np.flatnonzero(outcomes(items.response, items.report, items.cued).swap)
    spikes, trials = spike_session(made.isel(trial=slice(0, swaps[SWAPS - 1] + 1)), units=UNITS, gain=GAIN, seed=seed)
    write_nwb(path, spikes, trials, f"{network}, seed {seed}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=3, help="files of each kind, its networks in turn")
    parser.add_argument("--keep", action="store_true", help="put the answers into from_files.csv")
    given = parser.parse_args()
    warnings.simplefilter("ignore")  # written networks run on the torch reference
    rows = []
    for number in range(given.files):
        for kind in (*PATTERNS, *BUILT):
            networks = [name for own, name in tested() if own == kind]
            network = networks[number % len(networks)]
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "made.nwb"
                write_file(path, kind, network, 100 + number)
                command = [sys.executable, "-m", "lapsus", "analyse", str(path), "--against", against(kind, network)]
                found = json.loads(subprocess.run([*command, "--json"], check=True, stdout=subprocess.PIPE).stdout)
            rows.append({"kind": kind, "network": network, "seed": 100 + number, "answer": found["kind"]})
            rows[-1] |= {"score": found["scores"][kind][0], "swaps": found["swaps"], "units": found["units"]}
            print(rows[-1], flush=True)
            if given.keep:
                pd.DataFrame(rows).to_csv(TABLE, index=False, float_format="%.4g")
    right = sum(row["answer"] == row["kind"] for row in rows)
    print(f"{right} of {len(rows)} right")


if __name__ == "__main__":
    main()
