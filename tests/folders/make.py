"""Make one small folder of each kind, as this version writes them: python tests/folders/make.py tests/folders/v0.2"""

import os
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd

sys.path.insert(0, str(Path(__file__).parents[1]))

from made_discovery import tiny_start
from tiny_experiment import TINY

from lapsus import discover, evaluate, fit, read_experiment, read_trials, simulate
from lapsus.evaluation.sample_sizes import QUICK
from lapsus.evaluation.ship import ship
from lapsus.files import make_folder, to_toml, write_json, write_netcdf
from lapsus.sweep import Pool, Sweep, plan_sweep, read_sweep
from lapsus.training import train
from lapsus.trials.observer import observer_path
from lapsus.zoo import Run

MINUTES = 0.02


def make(folder: Path) -> None:
    run = Run.create(folder / "run", read_experiment(TINY))
    train(run, steps=30, progress=False)
    # What later versions must compute from it.
    found = evaluate(run.model(), 64, 4, engine="reference")
    write_json(folder / "numbers.json", {name: found[name] for name in ("loss", "median_error")})
    write_netcdf(folder / "activity.nc", simulate(run.model(), conditions=2, trials=2))
    whole = Run.create(folder / "whole", read_experiment(TINY))
    train(whole, progress=False)
    ship(whole, make_folder(folder / "shipped"), conditions=64)
    shutil.rmtree(whole.path)
    (folder / "few.csv").write_text("".join(observer_path().read_text().splitlines(keepends=True)[:81]))
    os.chdir(folder)  # so that the fit keeps no path of this machine
    fit(read_trials("few.csv"), "constant").save(folder / "fit")
    (folder / "few.csv").unlink()
    described = read_sweep({"name": "study", "experiment": "tiny.toml", "seeds": 2}, folder)
    (folder / "tiny.toml").write_text(to_toml(TINY))
    Pool(Sweep.make(folder / "sweep", plan_sweep(described, folder / "sweep")), 1).run()
    (folder / "tiny.toml").unlink()
    table = pd.read_csv(observer_path()).head(200)
    with TemporaryDirectory() as place:
        start = os.path.relpath(tiny_start(Path(place)), folder)
        os.chdir(folder)
        discover(table, minutes=MINUTES, output="discovery", start_from=start, say=print, sizes=QUICK)
    for left in folder.rglob("*"):
        if (
            left.name == ".lock"
            or left.suffix == ".html"
            or (left.parent.name in ("working", "logs") and left.is_file())
        ):
            left.unlink()


if __name__ == "__main__":
    make(make_folder(Path(sys.argv[1]).absolute()))
