"""lapsus reproduce cue-combination."""

import json as json_module
from pathlib import Path
from typing import Annotated

import typer

from lapsus.cli.train import Trust


def command(
    runs: Annotated[
        Path | None, typer.Option(help="A run folder, or a folder of them, instead of the shipped network.")
    ] = None,
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for PDF, PNG and CSV.")] = Path("figures"),
    claims_only: Annotated[bool, typer.Option("--claims-only", help="Measure, draw nothing.")] = False,
    trust: Trust = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object of numbers.")] = False,
) -> None:
    """Causal inference in cue combination: posteriors of observer and network, and their distance over a 20 × 20 grid
    of cues."""
    from lapsus.paper.cue_combination import summary
    from lapsus.paper.reproduce import reproduce
    from lapsus.paper.roles import Networks
    from lapsus.paper.verdicts import describe

    networks = Networks.shipped() if runs is None else Networks.in_folder(runs, trust)
    claims = reproduce(networks, ["cue-combination"], None if claims_only else output)
    numbers = summary(networks)
    if json:
        typer.echo(json_module.dumps(numbers | {"claims": [claim.as_dict() for claim in claims]}, indent=1))
        return
    if not claims_only:
        typer.echo(f"Figures are in {output}/\n")
    typer.echo(
        f"KS distance over {numbers['cells']} pairs of cues, {numbers['samples']:,} responses each: median"
        f" {numbers['ks_median']:.3f}, 95th percentile {numbers['ks_p95']:.3f}\n(sampling noise alone:"
        f" {numbers['ks_median_noise']:.3f}, {numbers['ks_p95_noise']:.3f}; the exact denoiser in the same steps:"
        f" {numbers['ks_median_exact']:.3f}, {numbers['ks_p95_exact']:.3f}).\nBoth modes stand out from the valley"
        f" between them in {100 * numbers['both_modes']:.0f} % of the {numbers['bimodal_cells']} cells with two;\nin"
        f" each of these cells responses at either mode are at least {100 * numbers['mode_mass_least']:.0f} % as"
        " frequent as they should be.\n"
    )
    typer.echo(describe(claims))
