"""lapsus reproduce cue-combination."""

import json as json_module
from pathlib import Path

import typer

from lapsus.cli.options import Trust

_SUMMARY = """\
KS distance over {cells} pairs of cues, {samples:,} responses each: median {ks_median:.3f}, 95th percentile {ks_p95:.3f}
(sampling noise alone: {ks_median_noise:.3f}, {ks_p95_noise:.3f}; the exact denoiser in the same steps:\
 {ks_median_exact:.3f}, {ks_p95_exact:.3f}).
Both modes stand out from the valley between them in {both_modes:.0%} of the {bimodal_cells} cells with two;
in each of these cells responses at either mode are at least {mode_mass_least:.0%} as frequent as they should be.
"""


def command(
    runs: Path | None = None,
    output: Path = Path("figures"),
    claims_only: bool = False,
    trust: Trust = False,
    json: bool = False,
) -> None:
    """Causal inference in cue combination: posteriors of observer and network, and their distance over a 20 × 20 grid
    of cues.

    runs: A run folder, or a folder of them, instead of the shipped network.
    output: Folder for PDF, PNG and CSV.
    claims_only: Measure, draw nothing.
    json: Print one JSON object of numbers.
    """
    from lapsus.paper.cue_combination import summary
    from lapsus.paper.reproduce import reproduce
    from lapsus.paper.roles import Networks
    from lapsus.paper.verdicts import describe

    networks = Networks.shipped() if runs is None else Networks.in_folder(runs, trust)
    claims = reproduce(networks, ["cue-combination"], None if claims_only else output)
    numbers = summary(networks)
    if json:
        typer.echo(json_module.dumps(numbers | {"claims": [vars(claim) for claim in claims]}, indent=1))
        return
    if not claims_only:
        typer.echo(f"Figures are in {output}/\n")
    typer.echo(_SUMMARY.format(**numbers).replace("%", " %"))
    typer.echo(describe(claims))
