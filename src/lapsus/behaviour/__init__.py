"""What a subject would answer: generative models of responses, for training and for evaluation."""

from lapsus.behaviour.attention import AttendedSwap
from lapsus.behaviour.bns import BNS
from lapsus.behaviour.causal_inference import CausalInference
from lapsus.behaviour.set_sizes import BySetSize
from lapsus.behaviour.swap import ConstantSwap, NoSwap, SmoothSwap, TabulatedSwap

__all__ = [
    "BNS",
    "AttendedSwap",
    "BySetSize",
    "CausalInference",
    "ConstantSwap",
    "NoSwap",
    "SmoothSwap",
    "TabulatedSwap",
]
