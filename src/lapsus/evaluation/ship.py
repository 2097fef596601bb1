"""A finished run becomes a network that ships: weights, config, evaluation and learning curve."""

from pathlib import Path

from safetensors.torch import save

from lapsus.errors import LapsusError
from lapsus.evaluation.against_target import evaluate
from lapsus.evaluation.delays import evaluate_delays, noiseless_error, norm_ratio
from lapsus.files import read_json, write_bytes, write_json
from lapsus.tasks.durations import varying
from lapsus.training import read_experiment
from lapsus.zoo import Run
from lapsus.zoo.shipped import collection_of, shipped_name, shipped_names, weights_folder


def ship(run: Run, folder: Path | None = None, conditions: int = 4096) -> Path:
    """Evaluate a finished run on so many conditions, at several delays if it was trained on delays that vary, and
    export its weights, config, evaluation and learning curve; returns the JSON's path."""
    experiment = run.experiment
    if run.update < experiment.updates:
        raise LapsusError(
            f"{run.path} is at update {run.update} of {experiment.updates}; `lapsus resume {run.path}` first."
        )
    model, training = run.model(), run.training()
    metrics = run.metrics()
    # A new network belongs to the collection of the one that it starts from.
    known = experiment.name in shipped_names()
    facts = {
        "collection": collection_of(experiment.name if known else str(experiment.start_from)),
        "config": experiment.model_dump(exclude_none=True),
        "evaluation": evaluate(model, conditions),
        "trials_seen": training.trials_seen,
        "minutes": training.seconds / 60,
        "core_minutes": training.core_seconds / 60,
        "learning_curve": [
            {key: line[key] for key in ("update", "stage", "loss", "excess", "seconds") if key in line}
            for line in _thinned([line for line in metrics if "excess" in line] or metrics, 100)
        ],
    }
    if "delay" in varying(model.at_stage(experiment.stage[-1]).task):
        facts |= {
            "delays": evaluate_delays(model, conditions=conditions, trials=8),
            "norm_ratio": norm_ratio(model),
            "noiseless": noiseless_error(model, conditions=min(conditions, 256)),
        }
    target = _target(run, folder)
    weights = save({key: value.contiguous() for key, value in model.state_dict().items()})
    write_bytes(target.with_suffix(".safetensors"), weights)
    write_json(target, facts)
    return target


def is_shipped(run: Run, folder: Path | None = None) -> bool:
    """Whether the folder has this network, and not one of another description that goes by the same name."""
    try:
        held = read_experiment(read_json(_target(run, folder)).get("config", {})).model_dump()
    except LapsusError:
        return False
    return all(held[key] == value for key, value in run.experiment.model_dump().items() if key != "versions")


def _target(run: Run, folder: Path | None) -> Path:
    return (folder or weights_folder()) / f"{shipped_name(run.experiment.name, run.experiment.seed)}.json"


def _thinned(lines: list[dict], most: int) -> list[dict]:
    stride = -(-len(lines) // most) if lines else 1
    return lines[::stride]
