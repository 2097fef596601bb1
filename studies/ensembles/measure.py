"""Measure networks into the tables of this study: `python measure.py RECIPE[=FOLDER]... [--only PART...]`

A recipe is `paper` or `persistent` (networks that ship) or, with a folder of a sweep or of runs, any name:
`persistent=matched-45` adds its finished members to the persistent set, `as-published=DIR` is a recipe of its own, and
members that a sweep file calls NAME_FACTOR are of the recipe `RECIPE: FACTOR`. Tables:

    members.csv    one row per network: evaluation, other delays, planes, prediction, the five questions (if it swaps)
    distances.csv  one row per pair of networks of one recipe and cueing, and time: Procrustes' distance of condition
                   means; --dynamics adds the distance of their dynamics (lapsus[dsa]); --across compares networks
                   of one target and several recipes instead
    claims.csv     one row per claim and network: --values FILE, as `lapsus reproduce --claims-only --values FILE` keeps
                   it; of collections that ship in src/lapsus/paper, of other recipes in studies/claims

Rows that are there stay; what is missing of a network is added, and a network whose weights changed is measured anew.
Answers to the five questions that `lapsus analyse --swapping -o FOLDER` kept are taken from there (--answers FOLDER).
Each network is written as soon as it is measured. ensemble_tables.py makes tables and figures of them.
"""

import argparse
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
from same_geometry import pair_distances

from lapsus import LapsusError, Model, Run
from lapsus.evaluation.against_target import evaluate
from lapsus.evaluation.delays import evaluate_delays, norm_ratio
from lapsus.evaluation.sample_sizes import FULL
from lapsus.files import holds, read_json, to_plain, write_text
from lapsus.mechanism.asking import analyse, swaps_most_at
from lapsus.mechanism.registry import Mechanism, by_default
from lapsus.paper.roles import LABELS, finished_runs, role_of
from lapsus.paper.values import COLUMNS, statistic_digest
from lapsus.tasks.durations import varying
from lapsus.training.experiment import Experiment, read_experiment
from lapsus.training.model import weights_digest
from lapsus.zoo.shipped import COLLECTIONS, collection_of, load_shipped, shipped

FOLDER = Path(__file__).resolve().parent
# Of the sources, not of what is installed; and of recipes that do not ship.
PACKAGE_CLAIMS = FOLDER.parents[1] / "src" / "lapsus" / "paper" / "claims.csv"
OTHER_CLAIMS = FOLDER.parent / "claims" / "claims.csv"
PARTS = ("evaluation", "delays", "alignment", "prediction", *by_default())
TABLES = (*PARTS, "distances")
NUMBERS = ("excess", "swap_curve_mad", "swap_curve_max", "swap_likelihood_mad", "median_error", "away")
# What is kept of other delays (steps), each with these numbers.
DELAYS, AT_DELAYS = (5, 20, 40, 80), ("median_error", "swap_curve_mad", "excess")
KEY = ["recipe", "network"]
# In place of a recipe, where networks of several are compared.
ACROSS = "across recipes"


@dataclass(frozen=True)
class Network:
    """A trained network with what is known of it already: `facts` as `lapsus train` ships them or a sweep measures."""

    recipe: str
    name: str
    experiment: Experiment
    role: str
    facts: dict
    load: object

    @property
    def cueing(self) -> str:
        return self.role.split("-")[0]

    @property
    def swaps(self) -> bool:
        return "constant" in self.role or "smooth" in self.role


def _of(recipe: str, name: str, experiment: Experiment, facts: dict, load: object) -> Iterator[Network]:
    """One network, if it plays a part in Figures 2 to 4."""
    role = role_of(experiment.model_dump(exclude_none=True))
    if role in LABELS and not role.startswith(("feature-optimal-", "feature-sample")):
        yield Network(recipe, name, experiment, role, facts, load)


