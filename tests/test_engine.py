"""The fused kernel against the torch reference, and the reference against difference quotients."""

import math

import pytest
import torch
from hypothesis import assume, given, settings, strategies as st

from lapsus import engine
from lapsus.engine import Timeline, fused, reference, rollout, rollout_and_read_out
from lapsus.errors import LapsusError, LapsusWarning
from lapsus.networks import DendriticTree, TwoLayer

needs_kernel = pytest.mark.skipif(not fused.instruction_sets(), reason="the kernel was not built")


class Case:
    """A random network with random input: everything that rollout takes."""

    def __init__(
        self,
        units=5,
        branching=(3, 2),
        conditions=3,
        trials=4,
        steps=6,
        forced=2,
        nonlinearity="relu",
        drives=2,
        times=3,
        dtype=torch.float64,
        seed=0,
    ):
        g = torch.Generator().manual_seed(seed)

        def randn(*shape):
            return torch.randn(*shape, generator=g, dtype=torch.float64).to(dtype)

        def choose(low, high):
            return torch.randint(low, high, (steps,), generator=g).tolist()

        d = min(2, units)
        self.network = DendriticTree(3, d, units, branching, nonlinearity=nonlinearity, alpha=0.2, seed=seed).to(dtype)
        nodes = [self.network.leaf_weight.shape[0]] + [len(weight) for weight in self.network.branch_weights]
        self.timeline = Timeline(choose(-1, drives), choose(0, times), torch.rand(steps, generator=g), forced)
        self.r0 = randn(units, conditions, trials).requires_grad_()
        self.drives = randn(drives, conditions, nodes[0]).requires_grad_()
        self.biases = tuple((0.3 * randn(times, count)).requires_grad_() for count in nodes)
        self.noise = randn(steps, units, conditions, trials)
        self.forcing = randn(forced, d, conditions, trials) if forced else None
        # A random linear loss, so that the gradient of every step and unit matters; and one in what is read out.
        self.loss_weights = randn(steps + 1, units, conditions, trials)
        self.read_weights = randn(steps + 1, d, conditions, trials), randn(conditions, trials)

    @property
    def inputs(self):
        return (self.network, self.r0, self.drives, self.biases, self.timeline, self.noise, self.forcing)

    @property
    def differentiable(self):
        return [self.r0, self.drives, *self.biases, self.network.leaf_weight, *self.network.branch_weights]

    def results(self, **options):
        """The trajectory, what is read out of it, and every gradient of the loss in the one and in the other."""
        given = rollout_and_read_out(*self.inputs, **options)
        found = [tensor.detach() for tensor in given]
        for outputs, weights in (
            (given[:1], (self.loss_weights,)),
            (given[1:], self.read_weights),
            (given, (self.loss_weights, *self.read_weights)),
        ):
            found += torch.autograd.grad(
                outputs, self.differentiable, weights, allow_unused=True, materialize_grads=True, retain_graph=True
            )
        return found


def error(one, other):
    """The largest difference, relative to the largest entry."""
    if not other.numel():
        return 0.0
    return float((one - other).abs().max() / other.abs().max().clamp_min(1e-30))


def same(ours, theirs, tolerance):
    return all(error(one, other) < tolerance for one, other in zip(ours, theirs, strict=True))


def assert_same(ours, theirs, tolerance):
    assert [one.shape for one in ours] == [other.shape for other in theirs]
    assert max(error(one, other) for one, other in zip(ours, theirs, strict=True)) < tolerance


def sizes():
    """Random architectures and shapes, odd ones included: one unit, one trial, one step, no branches, nothing shown."""
    return st.fixed_dictionaries(
        {
            "units": st.integers(1, 35),
            "branching": st.lists(st.integers(1, 7), max_size=3).map(tuple),
            "conditions": st.integers(1, 9),
            "trials": st.one_of(st.integers(1, 20), st.sampled_from([16, 32, 70])),
            "steps": st.integers(0, 5),
            "nonlinearity": st.sampled_from(["relu", "softplus"]),
            "drives": st.integers(0, 2),
            "seed": st.integers(0, 2**20),
        }
    ).flatmap(lambda fixed: st.builds(lambda forced: {**fixed, "forced": forced}, st.integers(0, fixed["steps"])))


@pytest.mark.slow
@needs_kernel
@settings(max_examples=150, deadline=None)
@given(sizes())
def test_kernel_equals_reference_in_float64(chosen):
    case = Case(**chosen)
    assert_same(case.results(engine="fused"), case.results(engine="reference"), 1e-10)


