"""lapsus fit."""

import json as json_module
from pathlib import Path
from typing import Any

import typer

from lapsus.cli.table_options import reads_table
from lapsus.cli.words import as_typed


@reads_table
def command(
    trials: Path,
    model: str = "auto",
    by: str | None = None,
    reference: str | None = None,
    set_size: int | None = None,
    emission: str | None = None,
    sets: str = "auto",
    bias: bool | None = None,
    apart: float | None = None,
    uniform: bool = True,
    even: bool = True,
    output: Path | None = None,
    seed: int = 0,
    draws: int = 1024,
    force: bool = False,
    json: bool = False,
    design: Path | None = None,
    *,
    table: dict[str, Any],
) -> None:
    """Fit swap models to a trial table: swap rates, the swap function with its uncertainty, plots, a summary.

    trials: Trial table: .csv, .tsv, .parquet, .mat, .rds or .rda; a folder of BIDS _beh.tsv files or of van den Berg et
        al. (2012) recordings.
    model: none, constant, probe, report, both, or auto: compare them all.
    by: subject (a fit each), hierarchical (subjects around a population), or columns of the table whose values are
        compared, with interactions (cue or cue,group). [default: all together]
    reference: The value of `--by` that others are compared with: valid, or cue=valid,group=old.
        [default: the first by name]
    set_size: Use only trials with this many items. [default: all]
    emission: von_mises, variable_precision, wrapped_stable, plane, or auto: compare the first three.
        [default: auto with model auto, else von_mises]
    sets: How f differs between set sizes: shared, offsets, shapes, or auto: compare them.
    bias/no-bias: A constant shift of all responses. [default: where it predicts better]
    apart: Non-targets further than this from the target (degrees of the feature) can be told apart from it.
        [default: two circular s.d.]
    uniform/no-uniform: Allow uniform guesses.
    even/signed: f of the distance alone, or of its sign too.
    output: Folder for results and plots. [default: none]
    seed: Seed of the posterior draws.
    draws: Posterior draws to keep at least.
    force: Replace an earlier fit in the folder.
    json: Print one JSON object.
    design: A design file: learn the density of responses of any experiment. [default: none]
    """
    if design is not None:
        _with_design(trials, design, output, seed, json)
        return
    import numpy as np

    from lapsus.errors import LapsusError
    from lapsus.fitting import fit
    from lapsus.fitting.files import check_folder
    from lapsus.fitting.progress import Bar
    from lapsus.trials import read_trials

    if output is not None and check_folder(output) and not force:
        raise LapsusError(f"{output}: holds an earlier fit; --force replaces it, -o names another folder.")
    if seed < 0:
        raise LapsusError(f"--seed must not be negative (it is {seed}).")
    if apart is not None and not apart > 0:
        raise LapsusError(f"--apart is an angle above 0 (it is {apart:g}).")
    used = read_trials(trials, **table)
    if set_size is not None:
        if not (used.set_size == set_size).any():
            sizes = ", ".join(map(str, np.unique(used.set_size)))
            raise LapsusError(f"{trials}: no trial has set size {set_size}; the table has {sizes}.")
        used = used[used.set_size == set_size]
    try:
        result = fit(
            used,
            model,
            emission,
            uniform,
            even,
            by,
            seed,
            sets=sets,
            bias=bias,
            apart=None if apart is None else apart / used.degrees,
            reference=reference,
            draws=draws,
        )
        with Bar(not json) as bar:
            bar.stage("predictive checks")
            text = json_module.dumps(result.to_dict()) if json else as_typed(result.summary())
            if output is not None:
                from lapsus.plots.fits import save_all

                bar.stage(f"plots and results for {output}")
                result.save(output, also=lambda place: save_all(result, place))
    except KeyboardInterrupt:
        kept = output is not None and (Path(output) / "fit.nc").exists()
        state = f"the earlier fit in {output} is as it was" if kept else "nothing was kept"
        typer.echo(f"lapsus: stopped; {state}.", err=True)
        raise typer.Exit(130) from None
    typer.echo(text)
    if output is not None and not json:
        typer.echo(f"\nWritten to {output}.")


def _with_design(trials: Path, design: Path, output: Path | None, seed: int, json: bool) -> None:
    """Learn the density of the responses that a design file names."""
    from lapsus.designs import Design, read_design, read_table
    from lapsus.files import make_folder, short, write_figure, write_text
    from lapsus.fitting.density import fit_density, save_density
    from lapsus.report.designed import calibration_figure, density_figure

    used = Design.of(read_design(design), read_table(trials), short(trials))
    found = fit_density(used, seed=seed, progress=lambda name: typer.echo(f"fitting: {name}", err=True))
    if output is not None:
        make_folder(output)
        save_density(found, output / "density.json")
        write_text(output / "comparison.csv", found.comparison.to_csv(index=False))
        for name, figure in (("density", density_figure(found)), ("calibration", calibration_figure(found))):
            write_figure(output / f"{name}.png", figure)
    if json:
        modes = None if found.modes is None else found.modes.rate
        plain = {"kept": found.kept, "trials": len(used), "coverage": found.coverage(), "other_mode": modes}
        typer.echo(json_module.dumps(plain))
    else:
        typer.echo("\n".join(found.sentences()))
