"""One self-contained page: everything it shows is inside it, and everything from outside is escaped."""

import base64
import json
from pathlib import Path

import numpy as np

from lapsus import __version__
from lapsus.circular import distance
from lapsus.errors import LapsusError
from lapsus.files import read_bytes, understood, write_json, write_text
from lapsus.plots import panels as plots

__all__ = ["discovery_page", "runs_page"]

_LONGEST = 120
_SECTIONS = {
    "found": "What was found",
    "data": "The data",
    "fit": "The behaviour fit",
    "match": "Network against data",
    "mechanism": "The mechanism",
    "sure": "How sure we are",
    "methods": "Methods",
    "made": "How this was made",
}


def shortened(text, longest: int = _LONGEST) -> str:
    """Names from files and tables at a length that a page can show; control characters become visible."""
    text = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in str(text))
    return text if len(text) <= longest else text[: longest - 1] + "…"


def render(context: dict) -> str:
    """The page. Autoescape is on: only our own style, script and already escaped data are marked safe."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    here = Path(__file__).parent
    environment = Environment(
        loader=FileSystemLoader(here), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    own = {"css": Markup((here / "page.css").read_text()), "script": Markup((here / "page.js").read_text())}
    return environment.get_template("page.html").render(context | own)


def _script_json(value) -> "object":
    """JSON that cannot end the script element it stands in."""
    from markupsafe import Markup

    return Markup(json.dumps(value).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def _table(label: str, head: list[str], body: list[list]) -> dict:
    return {"label": label, "head": head, "body": body}


def _number(value, form: str = ".3f") -> str:
    if value is None or not np.isfinite(value):
        return "–"
    text = format(value, form)
    return text.removeprefix("-") if float(text) == 0 else text


# --- Parts that every network has ---


def _network_part(number: int, name: str, mechanism: dict, arrays: dict, run, pictures: list, config: str) -> dict:
    """Pictures, words and the turning figure of one network."""
    from lapsus.report.words import _decoded, _geometry

    shown = {
        "short": f"network {number}",
        "label": f"network {number}: {name}",
        "rings": None,
        "config": config,
        "match_pictures": pictures,
    }
    made = []
    if "reason" not in mechanism["alignment"]:
        made.append(plots.alignment(mechanism["alignment"], arrays))
    if "reason" not in mechanism["rings"]:
        made.append(plots.rings_flat(mechanism["rings"], arrays))
        shown |= _turning(mechanism, arrays)
    if "reason" not in mechanism["decoders"]:
        made.append(plots.decoders(mechanism["decoders"], arrays))
    learned = plots.learning(run.metrics())
    sentences = [_decoded(mechanism), _geometry(mechanism), _predicted(mechanism["prediction"])]
    return shown | {"pictures": made, "sentences": sentences, "training_pictures": [learned] if learned else []}


def _predicted(part: dict) -> str:
    if "reason" in part:
        return (
            "Whether single trials with better aligned colours are swapped more often cannot be said:"
            f" {part['reason']}."
        )
    return (
        "Single trials: one s.d. more alignment of the two colours before the cue multiplies the odds of a swap by"
        f" {part['odds_ratio']:.2f} [{part['low']:.2f}, {part['high']:.2f}] (permutation p = {part['p']:.3f};"
        f" {part['swaps']:,} swaps in {part['trials']:,} trials)."
    )


def _turning(mechanism: dict, arrays: dict) -> dict:
    from matplotlib.colors import to_hex

    from lapsus.plots.style import wheel

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
        "rings": _script_json(data),
        "shown": len(path),
        "steps": path.shape[1],
        "last_time": f"step {time[-1]}, {epoch[-1]}",
        "apart": f"{np.degrees(mechanism['probe_distance']):.0f}°",
    }


def _mechanism_table(rows: list[tuple[str, dict]]) -> dict:
    """One row a network: the numbers of the mechanism."""
    body = []
    for name, m in rows:
        errors = {row["error"]: row["difference"] for row in m["decoders"].get("attribution", [])}
        body.append(
            [
                name,
                m["decoders"].get("mechanism", "–"),
                *(_number(errors.get(e), ".2f") for e in ("misbinding", "misselection", "misinterpretation")),
                _number(m["alignment"].get("mean_before"), ".2f"),
                _number(m["alignment"].get("mean_after"), ".2f"),
                _number(m["rings"].get("distance"), ".2f"),
            ]
        )
    head = [
        "network",
        "swaps are",
        "misbinding",
        "misselection",
        "misinterpretation",
        "alignment before",
        "after",
        "rings apart (s.d.)",
    ]
    return _table(
        "The mechanism in numbers (swap minus correct trials on the line to each error; |cos| of the colour planes)",
        head,
        body,
    )


def _versions(experiment) -> list[list[str]]:
    import platform
    from importlib.metadata import PackageNotFoundError, version

    rows = [["lapsus", __version__]]
    for name in ("torch", "numpy", "scipy", "matplotlib"):
        try:
            rows.append([name, version(name)])
        except PackageNotFoundError:
            continue
    return [
        *rows,
        ["Python", platform.python_version()],
        ["machine", f"{platform.machine()}, {platform.system()}"],
        ["seed", str(experiment.seed)],
    ]


def _sure(checks: list[dict]) -> str:
    failed, unknown = (sum(c["status"] == s for c in checks) for s in ("failed", "not checked"))
    if failed:
        return f"{failed} of {len(checks)} checks failed; they come first. {unknown} could not be made."
    return f"None of {len(checks)} checks failed; {unknown} could not be made."


def _finish(page: str, path: Path) -> Path:
    write_text(path, page)
    return path


# --- A discovery ---


def discovery_page(discovery) -> Path:
    """Write report.html of a discovery; returns its path."""
    from lapsus.discovery.result import facts_of
    from lapsus.report.words import REFERENCES, methods
    from lapsus.trials.observer import observer_f

    fit, trials, networks = discovery.fit, discovery.trials, discovery.networks()
    facts, outcome, settings = facts_of(discovery, networks), discovery.facts, discovery.settings
    summary = fit.to_dict()
    parts = []
    for number, (run, model, network) in enumerate(zip(discovery.runs, discovery.models, networks), 1):
        match = network["match"]
        far = np.pi if match["feature"] == "report" else float(np.nanmax(match["distance"]))
        pictures = [plots.match(match), plots.clouds(model, network["mechanism"]["probe_distance"], far)]
        parts.append(
            _network_part(
                number, network["name"], network["mechanism"], discovery.arrays(number - 1), run, pictures, _config(run)
            )
        )
    source = shortened(settings["source"])
    stages = [[stage, f"{seconds:.1f} s"] for stage, seconds in outcome["stages"].items()]
    used = [["total", f"{sum(outcome['stages'].values()):.0f} s"], *([f"stage: {name}", text] for name, text in stages)]
    page = render(
        {
            "title": f"lapsus discovery: {source}",
            "subtitle": _about(trials, settings, facts),
            "sections": list(_SECTIONS.items()),
            "sentences": outcome["sentences"],
            "verdict": _verdict(networks),
            "data": _data(trials, summary, discovery._folder.json("notes.json")),
            "fit": {
                "picture": plots.behaviour_fit(fit, observer_f if settings["example"] else None),
                "comparison": _comparison(summary),
                "summary": summary["summary"],
            },
            "networks": parts,
            "match_table": _match_table(networks),
            "mechanism_table": _mechanism_table([(f"network {k}", n["mechanism"]) for k, n in enumerate(networks, 1)]),
            "overview": None,
            "checks": outcome["checks"],
            "sure": _sure(outcome["checks"]),
            "methods": methods(summary, facts, __version__),
            "references": REFERENCES,
            "run_table": _table(
                "Time, versions and seeds", ["what", "value"], used + _versions(discovery.runs[0].experiment)
            ),
            "settings": json.dumps(
                {k: shortened(v) if isinstance(v, str) else v for k, v in settings.items()},
                indent=1,
                ensure_ascii=False,
            ),
            "version": __version__,
        }
    )
    return _finish(page, discovery.report)


def _config(run) -> str:
    """The run's configuration, with long tables and local paths cut short."""
    from lapsus.training.experiment import to_toml

    table = run.experiment.model_dump(exclude_none=True)
    if table.get("start_from"):
        table["start_from"] = Path(table["start_from"]).name
    return "\n".join(line if len(line) <= 160 else line[:150] + " … ]" for line in to_toml(table).splitlines())


