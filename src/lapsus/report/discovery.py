"""The page of a discovery."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from lapsus import __version__
from lapsus.circular import distance
from lapsus.fitting import Fit
from lapsus.mechanism.registry import summary as mechanism_summary
from lapsus.plots import panels
from lapsus.report.determined import Determined
from lapsus.report.findings import Check, NetworkFindings
from lapsus.report.page import SECTIONS, render
from lapsus.report.parts import (
    comparison,
    mechanism_columns,
    mechanism_table,
    network_part,
    number,
    shortened,
    sure,
    table,
    versions,
)
from lapsus.report.words import REFERENCES, Facts, methods
from lapsus.trials import Trials

__all__ = ["DiscoveryContent", "discovery_page"]


@dataclass(frozen=True)
class DiscoveryContent:
    """All that the page of a discovery shows.

    settings: as the user gave them; notes: sentences about trials that were left out; stages: seconds of each; truth:
    the true swap function f of a distance (radians) where it is known.
    """

    fit: Fit
    networks: list[NetworkFindings]
    facts: Facts
    together: Determined
    sentences: list[str]
    checks: list[Check]
    settings: dict[str, Any]
    notes: list[str]
    stages: dict[str, float]
    truth: Callable[[np.ndarray], np.ndarray] | None = None


def discovery_page(content: DiscoveryContent) -> str:
    """report.html of a discovery."""
    fit, trials, networks, settings = content.fit, content.fit.trials, content.networks, content.settings
    summary = fit.to_dict()
    stages = [[f"stage: {stage}", f"{seconds:.1f} s"] for stage, seconds in content.stages.items()]
    used = [["total", f"{sum(content.stages.values()):.0f} s"], *stages, *versions(networks[0].experiment)]
    shown = {k: shortened(v) if isinstance(v, str) else v for k, v in settings.items()}
    return render(
        {
            "title": f"lapsus discovery: {shortened(settings['source'])}",
            "subtitle": _about(trials, content),
            "sections": list(SECTIONS.items()),
            # The rest is the mechanism, which the answer says in words and its section in numbers.
            "sentences": content.sentences[:3],
            "answer": _answer(content),
            "verdict": _verdict(networks),
            "data": _data(trials, summary, content.notes),
            "fit": {"picture": panels.behaviour_fit(fit, content.truth), "words": _paragraphs(summary["summary"])},
            "networks": [network_part(which, network) for which, network in enumerate(networks, 1)],
            "match_table": _match_table(networks, trials.degrees),
            "mechanism_table": mechanism_table(networks),
            "mechanism_columns": mechanism_columns(),
            "overview": comparison(networks),
            "checks": content.checks,
            "sure": sure(content.checks),
            "methods": methods(summary, networks, content.facts),
            "references": REFERENCES,
            "run_table": table("Time, versions and seeds", ["what", "value"], used),
            "settings": json.dumps(shown, indent=1, ensure_ascii=False),
            "version": __version__,
        }
    )


def _answer(content: DiscoveryContent) -> str:
    """What the behaviour determines and what not; of a single network, its mechanism too."""
    sentences = " ".join(content.together.sentences)
    if len(content.networks) > 1:
        return sentences
    return f"{mechanism_summary([content.networks[0].mechanism])} {sentences}"


def _about(trials: Trials, content: DiscoveryContent) -> str:
    subjects = list(dict.fromkeys(map(str, trials.subject)))
    who = f"subject {shortened(subjects[0], 60)}" if len(subjects) == 1 else f"{len(subjects)} subjects"
    count = len(content.networks)
    two = " of two items" if content.facts.set_size > 2 else ""
    return (
        f"{len(trials):,} trials, {who}, {content.facts.set_size} items; {count} {content.facts.cueing}-cued"
        f" network{'s' * (count > 1)}{two}; budget {content.settings['minutes']:g} min."
    )


def _data(trials: Trials, summary: dict[str, Any], notes: list[str]) -> dict[str, Any]:
    subjects, counts = np.unique(trials.subject.astype(str), return_counts=True)
    text = (
        f"{len(trials):,} trials of {len(subjects)} subject{'s' * (len(subjects) != 1)} with {trials.report.shape[1]}"
        " items"
    )
    text += "; angles were given in radians and are degrees here." if trials.unit == "radians" else "."
    if "degrees_180" in (trials.unit, trials.probe_unit):
        text += " Orientations repeat after 180°, and distances in the data are counted so. The network holds them on a"
        text += " full circle: where this page speaks of its memory, 90° are 45° of orientation."
    if trials.probe is None:
        text += " The table has no probe feature, so swaps could not be related to it."
    notes = [*notes, _power(trials, summary)]
    rows = None
    if len(subjects) > 1:
        body = [
            [
                shortened(s, 60),
                f"{n:,}",
                number(trials.degrees * np.median(np.abs(trials.error[trials.subject == s])), ".1f"),
            ]
            for s, n in zip(subjects[:40], counts)
        ]
        rows = table("Subjects", ["subject", "trials", "median error (°)"], body)
    return {"text": text, "notes": notes, "picture": panels.data_overview(trials), "subjects": rows}


def _paragraphs(summary: str) -> list[tuple[bool, str]]:
    """A summary's lines by kind: those in columns (True), which a narrow page must not break, and sentences."""
    found = []
    for paragraph in summary.strip().split("\n\n"):
        lines = groupby(paragraph.split("\n"), lambda line: re.search(r"^ {2}|\S {2,}\S", line) is not None)
        found += [(columns, ("\n" if columns else " ").join(several)) for columns, several in lines]
    return found


