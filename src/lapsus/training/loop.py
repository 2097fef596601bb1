"""The training loop: draw conditions and responses, simulate, differentiate, step.

Every random number of update u is a function of the run's seed and u, and checkpoints hold all else that u depends on,
so a loop that is stopped anywhere and started again from its last checkpoint ends with the same bits.
"""

import math
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Generic, TypeVar

import torch
from torch import Tensor

from lapsus import rng
from lapsus.engine.fused import why_not
from lapsus.engine.threads import resolve, torch_threads
from lapsus.errors import LapsusError
from lapsus.protocols import ByEpoch, Conditions, HasGoal, HasTempered, Objective
from lapsus.tasks.durations import varying
from lapsus.training.build import build
from lapsus.training.experiment import Experiment, Stage
from lapsus.training.model import Model, Tensors
from lapsus.training.objectives import Batch, Draws, Terms, denoising_loss, exact_loss
from lapsus.training.optimiser import Optimiser


def _group(trials: int) -> int:
    """Conditions whose gradients are summed before they are added to the total: micro-batches are whole groups, and
    then cutting a batch changes no bit. Enough of them to fill the 64 trials that the kernel takes at a time."""
    return max(4, 64 // trials)


# Under a rate budget the log of the price moves by this times the relative surplus of the mean square rate an update,
# between these limits.
_PRICE_STEP = 0.02
_PRICE_LIMITS = (1e-3, 10.0)


class NonFinite(LapsusError):
    """The loss or the gradient stopped being a number."""


@dataclass
class Progress:
    """One update: its loss terms and, where it was asked for, the excess over the Bayes denoiser, means over those
    conditions of the batch that did not come back from an earlier one."""

    update: int
    stage: int
    loss: float
    terms: dict[str, float]
    learning_rate: float
    gradient_norm: float
    trials: int
    excess: float | None = None
    durations: dict[str, int] = field(default_factory=dict)  # of the epochs that vary
    rate: float | None = None  # root mean square, where there is a budget for it
    price: float | None = None


def learning_rate(stage: Stage, update: int) -> float:
    """Linear warm-up, then exponential decay to the final rate at the stage's last update."""
    warm = min(1.0, (update + 1) / stage.warmup) if stage.warmup else 1.0
    if stage.final_learning_rate is None or stage.updates <= stage.warmup + 1:
        return warm * stage.learning_rate
    share = max(0, update - stage.warmup) / (stage.updates - stage.warmup - 1)
    return warm * stage.learning_rate * (stage.final_learning_rate / stage.learning_rate) ** share


def _parts(stage: Stage, micro_batch: int | None) -> list[range]:
    """Ranges of conditions to simulate at a time: whole groups, so that the cut changes no bit."""
    group, count = _group(stage.trials), stage.conditions
    size = count if micro_batch is None else max(group, micro_batch - micro_batch % group)
    return [range(start, min(start + size, count)) for start in range(0, count, size)]


@dataclass(frozen=True)
class Drawn:
    """A micro-batch before any network runs, with the conditions and stimuli of the whole batch, the first `new` of
    which have not come back from an earlier batch."""

    conditions: Conditions
    new: int
    stimuli: ByEpoch
    part: range
    draws: Draws


def draw(
    model: Model,
    stage: Stage,
    objective: Objective,
    seed: int,
    update: int,
    micro_batch: int | None = None,
    hard: Conditions | None = None,
) -> Iterator[Drawn]:
    """All that update `update` needs from chance, a micro-batch at a time; `hard` conditions, as many as the stage
    wants, replace the last ones."""
    conditions = model.task.sample(stage.conditions, rng.generator(seed, update, "conditions"))
    new = stage.conditions
    if hard:
        back = {name: values[: _hard_count(stage)] for name, values in hard.items()}
        new -= len(next(iter(back.values())))
        conditions = {name: torch.cat([values[:new], back[name]]) for name, values in conditions.items()}
    x_T = _responses(model, stage, objective, conditions, rng.generator(seed, update, "responses"))
    stimuli = model.task.stimuli(conditions)
    for rows in _parts(stage, micro_batch):
        draws = model.draw(conditions, x_T, rows, rng.seed_of(seed, update), threads=1)
        if isinstance(objective, HasGoal):
            objective.goal(draws)  # the draws keep it, for when the objective asks again
        yield Drawn(conditions, new, stimuli, rows, draws)


def _responses(
    model: Model, stage: Stage, objective: Objective, conditions: Conditions, generator: torch.Generator
) -> Tensor:
    """Responses x_T [d, C, K] that the network is led through.

    Drawn more often than the target gives them (`response_tempering`), rare ones are learned as precisely as the
    others: the exact denoiser is a function of x_t alone, so where x_t is drawn from changes
    how well it is learned there, not what.
    """
    behaviour = model.behaviour
    if stage.response_tempering == 1:
        return behaviour.sample(conditions, stage.trials, generator)
    if not isinstance(behaviour, HasTempered) or getattr(objective, "regress", None) != "expectation":
        raise LapsusError(
            "stage.response_tempering draws rare responses more often than the target gives them, which only a"
            ' regression on the exact denoiser undoes: it needs objective.regress = "expectation" and a behaviour'
            " such as bns; leave it out."
        )
    return behaviour.tempered(conditions, stage.response_tempering).sample(stage.trials, generator)


_Item = TypeVar("_Item")


class _Ahead(Generic[_Item]):
    """An iterator whose next item another thread makes, from begin() on, while this one is in the kernel.

    The engine calls begin() as the last thing before the kernel, which lets go of the interpreter: sooner, the two
    threads would only wait for each other's turn in it.
    """

    def __init__(self, items: Iterator[_Item]) -> None:
        self.items, self.thread = items, ThreadPoolExecutor(1)
        self.coming: Future[_Item | None] | None = None

    def __iter__(self) -> Iterator[_Item]:
        return self

    def begin(self) -> None:
        if self.coming is None:
            self.coming = self.thread.submit(next, self.items, None)

    def __next__(self) -> _Item:
        self.begin()
        assert self.coming is not None
        item, self.coming = self.coming.result(), None
        if item is None:
            raise StopIteration
        return item


def gradient(
    model: Model,
    stage: Stage,
    objective: Objective,
    parts: Iterable[Drawn],
    *,
    with_excess: bool = False,
    engine: str = "auto",
    threads: int | None = None,
    meanwhile: Callable[[], None] | None = None,
    price: float = 0.0,
) -> tuple[dict[str, float], float | None, Conditions]:
    """Add the gradient of the mean loss of one batch to the parameters' .grad; returns its loss terms and excess (or
    None), means over the conditions that did not come back, and the hardest conditions, a share
    `stage.hard_example_fraction` of them all.

    Sensory drives and biases are computed once for the whole batch and cut from its graph: micro-batches
    differentiate down to them, and the rest of the way is walked once. `meanwhile` is called just before each run of
    the network. Where the stage has a rate budget, one more term is `price` times the mean square rate relative to it,
    and another holds the rates at the budget if the stage says so (`rate_hold`).
    """
    parts = iter(parts)
    first = next(parts)  # its conditions and stimuli are those of the whole batch
    drives, biases = model.inputs(first.conditions, first.stimuli)
    inputs = (drives, *biases)
    leaves = [tensor.detach().requires_grad_() for tensor in inputs]
    parts_of: dict[str, list[Tensor]] = {}
    excess = []
    for drawn in chain([first], parts):
        rows, draws = drawn.part, drawn.draws
        here = leaves[0] if len(rows) == stage.conditions else leaves[0][:, rows.start : rows.stop]
        batch = model.simulate(
            draws,
            (here, tuple(leaves[1:])),
            forced=objective.forced,
            engine=engine,
            threads=threads,
            group=_group(stage.trials),
            meanwhile=meanwhile,
        )
        losses = objective(batch)
        if stage.rate_budget:
            of_budget = _mean_square(batch) / stage.rate_budget**2
            losses["budget"] = price * of_budget
            if stage.rate_hold:
                losses["hold"] = stage.rate_hold * (of_budget - 1).square()
        values = list(losses.values())
        torch.autograd.backward(values, [torch.full_like(value, 1 / stage.conditions) for value in values])
        for name, value in losses.items():
            parts_of.setdefault(name, []).append(value.detach())
        if with_excess and objective.forced and draws.target is not None:
            with torch.no_grad():
                excess.append(denoising_loss(batch) - exact_loss(batch))
        # With all that the kernel kept for its backward pass, before the next micro-batch needs as much.
        del batch, losses, values
    used = [(tensor, leaf.grad) for tensor, leaf in zip(inputs, leaves) if leaf.grad is not None]
    tensors, gradients = zip(*used)
    torch.autograd.backward(tensors, gradients)
    terms = {name: torch.cat(values) for name, values in parts_of.items()}
    # Conditions that came back are the hard ones: they would make the record look worse than the network is.
    mean = lambda values: float(values[: first.new].mean())
    means = {name: mean(values) for name, values in terms.items()}
    return means, mean(torch.cat(excess)) if excess else None, _hardest(stage, first.conditions, terms)


def _mean_square(batch: Batch) -> Tensor:
    """The squared rate, mean over units, steps and trials: [C]."""
    return batch.power.mean(-1) / batch.trajectory[:, :, 0, 0].numel()


def _hard_count(stage: Stage) -> int:
    return int(stage.hard_example_fraction * stage.conditions + 1e-9)


def _hardest(stage: Stage, conditions: Conditions, losses: Terms) -> Conditions:
    """Those with the largest loss, by the objective's first term: what is left for last are pockets of rare
    conditions."""
    which = next(iter(losses.values())).topk(_hard_count(stage)).indices
    return {name: values[which] for name, values in conditions.items()} if len(which) else {}


@dataclass
class Training:
    """Weights, optimiser, how far it has come, and what that took: seconds, and processor time of all cores together.

    All parameters live in one flat vector, so that Adam is one pass.
    """

    experiment: Experiment
    model: Model
    update: int = 0
    trials_seen: int = 0
    seconds: float = 0.0
    core_seconds: float = 0.0
    engine: str = "auto"
    threads: int | None = None
    micro_batch: int | None = None
    price: float = _PRICE_LIMITS[0]  # of rates, under a budget
    flat: Tensor = field(init=False)
    # The hardest conditions of the last two updates. Update u takes those of u - 2, for it is drawn while u - 1 is
    # simulated.
    hard: dict[int, Conditions] = field(default_factory=dict)

    def __post_init__(self) -> None:
        parameters = list(self.model.parameters())
        self.flat = torch.cat([p.detach().flatten() for p in parameters])
        self.grad = torch.zeros_like(self.flat)
        self.average = self.flat.clone()
        # Weights on the rates, where the network says which they are.
        on_rates, position = getattr(self.model.network, "rate_weight", None), {}
        start = 0
        for p in parameters:
            end = start + p.numel()
            if p is on_rates:
                position = {"turned": slice(start, end), "columns": p.shape[-1]}
            p.data, p.grad = self.flat[start:end].view_as(p), self.grad[start:end].view_as(p)
            start = end
        self.optimiser = Optimiser(self.flat, **position)

    def run(self, until: int | None = None, excess_every: int = 20) -> Iterator[Progress]:
        """Train up to update `until` (all stages), yielding after each update."""
        until = self.experiment.updates if until is None else min(until, self.experiment.updates)
        fused = self.engine != "reference" and why_not(self.model.network, self.flat) is None
        with torch_threads(1 if fused else None):
            yield from self._updates(until, excess_every)

    def _draws(self, until: int) -> Iterator[tuple]:
        """Durations that were drawn, model, objective and a micro-batch's draws, from here to update `until`."""
        at = None
        for update in range(self.update, until):
            index, _ = self.experiment.stage_at(update)
            if index != at:
                at, stage = index, self.experiment.stage[index]
                model, objective = self.model.at_stage(stage), build("objective", stage.objective)
            seed = self.experiment.seed
            now = model.drawn(seed, update)
            durations = {name: now.task.epochs[name] for name in varying(model.task)}
            for drawn in draw(now, stage, objective, seed, update, self.micro_batch, self._hard_for(update)):
                yield durations, now, objective, drawn

    def _hard_for(self, update: int) -> Conditions | None:
        """Conditions that come back in this update, if those of two updates ago belong to the same task."""
        if update < 2:
            return None
        now, before = (self.experiment.stage[self.experiment.stage_at(u)[0]] for u in (update, update - 2))
        return self.hard.get(update - 2) if now.hard_example_fraction and now.task == before.task else None

    def _updates(self, until: int, excess_every: int) -> Iterator[Progress]:
        draws, threads = _Ahead(self._draws(until)), resolve(self.threads)
        while self.update < until:
            index, within_stage = self.experiment.stage_at(self.update)
            stage = self.experiment.stage[index]
            durations, model, objective, first = next(draws)
            others = islice(draws, len(_parts(stage, self.micro_batch)) - 1)
            self.grad.zero_()
            before = time.process_time()
            terms, excess, hardest = gradient(
                model,
                stage,
                objective,
                chain([first], (drawn for *_, drawn in others)),
                with_excess=self.update % excess_every == 0,
                engine=self.engine,
                threads=threads,
                meanwhile=draws.begin,
                price=self.price,
            )
            norm, loss = float(self.grad.norm()), sum(terms.values())
            if not (math.isfinite(norm) and math.isfinite(loss)):
                raise NonFinite(
                    f"The loss is no longer a finite number at update {self.update} (stage {index}). "
                    "A lower learning_rate or clip in that stage usually helps."
                )
            speed, trials = learning_rate(stage, within_stage), stage.conditions * stage.trials
            self._step(stage, speed, min(1.0, stage.clip / (norm + 1e-12)))
            self.hard = {self.update: hardest} | {u: kept for u, kept in self.hard.items() if u == self.update - 1}
            self.update += 1
            self.trials_seen += trials
            self.core_seconds += time.process_time() - before
            progress = Progress(self.update, index, loss, terms, speed, norm, trials, excess, durations)
            if stage.rate_budget:
                surplus = terms["budget"] / self.price
                progress.rate, progress.price = stage.rate_budget * math.sqrt(surplus), self.price
                self._reprice(surplus)
            yield progress

    def _reprice(self, relative: float) -> None:
        """The price follows the mean square rate, given relative to that of the budget. The step is bounded, so that a
        network far above its budget is not shocked."""
        low, high = _PRICE_LIMITS
        self.price = min(max(self.price * math.exp(_PRICE_STEP * min(relative - 1, 1.0)), low), high)

    @torch.no_grad()
    def _step(self, stage: Stage, rate: float, scale: float) -> None:
        if scale < 1:
            self.grad.mul_(scale)
        self.flat.sub_(self.optimiser.step(self.grad, rate, stage.beta_1, stage.beta_2, stage.principal_axes))
        if stage.average:
            updates = self.optimiser.updates
            self.average.lerp_(self.flat, 1 - min(stage.average, (1 + updates) / (10 + updates)))
        else:
            self.average.copy_(self.flat)

    def tensors(self) -> Tensors:
        """What a checkpoint must hold, besides the hard conditions."""
        return {"flat": self.flat, "average": self.average} | self.optimiser.state()

    def hard_tensors(self) -> Tensors:
        """The hard conditions as a checkpoint holds them."""
        return {f"hard.{update}.{name}": values for update, kept in self.hard.items() for name, values in kept.items()}

    def set_tensors(self, saved: Tensors, source: object) -> None:
        """Take all of them but the weights from a checkpoint; `source` names it in errors."""
        for name, tensor in self.tensors().items():
            if name == "flat":
                continue
            if name not in saved or saved[name].shape != tensor.shape or not bool(saved[name].isfinite().all()):
                raise LapsusError(f"The checkpoint in {source} belongs to another network: {name} does not fit.")
            tensor.copy_(saved[name])
        for key, values in saved.items():
            if key.startswith("hard."):
                _, update, name = key.split(".", 2)
                self.hard.setdefault(int(update), {})[name] = values
