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
from lapsus.files import to_toml
from lapsus.plots import panels
from lapsus.plots.style import wheel
from lapsus.report.mechanism import TITLES, asked, planes, predicted, unasked
from lapsus.study.findings import Check, NetworkFindings
from lapsus.study.mechanism import table_row
from lapsus.training.experiment import Experiment

__all__ = [
    "COLUMNS",
    "mechanism_table",
    "network_part",
    "number",
    "script_json",
    "shortened",
    "sure",
    "table",
    "versions",
]


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
    learned = panels.learning(network.metrics)
    return shown | {
        "rings": _turning(network) if "rings_path" in arrays else None,
        "config": _config(network.experiment),
        "match_pictures": against,
        "questions": [
            {"title": TITLES[name], "text": text, "picture": panels.question(name, mechanism)}
            for name, text in asked(mechanism).items()
        ],
        "unasked": unasked(mechanism),
        "planes": panels.alignment(mechanism.alignment, arrays) if mechanism.alignment is not None else None,
        "planes_text": [planes(mechanism), predicted(mechanism)],
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
        "axes": (
            "the plane of the ring at the response and, upwards, the normal between the rings of correct and of swap"
            " trials, both fitted to other trials (a swap reports another colour, so the normal holds that, too)"
            if str(arrays.get("rings_axes", "")) == "rings"
            else "the principal components of the response"
        ),
        "apart": f"{np.degrees(network.mechanism.probe_distance):.0f}°",
    }


def _config(experiment: Experiment) -> str:
    """The configuration, with long tables and local paths cut short."""
    described = experiment.model_dump(exclude_none=True)
    if described.get("start_from"):
        described["start_from"] = Path(described["start_from"]).name
    return "\n".join(line if len(line) <= 160 else line[:150] + " … ]" for line in to_toml(described).splitlines())


def _share(value: float | None) -> str:
    return "–" if value is None or not np.isfinite(value) else f"{100 * value:.0f} %".replace("-0 %", "0 %")


def mechanism_table(networks: list[NetworkFindings]) -> dict[str, Any]:
    """One row a network: the numbers of the mechanism."""
    body = []
    for which, network in enumerate(networks, 1):
        row = table_row(network.mechanism)
        half = "–"
        if "half_time" in row:
            half = f"{row['half_time']:.1f} [{row['half_low']:.1f}, {row['half_high']:.1f}]"
        shares = [_share(row.get(name)) for name in ("fixed_at_cue_onset", "carried_by_x", "carried_by_m")]
        areas = [number(row.get(name), ".2f") for name in ("axis_auc", "colour_confound", "decoding_auc")]
        body.append([f"network {which}", half, *shares, *areas, row.get("kind", "–"), row.get("swaps", "–")])
    head = ["network", "half decided", "before cue", "by x", "by m", "axis", "colour", "decoder", "kind", "swaps"]
    label = "The mechanism in numbers; what each column is stands below"
    return table(label, head, body)


COLUMNS = (
    "Half decided: the step from cue offset at which half of the outcome is fixed, with its 95 % interval; before cue:"
    " the share of it that is fixed at cue onset; by x, by m: the share that each takes along when it is transplanted;"
    " axis, colour, decoder: held-out areas under the ROC curve at the response of the swap axis (the reported colour"
    " held fixed), of what the reported colour alone gives, and of a decoder of the swap; kind of error; swap trials."
)