def _about(trials, settings, facts) -> str:
    subjects = list(dict.fromkeys(map(str, trials.subject)))
    who = f"subject {shortened(subjects[0], 60)}" if len(subjects) == 1 else f"{len(subjects)} subjects"
    network = f"{facts['cueing']}-cued network" + ("s" if facts["networks"] > 1 else "")
    return (
        f"{len(trials):,} trials, {who}, {settings['set_size']} items; {facts['networks']} {network}; budget"
        f" {settings['minutes']:g} min."
    )


def _data(trials, summary: dict, notes: list[str]) -> dict:
    subjects, counts = np.unique(trials.subject.astype(str), return_counts=True)
    text = (
        f"{len(trials):,} trials of {len(subjects)} subject{'s' * (len(subjects) != 1)} with {trials.report.shape[1]}"
        " items"
    )
    text += f"; angles were given in {trials.unit} and are radians inside." if trials.unit != "radians" else "."
    if trials.probe is None:
        text += " The table has no probe feature, so swaps could not be related to it."
    notes = [*notes, _power(trials, summary)]
    rows = None
    if len(subjects) > 1:
        body = [
            [
                shortened(s, 60),
                f"{n:,}",
                _number(np.degrees(np.median(np.abs(trials.error[trials.subject == s]))), ".1f"),
            ]
            for s, n in zip(subjects[:40], counts)
        ]
        rows = _table("Subjects", ["subject", "trials", "median error (°)"], body)
    return {"text": text, "notes": notes, "picture": plots.data_overview(trials), "subjects": rows}