@needs_kernel
@settings(max_examples=60, deadline=None, derandomize=True)
@given(sizes())
@pytest.mark.slow
def test_kernel_equals_reference_in_float32(chosen):
    single, double = Case(**chosen, dtype=torch.float32), Case(**chosen)
    theirs = single.results(engine="reference")
    # A node at its threshold may fall on either side in single precision, and then the gradients differ altogether, in
    # torch as in the kernel. Such draws say nothing about the kernel.
    assume(same([x.double() for x in theirs], double.results(engine="reference"), 1e-5))
    assert_same(single.results(engine="fused"), theirs, 1e-4)


@needs_kernel
@pytest.mark.parametrize("nonlinearity", ["relu", "softplus"])
def test_kernel_equals_reference_on_the_papers_network(nonlinearity):
    case = Case(16, (10, 10), 6, 16, 20, 12, nonlinearity, times=13, dtype=torch.float32)
    assert_same(case.results(engine="fused"), case.results(engine="reference"), 1e-4)


@pytest.mark.parametrize("name", ["reference", pytest.param("fused", marks=needs_kernel)])
@pytest.mark.parametrize("nonlinearity", ["relu", "softplus"])
@pytest.mark.parametrize("branching", [(), (3,), (2, 3)])
@pytest.mark.slow
def test_gradcheck(name, nonlinearity, branching):
    case = Case(3, branching, 2, 2, 4, 2, nonlinearity)
    network = case.network

    def trial(r0, drives, *rest):
        biases, weights = rest[: len(case.biases)], rest[len(case.biases) :]
        stand_in = torch.nn.Module()
        stand_in.units, stand_in.alpha, stand_in.readout = network.units, network.alpha, network.readout
        stand_in.nonlinearity, stand_in.branching = nonlinearity, branching
        stand_in.leaf_weight, stand_in.branch_weights = weights[0], list(weights[1:])
        stand_in.F = lambda *inputs: DendriticTree.F(stand_in, *inputs)
        return rollout(stand_in, r0, drives, biases, case.timeline, case.noise, case.forcing, engine=name)

    leaves = [tensor.detach().requires_grad_() for tensor in case.differentiable]
    assert torch.autograd.gradcheck(trial, leaves)


def test_reference_equals_a_loop_in_words():
    """One trial of one condition in plain Python, from the equations of the paper."""
    case = Case(4, (2, 3), 2, 3, 5, 2, drives=1, times=2)
    network, timeline = case.network, case.timeline
    W = network.readout
    for c in range(2):
        r = case.r0[:, c, 1].tolist()
        for s in range(5):
            if s >= 3:
                x = [sum(W[d, u].item() * r[u] for u in range(4)) for d in range(2)]
                gap = [case.forcing[s - 3, d, c, 1].item() - x[d] for d in range(2)]
                r = [r[u] + sum(W[d, u].item() * gap[d] for d in range(2)) for u in range(4)]
            row = timeline.time_index[s]
            leaf = []
            for i in range(24):
                h = sum(network.leaf_weight[i, u].item() * r[u] for u in range(4)) + case.biases[0][row, i].item()
                if timeline.drive_index[s] >= 0:
                    h += case.drives[0, c, i].item()
                leaf.append(max(h, 0))
            first, second = network.branch_weights
            node = [
                max(sum(first[i, j].item() * leaf[3 * i + j] for j in range(3)) + case.biases[1][row, i].item(), 0)
                for i in range(8)
            ]
            soma = [
                max(sum(second[k, j].item() * node[2 * k + j] for j in range(2)) + case.biases[2][row, k].item(), 0)
                for k in range(4)
            ]
            sigma = timeline.sigma[s]
            r = [0.8 * r[u] + 0.2 * soma[u] + sigma * case.noise[s, u, c, 1].item() for u in range(4)]
        trajectory = rollout(*case.inputs, engine="reference")
        assert torch.allclose(trajectory[-1, :, c, 1], torch.tensor(r, dtype=torch.float64), rtol=1e-12)


def test_clamping_replaces_the_response_and_nothing_else():
    case = Case(6, (2,), 2, 3)
    W = case.network.readout
    x = case.forcing[0]
    clamped = reference.clamp(case.r0.detach(), W, x)
    assert torch.allclose(torch.tensordot(W, clamped, 1), x, atol=1e-6)
    moved = (clamped - case.r0.detach()).flatten(1)
    assert torch.allclose(W.T @ (W @ moved), moved, atol=1e-6)


