"""lapsus evaluate."""

import json as json_module
import math
from typing import TYPE_CHECKING

import typer

from lapsus.cli.options import Delay, Engine, Trust, delays_of

if TYPE_CHECKING:
    from lapsus.protocols import Task

# Measures in the table of several delays, and their titles.
_COLUMNS = {
    "energy_excess": "energy excess",
    "excess": "denoising",
    "swap_curve_mad": "curve, mean",
    "swap_curve_max": "curve, max",
    "swap_likelihood_mad": "by likelihood",
    "median_error": "error (°)",
    "away": "away",
}
_EXCESSES = {"energy_excess": "Energy excess", "excess": "Excess over the Bayes denoiser"}


def command(
    run: str,
    conditions: int = 4096,
    trials: int = 16,
    seed: int = 0,
    delay: Delay = None,
    engine: Engine = "auto",
    trust: Trust = False,
    json: bool = False,
) -> None:
    """Measure how close a trained network comes to its target, on fresh conditions; with several delays, at each.

    run: A run folder, or the name of a shipped network.
    conditions: Fresh conditions to draw.
    trials: Trials a condition.
    seed: Seed of the fresh conditions and noise.
    json: Print one JSON object.
    """
    from lapsus.evaluation import evaluate
    from lapsus.evaluation.delays import evaluate_delays, norm_ratio
    from lapsus.evaluation.verdict import verdict
    from lapsus.zoo import open_network

    network = open_network(run, trust)
    model, delays = network.model(), delays_of(delay)
    if len(delays) > 1:
        rows = evaluate_delays(model, delays, conditions, trials, seed, engine=engine)
        result = {"conditions": conditions, "trials": trials, "seed": seed, "delays": rows}
        result["norm_ratio"] = norm_ratio(model, max(delays), seed=seed, engine=engine)
        text = describe_delays(result)
    else:
        result = evaluate(model.at(delay=delays[0]) if delays else model, conditions, trials, seed, engine=engine)
        judged = verdict(result, network.experiment.stage[-1].objective["kind"])
        text = f"{describe(result)}\n{judged}"
        result |= {"verdict": judged.kind, "verdict_sentence": str(judged)}
    if json:
        typer.echo(json_module.dumps(result | {"update": network.update}))
        return
    # An earlier checkpoint stands in for one that is damaged.
    updates = network.experiment.updates
    early = f"Measured at update {network.update:,} of {updates:,}.\n" if network.update < updates else ""
    typer.echo(_middles(model.task, delays) + early + text)


def _middles(task: "Task", delays: list[int]) -> str:
    """A line where the task's durations vary and one of them stands for all."""
    from lapsus.tasks.durations import varying

    ranges = {name: steps for name, steps in varying(task).items() if name != "delay" or not delays}
    middles = [f"{name} {steps.middle} (trained on {steps.low} to {steps.high})" for name, steps in ranges.items()]
    return f"Steps in the middle of their ranges: {', '.join(middles)}.\n" if middles else ""


def describe_delays(result: dict) -> str:
    """One line per delay."""
    rows = result["delays"]
    columns = [key for key in _COLUMNS if key in rows[0]]
    lines = [
        f"{result['conditions']:,} fresh conditions × {result['trials']} trials at each delay.",
        "delay  " + "  ".join(f"{_COLUMNS[key]:>13}" for key in columns),
    ]
    for row in rows:
        cells = {key: f"{row[key]:13.4f}" for key in columns}
        cells["median_error"] = f"{math.degrees(row['median_error']):13.1f}"
        lines.append(f"{row['delay']:5d}  " + "  ".join(cells.values()))
    longest, left = max(row["delay"] for row in rows), 100 * result["norm_ratio"]
    lines.append(f"Of the norm of the rates at stimulus offset, {left:.0f} % is left after {longest} steps.")
    return "\n".join(lines)


def describe(result: dict) -> str:
    """The evaluation in words and one table."""
    lines = [f"{result['conditions']:,} fresh conditions × {result['trials']} trials; 95 % intervals in brackets."]
    for key, title in _EXCESSES.items():
        if key in result:
            low, high = result[f"{key}_interval"]
            lines.append(f"{title:31} {result[key]:.4f} [{low:.4f}, {high:.4f}]  (0 is perfect)")
    if "radius_mean" in result:
        lines += _precision(result)
    if result.get("swap_curve"):
        lines += _swap_curve(result)
    if "set_sizes" in result:
        lines += _set_sizes(result["set_sizes"])
    if "swap_curve" not in result:
        known = {"loss", "loss_exact", *_EXCESSES}
        lines += [f"{k}: {v:.4f}" for k, v in result.items() if isinstance(v, float) and k not in known]
    return "\n".join(lines)


def _precision(result: dict) -> list[str]:
    """Errors, responses that report no item, and radius beside the target's."""
    from lapsus.statistics.swaps import AWAY

    degrees = map(math.degrees, [result["median_error"], *result["median_error_interval"]])
    rows = {
        "Median error to nearest item": "{:.2f}° [{:.2f}, {:.2f}]  (target {:.2f}°)".format(
            *degrees, math.degrees(result["median_error_target"])
        ),
        f"Further than {math.degrees(AWAY):.0f}° from all": "{:.2%}  (target {:.2%})".format(
            result["away"], result["away_target"]
        ).replace("%", " %"),
        "Radius": "{radius_mean:.3f} ± {radius_sd:.3f}  (target {radius_mean_target:.3f} ±"
        " {radius_sd_target:.3f})".format(**result),
    }
    return [f"{title:31} {text}" for title, text in rows.items()]


def _set_sizes(rows: list[dict]) -> list[str]:
    """A line for each number of items; swaps by likelihood, since guesses are near one of many items."""
    lines = ["", "items  swaps  target  curve, mean  curve, max  error (°)    away"]
    for row in rows:
        # Each distractor has its own share; all of them together are the swaps of a trial.
        curve, others = row["swap_curve"], row["set_size"] - 1
        weight = sum(point["responses"] for point in curve)
        swaps, target = (
            others * sum(point[key] * point["responses"] for point in curve) / weight if curve else 0.0
            for key in ("likelihood", "target")
        )
        deviations = f"{row['swap_curve_mad']:11.4f}  {row['swap_curve_max']:10.4f}"
        scatter = f"{math.degrees(row['median_error']):9.1f}  {row['away']:6.4f}"
        lines.append(f"{row['set_size']:5d}  {swaps:5.3f}  {target:6.3f}  {deviations}  {scatter}")
    return lines


def _swap_curve(result: dict) -> list[str]:
    lines = ["", "distance  swap rate [95 %]          target   likelihood  exact denoiser"]
    exact = result.get("exact_sampler", {}).get("swap_curve", [])
    for index, point in enumerate(result["swap_curve"]):
        perfect = f"{exact[index]['rate']:.4f}" if exact else "-"
        numbers = "{rate:.4f} [{low:.4f}, {high:.4f}]   {target:.4f}   {likelihood:.4f}".format(**point)
        lines.append(f"{math.degrees(point['distance']):7.0f}°  {numbers}      {perfect}")
    deviation = "mean {swap_curve_mad:.4f}, largest {swap_curve_max:.4f}".format(**result)
    return [*lines, f"Deviation of the swap curve from its target: {deviation}"]
