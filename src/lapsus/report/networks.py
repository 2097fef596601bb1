"""The page of any trained networks, several side by side."""

import numpy as np

from lapsus import __version__
from lapsus.evaluation.verdict import verdict
from lapsus.mechanism.registry import summary
from lapsus.report.check_list import in_order, network_checks
from lapsus.report.findings import NetworkFindings
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
from lapsus.report.words import REFERENCES, networks_methods

# What a row is called, the number's key, what it is multiplied with, and how it is written.
_MEASURES = (
    ("excess over the Bayes denoiser", "excess", 1, ".3f"),
    ("swap curve, mean deviation", "swap_curve_mad", 1, ".3f"),
    ("swap curve, largest deviation", "swap_curve_max", 1, ".3f"),
    ("median error (°)", "median_error", 180 / np.pi, ".1f"),
    ("far from every item (%)", "away", 100, ".1f"),
)


def networks_page(networks: list[NetworkFindings]) -> str:
    """A report of trained networks, as HTML."""
    checks = in_order(network_checks(networks))
    body = [
        [label, *("–" if (value := n.evaluation.get(key)) is None else number(scale * value, form) for n in networks)]
        for label, key, scale, form in _MEASURES
    ]
    body.append(["updates", *(f"{n.update:,} of {n.updates:,}" for n in networks)])
    short = [f"network {which}" for which in range(1, len(networks) + 1)]
    training = [
        [f"{name}: training", f"{n.seconds / 60:.1f} min, seed {n.experiment.seed}"] for name, n in zip(short, networks)
    ]
    evaluation = networks[0].evaluation
    return render(
        {
            "title": f"lapsus report: {shortened(', '.join(n.name for n in networks))}",
            "subtitle": (
                f"{len(networks)} trained network{'s' * (len(networks) != 1)}, {evaluation['conditions']:,} fresh"
                f" conditions × {evaluation['trials']} trials each."
            ),
            "sections": [
                (key, "Network against target" if key == "match" else name)
                for key, name in SECTIONS.items()
                if key not in ("data", "fit")
            ],
            # Of one network the answer says all.
            "sentences": [_sentence(network) for network in networks] if len(networks) > 1 else [],
            "answer": summary([n.mechanism for n in networks]),
            "verdict": _verdict(networks),
            "data": None,
            "fit": None,
            "networks": [network_part(which, network) for which, network in enumerate(networks, 1)],
            "match_table": table("Against the target, on fresh conditions", ["measure", *short], body),
            "mechanism_table": mechanism_table(networks),
            "mechanism_columns": mechanism_columns(),
            "overview": comparison(networks),
            "deciding": None,
            "recording": None,
            "checks": checks,
            "sure": sure(checks),
            "methods": networks_methods(networks, __version__),
            "references": REFERENCES,
            "run_table": table(
                "Time, versions and seeds", ["what", "value"], training + versions(networks[0].experiment)
            ),
            "settings": None,
            "version": __version__,
        }
    )


def _verdict(networks: list[NetworkFindings]) -> dict[str, object]:
    """Whether each network is within its limits, those that are not first."""
    judged = [
        verdict(n.evaluation, n.experiment.stage[-1].objective["kind"], unfinished=n.update < n.updates)
        for n in networks
    ]
    # Numbers of those that are matched stand in the table; of the others, what is off is said first.
    named = [
        f"network {which}: {judgement}" if len(judged) > 1 else str(judgement)
        for which, judgement in enumerate(judged, 1)
        if not judgement.matched
    ]
    if not named:
        who = "The network is within every limit of its target"
        who = who if len(judged) == 1 else "All networks are within every limit of their targets"
        return {"matched": True, "text": f"{who}, on fresh conditions."}
    text = " ".join(named)
    return {"matched": False, "text": text[:1].upper() + text[1:]}


def _sentence(network: NetworkFindings) -> str:
    words = [f"{name}: {word or 'not known'}" for name, word in network.mechanism.verdicts.items()]
    return f"{shortened(network.name, 60)}: {', '.join(words)}."
