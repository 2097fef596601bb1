"""Multi-item delayed estimation: items are shown, one is cued after a delay, its report feature is recalled.

Paper: Methods and appendix "Architecture and task details". Each item has a probe feature ("location") and a report
feature ("colour"), both on the circle. An index-cued network is told which item of an ordered list to recall; a
feature-cued network sees conjunctions of both features and is cued by the probe feature of one of them.

The number of items may vary from condition to condition. Then features have as many columns as there are items at most,
and those of items that are not there are NaN. Items are shown at once, or one after the other
(`presentation = "sequential"`): then the first column is the item that was shown first, and a display with fewer items
than others begins later.
"""

import math
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal

import pandas as pd
import torch
from pydantic import SkipValidation
from torch import Tensor, nn

from lapsus import circular
from lapsus.checks import within
from lapsus.errors import LapsusError
from lapsus.protocols import ByEpoch, Conditions
from lapsus.tasks.durations import Duration, Range, check_durations, number_or_range, steps_of

_MOST_ITEMS, _MOST_CHANNELS = 64, 256


def sample_features(count: int, items: int, margin: float, generator: torch.Generator) -> Tensor:
    """Features [count, items] on the circle, uniform among all that keep every pair at least `margin` apart.

    The gaps between neighbours are `margin` plus a uniform division of what is left, so nothing is rejected.
    """
    gaps = torch.empty(count, items, dtype=torch.float64).exponential_(generator=generator)
    gaps = margin + (2 * math.pi - items * margin) * gaps / gaps.sum(1, keepdim=True)
    start = torch.rand(count, 1, dtype=torch.float64, generator=generator) * 2 * math.pi
    ring = torch.remainder(start + torch.cumsum(gaps, 1), 2 * math.pi) - math.pi
    order = torch.rand(count, items, generator=generator).argsort(1)
    return ring.gather(1, order).float().clamp(-math.pi, math.nextafter(math.pi, 0))


def _check_margin(name: str, margin: float, items: int) -> None:
    if items > 1 and items * margin >= 2 * math.pi:
        raise LapsusError(
            f"task.{name} = {margin:.4g} rad is impossible for {items} items: they need {items * margin:.4g} rad "
            f"of the circle's 6.283. Use a margin below {2 * math.pi / items:.4g} or fewer items."
        )


def present(conditions: Conditions) -> Tensor:
    """Which items are there, [C, N]."""
    return ~torch.isnan(conditions["report"])


