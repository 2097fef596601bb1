"""An oracle of tables: random trials in random accepted layouts, units, separators and encodings, read back right."""

import random
from pathlib import Path

import numpy as np
import pandas as pd

from lapsus.circular import difference
from lapsus.trials import read_trials

UNITS = {"radians": 1.0, "degrees": 180 / np.pi, "degrees_180": 90 / np.pi}


def attempt(folder: Path, seed: str) -> str:
    """Write and read one table; "" or what is wrong."""
    chance = random.Random(seed)
    rng = np.random.default_rng(chance.getrandbits(32))
    trials, items, probes = chance.randint(30, 60), chance.randint(1, 5), chance.random() < 0.6
    unit = chance.choice(list(UNITS))
    report, probe = rng.uniform(-np.pi, np.pi, (2, trials, items))
    response = rng.uniform(-np.pi, np.pi, trials)
    scale = UNITS[unit]
    style = chance.choice(("plain", "alias", "items"))
    columns: dict[str, np.ndarray] = {}
    if style == "items":
        cued = rng.integers(items, size=trials)
        columns["cued"] = cued + 1
        order = np.argsort(np.arange(items)[None] != cued[:, None], axis=1, kind="stable")
        back = np.argsort(order, axis=1)
        shown = np.take_along_axis(report, back, 1), np.take_along_axis(probe, back, 1)
        for k in range(items):
            columns[f"report_{k + 1}"] = shown[0][:, k] * scale
            if probes:
                columns[f"probe_{k + 1}"] = shown[1][:, k] * scale
    else:
        others, places = ("non_target_{}", "non_target_probe_{}") if style == "plain" else ("NT{}", "nt_{}_loc")
        columns["target" if style == "plain" else "Target"] = report[:, 0] * scale
        columns |= {others.format(k): report[:, k] * scale for k in range(1, items)}
        if probes:
            columns["target_probe" if style == "plain" else "target_location"] = probe[:, 0] * scale
            columns |= {places.format(k): probe[:, k] * scale for k in range(1, items)}
    columns["response" if style == "plain" else "Resp"] = response * scale
    subject = np.array([f"s{number}" for number in rng.integers(3, size=trials)])
    columns["subject" if style == "plain" else "ID"] = subject
    names = list(columns)
    chance.shuffle(names)
    table = pd.DataFrame(columns)[names]
    form = chance.choice(("csv", "semicolon", "tsv", "txt", "parquet", "bom"))
    path = folder / f"table.{'csv' if form in ('semicolon', 'bom') else form}"
    if form == "parquet":
        table.to_parquet(path)
    else:
        options = {
            "semicolon": {"sep": ";", "decimal": chance.choice(",.")},
            "tsv": {"sep": "\t"},
            "bom": {"encoding": "utf-8-sig"},
        }
        table.to_csv(path, index=False, lineterminator=chance.choice(("\n", "\r\n")), **options.get(form, {}))
    found = read_trials(path, unit)
    for name, mine, theirs in (("response", response, found.response), ("report", report, found.report)):
        if theirs.shape != mine.shape or np.abs(difference(theirs, mine)).max() > 1e-6:
            return f"{name} is not what was written ({style}, {unit}, {form})"
    if probes != (found.probe is not None) or (probes and np.abs(difference(found.probe, probe)).max() > 1e-6):
        return f"probe is not what was written ({style}, {unit}, {form})"
    return "" if list(found.subject) == list(subject) else "subjects are not those that were written"
