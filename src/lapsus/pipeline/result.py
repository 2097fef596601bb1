"""A discovery is a folder: which stages are done, what they found, and the outcome as plain numbers and sentences.

Every stage writes its own files and is entered in stages.json last, with the hashes of the files that later stages
read. So a stage either is done or is done again, and nothing that is done is repeated.
"""

import hashlib
import html
import json
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from lapsus import __version__
from lapsus.behaviour import BNS
from lapsus.errors import LapsusError
from lapsus.evaluation.manipulations import separate
from lapsus.evaluation.match import Match
from lapsus.evaluation.predictive_density import DensityDifference
from lapsus.files import (
    Damaged,
    check_format,
    check_place,
    clean_up,
    from_plain,
    holds,
    inside,
    make_folder,
    read_arrays,
    read_bytes,
    read_json,
    remove,
    set_aside,
    short,
    understood,
    write_json,
    write_text,
)
from lapsus.fitting import Fit
from lapsus.fitting.network_target import fitted_behaviour
from lapsus.mechanism.registry import Mechanism
from lapsus.report import DiscoveryContent, discovery_page
from lapsus.report.check_list import Truth, fit_checks, in_order, match_checks, network_checks
from lapsus.report.determined import determined, network_rows
from lapsus.report.findings import NetworkFindings, RecordingFindings, seconds_trained
from lapsus.report.words import ReportContext, discovery_sentences
from lapsus.training import Model
from lapsus.trials import Trials
from lapsus.trials.observer import observer_f
from lapsus.zoo import Run

__all__ = ["STAGES", "Discovery", "fingerprint"]

FORMAT = 1
# name → what the user reads while it runs.
STAGES = {
    "trials": "reading the trials",
    "fit": "fitting and comparing behaviour models",
    "target": "choosing the target and where to start",
    "train": "training",
    "evaluate": "comparing the network with the fit and the data",
    "analyse": "looking for the mechanism",
    "report": "writing the report",
}
# First part of a file's name → stages to do again where it is lost. What was trained is not trained again for it.
_FROM_FIT = ["fit", "target", "evaluate", "analyse", "report"]
_STAGES_OF = {
    "notes.json": ["trials", "report"],
    "fit": _FROM_FIT,
    "target.json": _FROM_FIT[1:],
    "evaluation.json": _FROM_FIT[2:],
    "analysis.json": _FROM_FIT[3:],
    "analysis": _FROM_FIT[3:],
}
_SETTINGS = {"source", "example", "set_size", "cueing", "minutes", "objectives", "networks", "start_from", "seed"}