@dataclass(frozen=True)
class _DelayedEstimation:
    """What both cueings share: how many items, how far apart their colours are at least, how long each epoch is."""

    items: Annotated[int | Range, SkipValidation] = 2
    report_margin: float = field(default=math.pi / 4, kw_only=True)
    prestimulus: Duration = field(default=3, kw_only=True)
    stimulus: Duration = field(default=5, kw_only=True)
    delay: Duration = field(default=15, kw_only=True)
    cue: Duration = field(default=5, kw_only=True)
    denoise: Duration = field(default=40, kw_only=True)
    presentation: Literal["simultaneous", "sequential"] = field(default="simultaneous", kw_only=True)
    gap: int = field(default=5, kw_only=True)
    response_size = 2
    _margins: ClassVar[tuple[str, ...]] = ("report_margin",)
    _epochs: ClassVar[tuple[str, ...]] = ("prestimulus", "stimulus", "delay", "cue", "denoise")

    def __post_init__(self) -> None:
        items = number_or_range("task.items", self.items, "items")
        object.__setattr__(self, "items", items)
        if not 1 <= self.fewest_items <= self.most_items <= _MOST_ITEMS:
            given = (
                f"it goes from {self.fewest_items} to {self.most_items}"
                if isinstance(items, Range)
                else f"it is {items}"
            )
            raise LapsusError(f"task.items must be from 1 to {_MOST_ITEMS} ({given}).")
        within("task", self, **dict.fromkeys(self._margins, (0, math.inf)))
        for name in self._margins:
            _check_margin(name, getattr(self, name), self.most_items)
        check_durations(self, self._epochs)
        within("task", self, gap=(0, 10_000))
        if self.presentation not in ("simultaneous", "sequential"):
            raise LapsusError(f'task.presentation is "simultaneous" or "sequential", not {self.presentation!r}.')
        if self.sequential and isinstance(self.stimulus, Range):
            raise LapsusError("task.stimulus must be one number of steps where items are shown one after the other.")

    @property
    def sequential(self) -> bool:
        """Whether items are shown one after the other."""
        return self.presentation == "sequential"

    @property
    def fewest_items(self) -> int:
        """Items of the smallest display."""
        return self.items.low if isinstance(self.items, Range) else self.items

    @property
    def most_items(self) -> int:
        """Items of the largest display."""
        return self.items.high if isinstance(self.items, Range) else self.items

    def set_sizes(self, count: int, generator: torch.Generator) -> Tensor:
        """Items of each condition, [C]; every number of the range is equally likely."""
        if isinstance(self.items, int):
            return torch.full((count,), self.items)
        return torch.randint(self.fewest_items, self.most_items + 1, (count,), generator=generator)

    def features(self, set_size: Tensor, margin: float, generator: torch.Generator) -> Tensor:
        """Features [C, N] of conditions with so many items [C], NaN beyond them."""
        if isinstance(self.items, int):
            return sample_features(len(set_size), self.items, margin, generator)
        features = torch.full((len(set_size), self.most_items), math.nan)
        for size in range(self.fewest_items, self.most_items + 1):
            rows = set_size == size
            features[rows, :size] = sample_features(int(rows.sum()), size, margin, generator)
        return features

    def draw_cued(self, set_size: Tensor, generator: torch.Generator) -> Tensor:
        """The item that is cued, [C], any that is there."""
        if isinstance(self.items, int):
            return torch.randint(self.items, (len(set_size),), generator=generator)
        return (torch.rand(len(set_size), dtype=torch.float64, generator=generator) * set_size).long()

    @property
    def epochs(self) -> dict[str, int]:
        """Steps of each epoch, in their order; the middle of the range of one that varies. Items that are shown one
        after the other have an epoch each, stimulus_1, stimulus_2, …, with gaps between them."""
        steps = {name: steps_of(getattr(self, name)) for name in self._epochs}
        if not self.sequential:
            return steps
        in_order: dict[str, int] = {}
        for name, count in steps.items():
            if name != "stimulus":
                in_order[name] = count
                continue
            for slot in range(1, self.most_items + 1):
                in_order[f"stimulus_{slot}"] = count
                if slot < self.most_items:
                    in_order[f"gap_{slot}"] = self.gap
        return in_order

    def slots(self, conditions: Conditions) -> ByEpoch:
        """Epoch → which item is shown in it, [C, N]: all that are there, or one each so that the last one is shown
        last."""
        there = present(conditions)
        if not self.sequential:
            return {"stimulus": there}
        slot = torch.arange(there.shape[1]) + self.most_items - there.sum(1, keepdim=True)
        return {f"stimulus_{k + 1}": there & (slot == k) for k in range(self.most_items)}

    def table(self, conditions: Conditions) -> pd.DataFrame:
        """The trial table of conditions: cued (1, 2, …), target, report_1 …, probe_1 …; where the number of items
        varies, also set_size, and empty columns of items that are not there."""
        cued = conditions["cued"].long()
        columns = {"set_size": present(conditions).sum(1).numpy()} if isinstance(self.items, Range) else {}
        columns |= {"cued": (cued + 1).numpy(), "target": conditions["report"].gather(1, cued[:, None])[:, 0].numpy()}
        for feature in ("report", "probe"):
            for item in range(conditions[feature].shape[1]):
                columns[f"{feature}_{item + 1}"] = conditions[feature][:, item].numpy()
        return pd.DataFrame(columns)


class _Concatenate(nn.Module):
    """Colours and cue on separate channels; each cue is a learned vector."""

    def __init__(self, stimulus_channels: int, items: int, cue_size: int, generator: torch.Generator) -> None:
        super().__init__()
        self.stimulus_channels = stimulus_channels
        self.cue = nn.Parameter(torch.randn(items, cue_size, generator=generator))

    def forward(self, stimuli: ByEpoch) -> ByEpoch:
        cue = self.cue[stimuli["cue"]]
        encoded = {"cue": torch.cat([cue.new_zeros(len(cue), self.stimulus_channels), cue], 1)}
        for epoch, channels in stimuli.items():
            if epoch.startswith("stimulus"):
                encoded[epoch] = torch.cat([channels.to(cue.dtype), torch.zeros_like(cue)], 1)
        return encoded


