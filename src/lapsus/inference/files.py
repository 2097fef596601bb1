"""A fit as a folder: netCDF for machines, JSON and text for people, PNG and PDF for talks."""

import json
import os
import shutil
from pathlib import Path

import numpy as np

from lapsus.errors import LapsusError
from lapsus.inference.emissions import EMISSIONS
from lapsus.inference.model import Model
from lapsus.inference.result import FILES, Fit
from lapsus.inference.variational import Variational
from lapsus.trials import Trials

__all__ = ["check_folder", "load_fit", "make_folder", "save_fit", "save_subjects"]


def _ours(path):
    return (path / "fit.nc").exists() if path.is_dir() else path.stem in FILES or path.name in FILES


def check_folder(folder) -> Path:
    """The folder as a path if a fit may be written there: absent, empty, or holding an earlier fit. Makes nothing."""
    folder = Path(folder)
    there = next(path for path in (folder.absolute(), *folder.absolute().parents) if os.path.exists(path))
    if not there.is_dir():
        raise LapsusError(f"{there}: is a file; give a folder for the results.")
    if not os.access(there, os.R_OK | os.W_OK | os.X_OK):
        raise LapsusError(f"{folder}: cannot be written (no permission in {there}); give another folder.")
    if folder.is_dir() and any(folder.iterdir()):
        foreign = sorted(p.name for p in folder.iterdir() if not _ours(p))
        if foreign or not (folder / "summary.json").exists():
            found = ", ".join(foreign[:3]) or "no earlier fit"
            raise LapsusError(f"{folder}: holds other files ({found}); give a new or empty folder.")
    return folder


def make_folder(folder) -> Path:
    """An empty folder to write a fit into; what an earlier fit left there is removed."""
    folder = check_folder(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path in folder.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    except OSError as error:
        raise LapsusError(f"{folder}: cannot be written ({error.strerror}); give another folder.") from error
    return folder


def save_fit(fit: Fit, folder, plots=True) -> Path:
    folder = make_folder(folder)
    _dataset(fit).to_netcdf(folder / "fit.nc", engine="h5netcdf")
    (folder / "summary.json").write_text(json.dumps(fit.to_dict(), indent=1) + "\n")
    (folder / "summary.txt").write_text(fit.summary() + "\n")
    if plots:
        from lapsus.plots.fits import save_all

        save_all(fit, folder)
    return folder


def save_subjects(fits, folder, plots=True) -> Path:
    folder = make_folder(folder)
    for subject, fit in fits.items():
        # Different names may look the same once they are safe for a file system.
        place, number = folder / _safe(subject), 1
        while place.exists():
            number += 1
            place = folder / f"{_safe(subject)}-{number}"
        save_fit(fit, place, plots=False)
    (folder / "summary.json").write_text(json.dumps(fits.to_dict(), indent=1) + "\n")
    (folder / "summary.txt").write_text(fits.summary() + "\n")
    if plots:
        from lapsus.plots.fits import save_all

        save_all(fits, folder)
    return folder


def _safe(name):
    return "subject-" + "".join(c if c.isalnum() or c in "-_." else "_" for c in str(name))


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


def load_fit(folder) -> Fit:
    import pandas as pd
    import xarray as xr

    path = Path(folder) / "fit.nc" if Path(folder).is_dir() else Path(folder)
    if not path.exists():
        raise LapsusError(f"{path}: there is no such fit; `lapsus fit … -o FOLDER` writes one.")
    with xr.open_dataset(path, engine="h5netcdf") as dataset:
        dataset.load()
    if dataset.attrs.get("format") != "lapsus fit 1":
        raise LapsusError(f"{path}: is not a fit that lapsus wrote.")
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
