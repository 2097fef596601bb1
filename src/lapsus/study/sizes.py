"""How much is simulated: one table with a full and a quick value, so that a test can ask for less."""

from dataclasses import dataclass

__all__ = ["FULL", "QUICK", "Sizes"]


@dataclass(frozen=True)
class Sizes:
    """Numbers of trials, conditions and repeats of every study of a network."""

    # Against the target, on fresh conditions.
    evaluation_conditions: int = 1024
    evaluation_trials: int = 8
    # Against a subject: trials at most, repeats of each, two-item trials where the subject saw more items.
    match_trials: int = 4096
    match_repeats: int = 8
    match_conditions: int = 2048
    cloud: int = 512
    # Mechanism: probe distances (degrees), rotations of each, trials a colour of the rings, single trials, resamplings.
    degrees: tuple[int, ...] = (45, 75, 105, 135, 165)
    rotations: int = 8
    ring_colours: int = 48
    ring_trials: int = 16
    single_trials: int = 4096
    repeats: int = 500
    # Trials in the figure that can be turned: more would hide each other.
    shown: int = 320


FULL = Sizes()
QUICK = Sizes(
    evaluation_conditions=128,
    match_trials=512,
    match_repeats=2,
    match_conditions=256,
    cloud=64,
    degrees=(45, 165),
    rotations=1,
    ring_trials=4,
    single_trials=600,
    repeats=60,
    shown=60,
)
