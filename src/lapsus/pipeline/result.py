"""What a discovery found: its parts, and the outcome as plain numbers and sentences."""

import html
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from lapsus.behaviour import BNS
from lapsus.errors import LapsusError
from lapsus.evaluation.match import Match
from lapsus.files import (
    from_plain,
    holds,
    inside,
    read_arrays,
    remove,
    set_aside,
    short,
    understood,
    write_json,
    write_text,
)
from lapsus.fitting import Fit
from lapsus.fitting.network_target import fitted_behaviour
from lapsus.mechanism.registry import Mechanism, by_default
from lapsus.pipeline.folder import STAGES, Folder
from lapsus.report import DiscoveryContent, discovery_page
from lapsus.report.check_list import EARLIER_VERSION, Truth, fit_checks, in_order, match_checks, network_checks
from lapsus.report.findings import NetworkFindings, seconds_trained
from lapsus.report.words import Facts, discovery_sentences
from lapsus.training import Model
from lapsus.trials import Trials
from lapsus.trials.observer import observer_f
from lapsus.zoo import Run

__all__ = ["Discovery"]


class Discovery:
    """What `discover` found; its parts are read from its folder when they are first asked for.

    >>> try:
    ...     lapsus.Discovery("no-such-folder")
    ... except lapsus.LapsusError as error:
    ...     print(error)
    no-such-folder is not the folder of a discovery; `lapsus discover` makes one.
    """

    def __init__(self, path: str | Path, trust: bool = False):
        self.path, self.trust = Path(path), trust
        table = Folder.read(self.path)
        if table is None:
            raise LapsusError(f"{self.path} is not the folder of a discovery; `lapsus discover` makes one.")
        self._folder = Folder(self.path, table)

    def __repr__(self) -> str:
        state = "done" if "report" in self.done else f"{len(self.done)} of {len(STAGES)} stages done"
        return f"Discovery({self.path}, {state})"

    def _repr_html_(self) -> str:
        said = f"<p><b>{html.escape(repr(self))}</b></p>"
        if "report" not in self.done:
            return said
        found = "".join(f"<li>{html.escape(sentence)}</li>" for sentence in self.sentences)
        return f"{said}<ol>{found}</ol><p>The page: {html.escape(str(self.report))}</p>"

    @property
    def done(self) -> dict[str, float]:
        """Seconds that each stage took, of those that are done."""
        return self._folder.done

    @property
    def settings(self) -> dict:
        """What it was asked for: source, set size, cueing, minutes, networks, start, seed."""
        return self._folder.settings

    def _part(self, name: str, stage: str) -> Any:
        if stage not in self.done:
            raise LapsusError(
                f"{self.path}: the stage “{STAGES[stage]}” is not done yet; the same `lapsus discover` goes on with it."
            )
        return self._folder.json(name)

    @cached_property
    def fit(self) -> Fit:
        """The Fit, with its model comparison."""
        self._part("fit/summary.json", "fit")
        return Fit.load(self._folder.check("fit/fit.nc"))

    @property
    def trials(self) -> Trials:
        """The Trials that were used."""
        return self.fit.trials

    @cached_property
    def plan(self) -> dict:
        """What networks are trained to do, and what they start from (target.json)."""
        return self._part("target.json", "target")

    @cached_property
    def fitted(self) -> BNS:
        """The behaviour (BNS) that the fit describes for two items."""
        with understood(self.path / "target.json"):
            return fitted_behaviour(self.fit, self.settings["set_size"], self.plan["cueing"])

    @property
    def places(self) -> list[Path]:
        """The folder of each network."""
        with understood(self.path / "target.json"):
            names = [str(network["name"]) for network in self.plan["networks"]]
            if not names or any(Path(name).name != name for name in names):
                raise ValueError("networks are not names")
        return [inside(self.path, "networks", name) for name in names]

    @cached_property
    def runs(self) -> list[Run]:
        """The Run of each network."""
        for place in self.places if "train" in self.done else ():
            if self.lost(place):
                raise LapsusError(
                    f"{short(place)}: the network is damaged or gone; the same `lapsus discover` trains it again."
                )
        return [Run(place, self.trust) for place in self.places]

    def lost(self, place: Path) -> bool:
        """Whether a network's folder, or every checkpoint in it, is damaged or gone."""
        return not holds(place, "run") or Run(place, self.trust).lost

    def mend(self) -> list[Path]:
        """Folders of networks whose weights are lost, made ready to be trained again, with all stages after it to be
        done again."""
        found, order = [], list(STAGES)
        for place in self.places if "target" in self.done else ():
            there = holds(place, "run")
            begun = "train" in self.done or not there or any(place.glob("checkpoint-*"))
            if not (begun and self.lost(place)):
                continue
            found.append(place)
            # First the stages: killed in between, the next call finds the network as it is now.
            self._folder.undo(order[order.index("train" if there else "target") :])
            remove(place.with_name(f"{place.name}.json"))  # what was seen of it
            if there:
                Run(place, self.trust).begin_again()
            elif place.exists():
                set_aside(place)
        return found

    def looks(self, run: Run) -> list[dict]:
        """What was seen of a network after each round of its training."""
        name = f"networks/{run.path.name}.json"
        if not (self._folder / name).is_file():
            return []
        with understood(self.path / name):
            return from_plain(list[dict], self._folder.json(name)["looks"])

    def settled(self, run: Run) -> bool:
        """Whether a network was left early: it matched with a margin and its excess no longer fell."""
        with understood(self.path / f"networks/{run.path.name}.json"):
            looks = self.looks(run)
            return bool(looks and looks[-1]["settled"])

    @cached_property
    def models(self) -> list[Model]:
        """The trained Model of each network."""
        return [run.model() for run in self.runs]

    @cached_property
    def evaluations(self) -> list[dict]:
        """What `lapsus.evaluate` measures of each network."""
        with understood(self.path / "evaluation.json"):
            return from_plain(list[dict], self._part("evaluation.json", "evaluate")["evaluations"])

    @cached_property
    def matches(self) -> list[Match]:
        """Comparison of each network with the fit and the data (lapsus.evaluation.match)."""
        with understood(self.path / "evaluation.json"):
            return [from_plain(Match, one) for one in self._part("evaluation.json", "evaluate")["matches"]]

    @cached_property
    def mechanisms(self) -> list[Mechanism]:
        """Answers of each network (lapsus.mechanism)."""
        with understood(self.path / "analysis.json"):
            return [_mechanism(one) for one in self._part("analysis.json", "analyse")["mechanisms"]]

    def arrays(self, network: int = 0) -> dict[str, np.ndarray]:
        """Arrays behind the mechanism's figures."""
        return read_arrays(self._folder.check(f"analysis/network-{network + 1}.npz"))

    @cached_property
    def facts(self) -> dict:
        """The outcome as plain numbers and sentences (discovery.json)."""
        return self._part("discovery.json", "report")

    @property
    def sentences(self) -> list[str]:
        """What was found, one sentence each."""
        with understood(self.path / "discovery.json"):
            return self.facts["sentences"]

    @property
    def checks(self) -> list[dict]:
        """What was checked, failures first: name, status and text of each."""
        with understood(self.path / "discovery.json"):
            return self.facts["checks"]

    @property
    def matched(self) -> bool:
        """Whether all networks answer as the subject did."""
        with understood(self.path / "discovery.json"):
            return self.facts["matched"]

    @property
    def report(self) -> Path:
        """Path of report.html."""
        return self.path / "report.html"

    def networks(self) -> list[NetworkFindings]:
        """Evaluation, comparison and mechanism of each network."""
        parts = zip(self.runs, self.evaluations, self.matches, self.mechanisms)
        return [
            NetworkFindings(
                run.experiment.name,
                run.experiment,
                run.update,
                seconds_trained(run.metrics()),
                run.metrics(),
                evaluation,
                mechanism,
                self.arrays(number),
                match,
                self.settled(run),
            )
            for number, (run, evaluation, match, mechanism) in enumerate(parts)
        ]

    def write_report(self, output: Path | None = None) -> Path:
        """Write discovery.json, the outcome as plain numbers and sentences, and the page (report.html); returns its
        path."""
        networks, facts = self.networks(), self._facts()
        fit = self._part("fit/summary.json", "fit")
        checks = in_order(
            fit_checks(fit, facts.truth)
            + match_checks(networks, facts.set_size, facts.cueing == "index" and fit["model"] in ("probe", "both"))
            + network_checks(networks)
        )
        sentences = discovery_sentences(fit, networks, facts)
        match = self.matches[0]
        summary = {
            "seconds": round(sum(self.done.values()), 1),
            "model": fit["model"],
            "swap_curve_mad_fit": match.swap_curve_mad_fit,
            "matched": all(one.matched for one in self.matches),
            "where": match.where,
            "sentences": sentences,
            "checks": checks,
            "mechanism": [network.mechanism.verdicts for network in networks],
            "start": facts.start,
            "cueing": facts.cueing,
            "truth": facts.truth,
            "settings": self.settings,
            "stages": self.done,
        }
        write_json(self.path / "discovery.json", summary)
        content = DiscoveryContent(
            self.fit,
            networks,
            facts,
            sentences,
            checks,
            self.settings,
            self._folder.json("notes.json", list),
            self.done,
            observer_f if self.settings["example"] else None,
        )
        path = self.report if output is None else output
        write_text(path, discovery_page(content))
        self.__dict__.pop("facts", None)  # read anew
        return path

    def _facts(self) -> Facts:
        plan, settings = self.plan, self.settings
        return Facts(
            set_size=settings["set_size"],
            cueing=plan["cueing"],
            start=" and ".join(dict.fromkeys(one["start"] for one in plan["networks"] if one["start"])) or None,
            start_distance=plan["networks"][0]["start_distance"] or 0.0,
            shipped=settings["start_from"] is None,
            uniform_fit=plan["uniform_fit"],
            uniform_target=plan["uniform_target"],
            truth=_truth(self.fit) if settings["example"] else None,
        )