@needs_kernel
def test_silent_network_has_the_references_gradients():
    """At a threshold of exactly zero, where nothing comes in, the slope is zero as in torch."""
    case = Case(3, (2, 2), 2, 3, 3, 0, drives=1)
    for tensor in (case.r0, case.noise, case.drives, *case.biases):
        tensor.data.zero_()
    ours, theirs = case.results(engine="fused"), case.results(engine="reference")
    assert_same(ours, theirs, 1e-12)


@needs_kernel
def test_a_weight_of_zero_still_gets_its_gradient():
    case = Case(4, (3, 2), 2, 5, 4, 1)
    for weight in case.network.branch_weights:
        weight.data[:, 0] = 0
    case.network.leaf_weight.data[2] = 0
    theirs = case.results(engine="reference")
    assert_same(case.results(engine="fused"), theirs, 1e-10)
    assert theirs[-1][:, 0].abs().max() > 0


@needs_kernel
@pytest.mark.parametrize("nonlinearity", ["relu", "softplus"])
@pytest.mark.parametrize("group", [None, 2])
def test_bits_do_not_depend_on_threads(nonlinearity, group):
    results = []
    for threads in (1, 2, 5):
        case = Case(16, (4, 5), 12, 16, 8, 4, nonlinearity, dtype=torch.float32)
        trajectory = rollout(*case.inputs, threads=threads, group=group)
        (trajectory * case.loss_weights).sum().backward()
        results.append([trajectory.detach()] + [tensor.grad for tensor in case.differentiable])
    for other in results[1:]:
        for one, two in zip(results[0], other, strict=True):
            assert torch.equal(one, two)


@needs_kernel
@pytest.mark.parametrize("trials", [16, 5, 70])
@pytest.mark.parametrize("nonlinearity", ["relu", "softplus"])
def test_bits_do_not_depend_on_micro_batches(trials, nonlinearity):
    results = []
    for size in (12, 8, 4):
        case = Case(6, (3, 4), 12, trials, 6, 3, nonlinearity, dtype=torch.float32)
        for start in range(0, 12, size):
            here = slice(start, start + size)
            trajectory = rollout(
                case.network,
                case.r0[:, here],
                case.drives[:, here],
                case.biases,
                case.timeline,
                case.noise[:, :, here],
                case.forcing[:, :, here],
                engine="fused",
                group=4,
            )
            (trajectory * case.loss_weights[:, :, here]).sum().backward()
        results.append([tensor.grad for tensor in case.differentiable])
    for other in results[1:]:
        for one, two in zip(results[0], other, strict=True):
            assert torch.equal(one, two)


@needs_kernel
def test_group_adds_to_an_existing_gradient():
    case, plain = Case(), Case()
    for tensor in case.differentiable:
        tensor.grad = torch.ones_like(tensor)
    (rollout(*case.inputs, group=2) * case.loss_weights).sum().backward()
    (rollout(*plain.inputs) * plain.loss_weights).sum().backward()
    for one, two in zip(case.differentiable, plain.differentiable, strict=True):
        assert torch.allclose(one.grad, 1 + two.grad, rtol=1e-10)


@needs_kernel
def test_without_gradients_the_numbers_are_the_same():
    case = Case(7, (3, 2), 3, 20, dtype=torch.float32)
    with torch.no_grad():
        free = rollout(*case.inputs, engine="fused")
    assert torch.equal(free, rollout(*case.inputs, engine="fused").detach())


@needs_kernel
@pytest.mark.parametrize("isa", fused.instruction_sets()[1:])
def test_instruction_sets_agree(isa, monkeypatch):
    for nonlinearity in ("relu", "softplus"):
        case = Case(9, (5, 3), 4, 19, 6, 2, nonlinearity)
        best = case.results(engine="fused")
        monkeypatch.setenv("LAPSUS_ISA", isa)
        assert fused.instruction_set() == isa
        assert_same(case.results(engine="fused"), best, 1e-12)
        monkeypatch.delenv("LAPSUS_ISA")


@needs_kernel
def test_a_blown_up_network_shows_it():
    case = Case(4, (2,), 1, 2, 4, 0)
    case.r0.data[0] = math.nan
    assert not rollout(*case.inputs, engine="fused").detach()[-1].isfinite().any()