def _power(trials, summary: dict) -> str:
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


def _comparison(summary: dict) -> dict | None:
    if not summary["comparison"]:
        return None
    body = [
        [
            row["model"] + (" (chosen)" if row["model"] == summary["model"] else ""),
            _number(row["elpd"], ".1f"),
            "best" if row["elpd_difference"] == 0 else f"{-row['elpd_difference']:.1f} ± {row['difference_se']:.1f}",
            row["pareto_k_above_0.7"],
        ]
        for row in summary["comparison"]
    ]
    return _table(
        "Behaviour models by leave-one-out predictive density",
        ["model", "elpd", "below the best (nats ± s.e.)", "Pareto k > 0.7"],
        body,
    )


def _match_table(networks: list[dict]) -> dict:
    first = networks[0]["match"]
    several = len(networks) > 1
    head = [
        "distance",
        *(["data"] if "data" in first else []),
        "fitted model",
        *([f"network {k}" for k in range(1, len(networks) + 1)] if several else ["network"]),
        *(["predictive interval"] if "data" in first and not several else []),
    ]
    body = []
    for k, gap in enumerate(first["distance"]):
        row = [
            f"{np.degrees(gap):.0f}°",
            *([_number(first["data"][k])] if "data" in first else []),
            _number(first["fit"][k]),
            *(_number(n["match"]["network"][k]) for n in networks),
        ]
        if "data" in first and not several:
            band = first["predictive_network"]
            row.append(f"{band['low'][k]:.3f} to {band['high'][k]:.3f}" + (" ✗" if band["outside"][k] else ""))
        body.append(row)
    for key, label, scale in (
        ("scatter", "scatter around the item (°)", 180 / np.pi),
        ("stray", "far from every item (%)", 100),
    ):
        row = [
            label,
            *([_number(scale * first[key]["data"], ".1f")] if "data" in first else []),
            _number(scale * first[key]["fit"], ".1f"),
            *(_number(scale * n["match"][key]["network"], ".1f") for n in networks),
        ]
        body.append(row + [""] * (len(head) - len(row)))
    return _table(
        f"Share of responses nearest to the non-target, by {first['feature']} distance, on {first['scope']}", head, body
    )


