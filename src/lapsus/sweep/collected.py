"""All members of a sweep as one table: what varied, what was measured, and what is so over networks."""

import io
import json
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from lapsus.files import inside, make_folder, read_json, understood, write_bytes, write_text
from lapsus.statistics.intervals import Z95
from lapsus.statistics.random_effects import differences_within, ensemble_mean, outliers
from lapsus.sweep.folder import Sweep
from lapsus.sweep.sweep_file import Measure
from lapsus.zoo.checkpoints import Checkpoint

# Settings of a measure, not results of it.
_SETTINGS = {"conditions", "trials", "seed", "probe_distance"}
# What is said beside a statistic: where it was taken, and its interval.
_BESIDE = {"low", "high", "distance", "responses", "target", "onset", "rotations"}
# No measure is beyond this, and what draws or sums such numbers overflows.
_MOST = 1e100
# A list longer than this is an array for a figure, not statistics.
_LONGEST = 24


@dataclass(frozen=True)
class Collected:
    """members: one row a member (what varied, evaluation, analyses), the same bits wherever it was trained; costs: one
    row a member (time, tries, where it stands); statistics: one row a statistic and setting, over its members;
    differences: one row a statistic and setting, from the first comparable setting, within seeds; measured: names of
    the columns that are statistics."""

    members: pd.DataFrame
    costs: pd.DataFrame
    statistics: pd.DataFrame
    differences: pd.DataFrame
    measured: list[str]

    def write(self, folder: Path) -> list[str]:
        """CSV of every table and, where pyarrow is installed, Parquet of the members; returns what was written."""
        make_folder(folder)
        written = []
        for name in ("members", "costs", "statistics", "differences"):
            write_text(folder / f"{name}.csv", getattr(self, name).to_csv(index=False))
            written.append(f"{name}.csv")
        try:
            buffer = io.BytesIO()
            self.members.to_parquet(buffer, index=False)
            write_bytes(folder / "members.parquet", buffer.getvalue())
            written.append("members.parquet")
        except ImportError:
            pass
        return written


def _flat(value: object, name: str) -> Iterator[tuple[str, object]]:
    """Numbers, truths and words of a measure by dotted name."""
    if isinstance(value, dict):
        for key, one in value.items():
            if key not in _SETTINGS:
                yield from _flat(one, f"{name}.{key}" if name else key)
    elif isinstance(value, list):
        if len(value) <= _LONGEST:
            for number, one in enumerate(value):
                yield from _flat(one, f"{name}.{number}")
    elif isinstance(value, str):
        yield _whole(name), _whole(value)
    elif value is None or isinstance(value, (bool, int, float)):
        if abs(value or 0) > _MOST:
            raise ValueError(f"{name} is {str(value)[:40]}")
        yield _whole(name), value


def _whole(text: str) -> str:
    """Without half surrogate pairs, which no table takes."""
    return text.encode("utf-8", "replace").decode()


def _measures(file: Path) -> list[tuple[str, object]]:
    """All that a member's measures hold, by dotted name."""
    table = read_json(file)
    with understood(file):
        if unknown := table.keys() - Measure.model_fields.keys():
            raise ValueError(f"it holds {', '.join(sorted(unknown))[:80]}")
        return list(_flat(table, ""))


def _column(values: list) -> pd.Series:
    """Numbers as floats (none: NaN), words as words: the same type whichever member comes first."""
    known = [value for value in values if value is not None]
    if all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in known):
        return pd.Series([math.nan if value is None else float(value) for value in values], dtype=float)
    return pd.Series([None if value is None else str(value) for value in values], dtype=object)


def collect(sweep: Sweep) -> Collected:
    """Everything that the members' folders hold; members that are not done have empty cells."""
    plan = sweep.plan
    varied = list(dict.fromkeys(key for setting in plan.settings.values() for key in setting.varied))
    names = list(plan.members)
    settings = [plan.settings[member.setting] for member in plan.members.values()]
    found: dict[str, dict[str, object]] = {}
    done = [sweep.done(name) for name in names]
    for name in (name for name, over in zip(names, done) if over):
        for key, value in _measures(sweep.measures_file(name)):
            found.setdefault(key, {})[name] = value
    told = {
        "member": pd.Series(names, dtype=object),
        "setting": pd.Series([member.setting for member in plan.members.values()], dtype=object),
        "experiment": pd.Series([setting.experiment for setting in settings], dtype=object),
        "subject": _column([setting.subject for setting in settings]),
        "seed": pd.Series([member.seed for member in plan.members.values()], dtype=int),
    }
    told |= {key: _column([_plain(setting.varied.get(key)) for setting in settings]) for key in varied}
    told["start"] = pd.Series([member.setting in plan.starts for member in plan.members.values()], dtype=bool)
    told["done"] = pd.Series(done, dtype=bool)
    measures = {key: _column([values.get(name) for name in names]) for key, values in found.items()}
    members = pd.DataFrame(told | measures)
    measured = [key for key, values in measures.items() if values.dtype == float and _is_statistic(key)]
    costs = pd.DataFrame([_cost(sweep, name) for name in names])
    # Settings of one task and subject; others have nothing that could be compared.
    kinds = {
        name: json.dumps([setting.subject, (setting.table.get("task") or {}).get("kind")])
        for name, setting in plan.settings.items()
    }
    apart = _differences(members, measured, kinds)
    return Collected(members, costs, _statistics(members, measured), apart, measured)