def fingerprint(trials: Trials, settings: dict) -> str:
    """Of the trials that are used and all settings: the same in a resumed discovery."""
    digest = hashlib.blake2b(digest_size=12)
    for values in (trials.response, trials.report, trials.probe):
        digest.update(b"none" if values is None else np.ascontiguousarray(values).tobytes())
    digest.update("\0".join(map(str, trials.subject)).encode("utf-8", "replace"))
    digest.update(json.dumps(settings, sort_keys=True, default=str).encode())
    return digest.hexdigest()


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
        file = self.path / "stages.json"
        if not file.is_file():
            raise LapsusError(f"{self.path} is not the folder of a discovery; `lapsus discover` makes one.")
        try:
            self._table = read_json(file)
            check_format(self._table.get("format"), FORMAT, file)
            with understood(file):
                assert isinstance(self._table["identity"], str) and set(self._table["settings"]) >= _SETTINGS
                assert all(type(seconds) in (int, float) for seconds in self._table["done"].values())
                assert all(isinstance(value, str) for value in self._table["files"].values())
        except Damaged as error:
            raise Damaged(
                f"{error} `lapsus discover` begins anew in another folder; networks that it trained are in"
                f" {short(self.path)}/networks."
            ) from error

    @classmethod
    def open(cls, path: str | Path, identity: str, settings: dict, trust: bool = False) -> "Discovery":
        """The discovery of these trials and settings (`identity`) in a folder, made if it is not there; one of others
        is an error."""
        path = Path(path)
        if check_place(path, "discovery"):
            found = cls(path, trust)
            if found._table["identity"] != identity:
                changed = [k for k, v in settings.items() if str(found.settings.get(k)) != str(v)]
                what = f"other settings ({', '.join(changed)})" if changed else "other trials"
                raise LapsusError(f"{short(path)} holds a discovery with {what}; name another folder.")
            clean_up(path)
            return found
        clean_up(make_folder(path))
        table = {"format": FORMAT, "lapsus": __version__, "identity": identity, "settings": settings}
        write_json(path / "stages.json", table | {"done": {}, "files": {}})
        return cls(path, trust)

    # --- Stages and their files ---

    def __truediv__(self, name: str) -> Path:
        return self.path / name

    @property
    def done(self) -> dict[str, float]:
        """Seconds that each stage took, of those that are done."""
        return self._table["done"]

    @property
    def settings(self) -> dict:
        """What it was asked for: source, set size, cueing, minutes, networks, start, seed."""
        return self._table["settings"]

    def _write(self) -> None:
        write_json(self.path / "stages.json", self._table)

    def finish(self, stage: str, seconds: float, names: Iterable[str] = ()) -> None:
        """Enter a stage as done, with the hashes of the files that later stages read."""
        self._table["files"] |= {name: self._hash(name) for name in names}
        self.done[stage] = round(seconds, 2)
        self._write()

    def _hash(self, name: str) -> str:
        return hashlib.sha256(read_bytes(self.path / name)).hexdigest()

    def check(self, name: str) -> Path:
        """The path of a file of a stage that is done, after a look at its hash."""
        known = self._table["files"].get(name)
        if known is not None and self._hash(name) != known:
            raise Damaged(f"{short(self.path / name)} is damaged: its contents do not match its hash.")
        return self.path / name

    def json(self, name: str, kind: type = dict) -> Any:
        """A JSON file of the folder."""
        return read_json(self.check(name), kind)

    def _part(self, name: str, stage: str) -> Any:
        if stage not in self.done:
            raise LapsusError(
                f"{self.path}: the stage “{STAGES[stage]}” is not done yet; the same `lapsus discover` continues."
            )
        return self.json(name)

    def repair(self) -> list[str]:
        """Stages to be done again because a file of theirs is gone or damaged, and those that read it; entered as not
        done. A damaged file is set aside."""
        again: list[str] = []
        for name in list(self._table["files"]):
            try:
                self.check(name)
            except LapsusError:
                again += _STAGES_OF.get(name.split("/")[0], list(STAGES))
                del self._table["files"][name]
                if (self.path / name).is_file():
                    set_aside(self.path / name)
        return self.undo([stage for stage in STAGES if stage in again])

    def undo(self, stages: Iterable[str]) -> list[str]:
        """Enter stages as not done, on disk too; returns those that were."""
        again = [stage for stage in stages if stage in self.done]
        for stage in again:
            del self.done[stage]
        if again:
            self._write()
        return again

    def repair_networks(self) -> list[Path]:
        """Folders of networks whose last weights are lost, made ready to be trained again, with all stages after it to
        be done again."""
        found, order = [], list(STAGES)
        for place in self.places if "target" in self.done else ():
            there = holds(place, "run")
            begun = "train" in self.done or not there or any(place.glob("checkpoint-*"))
            if not (begun and self._lost(place)):
                continue
            found.append(place)
            # First the stages: killed in between, the next call finds the network as it is now.
            self.undo(order[order.index("train" if there else "target") :])
            remove(place.with_name(f"{place.name}.json"))  # what was seen of it
            if there:
                Run(place, self.trust).begin_again()
            elif place.exists():
                set_aside(place)
        return found

    def _lost(self, place: Path) -> bool:
        """Whether a network's folder, or every checkpoint in it, is damaged or gone; after training also its last."""
        if not holds(place, "run"):
            return True
        run = Run(place, self.trust)
        return run.lost or ("train" in self.done and run.behind)

    # --- What they found ---

    def __repr__(self) -> str:
        state = "done" if "report" in self.done else f"{len(self.done)} of {len(STAGES)} stages done"
        return f"Discovery({self.path}, {state})"

    def _repr_html_(self) -> str:
        said = f"<p><b>{html.escape(repr(self))}</b></p>"
        if "report" not in self.done:
            return said
        found = "".join(f"<li>{html.escape(sentence)}</li>" for sentence in self.sentences)
        return f"{said}<ol>{found}</ol><p>The page: {html.escape(str(self.report))}</p>"

    @cached_property
    def fit(self) -> Fit:
        """The Fit, with its model comparison."""
        self._part("fit/summary.json", "fit")
        return Fit.load(self.check("fit/fit.nc"))

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
            if self._lost(place):
                raise LapsusError(
                    f"{short(place)}: the network is damaged or gone; the same `lapsus discover` trains it again."
                )
        return [Run(place, self.trust) for place in self.places]

    def round_checks(self, run: Run) -> list[dict]:
        """What was seen of a network after each round of its training."""
        name = f"networks/{run.path.name}.json"
        if not (self / name).is_file():
            return []
        with understood(self.path / name):
            return from_plain(list[dict], self.json(name)["checks"])

    def settled(self, run: Run) -> bool:
        """Whether a network was left early: it matched with a margin."""
        with understood(self.path / f"networks/{run.path.name}.json"):
            checks = self.round_checks(run)
            return bool(checks and checks[-1]["settled"])

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
            return [Mechanism.from_stored(one) for one in self._part("analysis.json", "analyse")["mechanisms"]]

    @cached_property
    def predictions(self) -> pd.DataFrame:
        """Swap rates that networks of both objectives predict for manipulations (lapsus.predict); empty where not both
        are matched."""
        with understood(self.path / "analysis.json"):
            return pd.DataFrame(from_plain(list[dict], self._part("analysis.json", "analyse")["predictions"]))

    @cached_property
    def recording_needs(self) -> pd.DataFrame:
        """When a recording of each matched network would show the coming swap, and how many swaps that takes
        (lapsus.mechanism.recording_needs); empty where `predictions` is."""
        with understood(self.path / "analysis.json"):
            return pd.DataFrame(
                from_plain(list[dict], self._part("analysis.json", "analyse").get("recording_needs", []))
            )

    @cached_property
    def density(self) -> DensityDifference | None:
        """Which objective predicts the trials better over the durations that the table has, where it has such a
        column and networks of both objectives are matched."""
        with understood(self.path / "analysis.json"):
            return from_plain(DensityDifference | None, self._part("analysis.json", "analyse").get("density"))

    @property
    def recording(self) -> RecordingFindings | None:
        """What a recording that was given says about the matched networks."""
        if not (self / "recording.json").is_file():
            return None
        with understood(self.path / "recording.json"):
            return from_plain(RecordingFindings, self.json("recording.json")["found"])

    def arrays(self, network: int = 0) -> dict[str, np.ndarray]:
        """Arrays behind the mechanism's figures."""
        return read_arrays(self.check(f"analysis/network-{network + 1}.npz"))

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
        separations = separate(self.predictions) if len(self.predictions) else []
        together = determined(networks, separations, self.density, self.recording_needs)
        sentences = discovery_sentences(fit, networks, facts, together)
        recording = self.recording
        if recording is not None:
            sentences.append(recording.sentence)
        match = self.matches[0]
        summary = {
            "seconds": round(sum(self.done.values()), 1),
            "model": fit["model"],
            "swap_curve_mad_fit": match.swap_curve_mad_fit,
            "matched": all(one.matched for one in self.matches),
            "where": match.where,
            "sentences": sentences,
            "checks": checks,
            "networks": network_rows(networks),
            "agree": together.agree,
            "differ": together.differ,
            "density": self.density,
            "recording_needs": self.recording_needs.to_dict("records"),
            "recording": recording,
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
            together,
            sentences,
            checks,
            self.settings,
            self.json("notes.json", list),
            self.done,
            observer_f if self.settings["example"] else None,
            separations,
            self.recording_needs,
            recording,
        )
        path = self.report if output is None else output
        write_text(path, discovery_page(content))
        self.__dict__.pop("facts", None)  # read anew
        return path

    def _facts(self) -> ReportContext:
        plan, settings = self.plan, self.settings
        return ReportContext(
            set_size=settings["set_size"],
            cueing=plan["cueing"],
            start=" and ".join(dict.fromkeys(one["start"] for one in plan["networks"] if one["start"])) or None,
            start_distance=plan["networks"][0]["start_distance"] or 0.0,
            shipped=settings["start_from"] is None,
            left_out=tuple(plan.get("left_out", ())),
            truth=_truth(self.fit) if settings["example"] else None,
        )


def _truth(fit: Fit) -> Truth:
    """How often the band covers the synthetic observer's true swap probability, and how far the mean is from it."""
    if fit.name not in ("probe", "constant"):
        return Truth(0.0, float("nan"))
    distances = np.radians(np.arange(45, 181, 5))
    table = fit.swap_function(distances)
    true = 1 / (1 + np.exp(-observer_f(distances)))
    covered = (true >= table["p_low"]) & (true <= table["p_high"])
    return Truth(float(covered.mean()), float(np.abs(true - table["p_swap"]).mean()))
