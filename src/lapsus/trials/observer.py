"""The embedded example: trials of a synthetic observer whose swap function is known.

`python -m lapsus.trials.observer` writes observer.csv again, byte for byte. Locations are on a ring of 24, colours on
the circle; both keep the items at least 45° apart. The observer reports the distractor with probability
sigmoid(-0.6 - d²/3.5), d the distance of the locations in radians, and scatters around the reported colour (von Mises,
concentration 25, a circular s.d. of 11.6°). It never guesses.
"""

from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from lapsus.circular import difference
from lapsus.files import write_text

__all__ = ["NAME", "make_observer", "observer_f", "observer_path"]

NAME = "synthetic observer"
TRIALS, CONCENTRATION, SEED = 2400, 25.0, 20260
PLACES, MARGIN = 24, 45.0


def observer_path() -> Path:
    """The trial table that ships with lapsus."""
    return Path(__file__).with_name("observer.csv")


def observer_f(distance: ArrayLike) -> np.ndarray:
    """The true swap function f of a signed distance in radians; p(swap) = sigmoid(f)."""
    return -0.6 - np.asarray(distance, float) ** 2 / 3.5


def make_observer(path: Path | None = None) -> Path:
    """Draw the observer's trials and write them as a table in degrees."""
    rng = np.random.default_rng(SEED)
    step = 360 / PLACES
    near = int(MARGIN / step)
    place = rng.integers(PLACES, size=TRIALS)
    other = (place + rng.integers(near, PLACES - near + 1, size=TRIALS)) % PLACES
    target = rng.uniform(0, 360, TRIALS)
    distractor = (target + rng.uniform(MARGIN, 360 - MARGIN, TRIALS)) % 360
    f = observer_f(difference(np.radians(other * step), np.radians(place * step)))
    swap = rng.uniform(size=TRIALS) < 1 / (1 + np.exp(-f))
    scatter = np.degrees(rng.vonmises(0, CONCENTRATION, TRIALS))
    columns = {
        "subject": "observer",
        "set_size": 2,
        "response": (np.where(swap, distractor, target) + scatter) % 360,
        "target": target,
        "non_target_1": distractor,
        "target_probe": place * step,
        "non_target_probe_1": other * step,
    }
    path = observer_path() if path is None else Path(path)
    write_text(path, pd.DataFrame(columns).round(1).to_csv(index=False))
    return path


if __name__ == "__main__":
    make_observer()