def _is_statistic(key: str) -> bool:
    base, _, last = key.rpartition(".")
    return last not in _BESIDE and not base.endswith("_interval") and ".exact_sampler" not in key


def _plain(value: object) -> object:
    return json.dumps(value) if isinstance(value, (dict, list)) else value


def _checkpoint(sweep: Sweep, name: str) -> Checkpoint:
    """What stands beside a member's newest tensors."""
    return read_json(inside(sweep.run_folder(name), f"checkpoint-{sweep.update(name):08d}.json"), Checkpoint)


def _cost(sweep: Sweep, name: str) -> dict:
    update = sweep.update(name)
    facts = _checkpoint(sweep, name) if update else None
    return {
        "member": name,
        "updates": sweep.plan.updates(name),
        "update": update,
        "trials_seen": 0 if facts is None else facts.trials_seen,
        "seconds": None if facts is None else facts.seconds,
        "core_seconds": None if facts is None else facts.core_seconds,
        "failures": len(sweep.failures(name)),
    }


def _statistics(members: pd.DataFrame, measured: list[str]) -> pd.DataFrame:
    """Over the members of each setting: mean with its interval, members random, and members that stand apart."""
    rows = []
    done = members[members["done"]]
    for setting, group in done.groupby("setting", sort=False):
        names = group["member"].to_numpy()
        for key in measured:
            values = group[key].to_numpy()
            if not np.isfinite(values).any():
                continue
            low, high = _interval_of(key, group)
            errors = None if low is None else ((group[high] - group[low]) / (2 * Z95)).to_numpy()
            apart = names[outliers(values)]
            rows.append(
                {"setting": setting, "statistic": key}
                | asdict(ensemble_mean(values, errors))
                | {"outliers": " ".join(apart)}
            )
    columns = ["setting", "statistic", *ensemble_mean(np.zeros(0)).__dataclass_fields__, "outliers"]
    return pd.DataFrame(rows, columns=columns)


def _differences(members: pd.DataFrame, measured: list[str], kinds: dict[str, str]) -> pd.DataFrame:
    """Of every setting from the first one of its kind (setting → kind) that has the statistic, within seeds: networks
    of one seed may share first weights, and the network that they start from, so that settings are not sampled
    independently of one another."""
    asked = members[members["done"] & ~members["start"]]
    columns = ["setting", "from", "statistic", "mean", "low", "high", "seeds"]
    tables = [pd.DataFrame(columns=columns)]
    for _, alike in asked.groupby(asked["setting"].map(kinds), sort=False):
        groups = {name: group.set_index("seed")[measured] for name, group in alike.groupby("setting", sort=False)}
        has = pd.DataFrame({name: np.isfinite(group).any() for name, group in groups.items()})
        first = has.idxmax(axis=1)
        reference = pd.DataFrame({key: groups[first[key]][key] for key in measured})
        for name, group in groups.items():
            keys = [key for key in measured if has.loc[key, name] and first[key] != name]
            own, other = group[keys].align(reference[keys], join="inner", axis=0)
            found = differences_within(own.to_numpy(), other.to_numpy())
            told = {"setting": name, "from": first[keys].to_numpy(), "statistic": keys}
            table = pd.DataFrame(told | dict(zip(columns[3:], found)))
            tables.append(table[table["seeds"] > 0])
    return pd.concat([table for table in tables if len(table)] or tables, ignore_index=True)[columns]


def _interval_of(key: str, table: pd.DataFrame) -> tuple[str, str] | tuple[None, None]:
    """The columns with the interval of a statistic within its member, where it has one."""
    beside = key.rpartition(".")[0]
    ends = [(f"{key}_interval.0", f"{key}_interval.1")]
    if key.endswith((".rate", ".difference", ".odds_ratio")):
        ends.append((f"{beside}.low", f"{beside}.high"))
    numbers = set(table.select_dtypes(float).columns)
    return next(((low, high) for low, high in ends if {low, high} <= numbers), (None, None))
