"""The comparison of models in plain English: which was kept and by what rule, and where models disagree about swaps."""

from typing import TYPE_CHECKING

import pandas as pd

from lapsus.fitting.candidates import SCATTER, Choice
from lapsus.fitting.swap_models import SWAP_MODELS

if TYPE_CHECKING:
    from lapsus.fitting.result import Fit

__all__ = ["comparison", "disagreement"]


def disagreement(fit: "Fit") -> str | None:
    """A sentence where models that predict about as well put the swap rate elsewhere; None where they agree.

    About as well: within two standard errors of the best. Elsewhere: each estimate outside the other's 95 % band. No
    rate is negative, so every band leaves out 0; one that would hold it if it went as far down as up counts as if it
    did."""
    table = fit.candidates
    if table is None or fit.trials.set_size.max() < 2:
        return None
    own = _own_row(table)
    near = table[table["elpd_difference"] >= -2 * table["difference_se"] - 1e-9]
    low = near["swap_low"].where(2 * near["swap"] > near["swap_high"], 0.0)
    own_low = own["swap_low"] if 2 * own["swap"] > own["swap_high"] else 0.0
    far = near[
        ((near["swap"] < own_low) | (near["swap"] > own["swap_high"]))
        & ((own["swap"] < low) | (own["swap"] > near["swap_high"]))
    ]
    if not len(far):
        return None
    named = "; ".join(
        f"{row['model']} with {SCATTER[row['emission']]} scatter {_rate(row)}"
        f" [{100 * row['swap_low']:.1f}, {100 * row['swap_high']:.1f}]"
        for _, row in far.drop_duplicates(["model", "emission"]).head(3).iterrows()
    )
    return (
        f"Models that predict about equally well disagree about swaps: {fit.name}, which was kept, puts non-target"
        f" reports at {_rate(own)} [{100 * own['swap_low']:.1f}, {100 * own['swap_high']:.1f}] of trials"
        f" with several items; {named} (≈: not sampled, by Laplace's approximation). Do not cite one rate without the"
        " others."
    )


def comparison(fit: "Fit") -> list[str]:
    """Which rule kept the model, the table of all that were compared, and what was not compared."""
    table = fit.candidates
    if table is None or len(table) < 2:
        return []
    own = _own_row(table)
    several = len([n for n in fit.model.sizes if n > 1]) > 1
    lines = [" ".join(_why(table, own, several))]
    if table["model"].nunique() == 1 and table["emission"].nunique() == 1:
        lines.append("No other swap model and no other scatter was compared.")
    heading = f"{'f':<8} " if several else ""
    rates = "non-target reports (≈: by Laplace's approximation)"
    lines.append(f"{'model':<9} {'scatter':<19} {heading}bias  below the best   {rates}")
    for _, row in table.iterrows():
        below = "–" if row["elpd_difference"] == 0 else f"{-row['elpd_difference']:.1f} ± {row['difference_se']:.1f}"
        kept = " (kept)" if row["sampled"] else ""
        rate = f"{_rate(row):>10}"
        sets = f"{row['sets'] if SWAP_MODELS[row['model']].swaps else '–':<8} " if several else ""
        lines.append(
            f"{row['model']:<9} {SCATTER[row['emission']]:<19} {sets}{'yes' if row['bias'] else 'no':<5}"
            f" {below:<17}{rate}{kept}"
        )
    high = int(own["pareto_k_above_0.7"])
    if high:
        lines.append(f"{high} trial{'s' * (high > 1)} with Pareto k above 0.7: the predictive density there is rough.")
    return lines


def _why(table: pd.DataFrame, own: pd.Series, several: bool) -> list[str]:
    """How far the kept model is from the others, and the rule that kept it where that is within a standard error."""
    best, runner = table.iloc[0], table.iloc[1]
    near = table[table["elpd_difference"] >= -table["difference_se"]]
    if own["elpd_difference"] == 0:
        above = f"{-runner['elpd_difference']:.1f} ± {runner['difference_se']:.1f} nats above {_name(runner, several)}"
        if len(near) == 1:
            return [f"It predicts left-out responses best: {above}."]
        said = [f"Its predictive density of left-out responses is the highest, {above}, which is within one s.e."]
    else:
        below, error = -own["elpd_difference"], own["difference_se"]
        where = ", which is within one s.e" if below <= error else ""
        said = [
            f"Left-out responses are predicted {below:.1f} ± {error:.1f} nats better by {_name(best, several)}{where}."
        ]
    alike = (table["model"] == own["model"]) & (table["emission"] == own["emission"])
    if not alike[near.index].all():
        said.append("Of swap models and scatters the simplest within one standard error of the best is kept.")
    if several and SWAP_MODELS[own["model"]].swaps and table["sets"][alike].nunique() > 1:
        said.append(
            "Offsets of f are kept unless another form predicts better by more than one standard error."
            if own["sets"] == "offsets"
            else f"f {own['sets']} predicts better than f with offsets by more than one standard error, so it is kept."
        )
    if near["bias"].nunique() > 1:
        said.append("A bias is kept where the density with it is higher, by however little.")
    return said


def _own_row(table: pd.DataFrame) -> pd.Series:
    """The row of the candidates that was kept."""
    return table[table["sampled"]].iloc[0]


def _rate(row: pd.Series) -> str:
    """The swap rate: of the kept model from its draws, of the others approximate."""
    about = "" if row["sampled"] or not SWAP_MODELS[row["model"]].swaps else "≈ "
    return f"{about}{100 * row['swap']:.1f} %"


def _name(row: pd.Series, several: bool) -> str:
    """A model with all that it may differ in from another row."""
    model, _, rest = (
        Choice(row["model"], row["emission"], row["sets"], bool(row["bias"])).words(several).partition(", ")
    )
    return f"{model} ({rest})"
