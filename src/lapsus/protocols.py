"""The seams: what a task, a behaviour, a network and an objective are. Yours need not inherit from anything; a class
that has these members is one (`lapsus.checks` says what is wrong with one that does not).

A batch is C conditions (a stimulus set and a cue) with K trials each. Conditions are a dictionary of tensors whose
first dimension is C. Arrays of trials put them last, [..., C, K]; d is the size of a response, n the number of units.
"""

from typing import Any, Protocol, runtime_checkable

import pandas as pd
import torch
from torch import Tensor, nn

from lapsus.diffusion import Mixture

__all__ = [
    "Behaviour",
    "ByEpoch",
    "Conditions",
    "HasGoal",
    "HasLatent",
    "HasMixture",
    "HasOptimum",
    "HasTempered",
    "HasWeights",
    "Network",
    "Objective",
    "Task",
]

Conditions = dict[str, Tensor]
# Name of an epoch → what is shown in it.
ByEpoch = dict[str, Tensor]


@runtime_checkable
class Task(Protocol):
    """What is shown when.

    >>> isinstance(lapsus.IndexCued(), lapsus.Task)
    True
    """

    @property
    def epochs(self) -> dict[str, int]:
        """Name → steps, in order; the last epoch is the denoising delay, T steps."""
        ...

    @property
    def stimulus_size(self) -> int:
        """Size of the encoded stimulus s."""
        ...

    @property
    def response_size(self) -> int:
        """d."""
        ...

    def sample(self, count: int, generator: torch.Generator) -> Conditions:
        """`count` conditions, drawn from the generator and from nothing else."""
        ...

    def stimuli(self, conditions: Conditions) -> ByEpoch:
        """Epoch name → what is shown then, [C, ...]; epochs that are not named have no input."""
        ...

    def encoder(self, generator: torch.Generator) -> nn.Module:
        """A module with learned parameters that turns `stimuli` into {epoch: [C, stimulus_size]}."""
        ...

    def table(self, conditions: Conditions) -> pd.DataFrame:
        """The trial table of conditions, one row each."""
        ...


@runtime_checkable
class HasLatent(Protocol):
    """A task with a cause that a trial's condition does not show, such as where attention is."""

    def with_latent(self, conditions: Conditions, generator: torch.Generator) -> Conditions:
        """The conditions with that cause drawn anew for each."""
        ...


@runtime_checkable
class Behaviour(Protocol):
    """What a subject would answer.

    >>> isinstance(lapsus.BNS(), lapsus.Behaviour)
    True
    """

    @property
    def response_size(self) -> int:
        """d."""
        ...

    def sample(self, conditions: Conditions, trials: int, generator: torch.Generator) -> Tensor:
        """Responses x_T [d, C, K]."""
        ...

    def measures(self, conditions: Conditions, x_T: Tensor) -> dict[str, Any]:
        """What `lapsus evaluate` prints of responses x_T [d, C, K]."""
        ...


@runtime_checkable
class HasMixture(Protocol):
    """A behaviour whose density is a mixture in closed form; the exact denoiser follows from it."""

    def mixture(self, conditions: Conditions) -> Mixture:
        """weights [C, M], means [C, M, d], scales [C, M]."""
        ...


@runtime_checkable
class HasTempered(HasMixture, Protocol):
    """A behaviour whose rare responses can be drawn more often than the target gives them (a stage's
    `response_tempering`)."""

    def tempered(self, conditions: Conditions, power: float) -> Mixture:
        """The mixture with the items' probabilities raised to a power below 1, and scaled to their sum."""
        ...


@runtime_checkable
class HasOptimum(Protocol):
    """A behaviour with a best response, for the task-optimal objective."""

    def optimal(self, conditions: Conditions) -> Tensor:
        """[C, d]."""
        ...


@runtime_checkable
class HasWeights(Protocol):
    """A behaviour that reports one of several items."""

    def weights(self, conditions: Conditions) -> Tensor:
        """Probability that each item is the one reported, [C, N]."""
        ...


@runtime_checkable
class Network(Protocol):
    """How activity moves. Also a torch.nn.Module; where it has `rate_weight` [..., n], the weights on the rates,
    training can use them (`principal_axes`, docs/recipe.md).

    >>> isinstance(lapsus.DendriticTree(stimulus_size=4), lapsus.Network)
    True
    """

    units: int
    alpha: float
    readout: Tensor
    drive_size: int

    def drive(self, s: Tensor) -> Tensor:
        """W_s s: [..., drive_size] of an encoded stimulus [..., stimulus_size]."""
        ...

    def biases(self, T: int) -> tuple[Tensor, ...]:
        """A table [1 + T, nodes] a layer, leaves first, soma last; row 0 holds before cue offset."""
        ...

    def F(self, r: Tensor, drive: Tensor | None, biases: tuple[Tensor, ...]) -> Tensor:
        """Where rates r [n, C, K] are driven to, [n, C, K]."""
        ...


@runtime_checkable
class Objective(Protocol):
    """What a network is trained for.

    >>> isinstance(lapsus.Diffusion(), lapsus.Objective)
    True
    """

    @property
    def forced(self) -> bool:
        """Whether x is clamped to the corrupted target during denoising (teacher forcing)."""
        ...

    def __call__(self, batch: Any) -> dict[str, Tensor]:
        """Loss terms [C] of a batch of simulated trials (`lapsus.training.Batch`); by the first, conditions are called
        hard."""
        ...


@runtime_checkable
class HasGoal(Objective, Protocol):
    """An objective whose aim for x needs no network, so that the loop can ask for it while the kernel runs."""

    def goal(self, draws: Any) -> Tensor:
        """What x should be (`lapsus.training.Draws` keeps it)."""
        ...
