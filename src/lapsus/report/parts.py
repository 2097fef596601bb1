"""What pages are made of: tables, numbers as text, and the part that every network has."""

import base64
import json
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup
from matplotlib.colors import to_hex

from lapsus import __version__
from lapsus.plots import panels
from lapsus.plots.style import wheel
from lapsus.report.words import decoded, geometry, predicted
from lapsus.study.findings import Check, NetworkFindings
from lapsus.study.mechanism import LeftOut
from lapsus.training.experiment import Experiment, to_toml

__all__ = ["mechanism_table", "network_part", "number", "script_json", "shortened", "sure", "table", "versions"]


def shortened(text: object, longest: int = 120) -> str:
    """Names from files and tables at a length that a page can show; control characters become visible."""
    shown = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in str(text))
    return shown if len(shown) <= longest else shown[: longest - 1] + "…"


def number(value: float | None, form: str = ".3f") -> str:
    """A number as text, a dash where there is none."""
    if value is None or not np.isfinite(value):
        return "–"
    text = format(value, form)
    return text.removeprefix("-") if float(text) == 0 else text


def table(label: str, head: list[str], body: list[list]) -> dict[str, Any]:
    """What the template draws as a table."""
    return {"label": label, "head": head, "body": body}


def sure(checks: list[Check]) -> str:
    """How many checks failed, in a sentence."""
    failed, unknown = (sum(c.status == s for c in checks) for s in ("failed", "not checked"))
    if failed:
        return f"{failed} of {len(checks)} checks failed; they come first. {unknown} could not be made."
    return f"None of {len(checks)} checks failed; {unknown} could not be made."


def versions(experiment: Experiment) -> list[list[str]]:
    """Rows of what this was made with."""
    rows = [["lapsus", __version__]]
    for name in ("torch", "numpy", "scipy", "matplotlib"):
        try:
            rows.append([name, version(name)])
        except PackageNotFoundError:
            continue
    machine = f"{platform.machine()}, {platform.system()}"
    return [*rows, ["Python", platform.python_version()], ["machine", machine], ["seed", str(experiment.seed)]]


def network_part(which: int, network: NetworkFindings) -> dict[str, Any]:
    """Pictures, words and the turning figure of one network."""
    mechanism, arrays = network.mechanism, network.arrays
    shown = {"short": f"network {which}", "label": f"network {which}: {shortened(network.name, 60)}"}
    against = []
    if network.match is not None:
        against.append(panels.match(network.match))
    elif network.evaluation.get("swap_curve"):
        against.append(panels.swap_target(network.evaluation))
    if "cloud_near" in arrays:
        against.append(panels.clouds(arrays, mechanism.probe_distance))
    made, turning = [], None
    if not isinstance(mechanism.alignment, LeftOut):
        made.append(panels.alignment(mechanism.alignment, arrays))
    if not isinstance(mechanism.rings, LeftOut):
        made.append(panels.rings_flat(mechanism.rings, arrays))
        turning = _turning(network)
    if not isinstance(mechanism.decoders, LeftOut):
        made.append(panels.decoders(mechanism.decoders, arrays))
    learned = panels.learning(network.metrics)
    return shown | {
        "rings": turning,
        "config": _config(network.experiment),
        "match_pictures": against,
        "pictures": made,
        "sentences": [decoded(mechanism), geometry(mechanism), predicted(mechanism.prediction)],
        "training_pictures": [learned] if learned else [],
    }


def script_json(value: Any) -> Markup:
    """JSON that cannot end the script element it stands in."""
    return Markup(json.dumps(value).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def _turning(network: NetworkFindings) -> dict[str, Any]:
    """The rings as the page's script draws them: trials through time in three components."""
    arrays = network.arrays
    path, time, epoch = arrays["rings_path"], arrays["rings_time"], arrays["rings_epoch"]
    data = {
        "points": base64.b64encode(np.ascontiguousarray(path, "<i2").tobytes()).decode(),
        "time": time.tolist(),
        "epoch": epoch.tolist(),
        "colour": [to_hex(c) for c in wheel(arrays["rings_path_free"])],
        "fixed": arrays["rings_path_fixed_cued"].astype(int).tolist(),
        "swap": arrays["rings_path_swap"].astype(int).tolist(),
    }
    return {
        "data": script_json(data),
        "shown": len(path),
        "steps": path.shape[1],
        "last_time": f"step {time[-1]}, {epoch[-1]}",
        "apart": f"{np.degrees(network.mechanism.probe_distance):.0f}°",
    }


def _config(experiment: Experiment) -> str:
    """The configuration, with long tables and local paths cut short."""
    described = experiment.model_dump(exclude_none=True)
    if described.get("start_from"):
        described["start_from"] = Path(described["start_from"]).name
    return "\n".join(line if len(line) <= 160 else line[:150] + " … ]" for line in to_toml(described).splitlines())


def mechanism_table(networks: list[NetworkFindings]) -> dict[str, Any]:
    """One row a network: the numbers of the mechanism."""
    body = []
    for which, network in enumerate(networks, 1):
        m = network.mechanism
        places = (
            {} if isinstance(m.decoders, LeftOut) else {row.error: row.difference for row in m.decoders.attribution}
        )
        before, after = (
            (None, None) if isinstance(m.alignment, LeftOut) else (m.alignment.mean_before, m.alignment.mean_after)
        )
        apart = None if isinstance(m.rings, LeftOut) else m.rings.distance
        errors = ("misbinding", "misselection", "misinterpretation")
        numbers = [*(places.get(e) for e in errors), before, after, apart]
        body.append([f"network {which}", m.kind or "–", *(number(value, ".2f") for value in numbers)])
    head = ["network", "swaps are", "misbinding", "misselection", "misinterpretation", "alignment before", "after"]
    label = "The mechanism in numbers (swap minus correct trials on the line to each error; |cos| of the colour planes)"
    return table(label, [*head, "rings apart (s.d.)"], body)
