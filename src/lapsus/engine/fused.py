"""The trial in one fused C++ kernel: dendritic trees on the CPU, float32 and float64.

The kernel keeps a block of trials in registers, never writes leaf activations to memory, and adds up gradients in an
order that depends neither on the number of threads nor on who finishes first. See native/relu.h for the algebra.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from typing import Any, cast

import torch
from torch import Tensor

from lapsus.engine.threads import resolve
from lapsus.engine.timeline import Timeline
from lapsus.errors import LapsusError
from lapsus.networks import DendriticTree
from lapsus.protocols import Network

_native: Any = None
try:
    _native = import_module("lapsus.engine._native")
except ModuleNotFoundError:
    _reason = "the kernel was not built, for want of a C++ compiler when lapsus was installed"
except ImportError as error:
    _reason = f"the kernel does not load ({error})"

NONLINEARITIES = ("relu", "softplus")


def instruction_sets() -> list[str]:
    """What this machine can run, best first; empty without the kernel."""
    return [] if _native is None else _native.instruction_sets()


def instruction_set() -> str | None:
    """The instruction set in use: LAPSUS_ISA where it is set, else the best; None without the kernel."""
    if _native is None:
        return None
    wanted = os.environ.get("LAPSUS_ISA", "")
    if wanted and wanted not in instruction_sets():
        raise LapsusError(f"LAPSUS_ISA is {wanted!r}; this machine can run {', '.join(instruction_sets())}")
    return _native.instruction_set(wanted)


def unbuilt() -> str | None:
    """Why there is no kernel, in words; None where there is one."""
    return _reason if _native is None else None


def fill_normal(isa: str, low: int, high: int, stream: int, first_condition: int, out: Tensor, threads: int) -> None:
    """Fill out [row, condition, trial] with normal numbers; see lapsus.engine.noise."""
    rows, conditions, trials = out.shape
    _native.normal(isa, low, high, stream, first_condition, conditions, rows, trials, out.data_ptr(), threads)


def adam(
    grad: Tensor,
    moment_1: Tensor,
    moment_2: Tensor,
    beta_1: float,
    beta_2: float,
    rate: float,
    unbias: float,
    epsilon: float,
) -> None:
    """Adam's two moments follow the gradient, and its step is written over it: moment_1 rate / (√(moment_2 / unbias) +
    epsilon)."""
    if _native is not None and grad.device.type == "cpu" and grad.dtype == torch.float32:
        addresses = [tensor.data_ptr() for tensor in (grad, moment_1, moment_2)]
        _native.adam(grad.numel(), addresses, beta_1, beta_2, rate, unbias, epsilon)
        return
    moment_1.lerp_(grad, 1 - beta_1)
    moment_2.mul_(beta_2).addcmul_(grad, grad, value=1 - beta_2)
    torch.div(moment_1, (moment_2 / unbias).sqrt_().add_(epsilon), out=grad).mul_(rate)


def projects(r: Tensor) -> bool:
    """Whether the kernel can project these rates."""
    return _native is not None and r.device.type == "cpu" and r.dtype in (torch.float32, torch.float64)


def project(r: Tensor, readout: Tensor) -> Tensor:
    """W_x r; see lapsus.engine.read_out."""
    r, readout = r.contiguous(), readout.to(r.dtype).contiguous()
    steps, units, *lanes = r.shape
    x = r.new_empty(steps, len(readout), *lanes)
    function = _native.project_float32 if r.dtype == torch.float32 else _native.project_float64
    function([steps, units, len(readout), lanes[0] * lanes[1]], r.data_ptr(), readout.data_ptr(), x.data_ptr())
    return x


def why_not(network: Network, r0: Tensor) -> str | None:
    """Why the kernel cannot run this network, in words, or None if it can."""
    if _native is None:
        return _reason
    if not all(hasattr(network, name) for name in ("leaf_weight", "branch_weights", "branching", "nonlinearity")):
        return f"{type(network).__name__} is not a dendritic tree"
    if isinstance(network, DendriticTree) and type(network).F is not DendriticTree.F:
        return f"{type(network).__name__} has an F of its own"
    tree = cast(DendriticTree, network)
    if tree.nonlinearity not in NONLINEARITIES:
        return f"the kernel does not know the non-linearity {tree.nonlinearity!r}"
    if r0.device.type != "cpu":
        return f"the kernel runs on the CPU, not on {r0.device.type}"
    if r0.dtype not in (torch.float32, torch.float64):
        return f"the kernel works in float32 and float64, not in {r0.dtype}"
    if tree.leaf_weight.dtype != r0.dtype:
        return f"the rates are {r0.dtype} but the weights {tree.leaf_weight.dtype}"
    return None


def rollout(
    network: DendriticTree,
    r0: Tensor,
    drives: Tensor,
    biases: tuple[Tensor, ...],
    timeline: Timeline,
    noise: Tensor,
    forcing: Tensor | None = None,
    *,
    threads: int | None = None,
    group: int | None = None,
    meanwhile: Callable[[], None] | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """The trajectory [S+1, n, C, K], x [S+1, d, C, K] and power [C, K]; see lapsus.engine for the arguments."""
    count = network.leaf_weight.shape[0]
    if drives.shape[0] and drives.shape[2] != count:
        raise LapsusError(f"drives has {drives.shape[2]} entries a condition; the tree has {count} leaves")
    weights, tables = list(network.branch_weights), list(biases)
    if not weights and network.nonlinearity == "relu":
        # A point neuron is a soma with one leaf: the ReLU of a ReLU is that ReLU.
        weights = [r0.new_ones(network.units, 1)]
        tables.append(tables[0].new_zeros(tables[0].shape))
    nodes = [count] + [weight.shape[0] for weight in weights]
    if [table.shape[-1] for table in tables] != nodes:
        raise LapsusError(f"the bias tables have {[table.shape[-1] for table in tables]} nodes; the tree has {nodes}")
    # Under `group` the kernel itself adds to .grad: autograd would add one sum a micro-batch, in another order.
    leaves = [t if group and t.is_leaf and t.requires_grad else None for t in (network.leaf_weight, *weights, *tables)]
    children = [0] + [weight.shape[1] for weight in weights]
    call = _Call(network, nodes, children, timeline, resolve(threads), group, leaves, meanwhile)
    return _Rollout.apply(call, r0, drives, noise, forcing, network.readout, network.leaf_weight, *weights, *tables)


class _Call:
    """Everything about one rollout that is not a tensor."""

    def __init__(
        self,
        network: DendriticTree,
        nodes: list[int],
        children: list[int],
        timeline: Timeline,
        threads: int,
        group: int | None,
        leaves: list[Tensor | None],
        meanwhile: Callable[[], None] | None,
    ) -> None:
        self.softplus = network.nonlinearity == "softplus"
        self.alpha = float(network.alpha)
        self.nodes, self.children, self.timeline, self.threads, self.group = nodes, children, timeline, threads, group
        self.leaves, self.meanwhile, self.isa = leaves, meanwhile, instruction_set()

    def native(
        self,
        trajectory: Tensor,
        x: Tensor | None,
        power: Tensor | None,
        r0: Tensor,
        drives: Tensor,
        noise: Tensor,
        forcing: Tensor | None,
        readout: Tensor,
        leaf_weight: Tensor,
        *rest: Tensor,
    ) -> Any:
        """The kernel's view of the arrays; it keeps none of them alive."""
        weights, tables = rest[: len(self.nodes) - 1], rest[len(self.nodes) - 1 :]
        _, conditions, trials = r0.shape
        forced = 0 if forcing is None else forcing.shape[0]
        group = min(self.group or conditions, conditions) or 1
        sizes = [
            r0.shape[0],
            conditions,
            trials,
            self.timeline.steps,
            drives.shape[0],
            len(tables[0]),
            readout.shape[0],
            forced,
            group,
        ]
        arrays = [leaf_weight, drives, readout, r0, noise, forcing, trajectory, x, power]
        kind = _native.RolloutFloat32 if r0.dtype == torch.float32 else _native.RolloutFloat64
        return kind(
            sizes,
            self.softplus,
            self.alpha,
            self.nodes,
            self.children,
            list(self.timeline.drive_index),
            list(self.timeline.time_index),
            list(self.timeline.sigma),
            [_address(array) for array in arrays],
            [0] + [_address(weight) for weight in weights],
            [_address(table) for table in tables],
        )


