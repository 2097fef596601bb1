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
from lapsus.zoo.checkpoints import Checkpoint

# Settings of a measure, not results of it.
_SETTINGS = {"conditions", "trials", "seed", "probe_distance"}
# What is said beside a statistic: where it was taken, and its interval.
_BESIDE = {"low", "high", "distance", "responses", "target", "onset", "rotations"}
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


def _flat(value: object, name: str = "") -> Iterator[tuple[str, object]]:
    """Numbers, truths and words of a measure by dotted name."""
    if isinstance(value, list):
        value = dict(enumerate(value)) if len(value) <= _LONGEST else {}
    if isinstance(value, dict):
        for key, item in value.items():
            if key not in _SETTINGS:
                yield from _flat(item, f"{name}.{key}" if name else str(key))
    else:
        yield name, value


def _column(values: list) -> pd.Series:
    """Numbers as floats (none: NaN), words as words: the same type whichever member comes first."""
    known = [value for value in values if value is not None]
    if all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in known):
        return pd.Series([math.nan if value is None else float(value) for value in values], dtype=float)
    return pd.Series([None if value is None else str(value) for value in values], dtype=object)


def collect(sweep: Sweep) -> Collected:
    """Everything that the members' folders hold; members that are not done have empty cells."""
    plan = sweep.plan
    settings = {name: plan.setting(name) for name in plan.members}
    done = {name: sweep.done(name) for name in plan.members}
    measures: dict[str, dict[str, object]] = {}
    for name in (name for name in done if done[name]):
        with understood(file := sweep.measures_file(name)):
            for key, value in _flat(read_json(file)):
                measures.setdefault(key, {})[name] = value
    varied = dict.fromkeys(key for setting in settings.values() for key in setting.varied)
    described = pd.DataFrame(
        {
            "member": list(settings),
            "setting": [member.setting for member in plan.members.values()],
            "experiment": [setting.experiment for setting in settings.values()],
            "subject": _column([setting.subject for setting in settings.values()]),
            "seed": [member.seed for member in plan.members.values()],
            **{key: _column([_plain(setting.varied.get(key)) for setting in settings.values()]) for key in varied},
            "start": [plan.is_start(name) for name in settings],
            "done": list(done.values()),
        }
    )
    columns = {key: _column([values.get(name) for name in settings]) for key, values in measures.items()}
    members = pd.concat([described, pd.DataFrame(columns)], axis=1)
    measured = [key for key, values in columns.items() if values.dtype == float and _is_statistic(key)]
    costs = pd.DataFrame([_cost(sweep, name) for name in settings])
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


def _cost(sweep: Sweep, name: str) -> dict:
    update = sweep.update(name)
    cost = {"member": name, "updates": sweep.plan.updates(name), "update": update}
    if update:
        saved = read_json(inside(sweep.run_folder(name), f"checkpoint-{update:08d}.json"), Checkpoint)
        cost |= {key: getattr(saved, key) for key in ("trials_seen", "seconds", "core_seconds")}
    else:
        cost |= {"trials_seen": 0, "seconds": None, "core_seconds": None}
    return cost | {"failures": len(sweep.failures(name))}


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
            row = {"setting": setting, "statistic": key} | asdict(ensemble_mean(values, errors))
            rows.append(row | {"outliers": " ".join(names[outliers(values)])})
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
            these, those = group[keys].align(reference[keys], join="inner", axis=0)
            numbers = dict(zip(columns[3:], differences_within(these.to_numpy(), those.to_numpy())))
            table = pd.DataFrame({"setting": name, "from": first[keys].to_numpy(), "statistic": keys} | numbers)
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
