"""A fit as a folder: netCDF for machines, JSON and text for people, PNG and PDF for talks."""

import json
from pathlib import Path

import numpy as np

from lapsus.errors import LapsusError
from lapsus.files import (
    check_place,
    file_name,
    make_folder,
    new_folder,
    read_netcdf,
    understood,
    write_json,
    write_netcdf,
    write_text,
)
from lapsus.inference.emissions import EMISSIONS
from lapsus.inference.model import Model
from lapsus.inference.result import FILES, Fit
from lapsus.inference.variational import Variational
from lapsus.trials import Trials

__all__ = ["check_folder", "load_fit", "save_fit", "save_subjects"]


def _ours(path: Path) -> bool:
    return (path / "fit.nc").exists() if path.is_dir() else path.stem in FILES or path.name in FILES


def check_folder(folder: str | Path) -> bool:
    """Whether the folder holds an earlier fit; an error if it holds anything else. Makes nothing."""
    return check_place(folder, "fit", _ours)


def save_fit(fit: Fit, folder: str | Path, plots: bool = True) -> Path:
    """Write a fit as a folder, all of it or nothing; an earlier fit there is replaced when the new one is whole."""
    check_folder(folder)
    with new_folder(folder) as place:
        _fill(fit, place)
        if plots:
            _draw(fit, place)
    return Path(folder)


def save_subjects(fits, folder: str | Path, plots: bool = True) -> Path:
    """Write a fit a subject, each in a folder of its own, and a summary of all."""
    check_folder(folder)
    with new_folder(folder) as place:
        for subject, fit in fits.items():
            # Different names may look the same once they are safe for a file system.
            name, number = "subject-" + file_name(subject), 1
            while (place / name).exists():
                number += 1
                name = f"subject-{file_name(subject)}-{number}"
            _fill(fit, make_folder(place / name))
        _summarise(fits, place)
        if plots:
            _draw(fits, place)
    return Path(folder)


def _fill(fit: Fit, folder: Path) -> None:
    write_netcdf(folder / "fit.nc", _dataset(fit))
    _summarise(fit, folder)


def _summarise(fit, folder: Path) -> None:
    write_json(folder / "summary.json", fit.to_dict())
    write_text(folder / "summary.txt", fit.summary() + "\n")


def _draw(fit, folder: Path) -> None:
    from lapsus.plots.fits import save_all

    save_all(fit, folder)


def _dataset(fit):
    import xarray as xr

    model, trials, q = fit.model, fit.trials, fit.variational
    table = fit.swap_function()
    responsibilities = fit.responsibilities
    data = {
        "theta": (("coordinate", "draw"), fit.draws),
        "response": ("trial", trials.response),
        "report": (("trial", "item"), trials.report),
        "set_size": ("trial", trials.set_size),
        "subject": ("trial", trials.subject.astype(str).astype(object)),
        "responsibility": (("trial", "component"), responsibilities.to_numpy()),
        "q_mean": ("coordinate", q.theta),
        "q_factor": (("latent", "latent_"), q.factor),
        "restarts": ("restart", np.array(fit.restarts)),
    }
    if trials.probe is not None:
        data["probe"] = (("trial", "item"), trials.probe)
    if trials.point is not None:
        data["point"] = (("trial", "dim"), trials.point)
    if fit.name != "none":
        data |= {f"swap_{name}": ("distance", table[name].to_numpy()) for name in table if name != "distance"}
        data["swap_distance"] = ("distance", table["distance"].to_numpy())
    meta = {
        "model": model.name,
        "emission": model.emission.name,
        "uniform": model.uniform,
        "even": model.even,
        "hierarchical": model.hierarchical,
        "seed": fit.seed,
        "rhat": fit.rhat,
        "accepted": fit.accepted,
        "seconds": fit.seconds,
        "requested": fit.requested,
        "elbo": q.elbo,
        "iterations": q.iterations,
        "converged": q.converged,
        "message": q.message,
        "source": trials.source,
        "unit": trials.unit,
        "comparison": None if fit.comparison is None else fit.comparison.to_dict(orient="records"),
    }
    dataset = xr.Dataset(data, attrs={"format": "lapsus fit 1", "settings": json.dumps(meta)})
    return dataset.assign_coords(component=list(responsibilities))


def load_fit(folder: str | Path) -> Fit:
    """The fit in a folder that `save_fit` wrote, or in its fit.nc."""
    path = Path(folder) / "fit.nc" if Path(folder).is_dir() else Path(folder)
    if not path.exists():
        raise LapsusError(f"{path}: there is no such fit; `lapsus fit … -o FOLDER` writes one.")
    dataset = read_netcdf(path)
    if dataset.attrs.get("format") != "lapsus fit 1":
        raise LapsusError(f"{path}: is not a fit that lapsus wrote.")
    with understood(path):
        return _fit(dataset)


def _fit(dataset) -> Fit:
    import pandas as pd

    meta = json.loads(dataset.attrs["settings"])
    trials = Trials(
        dataset["response"].to_numpy(),
        dataset["report"].to_numpy(),
        dataset["probe"].to_numpy() if "probe" in dataset else None,
        subject=dataset["subject"].to_numpy().astype(str),
        point=dataset["point"].to_numpy() if "point" in dataset else None,
        source=meta["source"],
    )
    trials.unit = meta["unit"]
    emission = EMISSIONS[meta["emission"]]()
    model = Model(trials, meta["model"], emission, meta["uniform"], meta["even"], meta["hierarchical"])
    q = Variational(
        dataset["q_mean"].to_numpy(),
        dataset["q_factor"].to_numpy(),
        meta["elbo"],
        meta["iterations"],
        meta["converged"],
        meta["message"],
    )
    restarts = dataset["restarts"].to_numpy()
    fit = Fit(model, dataset["theta"].to_numpy(), q, meta["rhat"], meta["accepted"], restarts, meta["seed"])
    fit.seconds, fit.requested = meta["seconds"], meta["requested"]
    fit.comparison = None if meta["comparison"] is None else pd.DataFrame(meta["comparison"])
    return fit