def _address(tensor: Tensor | None) -> int:
    return 0 if tensor is None else tensor.data_ptr()


class _Rollout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, call: _Call, *tensors: Any) -> tuple[Tensor, Tensor, Tensor]:
        dtype = tensors[0].dtype
        tensors = tuple(t if t is None else t.detach().to(dtype).contiguous() for t in tensors)
        r0 = tensors[0]
        states, (units, *lanes), readout = call.timeline.steps + 1, r0.shape, tensors[4]
        trajectory, x = (r0.new_empty(states, count, *lanes) for count in (units, len(readout)))
        power = r0.new_empty(lanes) if r0.numel() else r0.new_zeros(lanes)
        native = call.native(trajectory, x, power, *tensors)
        masks = None
        if any(ctx.needs_input_grad) and not call.softplus:
            masks = torch.empty(native.mask_words, dtype=torch.int64)
            native.set_masks(masks.data_ptr(), masks.nbytes)
        if call.meanwhile:
            call.meanwhile()
        native.forward(call.isa, call.threads)
        ctx.call = call
        ctx.save_for_backward(masks, trajectory, *tensors)
        ctx.set_materialize_grads(False)
        return trajectory, x, power

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *given: Tensor | None) -> tuple[Tensor | None, ...]:
        masks, trajectory, *tensors = ctx.saved_tensors
        call = ctx.call
        r0, drives, _noise, _forcing, _readout, leaf_weight, *rest = tensors
        given = tuple(None if grad is None else grad.contiguous() for grad in given)
        native = call.native(trajectory, None, None, *tensors)
        native.set_masks(_address(masks), 0)
        in_r0, in_drives = torch.empty_like(r0), _zeros_like(drives)
        in_leaf, *in_rest = (_sum_for(tensor, leaf) for tensor, leaf in zip((leaf_weight, *rest), call.leaves))
        count = len(call.nodes) - 1
        native.backward(
            call.isa,
            call.threads,
            [_address(tensor) for tensor in (*given, in_r0, in_leaf, in_drives)],
            [0] + [tensor.data_ptr() for tensor in in_rest[:count]],
            [tensor.data_ptr() for tensor in in_rest[count:]],
        )
        returned = (None if leaf is not None else total for total, leaf in zip((in_leaf, *in_rest), call.leaves))
        return None, in_r0, in_drives, None, None, None, *returned


def _sum_for(tensor: Tensor, leaf: Tensor | None) -> Tensor:
    """Where the kernel adds up the gradient: the leaf's own .grad, or new zeros."""
    if leaf is None:
        return _zeros_like(tensor)
    if leaf.grad is None or not leaf.grad.is_contiguous():
        leaf.grad = _zeros_like(tensor) if leaf.grad is None else leaf.grad.contiguous()
    return leaf.grad


def _zeros_like(tensor: Tensor) -> Tensor:
    """Zeros without waking torch's threads, which would then spin beside the kernel's."""
    zeros = torch.empty_like(tensor)
    _native.zero(zeros.data_ptr(), zeros.nbytes)
    return zeros
