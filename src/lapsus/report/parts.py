"""What pages are made of: tables, numbers as text, and the part that every network has."""

import base64
import json
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup
from matplotlib import pyplot as plt
from matplotlib.colors import to_hex

from lapsus import __version__
from lapsus.files import short, to_toml
from lapsus.mechanism.clock import Clock
from lapsus.mechanism.drawing import figure_of
from lapsus.mechanism.registry import QUESTIONS, Column, Mechanism, without_answer
from lapsus.plots import panels
from lapsus.plots.style import PAGE_POINTS, legend_above, style, wheel
from lapsus.report.findings import Check, NetworkFindings
from lapsus.training.experiment import Experiment


def shortened(text: object, longest: int = 120) -> str:
    """Names from files and tables at a length that a page can show; control characters become visible."""
    visible = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in str(text))
    return short(visible, longest)


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
    names = {"short": f"network {which}", "label": f"network {which}: {shortened(network.name, 60)}"}
    against = []
    if network.match is not None:
        against.append(panels.match(network.match))
    elif network.evaluation.get("swap_curve"):
        against.append(panels.swap_target(network.evaluation))
    if "cloud_near" in arrays:
        against.append(panels.clouds(arrays, mechanism.probe_distance))
    learned = panels.learning(network.metrics)
    return names | {
        "rings": _turning(network) if "rings_path" in arrays else None,
        "config": _config(network.experiment),
        "match_pictures": against,
        "questions": [_question(name, mechanism) for name, _ in mechanism.answered],
        "without_answer": without_answer(mechanism),
        "training_pictures": [learned] if learned else [],
    }


def _question(name: str, found: Mechanism) -> dict[str, Any]:
    """One question with its answer: what is measured, in words, and as a figure."""
    question = QUESTIONS[name]
    return {
        "title": question.title,
        "definition": question.definition,
        "in_recording": question.in_recording,
        "text": found.sentence(name),
        "picture": panels.picture(figure_of(name, found), question.caption),
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
        "time": [Clock().text(t) for t in time],
        "epoch": epoch.tolist(),
        "colour": [to_hex(c) for c in wheel(arrays["rings_path_free"])],
        "fixed": arrays["rings_path_fixed_cued"].astype(int).tolist(),
        "swap": arrays["rings_path_swap"].astype(int).tolist(),
    }
    return {
        "data": script_json(data),
        "shown": len(path),
        "steps": path.shape[1],
        "last_time": f"{Clock().text(time[-1])}, {epoch[-1]}",
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


def _columns() -> list[tuple[str, Column]]:
    """Question and column of the table of the mechanism."""
    return [(name, column) for name, question in QUESTIONS.items() for column in question.columns]


def mechanism_table(networks: list[NetworkFindings]) -> dict[str, Any]:
    """One row per network: the numbers of the mechanism."""
    body = []
    for which, mechanism in enumerate((network.mechanism for network in networks), 1):
        answers = [(column, mechanism.answers.get(name)) for name, column in _columns()]
        cells = [column.text(answer, mechanism) if answer else "–" for column, answer in answers]
        body.append([f"network {which}", *cells])
    label = "The mechanism in numbers; the columns are explained below"
    return table(label, ["network", *(column.head for _, column in _columns())], body)


def mechanism_columns() -> str:
    """What each column of that table is."""
    text = "; ".join(f"{column.head}: {column.definition}" for _, column in _columns())
    return f"{text[:1].upper()}{text[1:]}."


def comparison(networks: list[NetworkFindings]) -> panels.Picture | None:
    """Several networks side by side, one panel for each question that can be compared."""
    compared = {name: question for name, question in QUESTIONS.items() if question.compare is not None}
    if len(networks) == 1 or not compared:
        return None
    with style(PAGE_POINTS):
        figure, axes = plt.subplots(
            1,
            len(compared),
            figsize=(3.2 * len(compared), 0.9 + 0.35 * len(networks)),
            layout="constrained",
            sharey=True,
            squeeze=False,
        )
        for ax, (name, question) in zip(axes[0], compared.items()):
            label, draw = question.compare or ("", lambda *_: None)
            for height, network in enumerate(networks):
                if name in network.mechanism.answers:
                    draw(ax, network.mechanism.answers[name], height)
            ax.set(xlabel=label, yticks=range(len(networks)), ylim=(len(networks) - 0.5, -0.5))
            if ax.get_legend_handles_labels()[0]:
                legend_above(ax)
        axes[0, 0].set_yticklabels([shortened(network.name, 40) for network in networks])
    text = "; ".join(question.definition.rstrip(".") for question in compared.values())
    return panels.picture(figure, f"Networks side by side, with 95 % intervals within each. {text}.")
