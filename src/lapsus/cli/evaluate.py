"""lapsus evaluate."""

import json as json_module
import math
from typing import TYPE_CHECKING, Annotated

import typer

from lapsus.cli.train import Engine, Trust

if TYPE_CHECKING:
    from lapsus.protocols import Task

# An option that evaluate, simulate, analyse and reproduce share.
Delay = Annotated[
    str | None,
    typer.Option(
        "--delay",
        metavar="STEPS[,STEPS…]",
        help="Steps between stimulus and cue, or several such numbers.",
        show_default="that of the experiment",
    ),
]


def delays_of(text: str | None) -> list[int]:
    """Whole numbers from "20" or "5,10,20", each once; none from None."""
    from lapsus.errors import LapsusError

    parts = [] if text is None else [part.strip() for part in text.split(",")]
    if text is not None and not all(part.isdecimal() and len(part) < 10 for part in parts):
        shown = repr(text if len(text) <= 40 else text[:40] + "…")
        raise LapsusError(f"--delay takes a number of steps or several, as in 20 or 5,10,20; it got {shown}.")
    return list(dict.fromkeys(map(int, parts)))


def command(
    run: Annotated[str, typer.Argument(help="A run folder, or the name of a shipped network.")],
    conditions: Annotated[int, typer.Option(help="Fresh conditions to draw.")] = 4096,
    trials: Annotated[int, typer.Option(help="Trials a condition.")] = 16,
    seed: Annotated[int, typer.Option(help="Seed of the fresh conditions and noise.")] = 0,
    delay: Delay = None,
    engine: Engine = "auto",
    trust: Trust = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Measure how close a trained network comes to its target, on fresh conditions; with several delays, at each."""
    from lapsus.evaluation import evaluate
    from lapsus.evaluation.delays import evaluate_delays, norm_ratio
    from lapsus.evaluation.verdict import verdict
    from lapsus.zoo import open_network

    network = open_network(run, trust)
    model, delays = network.model(), delays_of(delay)
    # An earlier checkpoint stands in for one that is damaged.
    updates = network.experiment.updates
    early = _middles(model.task, delays) + (
        f"Measured at update {network.update:,} of {updates:,}.\n" if network.update < updates else ""
    )
    if len(delays) > 1:
        rows = evaluate_delays(model, tuple(delays), conditions, trials, seed, engine=engine)
        result = {"conditions": conditions, "trials": trials, "seed": seed, "delays": rows, "update": network.update}
        result["norm_ratio"] = norm_ratio(model, max(delays), seed=seed, engine=engine)
        typer.echo(json_module.dumps(result) if json else early + describe_delays(result))
        return
    model = model.at(delay=delays[0]) if delays else model
    result = evaluate(model, conditions, trials, seed, engine=engine)
    said = verdict(result, network.experiment.stage[-1].objective["kind"])
    if json:
        typer.echo(
            json_module.dumps(result | {"update": network.update, "verdict": said.kind, "verdict_sentence": str(said)})
        )
    else:
        typer.echo(f"{early}{describe(result)}\n{said}")


def _middles(task: "Task", delays: list[int]) -> str:
    """A line where the task's durations vary and one of them stands for all."""
    from lapsus.tasks.durations import varying

    ranges = {name: getattr(task, name) for name in varying(task) if name != "delay" or not delays}
    said = [f"{name} {steps.middle} (trained on {steps.low} to {steps.high})" for name, steps in ranges.items()]
    return f"Steps in the middle of their ranges: {', '.join(said)}.\n" if said else ""


def describe_delays(result: dict) -> str:
    """One line a delay."""
    columns = {
        "energy_excess": "energy excess",
        "excess": "denoising",
        "swap_curve_mad": "curve, mean",
        "swap_curve_max": "curve, max",
        "swap_likelihood_mad": "by likelihood",
        "median_error": "error (°)",
        "away": "away",
    }
    shown = {key: title for key, title in columns.items() if key in result["delays"][0]}
    lines = [
        f"{result['conditions']:,} fresh conditions × {result['trials']} trials at each delay.",
        "delay  " + "  ".join(f"{title:>13}" for title in shown.values()),
    ]
    for row in result["delays"]:
        lines.append(f"{row['delay']:5d}  " + "  ".join(_cell(key, row[key]) for key in shown))
    longest = max(row["delay"] for row in result["delays"])
    left = 100 * result["norm_ratio"]
    lines.append(f"Of the norm of the rates at stimulus offset, {left:.0f} % is left after {longest} steps.")
    return "\n".join(lines)


def _cell(key: str, value: float) -> str:
    return f"{math.degrees(value):13.1f}" if key == "median_error" else f"{value:13.4f}"


def describe(result: dict) -> str:
    """The evaluation in words and one table."""
    from lapsus.statistics.swaps import AWAY

    lines = [f"{result['conditions']:,} fresh conditions × {result['trials']} trials; 95 % intervals in brackets."]
    if "energy_excess" in result:
        low, high = result["energy_excess_interval"]
        lines.append(
            f"Energy excess                   {result['energy_excess']:.4f} [{low:.4f}, {high:.4f}]  (0 is perfect)"
        )
    if "excess" in result:
        low, high = result["excess_interval"]
        lines.append(f"Excess over the Bayes denoiser  {result['excess']:.4f} [{low:.4f}, {high:.4f}]  (0 is perfect)")
    if "radius_mean" in result:
        median, due = (math.degrees(result[key]) for key in ("median_error", "median_error_target"))
        low, high = map(math.degrees, result["median_error_interval"])
        lines += [
            (f"Median error to nearest item    {median:.2f}° [{low:.2f}, {high:.2f}]  (target {due:.2f}°)"),
            (
                f"Further than {math.degrees(AWAY):.0f}° from all       {100 * result['away']:.2f} %  (target"
                f" {100 * result['away_target']:.2f} %)"
            ),
            (
                f"Radius                          {result['radius_mean']:.3f} ± {result['radius_sd']:.3f}  (target"
                f" {result['radius_mean_target']:.3f} ± {result['radius_sd_target']:.3f})"
            ),
        ]
    if result.get("swap_curve"):
        lines += ["", "distance  swap rate [95 %]          target   likelihood  exact denoiser"]
        exact = result.get("exact_sampler", {}).get("swap_curve", [])
        for index, point in enumerate(result["swap_curve"]):
            perfect = f"{exact[index]['rate']:.4f}" if exact else "-"
            apart = math.degrees(point["distance"])
            lines.append(
                f"{apart:7.0f}°  {point['rate']:.4f} [{point['low']:.4f}, {point['high']:.4f}]   "
                f"{point['target']:.4f}   {point['likelihood']:.4f}      {perfect}"
            )
        lines.append(
            f"Deviation of the swap curve from its target: mean {result['swap_curve_mad']:.4f}, largest"
            f" {result['swap_curve_max']:.4f}"
        )
    known = {"conditions", "trials", "seed", "loss", "loss_exact", "excess", "energy_excess", "exact_sampler"}
    if "swap_curve" not in result:
        lines += [f"{k}: {v:.4f}" for k, v in result.items() if isinstance(v, float) and k not in known]
    return "\n".join(lines)
