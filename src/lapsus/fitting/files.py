"""A fit as a folder: netCDF for machines, CSV for R and pandas, JSON and text for people."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from lapsus.errors import LapsusError
from lapsus.files import (
    check_own_files,
    file_name,
    make_folder,
    own_files,
    read_netcdf,
    understood,
    write_json,
    write_netcdf,
    write_text,
)
from lapsus.fitting.emissions import EMISSIONS
from lapsus.fitting.likelihood import Parameters
from lapsus.fitting.model import MixtureModel
from lapsus.trials import Trials

if TYPE_CHECKING:
    import xarray as xr

    from lapsus.fitting.result import Fit
    from lapsus.fitting.subjects import SubjectFits

__all__ = ["check_folder", "load_fit", "save_fit", "save_subjects"]

PARTS = {
    "coefficients": ("shape", "harmonic", "draw"),
    "level": ("group", "draw"),
    "emission": ("parameter", "group", "draw"),
    "bias": ("group", "draw"),
    "guess": ("group", "draw"),
}


def check_folder(folder: str | Path) -> bool:
    """Whether the folder holds an earlier fit; an error if its files were changed, or if it holds only others. Makes
    nothing."""
    return check_own_files(folder, "fit")


def save_fit(fit: "Fit", folder: str | Path, also: Callable[[Path], object] | None = None) -> Path:
    """Write a fit as a folder, all of it or nothing. Files of an earlier fit there are replaced when the new ones are
    whole; other files are kept.

    also: called with the folder in which the files are made, to add plots.
    """
    check_folder(folder)
    with own_files(folder) as place:
        _fill(fit, place)
        if also is not None:
            also(place)
    return Path(folder)


def save_subjects(fits: "SubjectFits", folder: str | Path, also: Callable[[Path], object] | None = None) -> Path:
    """Write a fit a subject, each in a folder of its own, and a summary of all; `also` as in `save_fit`."""
    check_folder(folder)
    with own_files(folder) as place:
        for subject, fit in fits.items():
            # Different names may look the same once they are safe for a file system.
            name, number = "subject-" + file_name(subject), 1
            while (place / name).exists():
                number += 1
                name = f"subject-{file_name(subject)}-{number}"
            _fill(fit, make_folder(place / name))
        _summarise(fits, place)
        if also is not None:
            also(place)
    return Path(folder)


def _fill(fit: "Fit", folder: Path) -> None:
    write_netcdf(folder / "fit.nc", _dataset(fit))
    _summarise(fit, folder)
    if (found := fit.contrasts) is not None:
        write_text(folder / "contrasts.csv", found.to_csv(index=False, float_format="%.6g"))


def _summarise(fit: "Fit | SubjectFits", folder: Path) -> None:
    write_json(folder / "summary.json", fit.to_dict())
    write_text(folder / "summary.txt", fit.summary() + "\n")
    write_text(folder / "methods.txt", fit.methods() + "\n")
    write_text(folder / "estimates.csv", fit.table().to_csv(index=False, float_format="%.6g"))


def _dataset(fit: "Fit") -> "xr.Dataset":
    import xarray as xr

    model, trials = fit.model, fit.trials
    table, responsibilities = fit.swap_function(), fit.responsibilities
    data = {
        "response": ("trial", trials.response),
        "report": (("trial", "item"), trials.report),
        "set_size": ("trial", trials.set_size),
        "subject": ("trial", trials.subject.astype(str).astype(object)),
        "responsibility": (("trial", "component"), responsibilities.to_numpy()),
    }
    for prefix, parameters in (("", fit.parameters), ("typical_", fit.population)):
        for name, dims in PARTS.items():
            values = None if parameters is None else getattr(parameters, name)
            if values is not None:
                data[f"{prefix}{name}"] = (dims, values.numpy())
    if trials.probe is not None:
        data["probe"] = (("trial", "item"), trials.probe)
    if trials.point is not None:
        data["point"] = (("trial", "dim"), trials.point)
    if model.by:
        data["condition"] = (("trial", "factor"), trials.conditions[list(model.by)].astype(str).to_numpy(object))
    if fit.swap_model.swaps:
        data |= {f"swap_{name}": ("distance", table[name].to_numpy()) for name in table if name != "distance"}
        data["swap_distance"] = ("distance", table["distance"].to_numpy())
    meta = {
        "model": model.name,
        "emission": model.emission.name,
        "uniform": model.uniform,
        "even": model.even,
        "hierarchical": model.hierarchical,
        "sets": model.sets,
        "bias": model.bias,
        "by": list(model.by),
        "reference": model.reference,
        "dropped": trials.dropped,
        "notes": trials.notes,
        "standard": None if fit.standard is None else fit.standard.to_dict(orient="records"),
        "random_effects": fit.random_effects.to_dict(orient="records"),
        "apart": fit.apart,
        "seed": fit.seed,
        "rhat": fit.rhat,
        "accepted": fit.accepted,
        "seconds": fit.seconds,
        "requested": fit.requested,
        "source": trials.source,
        "unit": trials.unit,
        "probe_unit": trials.probe_unit,
        "feature_name": trials.feature_name,
        "probe_name": trials.probe_name,
        "candidates": None if fit.candidates is None else fit.candidates.to_dict(orient="records"),
    }
    dataset = xr.Dataset(data, attrs={"kind": "fit", "settings": json.dumps(meta)})
    return dataset.assign_coords(component=list(responsibilities))


def load_fit(folder: str | Path, made: type["Fit"]) -> "Fit":
    """The Fit (`made`) in a folder that `save_fit` wrote, or in its fit.nc."""
    path = Path(folder) / "fit.nc" if Path(folder).is_dir() else Path(folder)
    if not path.exists():
        raise LapsusError(f"{path}: there is no such fit; `lapsus fit` writes one.")
    dataset = read_netcdf(path)
    if dataset.attrs.get("kind") != "fit":
        raise LapsusError(f"{path}: is not a fit that lapsus wrote.")
    with understood(path):
        return _fit(dataset, made)


def _fit(dataset: "xr.Dataset", made: type["Fit"]) -> "Fit":
    import pandas as pd

    meta = json.loads(dataset.attrs["settings"])
    by = meta["by"] or []
    by = [by] if isinstance(by, str) else by  # before, there was one factor at most
    conditions = None
    if by:
        levels = dataset["condition"].to_numpy().astype(str).reshape(-1, len(by))
        conditions = dict(zip(by, levels.T, strict=True))
    trials = Trials(
        dataset["response"].to_numpy(),
        dataset["report"].to_numpy(),
        dataset["probe"].to_numpy() if "probe" in dataset else None,
        subject=dataset["subject"].to_numpy().astype(str),
        point=dataset["point"].to_numpy() if "point" in dataset else None,
        conditions=conditions,
        source=meta["source"],
    )
    trials.unit, trials.probe_unit = meta["unit"], meta["probe_unit"]
    trials.dropped, trials.notes = meta.get("dropped", {}), meta.get("notes", [])
    trials.name_features(meta["feature_name"], meta["probe_name"])
    model = MixtureModel(
        trials,
        meta["model"],
        EMISSIONS[meta["emission"]](),
        meta["uniform"],
        meta["even"],
        meta["hierarchical"],
        sets=meta["sets"],
        bias=meta["bias"],
        by=tuple(by),
        reference=meta.get("reference"),
    )
    typical = _parameters(dataset, "typical_") if "typical_emission" in dataset else None
    fit = made(model, _parameters(dataset, ""), meta["rhat"], meta["accepted"], meta["seed"], typical, meta["apart"])
    fit.seconds, fit.requested = meta["seconds"], meta["requested"]
    candidates = pd.DataFrame(meta["candidates"] or [])
    fit.candidates = candidates if "sampled" in candidates else None  # the first tables did not say which was kept
    if "standard" in meta:  # else it is worked out when it is asked for
        fit.standard = None if meta["standard"] is None else pd.DataFrame(meta["standard"])
    fit.random_effects = pd.DataFrame(meta.get("random_effects", []), columns=fit.random_effects.columns)
    return fit


def _parameters(dataset: "xr.Dataset", prefix: str) -> Parameters:
    parts: dict[str, Any] = dict.fromkeys(PARTS)
    for name in PARTS:
        if prefix + name in dataset:
            parts[name] = torch.tensor(dataset[prefix + name].to_numpy())
    return Parameters(**parts)
