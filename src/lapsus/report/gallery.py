"""The gallery: trained networks one below the other, a row each, on one self-contained page."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from matplotlib import pyplot as plt

from lapsus import __version__
from lapsus.evaluation.sample_sizes import FULL, SampleSizes
from lapsus.evaluation.verdict import verdict
from lapsus.mechanism.asking import analyse
from lapsus.mechanism.registry import QUESTIONS, Mechanism, Question
from lapsus.plots.panels import Picture, picture, swap_curve
from lapsus.plots.style import PAGE_POINTS, legend_above, style
from lapsus.report.page import MARK, render
from lapsus.report.parts import number
from lapsus.zoo import open_network
from lapsus.zoo.shipped import collection_of

_COLLECTIONS = {
    "paper": "Networks of the paper, one delay",
    "persistent": "Networks that hold their memory over any delay",
    "open": "Networks trained by the energy score, over any delay",
}

# A third of a minute a network.
ROW = replace(FULL, groups=32, replays=2, rotations=4)


def gallery_page(
    names: Sequence[str],
    sizes: SampleSizes = ROW,
    threads: int | None = None,
    say: Callable[[str], None] = lambda name: None,
) -> str:
    """The page of the named networks (those of delayed estimation: others have no items to swap). `say` is called with
    each name as it is looked at."""
    groups: dict[str, list[dict[str, Any]]] = {}
    questions = _questions()
    for name in names:
        network = open_network(name)
        evaluation = network.evaluation
        if "swap_curve" not in evaluation:
            continue
        say(name)
        swaps = max(point["target"] for point in evaluation["swap_curve"]) > 0
        asked = [name for name, question in questions.items() if swaps or not question.needs_swaps]
        mechanism = analyse(network, only=asked, sizes=sizes, threads=threads)
        objective = network.experiment.stage[-1].objective["kind"]
        groups.setdefault(_COLLECTIONS[collection_of(name)], []).append(
            {
                "name": name,
                "description": network.experiment.description,
                "verdict": verdict(evaluation, objective).kind,
                "numbers": _numbers(evaluation, objective),
                "picture": _row(name, evaluation, mechanism),
            }
        )
    count = sum(map(len, groups.values()))
    return render(
        {
            "title": "Networks that ship with lapsus",
            "subtitle": f"{count} trained networks of delayed estimation, a row each.",
            "explained": " ".join(question.caption for question in questions.values()),
            "groups": groups,
            "mark": f"{MARK} {__version__}",
        },
        "gallery.html",
    )


def _questions() -> dict[str, Question]:
    """Those that the gallery shows."""
    return {name: question for name, question in QUESTIONS.items() if question.gallery is not None}


def _numbers(evaluation: dict, objective: str) -> str:
    excess = f"excess {number(evaluation['excess'])}, " if objective == "diffusion" else ""
    curve, error = number(evaluation["swap_curve_mad"]), number(math.degrees(evaluation["median_error"]), ".1f")
    return f"{excess}swap curve within {curve}, median error {error}°"


def _row(name: str, evaluation: dict, found: Mechanism) -> Picture:
    """Swap curve beside its target, and the first panel of each question that the gallery shows."""
    questions = _questions()
    words = ["swap curve"]
    with style(PAGE_POINTS):
        figure, axes = plt.subplots(
            1, 1 + len(questions), figsize=(2.7 * (1 + len(questions)), 2.4), layout="constrained"
        )
        swap_curve(axes[0], evaluation)
        legend_above(axes[0])
        for ax, (key, question) in zip(axes[1:], questions.items()):
            answer = found.answers.get(key)
            if answer is None:
                why = found.left_out.get(key, "this network never swaps")
                words.append(f"{question.title} {why}")
                ax.set_visible(False)
            else:
                question.panels(answer, found)[0].draw(ax)
                words.append(question.gallery(answer) if question.gallery else "")
    return picture(figure, f"{name}: {'; '.join(words)}.")