def networks(source: str) -> Iterator[Network]:
    """Of RECIPE or RECIPE=FOLDER."""
    recipe, _, folder = source.partition("=")
    if not folder:
        for name, facts in shipped(recipe).items():
            yield from _of(recipe, name, read_experiment(facts["config"]), facts, lambda name=name: load_shipped(name))
        return
    for name, run in finished_runs(folder).items():
        measured = sorted(run.path.glob("measures-*.json"), key=lambda path: path.stat().st_mtime)
        facts = read_json(measured[-1]) if measured else {}
        spent = [core_minutes(path) for path in chain_of(run)]
        facts |= {"core_minutes": spent[0], "core_minutes_in_all": sum(spent)}
        yield from _of(factor_of(recipe, run.experiment.name), name, run.experiment, facts, run.model)


def chain_of(run: Run) -> Iterator[Path]:
    """The folder of a run, and those of the runs beside it that it started from, one after another."""
    while True:
        yield run.path
        before = run.path.parent / f"{run.experiment.start_from}-{run.experiment.seed}"
        if not run.experiment.start_from or not holds(before, "run"):
            return
        run = Run(before)


def core_minutes(folder: Path) -> float:
    return read_json(sorted(folder.glob("checkpoint-*.json"))[-1])["core_seconds"] / 60


def factor_of(recipe: str, name: str) -> str:
    """The recipe of a network that a sweep calls NAME or NAME_FACTOR, with any seed (@2) behind it."""
    factor = name.partition("@")[0].partition("_")[2]
    return f"{recipe}: {factor}" if factor else recipe


# --- One row a network ---


def evaluation_row(found: dict) -> dict:
    """The numbers of `lapsus evaluate`, and the rate of swaps at each probe distance that planes are looked at."""
    row = {key: found.get(key) for key in NUMBERS}
    curve = found.get("swap_curve") or []
    if curve:
        at = [point["distance"] for point in curve]
        degrees = (180,) if len(curve) == 1 else FULL.degrees
        # The rate counts the nearest item; by likelihood, responses between the items are no swaps.
        for name in ("rate", "target", *(("likelihood",) if "likelihood" in curve[0] else ())):
            values = np.interp(np.radians(degrees), at, [point[name] for point in curve])
            row |= {f"{name}_{d}": float(v) for d, v in zip(degrees, values)}
    return row


def delays_row(rows: list[dict], norm: float) -> dict:
    at = {row["delay"]: row for row in rows}
    kept = {f"{key}_delay_{d}": at[d].get(key) for d in DELAYS for key in AT_DELAYS if d in at}
    return kept | {"norm_ratio": norm}


def alignment_row(found: dict) -> dict:
    """Planes before and after the cue at each probe distance (degrees), and the sigmoid's gain (Table 1)."""
    row = {"aligned_before": found["mean_before"], "aligned_after": found["mean_after"]}
    for d, before, after in zip(found["degrees"], found["before"], found["after"]):
        row |= {f"before_{d}": before, f"after_{d}": after}
    fit = found["sigmoid"]
    return row | {"sigmoid_gain": (fit["flat_mse"] - fit["sigmoid_mse"]) * math.copysign(1.0, fit["y_scale"])}


def prediction_row(found: dict) -> dict:
    return {"prediction": found["odds_ratio"], "prediction_low": found["low"], "prediction_high": found["high"]}


