"""What a discovery found: its parts, and the outcome as plain numbers and sentences."""

from functools import cached_property
from pathlib import Path

import numpy as np

from lapsus.discovery.folder import STAGES, Folder
from lapsus.errors import LapsusError
from lapsus.files import read_arrays, subfolder, understood

__all__ = ["Discovery", "facts_of", "summary"]


class Discovery:
    """What `discover` found; its parts are read from its folder when they are first asked for.

    trials      the Trials that were used
    fit         the Fit, with its model comparison
    fitted      the behaviour (BNS) that the fit describes for two items
    runs        the Run of each network, models their trained Models
    matches     comparison of each network with the fit and the data (matching.py)
    mechanisms  numbers of the analyses of each network (mechanism.py)
    sentences   what was found, in five sentences
    checks      what was checked, failures first
    facts       discovery.json
    report      path of report.html
    """

    def __init__(self, path: str | Path):
        self.path = Path(path)
        table = Folder.read(self.path)
        if table is None:
            raise LapsusError(
                f"{self.path} is not the folder of a discovery; `lapsus discover TRIALS -o {self.path.name}` makes one."
            )
        self._folder = Folder(self.path, table)

    def __repr__(self):
        state = "done" if "report" in self.done else f"{len(self.done)} of {len(STAGES)} stages done"
        return f"Discovery({self.path}, {state})"

    @property
    def done(self) -> dict[str, float]:
        return self._folder.done

    @property
    def settings(self) -> dict:
        return self._folder.settings

    def _part(self, name: str, stage: str):
        if stage not in self.done:
            raise LapsusError(
                f"{self.path}: the stage “{STAGES[stage]}” is not done yet; the same `lapsus discover` goes on with it."
            )
        return self._folder.json(name)

    @cached_property
    def fit(self):
        from lapsus.inference import Fit

        self._part("fit/summary.json", "fit")
        return Fit.load(self._folder.check("fit/fit.nc"))

    @property
    def trials(self):
        return self.fit.trials

    @cached_property
    def plan(self) -> dict:
        return self._part("target.json", "target")

    @cached_property
    def fitted(self):
        from lapsus.discovery.target import fitted_behaviour

        return fitted_behaviour(self.fit, self.settings["set_size"], self.plan["cueing"])

    @cached_property
    def runs(self) -> list:
        from lapsus.library import Run

        with understood(self.path / "target.json"):
            names = [str(name) for name in self.plan["networks"]]
            if not names or any(Path(name).name != name for name in names):
                raise ValueError("networks are not names")
        return [Run(subfolder(self.path, "networks", name)) for name in names]

    @cached_property
    def models(self) -> list:
        return [run.model() for run in self.runs]

    @cached_property
    def evaluations(self) -> list[dict]:
        return self._part("evaluation.json", "evaluate")["evaluations"]

    @cached_property
    def matches(self) -> list[dict]:
        return self._part("evaluation.json", "evaluate")["matches"]

    @cached_property
    def mechanisms(self) -> list[dict]:
        return self._part("analysis.json", "analyse")["mechanisms"]

    def arrays(self, network: int = 0) -> dict[str, np.ndarray]:
        """Arrays behind the mechanism's figures."""
        return read_arrays(self._folder.check(f"analysis/network-{network + 1}.npz"))

    @cached_property
    def facts(self) -> dict:
        return self._part("discovery.json", "report")

    @property
    def sentences(self) -> list[str]:
        return self.facts["sentences"]

    @property
    def checks(self) -> list[dict]:
        return self.facts["checks"]

    @property
    def matched(self) -> bool:
        return self.facts["matched"]

    @property
    def report(self) -> Path:
        return self.path / "report.html"

    def networks(self) -> list[dict]:
        """Evaluation, comparison and mechanism of each network, as plain numbers."""
        found = []
        for run, evaluation, match, mechanism in zip(self.runs, self.evaluations, self.matches, self.mechanisms):
            seconds = (run.metrics() or [{"seconds": 0.0}])[-1]["seconds"]
            found.append(
                {
                    "name": run.experiment.name,
                    "seed": run.experiment.seed,
                    "update": run.update,
                    "updates": run.experiment.updates,
                    "seconds": seconds,
                    "evaluation": evaluation,
                    "match": match,
                    "mechanism": mechanism,
                }
            )
        return found


def summary(discovery: Discovery) -> dict:
    """discovery.json: the outcome as plain numbers and sentences."""
    from lapsus.report.words import checks, five_sentences

    fit = discovery._part("fit/summary.json", "fit")
    networks, plan = discovery.networks(), discovery.plan
    match = networks[0]["match"]
    facts = facts_of(discovery, networks)
    seconds = sum(discovery.done.values())
    return {
        "seconds": round(seconds, 1),
        "model": fit["model"],
        "swap_curve_mad_fit": match["swap_curve_mad_fit"],
        "matched": all(n["match"]["matched"] for n in networks),
        "where": match["where"],
        "sentences": five_sentences(fit, networks, facts),
        "checks": checks(fit, networks, facts),
        "mechanism": [n["mechanism"]["decoders"].get("mechanism") for n in networks],
        "start": plan["start"],
        "cueing": plan["cueing"],
        "truth": facts["truth"],
        "settings": discovery.settings,
        "stages": discovery.done,
    }


def facts_of(discovery: Discovery, networks: list[dict]) -> dict:
    """What words and figures need besides the fit and the networks."""
    plan, settings = discovery.plan, discovery.settings
    return {
        "set_size": settings["set_size"],
        "cueing": plan["cueing"],
        "start": plan["start"],
        "start_distance": plan["start_distance"] or 0.0,
        "networks": len(networks),
        "train_seconds": sum(n["seconds"] for n in networks) / len(networks),
        "shipped": settings["start_from"] is None,
        "architecture": _architecture(discovery.models[0].network),
        "uniform_fit": plan["uniform_fit"],
        "uniform_target": plan["uniform_target"],
        "truth": _truth(discovery) if settings["example"] else None,
    }


def _architecture(network) -> str:
    branching = " × ".join(map(str, getattr(network, "branching", ())))
    return f"{network.units} units" + (f", each with a dendritic tree of {branching} branches" if branching else "")


def _truth(discovery: Discovery) -> dict | None:
    """How often the band covers the synthetic observer's true swap probability, and how far the mean is from it."""
    from lapsus.trials.observer import observer_f

    if discovery.fit.name not in ("probe", "constant"):
        return {"covered": 0.0, "mad": float("nan")}
    distances = np.radians(np.arange(45, 181, 5))
    table = discovery.fit.swap_function(distances)
    true = 1 / (1 + np.exp(-observer_f(distances)))
    covered = (true >= table["p_low"]) & (true <= table["p_high"])
    return {"covered": float(covered.mean()), "mad": float(np.abs(true - table["p_swap"]).mean())}
