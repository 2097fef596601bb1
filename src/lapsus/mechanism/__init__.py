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

registry holds what a question is. Beside the questions are plain functions, arrays in and numbers out: activity,
outcomes, modes, colour_code, discriminants, rings, ring_normals, plane_alignment, slow_points, procrustes,
dynamical_distance; and trials to ask with: designs, replay, synthetic.
"""

from lapsus.mechanism import (
    commitment,
    decoding,
    dynamics,
    error_type,
    planes,
    pushes,
    single_trials,
    swap_axis,
    transplants,
)
from lapsus.mechanism.asking import analyse
from lapsus.mechanism.registry import QUESTIONS, Mechanism, Question, register, summary

__all__ = ["QUESTIONS", "Mechanism", "Question", "analyse", "register", "summary"]

for _module in (commitment, decoding, transplants, pushes, swap_axis, error_type, dynamics, planes, single_trials):
    register(_module.QUESTION)