def test_unknown_network_falls_back_and_says_so_once(monkeypatch):
    monkeypatch.setattr(engine, "_told", set())
    case = Case(4, (3,), 2, 2, 3, 0, drives=1)
    network = TwoLayer(3, 2, 4, 12).double()
    inputs = (network, case.r0, case.drives, case.biases, case.timeline, case.noise)
    with pytest.warns(LapsusWarning, match="TwoLayer is not a dendritic tree"):
        first = rollout(*inputs)
    assert torch.equal(first, rollout(*inputs))
    assert torch.equal(first, rollout(*inputs, engine="reference"))
    with pytest.raises(LapsusError, match="fused is impossible here"):
        rollout(*inputs, engine="fused")


@needs_kernel
def test_a_subclass_with_its_own_F_is_not_taken_for_a_tree():
    class Doubled(DendriticTree):
        def F(self, r, drive, biases):
            return 2 * super().F(r, drive, biases)

    case = Case()
    case.network.__class__ = Doubled
    assert "an F of its own" in fused.why_not(case.network, case.r0)


@pytest.mark.slow
def test_without_the_kernel_the_package_works(warm, tmp_path):
    """A fresh interpreter in which the kernel cannot be imported."""
    code = """
import sys, warnings
sys.modules["lapsus.engine._native"] = None
import torch
from lapsus.engine import Timeline, fused, normal, rollout
from lapsus.networks import DendriticTree
assert fused.instruction_set() is None
network = DendriticTree(3, 2, 4, (2,))
inputs = (network, torch.zeros(4, 1, 1), torch.zeros(0, 1, 8), network.biases(1), Timeline([-1], [0], [1.0]))
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for _ in range(2):
        rollout(*inputs, normal(1, 4, 1, 1, key=(1, 2)))
assert len(caught) == 1 and "was not built" in str(caught[0].message), caught
"""
    done = warm.run(code, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "change, message",
    [
        ({"r0": torch.zeros(2, 3, 4)}, "r0 has shape"),
        ({"noise": torch.zeros(6, 5, 3, 5)}, "noise has shape"),
        ({"forcing": torch.zeros(3, 2, 3, 4)}, "forcing has 3 steps; at most 2"),
        ({"forcing": torch.zeros(2, 3, 3, 4)}, "forcing has shape"),
        ({"drives": torch.zeros(2, 4, 30)}, "drives has shape"),
        ({"timeline": Timeline([2] * 6, [0] * 6, [0.1] * 6, 2)}, "drive_index runs from"),
        ({"timeline": Timeline([0] * 6, [3] * 6, [0.1] * 6, 2)}, "time_index runs from"),
    ],
)
def test_what_does_not_fit_is_named(change, message):
    case = Case()
    names = ["network", "r0", "drives", "biases", "timeline", "noise", "forcing"]
    inputs = {**dict(zip(names, case.inputs)), **change}
    with pytest.raises(LapsusError, match=message):
        rollout(**inputs)


def test_timeline_needs_one_entry_a_step():
    with pytest.raises(LapsusError, match="one entry a step"):
        Timeline([0], [0, 1], [0.1], 0)
    with pytest.raises(LapsusError, match="forced is 2"):
        Timeline([0], [0], [0.1], 2)


def test_threads_are_settable(monkeypatch):
    from lapsus.engine.threads import available, resolve

    monkeypatch.delenv("LAPSUS_THREADS", raising=False)
    assert resolve(3) == 3 and resolve(None) == available() >= 1
    monkeypatch.setenv("LAPSUS_THREADS", "7")
    assert resolve(None) == 7
    monkeypatch.setenv("LAPSUS_THREADS", "many")
    with pytest.raises(LapsusError, match="LAPSUS_THREADS"):
        resolve(None)


@pytest.mark.parametrize("engine", [pytest.param("fused", marks=needs_kernel), "reference"])
def test_what_runs_meanwhile_is_started_once_and_before_the_network(engine, monkeypatch):
    chosen, order = Case(), []
    run = fused._Call.native if engine == "fused" else reference.rollout
    watched = lambda *arguments, **options: (order.append("network"), run(*arguments, **options))[1]
    monkeypatch.setattr(*((fused._Call, "native") if engine == "fused" else (reference, "rollout")), watched)
    rollout_and_read_out(*chosen.inputs, engine=engine, meanwhile=lambda: order.append("meanwhile"))
    # The kernel's arrays are laid out before the call: nothing of ours is left to do in the interpreter.
    assert order == (["network", "meanwhile"] if engine == "fused" else ["meanwhile", "network"])