# Version 0.1 averaged over the whole of delay 2 and took the third principal component for the axis of swaps; these
# parts are not read any more.
_REPLACED = {"rings", "decoders"}
# Names that development versions of 0.2 used.
_RENAMED, _DROPPED = {"kind": "error_type"}, ("points", "stable")


def _mechanism(plain: dict) -> Mechanism:
    """A mechanism as this version or an earlier one wrote it; what an earlier one did not ask is left out, and says
    so."""
    if not _REPLACED & set(plain):
        kept = {_RENAMED.get(name, name): part for name, part in plain.items()}
        for name in _DROPPED:
            (kept.get("dynamics") or {}).pop(name, None)
        return Mechanism.from_stored(kept)
    kept = {name: part for name, part in plain.items() if name not in _REPLACED}
    left_out = dict.fromkeys(by_default(), EARLIER_VERSION)
    for name in ("alignment", "prediction"):
        if set(kept.get(name) or ()) == {"reason"}:
            left_out[name] = kept.pop(name)["reason"]
    return Mechanism.from_stored(kept | {"left_out": left_out})


def _truth(fit: Fit) -> Truth:
    """How often the band covers the synthetic observer's true swap probability, and how far the mean is from it."""
    if fit.name not in ("probe", "constant"):
        return Truth(0.0, float("nan"))
    distances = np.radians(np.arange(45, 181, 5))
    table = fit.swap_function(distances)
    true = 1 / (1 + np.exp(-observer_f(distances)))
    covered = (true >= table["p_low"]) & (true <= table["p_high"])
    return Truth(float(covered.mean()), float(np.abs(true - table["p_swap"]).mean()))