def _verdict(networks: list[dict]) -> dict:
    match = networks[0]["match"]
    against = (
        "the fitted model and to the data"
        if "data" in match
        else "the fitted model; the trials themselves have more items than the network can be shown"
    )
    problems = [
        f"network {k}: {p}" if len(networks) > 1 else p for k, n in enumerate(networks, 1) for p in n["match"]["where"]
    ]
    if not problems:
        return {"matched": True, "text": f"The network's responses are matched to {against}."}
    return {"matched": False, "text": "Where: " + "; ".join(problems) + "."}


# --- Any runs ---


def runs_page(sources: list[str], output: Path | None = None, seed: int = 1, trust: bool = False) -> Path:
    """A report of trained networks (run folders or shipped networks), several side by side; one discovery gets its own
    report again."""
    from lapsus.discovery import Discovery
    from lapsus.discovery.folder import Folder

    if seed < 0:
        raise LapsusError(f"--seed must not be negative (it is {seed}).")
    if not sources:
        raise LapsusError("report needs at least one run folder.")
    if len(sources) == 1 and Folder.read(Path(sources[0])) is not None:
        discovery = Discovery(sources[0])
        if "analyse" not in discovery.done:
            raise LapsusError(
                f"{shortened(sources[0])} is a discovery that is not done; `lapsus discover` with the same arguments"
                " goes on with it."
            )
        from lapsus.discovery.result import summary

        with understood(discovery.path):
            write_json(discovery.path / "discovery.json", summary(discovery))
            discovery.facts = discovery._folder.json("discovery.json")
            return discovery_page(discovery)
    path = (
        output
        if output is not None
        else (
            Path(sources[0]) / "report.html" if len(sources) == 1 and Path(sources[0]).is_dir() else Path("report.html")
        )
    )
    if path.is_dir():
        raise LapsusError(f"{path} is a folder; -o names the HTML file to write.")
    if path.exists() and b"Made by lapsus" not in read_bytes(path):
        raise LapsusError(f"{path} is there already and is not a report of ours; -o names another file.")
    return _finish(_runs(sources, seed, trust), path)


class _Shipped:
    """A network that ships with lapsus, with what a page needs of a run."""

    def __init__(self, name: str):
        from lapsus.library.shipped import load_shipped, shipped
        from lapsus.training.experiment import read_experiment

        self._model, facts = load_shipped(name), shipped()[name]
        self.experiment, self._curve = read_experiment(facts["config"]), facts["learning_curve"]
        self.update = self.experiment.updates

    def model(self):
        return self._model

    def metrics(self) -> list[dict]:
        return self._curve


def _open(source: str, trust: bool):
    from lapsus.library import Run

    return Run(source, trust) if Path(source).is_dir() else _Shipped(str(source))


