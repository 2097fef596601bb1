"""Do swap trials differ from correct ones, or only the displays that are swapped more often?

python studies/mechanism/displays.py persistent-feature-constant-5

The kind of swaps is asked of trials that each have a display of their own . Here every display is
shown many times: the weight of all errors together, as it is analysed there, and within displays, where swap trials are
compared with correct trials of the same display, so that no code of the display can pass for a mark of the swap.
"""

import sys

import numpy as np
import torch

from lapsus.evaluation.simulation import simulate
from lapsus.mechanism.activity import cue_onset, memory, two_items
from lapsus.mechanism.asking import swaps_most_at
from lapsus.mechanism.error_type import error_equations
from lapsus.mechanism.outcomes import outcomes
from lapsus.mechanism.replay import probe_conditions
from lapsus.statistics.intervals import limits
from lapsus.tasks import FeatureCued
from lapsus.zoo import load

DISPLAYS, TRIALS, EVERY = 384, 20, 4


def main(name: str) -> None:
    model = load(name)
    conditions = probe_conditions(model, DISPLAYS, 40)
    if isinstance(model.task, FeatureCued):
        apart = swaps_most_at(model)
        conditions["probe"] = torch.tensor([[-apart / 2, apart / 2]]).expand(DISPLAYS, 2).clone()
    data = simulate(model, conditions, TRIALS, 40, threads=1)
    items, display = two_items(data), data["condition"].to_numpy()
    outcome = outcomes(items.response, items.report, items.cued)
    swap, correct = outcome.swap.astype(float), outcome.correct.astype(float)
    shown = np.bincount(display, correct, DISPLAYS)
    swap *= shown[display] > 0
    rng = np.random.default_rng(1)
    fold = rng.permutation(np.arange(DISPLAYS) % 5)[display]
    time, onset = data["time"].to_numpy(), cue_onset(data)
    steps = np.flatnonzero((time > -20) & (time % EVERY == 0))
    print(f"{name}: {int(swap.sum())} swap trials\ntime   as analysed             within displays")
    for early in (True, False):
        now = steps[(time[steps] < onset) == early]
        given = (items.report,) if early else (items.report, items.cued)
        for step, own in zip(now, error_equations(memory(data.isel(time=now)), given, outcome.correct, fold)):
            usual = np.stack([np.bincount(display, correct * part, DISPLAYS) for part in own.moment.T], 1)
            inside = own.moment - (usual / np.maximum(shown, 1)[:, None])[display]

            def weights(times: np.ndarray, own=own, inside=inside) -> tuple[float, float]:
                """All kinds together: swap minus correct trials, and swap minus correct trials of the same display."""
                s, c = swap * times[display], correct * times[display]
                gram = np.tensordot(s, own.gram, 1)
                base = np.linalg.solve(np.tensordot(c, own.gram, 1), c @ own.moment)
                return (np.linalg.solve(gram, s @ own.moment) - base).sum(), np.linalg.solve(gram, s @ inside).sum()

            drawn = [
                weights(np.bincount(rng.integers(DISPLAYS, size=DISPLAYS), minlength=DISPLAYS)) for _ in range(200)
            ]
            (low, low_in), (high, high_in) = limits(np.array(drawn))
            value, value_in = weights(np.ones(DISPLAYS))
            print(
                f"{time[step]:4d}   {value:.3f} [{low:.3f}, {high:.3f}]   {value_in:.3f} [{low_in:.3f}, {high_in:.3f}]"
            )


if __name__ == "__main__":
    main(sys.argv[1])