@dataclass(frozen=True)
class IndexCued(_DelayedEstimation):
    """Ordered colours and an index as cue; locations are not shown (the macaque task).

    encoding "circular" gives cos and sin of each colour, "scalar" the angle itself as in the paper's text.

    >>> task = lapsus.IndexCued()
    >>> task.sample(5, torch.Generator().manual_seed(0))["report"].shape
    torch.Size([5, 2])
    """

    encoding: Literal["circular", "scalar"] = "circular"
    cue_size: int = 4

    def __post_init__(self) -> None:
        super().__post_init__()
        within("task", self, cue_size=(1, _MOST_CHANNELS))
        if self.encoding == "scalar" and isinstance(self.items, Range):
            raise LapsusError(
                'task.encoding = "scalar" cannot show that an item is not there; with a range of items use "circular".'
            )

    @property
    def stimulus_size(self) -> int:
        """Channels of the colours and of the cue."""
        return self._channels + self.cue_size

    @property
    def _channels(self) -> int:
        return self.most_items * (2 if self.encoding == "circular" else 1)

    def sample(self, count: int, generator: torch.Generator) -> Conditions:
        """`report [C, N]` and `probe [C, N]` in radians, `cued [C]`."""
        # Items have fixed places, evenly spaced around a ring (two items: opposite), which the network is not told.
        places = torch.arange(self.most_items) * (2 * math.pi / self.most_items) - math.pi
        set_size = self.set_sizes(count, generator)
        report = self.features(set_size, self.report_margin, generator)
        return {
            "report": report,
            "probe": torch.where(torch.isnan(report), math.nan, places),
            "cued": self.draw_cued(set_size, generator),
        }

    def stimuli(self, conditions: Conditions) -> ByEpoch:
        """Colours [C, channel] while the items are shown, and the index of the cued one [C]."""
        report = conditions["report"].nan_to_num(0.0)
        channels = [torch.cos(report), torch.sin(report)] if self.encoding == "circular" else [report]
        by_epoch = {
            epoch: torch.cat([items * channel for channel in channels], 1)
            for epoch, items in self.slots(conditions).items()
        }
        return by_epoch | {"cue": conditions["cued"].long()}

    def encoder(self, generator: torch.Generator) -> nn.Module:
        """A learned vector for each cue."""
        return _Concatenate(self._channels, self.most_items, self.cue_size, generator)


