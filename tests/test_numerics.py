"""The kernel under every instruction set of this machine, against the reference: also where numbers are at the edge."""

import math
import os
from dataclasses import replace
from unittest import mock

import pytest
import torch
from hypothesis import given, settings, strategies as st
from test_engine import Case, assert_same, needs_kernel, sizes

from lapsus.engine import fused

every_set = pytest.mark.parametrize("isa", fused.instruction_sets() or ["none"])


@pytest.mark.slow
@needs_kernel
@every_set
@settings(max_examples=25, deadline=None)
@given(chosen=sizes())
def test_gradients_of_every_instruction_set(isa, chosen):
    case = Case(**chosen)
    with mock.patch.dict(os.environ, {"LAPSUS_ISA": isa}):
        assert fused.instruction_set() == isa
        assert_same(case.results(engine="fused"), case.results(engine="reference"), 1e-10)


@needs_kernel
@every_set
@settings(max_examples=25, deadline=None)
@given(chosen=sizes(), power=st.sampled_from([-320, -310, -160, 140, 150, 200, 307]), seed=st.integers(0, 99))
def test_tiny_and_huge_weights_have_the_same_verdict(isa, chosen, power, seed):
    """Denormal and huge weights: finite where the reference is finite, not a number where it is none; the same numbers,
    gradients too, where they are of a size that can be compared."""
    case = Case(**chosen | {"seed": seed})
    with torch.no_grad():
        case.network.leaf_weight.mul_(10.0 ** (power / 2)).mul_(10.0 ** (power / 2))
    with mock.patch.dict(os.environ, {"LAPSUS_ISA": isa}):
        ours = case.results(engine="fused")
    theirs = case.results(engine="reference")
    assert bool(ours[0].isfinite().all()) == bool(theirs[0].isfinite().all())
    # At 10^307 partial sums leave the range of doubles in one order and not in another, before a ReLU hides it.
    within = all(bool(one.isfinite().all()) and (not one.numel() or float(one.abs().max()) < 1e150) for one in theirs)
    if power < 300 and within:
        assert_same(ours, theirs, 1e-9)


@needs_kernel
@every_set
@pytest.mark.parametrize("value", [math.nan, math.inf])
@pytest.mark.parametrize("place", ["r0", "drives", "leaf_weight", "noise"])
def test_what_is_not_a_number_stays_so(isa, place, value):
    """A ReLU that turned NaN into 0 would let a network that has blown up look healthy."""
    case = Case(6, (3, 2), 2, 5, 5, 0)
    tensor = case.network.leaf_weight if place == "leaf_weight" else getattr(case, place)
    if place == "drives":
        case.timeline = replace(case.timeline, drive_index=[0] * 5)
    tensor.data.view(-1)[0] = value
    with mock.patch.dict(os.environ, {"LAPSUS_ISA": isa}):
        ours = case.results(engine="fused")[0]
    theirs = case.results(engine="reference")[0]
    assert not theirs.isfinite().all() and not ours.isfinite().all()
    assert torch.equal(ours[-1].isfinite(), theirs[-1].isfinite())
