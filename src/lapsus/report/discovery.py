"""The page of a discovery."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import numpy as np
import pandas as pd

from lapsus import __version__
from lapsus.circular import distance
from lapsus.evaluation.manipulations import Separation
from lapsus.evaluation.match import Match
from lapsus.fitting import Fit
from lapsus.mechanism.recording_needs import CORRECT, SWAPS
from lapsus.mechanism.registry import summary as mechanism_summary
from lapsus.mechanism.resemblance import Resemblance, resemblance_figure
from lapsus.plots import panels
from lapsus.plots.style import PAGE_POINTS, style
from lapsus.report.determined import Determined
from lapsus.report.findings import Check, NetworkFindings, RecordingFindings
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
from lapsus.report.words import REFERENCES, ReportContext, methods
from lapsus.trials import Trials


@dataclass(frozen=True)
class DiscoveryContent:
    """All that the page of a discovery shows.

    settings: as the user gave them; notes: sentences about trials that were left out; stages: seconds of each; truth:
    the true swap function f of a distance (radians) where it is known; separations, recording_needs: what experiments
    and recordings would tell matched networks of the two objectives apart; recording: what one that was given says.
    """

    fit: Fit
    networks: list[NetworkFindings]
    facts: ReportContext
    together: Determined
    sentences: list[str]
    checks: list[Check]
    settings: dict[str, Any]
    notes: list[str]
    stages: dict[str, float]
    truth: Callable[[np.ndarray], np.ndarray] | None = None
    separations: list[Separation] = field(default_factory=list)
    recording_needs: pd.DataFrame | None = None
    recording: RecordingFindings | None = None


def discovery_page(content: DiscoveryContent) -> str:
    """report.html of a discovery."""
    fit, trials, networks, settings = content.fit, content.fit.trials, content.networks, content.settings
    summary = fit.to_dict()
    stages = [[f"stage: {stage}", f"{seconds:.1f} s"] for stage, seconds in content.stages.items()]
    used = [["total", f"{sum(content.stages.values()):.0f} s"], *stages, *versions(networks[0].experiment)]
    readable = {k: shortened(v) if isinstance(v, str) else v for k, v in settings.items()}
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
            "deciding": _deciding(content),
            "recording": _recording(content.recording),
            "checks": content.checks,
            "sure": sure(content.checks),
            "methods": methods(summary, networks, content.facts),
            "references": REFERENCES,
            "run_table": table("Time, versions and seeds", ["what", "value"], used),
            "settings": json.dumps(readable, indent=1, ensure_ascii=False),
            "version": __version__,
        }
    )


def _answer(content: DiscoveryContent) -> str:
    """What the behaviour determines and what not; of a single network, its mechanism too."""
    sentences = " ".join(content.together.sentences)
    if content.recording is not None:
        sentences += f" {content.recording.sentence}"
    if len(content.networks) > 1:
        return sentences
    return f"{mechanism_summary([content.networks[0].mechanism])} {sentences}"


def _deciding(content: DiscoveryContent) -> dict[str, Any] | None:
    """What would tell matched networks of the two objectives apart: manipulations as a figure, recordings as a
    table."""
    needs = content.recording_needs
    if not content.separations or needs is None or needs.empty:
        return None
    units = list(dict.fromkeys(needs["units"]))
    body = []
    for (network, window), rows in needs.groupby(["network", "window"], sort=False):
        by_units = rows.set_index("units")
        swaps = [number(by_units["swaps"].get(count), ".0f") for count in units]
        body.append([f"{network}, {window}", *swaps, number(by_units["area"].iloc[-1], ".2f")])
    most = max(SWAPS)
    label = (
        f"Recordings with {CORRECT} correct trials: number of swaps with which a held-out decoder reads the upcoming"
        f" swap in four of five recordings (dash: not even with {most}), and its AUC with {most} swaps and"
        f" {units[-1]} neurons (0.5 is chance)"
    )
    head = ["network, part of the trial", *(f"{count} neurons" for count in units), "AUC"]
    return {"picture": panels.separations(content.separations), "table": table(label, head, body)}


def _recording(found: RecordingFindings | None) -> dict[str, Any] | None:
    """What a recording says about the networks: sentences, a figure of the numbers that are compared."""
    if found is None:
        return None
    compared = found.comparison
    drawn = None if compared is None or not compared.features else _comparison_picture(compared)
    return {"source": shortened(found.source), "said": found.said, "sentence": found.sentence, "picture": drawn}


def _comparison_picture(found: Resemblance) -> panels.Picture:
    with style(PAGE_POINTS):
        figure = resemblance_figure(found)
    return panels.picture(
        figure,
        "How well the upcoming swap is decoded from held-out trials in each part of the trial, and how far swap trials"
        " have moved towards the error: in the recording, with 95 % intervals over its trials or sessions, and in"
        " recordings like it that were simulated from the networks.",
    )


def _about(trials: Trials, content: DiscoveryContent) -> str:
    subjects = list(dict.fromkeys(map(str, trials.subject)))
    who = f"subject {shortened(subjects[0], 60)}" if len(subjects) == 1 else f"{len(subjects)} subjects"
    count, facts = len(content.networks), content.facts
    two = " of two items" if facts.set_size > 2 else ""
    return (
        f"{len(trials):,} trials, {who}, {facts.set_size} items; {count} {facts.cueing}-cued"
        f" network{'s' * (count > 1)}{two}; budget {content.settings['minutes']:g} min."
    )


_IN_RADIANS = "; angles were given in radians and are shown in degrees here."
_ORIENTATIONS = (
    " Orientations repeat after 180°, and distances in the data are given in degrees of orientation. The network"
    " represents them on a full circle: where this page describes its memory, 90° correspond to 45° of orientation."
)
_NO_PROBE = " The table has no probe feature, so swaps could not be related to it."


def _data(trials: Trials, summary: dict[str, Any], notes: list[str]) -> dict[str, Any]:
    subjects, counts = np.unique(trials.subject.astype(str), return_counts=True)
    many = len(subjects) > 1
    text = f"{len(trials):,} trials of {len(subjects)} subject{'s' * many} with {trials.report.shape[1]} items"
    text += _IN_RADIANS if trials.unit == "radians" else "."
    text += _ORIENTATIONS * ("degrees_180" in (trials.unit, trials.probe_unit)) + _NO_PROBE * (trials.probe is None)
    errors = [trials.degrees * np.median(np.abs(trials.error[trials.subject == subject])) for subject in subjects[:40]]
    body = [[shortened(s, 60), f"{n:,}", number(error, ".1f")] for s, n, error in zip(subjects, counts, errors)]
    return {
        "text": text,
        "notes": [*notes, _power(trials, summary)],
        "picture": panels.data_overview(trials),
        "subjects": table("Subjects", ["subject", "trials", "median error (°)"], body) if many else None,
    }


def _paragraphs(summary: str) -> list[tuple[bool, str]]:
    """A summary's lines by kind: those in columns (True), which a narrow page must not break, and sentences."""
    paragraphs = []
    for paragraph in summary.strip().split("\n\n"):
        lines = groupby(paragraph.split("\n"), lambda line: re.search(r"^ {2}|\S {2,}\S", line) is not None)
        paragraphs += [(columns, ("\n" if columns else " ").join(several)) for columns, several in lines]
    return paragraphs


