"""The gallery: trained networks one below the other, a row each, on one self-contained page."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from lapsus import __version__
from lapsus.evaluation.sample_sizes import FULL, Sizes
from lapsus.evaluation.verdict import verdict
from lapsus.plots.gallery import gallery_row
from lapsus.report.page import MARK, render
from lapsus.report.parts import number
from lapsus.study.mechanism import analyse
from lapsus.zoo import open_network
from lapsus.zoo.shipped import collection_of

__all__ = ["gallery_page"]

_COLLECTIONS = {
    "paper": "Networks of the paper, one delay",
    "persistent": "Networks that hold their memory over any delay",
}

# A third of a minute a network.
ROW = replace(FULL, groups=32, replays=2, rotations=4)


def gallery_page(
    names: Sequence[str], sizes: Sizes = ROW, threads: int | None = None, say: Callable[[str], None] = lambda name: None
) -> str:
    """The page of the named networks (those of delayed estimation: others have no items to swap). `say` is called with
    each name as it is looked at."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for name in names:
        network = open_network(name)
        evaluation = network.evaluation
        if "swap_curve" not in evaluation:
            continue
        say(name)
        swaps = max(point["target"] for point in evaluation["swap_curve"]) > 0
        asked = ("alignment", "commitment") if swaps else ("alignment",)
        found = analyse(network, only=asked, sizes=sizes, threads=threads)
        objective = network.experiment.stage[-1].objective["kind"]
        groups.setdefault(_COLLECTIONS[collection_of(name)], []).append(
            {
                "name": name,
                "description": network.experiment.description,
                "verdict": verdict(evaluation, objective).kind,
                "numbers": _numbers(evaluation, objective),
                "picture": gallery_row(name, evaluation, found),
            }
        )
    count = sum(map(len, groups.values()))
    return render(
        {
            "title": "Networks that ship with lapsus",
            "subtitle": f"{count} trained networks of delayed estimation, a row each.",
            "groups": groups,
            "mark": f"{MARK} {__version__}",
        },
        "gallery.html",
    )


def _numbers(evaluation: dict, objective: str) -> str:
    excess = f"excess {number(evaluation['excess'])}, " if objective == "diffusion" else ""
    curve, error = number(evaluation["swap_curve_mad"]), number(math.degrees(evaluation["median_error"]), ".1f")
    return f"{excess}swap curve within {curve}, median error {error}°"