def _runs(sources: list[str], seed: int, trust: bool) -> str:
    from lapsus.report.words import REFERENCES, network_checks
    from lapsus.study import evaluate
    from lapsus.study.mechanism import analyse

    rows, parts, sentences = [], [], []
    for number, source in enumerate(sources, 1):
        run = _open(source, trust)
        model, name = run.model(), shortened(Path(source).name or source, 60)
        if not hasattr(model.behaviour, "weights"):
            raise LapsusError(f"{shortened(source)} is no delayed-estimation network; the report is made for those.")
        evaluation = evaluate(model, 1024, 8, seed=seed)
        curve = evaluation["swap_curve"]
        apart = max(curve, key=lambda p: p["target"])["distance"] if curve else np.pi / 4
        mechanism, arrays = analyse(model, max(apart, np.pi / 12), seed)
        pictures = ([plots.swap_target(evaluation)] if curve else []) + [
            plots.clouds(model, mechanism["probe_distance"], np.pi)
        ]
        rows.append(
            {
                "name": name,
                "short": f"network {number}",
                "update": run.update,
                "updates": run.experiment.updates,
                "evaluation": evaluation,
                "mechanism": mechanism,
                "seconds": (run.metrics() or [{"seconds": 0.0}])[-1].get("seconds", 0.0),
                "experiment": run.experiment,
            }
        )
        parts.append(_network_part(number, name, mechanism, arrays, run, pictures, _config(run)))
        verdict = mechanism["decoders"].get("mechanism")
        sentences.append(
            f"{name}: excess {_number(evaluation.get('excess'))} over the exact denoiser, swap curve within"
            f" {evaluation['swap_curve_mad']:.3f} of its target on average, median error"
            f" {evaluation['median_error']:.3f} rad; "
            + (
                f"its swaps are decoded as {verdict}."
                if verdict
                else f"its swaps cannot be decoded ({mechanism['decoders']['reason']})."
            )
        )
    order = {"failed": 0, "not checked": 1, "passed": 2}
    checks = sorted(network_checks(rows), key=lambda c: order[c["status"]])
    head = ["measure", *(r["short"] for r in rows)]
    measures = (
        ("excess over the Bayes denoiser", "excess"),
        ("swap curve, mean deviation", "swap_curve_mad"),
        ("swap curve, largest deviation", "swap_curve_max"),
        ("median error (rad)", "median_error"),
        ("far from every item", "away"),
    )
    body = [[label, *(_number(r["evaluation"].get(key)) for r in rows)] for label, key in measures]
    body.append(["updates", *(f"{r['update']:,} of {r['updates']:,}" for r in rows)])
    names = ", ".join(r["name"] for r in rows)
    training = [[f"{r['short']}: training", f"{r['seconds'] / 60:.1f} min, seed {r['experiment'].seed}"] for r in rows]
    return render(
        {
            "title": f"lapsus report: {shortened(names)}",
            "subtitle": (
                f"{len(rows)} trained network{'s' * (len(rows) != 1)}, {evaluation['conditions']:,} fresh conditions ×"
                f" {evaluation['trials']} trials each."
            ),
            "sections": [
                (k, "Network against target" if k == "match" else v)
                for k, v in _SECTIONS.items()
                if k not in ("data", "fit")
            ],
            "sentences": sentences,
            "verdict": None,
            "data": None,
            "fit": None,
            "networks": parts,
            "match_table": _table("Against the target, on fresh conditions", head, body),
            "mechanism_table": _mechanism_table([(r["short"], r["mechanism"]) for r in rows]),
            "overview": plots.comparison(rows) if len(rows) > 1 else None,
            "checks": checks,
            "sure": _sure(checks),
            "methods": _methods(rows),
            "references": REFERENCES,
            "run_table": _table(
                "Time, versions and seeds", ["what", "value"], training + _versions(rows[0]["experiment"])
            ),
            "settings": None,
            "version": __version__,
        }
    )


def _methods(rows: list[dict]) -> str:
    return (
        f"{len(rows)} recurrent network{'s' * (len(rows) != 1)} with dendritic trees"
        f" {'were' if len(rows) > 1 else 'was'} trained with lapsus {__version__} to answer a delayed-estimation task"
        " by denoising diffusion through their own dynamics (Ho et al. 2020), with targets from the Bayesian"
        " non-parametric swap model (Radmard et al. 2025). Swap curves were measured on fresh conditions by the item"
        " nearest to the response. Mechanism: alignment of the two items' colour planes over time (Panichello &"
        " Buschman 2021), principal components of memory activity at the response, and cross-validated projections of"
        " single trials onto the lines to three kinds of error (Alleman et al. 2024)."
    )