def part_of(network: Network, model: Model, part: str) -> dict:
    """The columns of one part, from what is known or measured now; none where it cannot be asked."""
    known = network.facts
    if part == "evaluation":
        return _asked_for(network, evaluation_row(known.get("evaluation") or evaluate(model)))
    if part == "delays":
        if "delay" not in varying(model.at_stage(network.experiment.stage[-1]).task):
            return {}
        found = known.get("delays") or evaluate_delays(model, DELAYS, conditions=1024, trials=8)
        return _asked_for(network, delays_row(found, known.get("norm_ratio") or norm_ratio(model)))
    if part != "alignment" and not network.swaps:
        return {}
    if part in ("alignment", "prediction"):
        found = known.get("mechanism", {}).get(part)
        if found is None:
            asked = analyse(model, only=(part,), sizes=replace(FULL, shuffles=2), threads=1)  # no row has the band
            if part in asked.left_out:
                return {"left_out": f"{part}: {asked.left_out[part]}"}
            found = to_plain(getattr(asked, part))
        return alignment_row(found) if part == "alignment" else prediction_row(found)
    asked = analyse(model, only=(part,), threads=1)
    found = Mechanism(**{part: getattr(asked, part)}, probe_distance=swaps_most_at(model)).row()
    return _asked_columns(found)


def _asked_for(network: Network, row: dict) -> dict:
    """Without the excess of networks that were never asked to denoise."""
    return {key: value for key, value in row.items() if not (key.startswith("excess") and "optimal" in network.role)}


def read(name: str, columns: list[str]) -> pd.DataFrame:
    path = FOLDER / f"{name}.csv"
    return pd.read_csv(path) if path.is_file() else pd.DataFrame(columns=columns)


def write(name: str, table: pd.DataFrame, order: list[str]) -> None:
    table = table.sort_values(order, kind="stable")
    write_text(FOLDER / f"{name}.csv", table.to_csv(index=False, float_format="%.6g"))


def kept_answers(folder: Path) -> dict[str, dict]:
    """Weights → columns of the five questions, as `lapsus analyse -o` keeps them."""
    kept = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))]
    usual = [one for one in kept if set(one["made_of"]) == {"weights", "seed", "lapsus"}]  # not at another delay
    return {one["made_of"]["weights"]: _asked_columns(one["row"]) for one in usual}


def _asked_columns(row: dict) -> dict:
    return {key: value for key, value in row.items() if key not in ("left_out", "parting", "seconds")}


def add_members(found: list[Network], parts: list[str], answers: dict[str, dict] | None = None) -> None:
    """Measure what the table lacks of each network, and write it as it comes; answers, by weights, are taken as they
    are."""
    for network in found:
        table = read("members", KEY)
        model = network.load()
        weights = weights_digest(model)
        same = (table["recipe"] == network.recipe) & (table["network"] == network.name)
        row = table[same].iloc[0].dropna().to_dict() if same.any() else {}
        if row.get("weights") != weights:
            _forget_distances(network)
            row = {"recipe": network.recipe, "network": network.name, "role": network.role}
            row |= {"seed": network.experiment.seed, "weights": weights, "measured": ""}
            row |= {key: network.facts.get(key) for key in ("core_minutes", "core_minutes_in_all")}
        have = str(row.get("measured", "")).split()
        given = (answers or {}).get(weights, {})
        wanted = [part for part in parts if part not in have or (given and part in by_default())]
        row |= given
        for part in wanted:
            if not (given and part in by_default()):
                row |= part_of(network, model, part)
        if wanted:
            row["measured"] = " ".join(part for part in PARTS if part in have or part in wanted)
            write("members", pd.concat([table[~same], pd.DataFrame([row])], ignore_index=True), KEY)
            print(f"{network.recipe}, {network.name}: {', '.join(wanted)}", flush=True)


# --- Claims and distances ---


def _forget_distances(network: Network) -> None:
    """Those of a network whose weights are others now."""
    table = read("distances", ["recipe", "first", "second"])
    ends, elsewhere = table[["first", "second"]], f"{network.recipe}, {network.name}"
    stale = (table["recipe"] == network.recipe) & ends.eq(network.name).any(axis=1) | ends.eq(elsewhere).any(axis=1)
    if stale.any():
        write("distances", table[~stale], ["recipe", "cueing", "when", "first", "second"])