def _power(trials: Trials, summary: dict[str, Any]) -> str:
    """What so many trials could show about swaps at all."""
    p = sum(row["trials"] * row["non_target"] for row in summary["weights"]) / len(trials)
    each = max(p, 1 / len(trials)) / (trials.report.shape[1] - 1)
    half = len(trials) * (trials.report.shape[1] - 1) / 2
    # Two shares from equal halves, 5 % level, 80 % power: 1.96 + 0.84 standard errors of their difference.
    least = 2.8 * np.sqrt(each * (1 - each) * 2 / half)
    if summary["model"] == "none":
        # Responses at the mirror image of the non-target, about the target, are what chance puts at the non-target.
        mirror = 2 * trials.report[:, :1] - trials.report[:, 1:]
        chance = np.nanmean(distance(trials.response[:, None], mirror) < 0.35)
        hidden = 2.8 * np.sqrt(2 * max(chance, 1 / (2 * half)) / (2 * half)) * (trials.report.shape[1] - 1)
        return (
            f"No swaps were found; a swap rate below about {100 * hidden:.1f} % could hide in data of this size and"
            " scatter."
        )
    text = f"The fit puts the swap rate at {100 * p:.1f} %, about {p * len(trials):.0f} trials. "
    if least >= 2 * each:
        return (
            text
            + "So few swaps cannot show what they depend on: even if only the closer half of the non-targets were ever "
            "reported, these data would be unlikely to show it."
        )
    return (
        text + "Data of this size show (with 80 % power) that closer non-targets are reported more often than distant"
        " ones if "
        f"the two rates for one non-target differ by {least:.3f} or more, around a mean of {each:.3f}; a smaller "
        "difference may be there unseen."
    )


def _match_table(networks: list[NetworkFindings], degrees: float) -> dict[str, Any]:
    matches = [network.match for network in networks if network.match is not None]
    first = matches[0]
    data, band = first.data, first.predictive_network
    several = len(networks) > 1
    head = [
        "distance",
        *(["data"] if data is not None else []),
        "fitted model",
        *([network.name for network in networks] if several else ["network"]),
        *(["predictive interval"] if band is not None and not several else []),
    ]
    body = []
    for k, gap in enumerate(first.shown_distance):
        row = [
            f"{gap:.0f}°",
            *([number(data[k])] if data is not None else []),
            number(first.fit[k]),
            *(number(m.network[k]) for m in matches),
        ]
        if band is not None and not several:
            row.append(f"{band.low[k]:.3f} to {band.high[k]:.3f}" + (" ✗" if band.outside[k] else ""))
        body.append(row)
    for key, label, scale in (
        ("scatter", "scatter around the item (°)", degrees),
        ("stray", "far from every item (%)", 100),
    ):
        row = [
            label,
            *([number(scale * getattr(first, key).data, ".1f")] if data is not None else []),
            number(scale * getattr(first, key).fit, ".1f"),
            *(number(scale * getattr(m, key).network, ".1f") for m in matches),
        ]
        body.append(row + [""] * (len(head) - len(row)))
    return table(
        f"Share of responses nearest to the non-target, by {first.feature} distance, on {first.scope}", head, body
    )


def _verdict(networks: list[NetworkFindings]) -> dict[str, Any]:
    matches = [network.match for network in networks if network.match is not None]
    against = (
        "the fitted model and to the data"
        if matches[0].data is not None
        else "the fitted model; the trials themselves have more items than the network can be shown"
    )
    problems = [
        f"{network.name}: {problem}" if len(matches) > 1 else problem
        for network, match in zip(networks, matches)
        for problem in match.where
    ]
    if not problems:
        whose = "The network's responses" if len(matches) == 1 else "The responses of all networks"
        return {"matched": True, "text": f"{whose} are matched to {against}."}
    return {"matched": False, "text": "Where: " + "; ".join(problems) + "."}