def _isotropic(rows: int, neurons: int, generator: torch.Generator) -> Tensor:
    """The lowest harmonics of the angles of neurons on a ring, mixed by a random orthogonal matrix: [rows, neurons].

    An even number of rows keeps one half of its last harmonic; with tuning as broad as kappa 1 the third is negligible.
    """
    kept = min(rows, neurons)
    angle = torch.arange(neurons) * (2 * math.pi / neurons)
    # cos fa + sin fa with f = 0, 1, -1, 2, -2, …: Hartley's basis, in which no wave vanishes on the grid.
    frequency = torch.tensor([(order + 1) // 2 * (-1) ** (order + 1) for order in range(kept)])[:, None]
    waves = (torch.cos(frequency * angle) + torch.sin(frequency * angle)) / math.sqrt(neurons)
    return torch.linalg.qr(torch.randn(rows, kept, generator=generator))[0] @ waves


def _normal(rows: int, neurons: int, generator: torch.Generator) -> Tensor:
    """Independent normal weights [rows, neurons] whose rows have length one on average."""
    return torch.randn(rows, neurons, generator=generator) / math.sqrt(neurons)


class _Palimpsest(nn.Module):
    """s = vec(W_p S W_r'), S the activity of conjunctively tuned sensory neurons.

    Weights start as a random mix of the lowest harmonics, which sees all angles alike. Random weights would not: they
    favour one direction, a network then learns to keep apart the item that is nearer to it and the other one, and this
    order has to break where both are equally near: there it reports the wrong item (docs/recipe.md). To show this, they
    can be had, with rows of the same length.
    """

    def __init__(self, tuning_curves: int, projection: int, generator: torch.Generator, first_weights: str) -> None:
        super().__init__()
        first = _isotropic if first_weights == "isotropic" else _normal
        self.probe_weight = nn.Parameter(first(projection, tuning_curves, generator))
        self.report_weight = nn.Parameter(first(projection, tuning_curves, generator))

    def forward(self, stimuli: ByEpoch) -> ByEpoch:
        return {
            epoch: (self.probe_weight @ S.to(self.probe_weight.dtype) @ self.report_weight.T).flatten(1)
            for epoch, S in stimuli.items()
        }


@dataclass(frozen=True)
class FeatureCued(_DelayedEstimation):
    """Conjunctions of location and colour in a palimpsest code; the cue is one item's location.

    >>> lapsus.FeatureCued(delay=20).epochs
    {'prestimulus': 3, 'stimulus': 5, 'delay': 20, 'cue': 5, 'denoise': 40}
    """

    tuning_curves: int = 16
    kappa: float = 1.0
    projection: int = 6
    probe_margin: float = math.pi / 4
    first_weights: Literal["isotropic", "normal"] = "isotropic"
    _margins: ClassVar[tuple[str, ...]] = ("probe_margin", "report_margin")

    def __post_init__(self) -> None:
        super().__post_init__()
        channels = (3, _MOST_CHANNELS)  # a mean and two directions at least
        within("task", self, tuning_curves=channels, projection=channels, kappa=(-50, 50))

    @property
    def stimulus_size(self) -> int:
        """Entries of the projected palimpsest."""
        return self.projection**2

    def sample(self, count: int, generator: torch.Generator) -> Conditions:
        """`report [C, N]` and `probe [C, N]` in radians, `cued [C]`."""
        set_size = self.set_sizes(count, generator)
        return {
            "report": self.features(set_size, self.report_margin, generator),
            "probe": self.features(set_size, self.probe_margin, generator),
            "cued": self.draw_cued(set_size, generator),
        }

    def _tuning(self, angle: Tensor) -> Tensor:
        """exp(kappa cos(angle - preferred)) of each neuron, 0 for an item that is not there; a last axis is added."""
        preferred = torch.arange(self.tuning_curves) * (2 * math.pi / self.tuning_curves) - math.pi
        return torch.exp(self.kappa * torch.cos(angle[..., None] - preferred)).nan_to_num(0.0)

    def stimuli(self, conditions: Conditions) -> ByEpoch:
        """S [C, probe neuron, report neuron] while the items are shown, and a stripe at the cued location."""
        probe, report = self._tuning(conditions["probe"]), self._tuning(conditions["report"])
        cued = conditions["cued"].long()[:, None, None].expand(-1, 1, self.tuning_curves)
        stripe = probe.gather(1, cued)[:, 0, :, None].expand(-1, -1, self.tuning_curves)
        by_epoch = {
            epoch: torch.einsum("cn,cnp,cnr->cpr", items.to(probe.dtype), probe, report)
            if self.sequential
            else torch.einsum("cnp,cnr->cpr", probe, report)
            for epoch, items in self.slots(conditions).items()
        }
        return by_epoch | {"cue": stripe}

    def encoder(self, generator: torch.Generator) -> nn.Module:
        """Learned projections of both features of the palimpsest."""
        return _Palimpsest(self.tuning_curves, self.projection, generator, self.first_weights)


@dataclass(frozen=True)
class FeatureCuedLike(FeatureCued):
    """Two feature-cued items whose distances, in each feature, are drawn from a list: those that an experiment used."""

    probe_distances: tuple[float, ...] = field(default=(math.pi,), kw_only=True)
    report_distances: tuple[float, ...] = field(default=(math.pi,), kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.items != 2:
            raise LapsusError(f"task.items must be 2 where distances are given (it is {self.items}).")
        for name in ("probe_distances", "report_distances"):
            if not getattr(self, name) or not all(0 <= d <= 2 * math.pi for d in getattr(self, name)):
                raise LapsusError(f"task.{name} must be a list of distances between 0 and 2 pi.")

    def sample(self, count: int, generator: torch.Generator) -> Conditions:
        """`report [C, 2]` and `probe [C, 2]` in radians, at distances of the lists, and `cued [C]`."""
        pairs = {}
        for name, distances in (("report", self.report_distances), ("probe", self.probe_distances)):
            gap = torch.tensor(distances)[torch.randint(len(distances), (count,), generator=generator)]
            start = torch.rand(count, generator=generator) * 2 * math.pi - math.pi
            sign = 2.0 * torch.randint(2, (count,), generator=generator) - 1
            pairs[name] = circular.wrap(torch.stack([start, start + sign * gap], 1))
        return pairs | {"cued": torch.randint(2, (count,), generator=generator)}