def add_claims(path: Path, recipe: str | None) -> None:
    """Rows of what `lapsus reproduce` kept (--values) or printed (--json); a value of the same claim and networks is
    replaced."""
    found = json.loads(path.read_text(encoding="utf-8"))
    if isinstance(found, dict):
        split = {tuple(key.split(": ", 1)): kept["value"] for key, kept in found.items() if " at a delay" not in key}
    else:
        split = {(one["id"], names): value for one in found for names, value in one["each"].items()}
    rows = [
        (_recipe(recipe, names.split(" + ")), claim, names, *value, statistic_digest(claim))
        for (claim, names), value in split.items()
    ]
    new = pd.DataFrame(rows, columns=COLUMNS)
    ships = new["recipe"].isin(COLLECTIONS)
    order = ["recipe", "claim", "networks"]
    for file, rows in ((PACKAGE_CLAIMS, new[ships]), (OTHER_CLAIMS, new[~ships])):
        if len(rows):
            known = pd.read_csv(file) if file.is_file() else pd.DataFrame(columns=list(COLUMNS))
            table = pd.concat([known, rows], ignore_index=True).drop_duplicates(order, keep="last")
            write_text(file, table.sort_values(order, kind="stable").to_csv(index=False, float_format="%.6g"))
    print(f"{len(new)} values of claims from {path}")


def _recipe(recipe: str | None, names: list[str]) -> str:
    """Of the networks that make one value: the one given, with what was changed in any of them, or their set."""
    return max(map(collection_of, names)) if recipe is None else max(factor_of(recipe, name) for name in names)


def add_distances(found: list[Network], dynamics: bool, across: bool) -> None:
    """Pairs that the table lacks: of one recipe and cueing, or of one role in all recipes."""
    columns = ["recipe", "cueing", "when", "first", "second", "distance", "shuffled"]
    groups: dict[tuple[str, str], dict[str, Network]] = {}
    for one in found:
        group, name = (ACROSS, one.role) if across else (one.recipe, one.cueing), one.name
        groups.setdefault(group, {})[f"{one.recipe}, {name}" if across else name] = one
    for group, own in sorted(groups.items()):
        if across and len({one.recipe for one in own.values()}) < 2:
            continue
        table = read("distances", columns)
        same = table[(table["recipe"] == group[0]) & (table["cueing"] == group[1])]
        same = same[(same["when"] == "dynamics") == dynamics]
        known = set(zip(same["first"], same["second"]))
        rows = pair_distances({name: one.load for name, one in own.items()}, known, dynamics)
        new = pd.DataFrame([(*group, *row) for row in rows], columns=columns)
        if len(new):
            write("distances", pd.concat([table, new], ignore_index=True), columns[:5])
        print(f"{group[0]}, {group[1]}: {len(new)} distances", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", nargs="*", metavar="RECIPE[=FOLDER]")
    parser.add_argument(
        "--only", nargs="+", choices=TABLES, default=list(TABLES), metavar="PART", help=", ".join(TABLES)
    )
    parser.add_argument("--values", type=Path, help="what `lapsus reproduce --values` wrote, into claims.csv")
    parser.add_argument("--answers", type=Path, metavar="FOLDER", help="what `lapsus analyse -o FOLDER` kept")
    parser.add_argument("--recipe", help="of these values, where it is not a collection that ships")
    parser.add_argument("--dynamics", action="store_true", help="the distance of dynamics instead")
    parser.add_argument("--across", action="store_true", help="distances between recipes of one target instead")
    given = parser.parse_args()
    if given.values:
        add_claims(given.values, given.recipe)
    found = [network for source in given.sources for network in networks(source)]
    answers = kept_answers(given.answers) if given.answers else {}
    add_members(found, [part for part in given.only if part in PARTS], answers)
    if "distances" in given.only:
        add_distances(found, given.dynamics, given.across)


if __name__ == "__main__":
    try:
        main()
    except LapsusError as error:
        raise SystemExit(str(error)) from None
