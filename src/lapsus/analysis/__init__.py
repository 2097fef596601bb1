"""From activity and a trial table to the mechanism: the same functions for networks and for recordings.

activity     the dataset that every analysis takes, from plain arrays too
outcomes     which trials are swaps, by probability
modes        whether responses have a second mode                         (Fig 2)
alignment    planes of the two colours over time; sigmoid against flat    (Fig 3, Table 1)
commitment   when a swap is decided
transplants  what carries it
swap_axis    along which direction, the reported colour held fixed
kind         misbinding, misselection, misinterpretation, late switch     (Fig 4B)
decoding     the coming swap from held-out trials
dynamics     fixed and slow points, time constants, divergence
ring_fit     rings fitted directly, and their normal                      (Fig 4C, D)
rings        the same trials in principal components                      (Fig 4C)
trialwise    does alignment before the cue predict swaps, trial by trial?
procrustes, dynamical_distance    networks compared
synthetic    populations that swap in a known way
"""

from lapsus.analysis import (
    activity as activity,
    alignment as alignment,
    commitment as commitment,
    decoding as decoding,
    dynamical_distance as dynamical_distance,
    dynamics as dynamics,
    kind as kind,
    modes as modes,
    outcomes as outcomes,
    procrustes as procrustes,
    ring_fit as ring_fit,
    rings as rings,
    swap_axis as swap_axis,
    synthetic as synthetic,
    transplants as transplants,
    trialwise as trialwise,
)
