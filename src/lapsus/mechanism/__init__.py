"""How a network or a recorded population makes swaps: one file per question, in the order in which they are asked.

commitment     when a swap is decided
decoding       when the coming swap can be read from held-out trials
transplants    what carries it
pushes         which pushes of memory make it likelier
swap_axis      along which direction, the reported colour held fixed
error_type     misbinding, misselection, misinterpretation, late switch   (Fig 4B)
dynamics       fixed and slow points, time constants, divergence
planes         alignment of the two items' planes over time               (Fig 3, Table 1)
single_trials  whether alignment before the cue predicts swaps

resemblance asks which kind of network a recording looks like; recorded makes a recording fit for the questions.
registry holds what a question is. Beside the questions are plain functions, arrays in and numbers out: activity,
outcomes, modes, colour_code, discriminants, rings, ring_normals, plane_alignment, slow_points, procrustes,
dynamical_distance; and trials to ask with: designs, replay, synthetic.
"""

from lapsus.mechanism import (
    activity as activity,
    clock as clock,
    colour_code as colour_code,
    commitment as commitment,
    cue_grid as cue_grid,
    decoding as decoding,
    designs as designs,
    discriminants as discriminants,
    drawing as drawing,
    dynamical_distance as dynamical_distance,
    dynamics as dynamics,
    error_type as error_type,
    example_trials as example_trials,
    modes as modes,
    outcomes as outcomes,
    plane_alignment as plane_alignment,
    planes as planes,
    procrustes as procrustes,
    pushes as pushes,
    recorded as recorded,
    replay as replay,
    resemblance as resemblance,
    responses as responses,
    ring_normals as ring_normals,
    rings as rings,
    single_trials as single_trials,
    slow_points as slow_points,
    swap_axis as swap_axis,
    synthetic as synthetic,
    transplants as transplants,
)
from lapsus.mechanism.asking import analyse
from lapsus.mechanism.registry import QUESTIONS, Mechanism, Question, register, summary

__all__ = ["QUESTIONS", "Mechanism", "Question", "analyse", "register", "summary"]

for _module in (commitment, decoding, transplants, pushes, swap_axis, error_type, dynamics, planes, single_trials):
    register(_module.QUESTION)