_HIDDEN = "No swaps were found; a swap rate below about {:.1f} % could go undetected in data of this size and scatter."
_RATE = "The fit puts the swap rate at {:.1f} %, about {:.0f} trials. "
_TOO_FEW = (
    "There are too few swaps to show what they depend on: even if only the closer half of the non-targets were ever"
    " reported, these data would be unlikely to show it."
)
_LEAST = (
    "Data of this size can show (with 80 % power) that closer non-targets are reported more often than distant ones if"
    " the two rates per non-target differ by {:.3f} or more, around a mean of {:.3f}; a smaller difference could go"
    " undetected."
)


def _power(trials: Trials, summary: dict[str, Any]) -> str:
    """What so many trials could show about swaps at all."""
    count, non_targets = len(trials), trials.report.shape[1] - 1
    pairs = count * non_targets
    # Two shares from equal halves, 5 % level, 80 % power: 1.96 + 0.84 standard errors of their difference.
    if summary["model"] == "none":
        # Responses at the mirror image of the non-target, about the target, are what chance puts at the non-target.
        mirror = 2 * trials.report[:, :1] - trials.report[:, 1:]
        chance = np.nanmean(distance(trials.response[:, None], mirror) < 0.35)
        return _HIDDEN.format(100 * 2.8 * np.sqrt(2 * max(chance, 1 / pairs) / pairs) * non_targets)
    swaps = sum(row["trials"] * row["non_target"] for row in summary["weights"])
    each = max(swaps, 1) / pairs
    least = 2.8 * np.sqrt(each * (1 - each) * 4 / pairs)
    text = _RATE.format(100 * swaps / count, swaps)
    return text + (_TOO_FEW if least >= 2 * each else _LEAST.format(least, each))


def _match_table(networks: list[NetworkFindings], degrees: float) -> dict[str, Any]:
    """Data, fit and networks by distance, then their scatter and responses that are far from every item."""
    matches = [network.match for network in networks if network.match is not None]
    first = matches[0]
    columns: dict[str, list[str]] = {} if first.data is None else {"data": _column(first, "data", first.data, degrees)}
    columns["fitted model"] = _column(first, "fit", first.fit, degrees)
    names = [network.name for network in networks] if len(networks) > 1 else ["network"]
    columns |= {name: _column(match, "network", match.network, degrees) for name, match in zip(names, matches)}
    if (band := first.predictive_network) is not None and len(networks) == 1:
        bounds = zip(band.low, band.high, band.outside)
        intervals = [f"{low:.3f} to {high:.3f}" + " ✗" * bool(outside) for low, high, outside in bounds]
        columns["predictive interval"] = [*intervals, "", ""]
    rows = [f"{gap:.0f}°" for gap in first.shown_distance] + ["scatter around the item (°)", "far from every item (%)"]
    label = f"Share of responses nearest to the non-target, by {first.feature} distance, on {first.scope}"
    return table(label, ["distance", *columns], [list(row) for row in zip(rows, *columns.values())])


def _column(match: Match, whose: str, curve: np.ndarray, degrees: float) -> list[str]:
    """The swap curve of network, fit or data, and below it scatter and share of responses far from every item."""
    scatter, stray = degrees * getattr(match.scatter, whose), 100 * getattr(match.stray, whose)
    return [*map(number, curve), number(scatter, ".1f"), number(stray, ".1f")]


_AGAINST_DATA = "the fitted model and the data"
_AGAINST_FIT = "the fitted model; the trials themselves have more items than the network can be shown"


def _verdict(networks: list[NetworkFindings]) -> dict[str, Any]:
    matches = [network.match for network in networks if network.match is not None]
    several = len(matches) > 1
    problems = [
        f"{network.name}: {problem}" if several else problem
        for network, match in zip(networks, matches)
        for problem in match.where
    ]
    if problems:
        return {"matched": False, "text": f"Why: {'; '.join(problems)}."}
    whose = "The responses of all networks" if several else "The network's responses"
    against = _AGAINST_FIT if matches[0].data is None else _AGAINST_DATA
    return {"matched": True, "text": f"{whose} match {against}."}
