"""Tables of docs/mechanism.md and docs/claims.md, from what the commands wrote, so that no number is typed by hand.

lapsus analyse --swapping -o mechanism
lapsus reproduce --claims-only --values values.json
python benchmarks/study.py --values values.json
python docs/making/tables.py --mechanism mechanism/mechanism.csv

Claims and means over seeds are those of the studies' tables (src/lapsus/paper/studies), of networks that ship and of
others. Each
table stands between two comments, <!-- name --> and <!-- end name -->; what is between them is replaced.
"""

import argparse
import math
import re
from pathlib import Path

import pandas as pd
from lapsus.paper.recorded import recorded

from lapsus.analysis.synthetic import MECHANISMS
from lapsus.paper.claims import CLAIMS
from lapsus.paper.verdicts import Claim, count, criteria, judge_networks, not_computed
from lapsus.statistics.random_effects import ensemble_mean
from lapsus.training.experiment import set_of

DOCS = Path(__file__).resolve().parents[1]
STUDIES = DOCS.parent / "src" / "lapsus" / "paper" / "studies"


def markdown(header: list[str], rows: list[list[str]]) -> str:
    """Rows of a table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def between(page: Path, name: str) -> re.Match[str]:
    """What stands between the comments of that name, with them."""
    found = re.search(rf"(<!-- {name} -->\n)(.*?)(<!-- end {name} -->)", page.read_text(encoding="utf-8"), re.DOTALL)
    if found is None:
        raise SystemExit(f"{page} has no <!-- {name} --> … <!-- end {name} -->.")
    return found


def put(page: Path, name: str, table: str) -> None:
    """Replace what stands between the comments of that name."""
    found = between(page, name)
    whole = found.string[: found.end(1)] + table + "\n" + found.string[found.start(3) :]
    page.write_text(whole, encoding="utf-8")


def beside(page: Path, name: str, other: str) -> None:
    """Two more columns for the table of claims of that name: value and verdict of each in the table of the other."""
    first, *lines = between(page, name)[2].splitlines()
    cells = [line.strip("| ").split(" | ") for line in between(page, other)[2].splitlines() if line.startswith("| `")]
    known = {row[0]: f" {row[1]} | {row[-1]} |" for row in cells}
    head = [first + " fixed delay: value | verdict |", lines[0] + " --- | --- |"]
    rows = [line + known.get(line.strip("| ").split(" | ")[0], "") for line in lines[1:]]
    put(page, name, "\n".join(head + rows))


def mechanism(rows: pd.DataFrame) -> str:
    """One line a network: when, what, axis, kind, dynamics."""

    def of(row: pd.Series, key: str, form: str, percent: bool = False) -> str:
        value = row.get(key)
        if value is None or (isinstance(value, float) and math.isnan(value)):
            return "–"
        return format(100 * value if percent else value, form) + (" %" if percent else "")

    header = ["network", "half-time [95 %]", "fixed at cue onset", "at its offset", "carried by x", "by m"]
    header += ["push along alignment", "axis, area", "colour alone", "kind", "way at cue offset", "other cue there"]
    header += [
        "trials part at",
        "memories last (steps)",
        "fixed points",
        "half-time, linear response",
        "processor (s)",
        "left out",
    ]
    lines = []
    for _, row in rows.sort_values("network").iterrows():
        half = f"{of(row, 'half_time', '.1f')} [{of(row, 'half_low', '.1f')}, {of(row, 'half_high', '.1f')}]"
        known = of(row, "fixed_points", ".0f") != "–"
        lasts = of(row, "lifetime", ".0f")
        lines.append(
            [
                f"`{row['network']}`",
                half,
                *(of(row, key, "z.1f", True) for key in ("fixed_at_cue_onset", "fixed_at_cue_offset")),
                *(of(row, key, "z.0f", True) for key in ("carried_by_x", "carried_by_m")),
                of(row, "push_alignment", "+.2f"),
                *(of(row, key, ".2f") for key in ("axis_auc", "colour_confound")),
                str(row.get("kind")) if isinstance(row.get("kind"), str) else "–",
                of(row, "way_at_cue_offset", "z.2f"),
                of(row, "cue_misread", "z.0f", True),
                of(row, "parting", ".0f"),
                "stay" if known and lasts == "–" else lasts,
                of(row, "fixed_points", ".0f"),
                of(row, "linear_half_time", ".1f"),
                of(row, "seconds", ".0f"),
                row["left_out"] if isinstance(row.get("left_out"), str) else "",
            ]
        )
    return markdown(header, lines)


# Names on the page, columns of members.csv, forms (a percentage is a share times 100).
_OVER = (
    ("half-time (steps)", "half_time", ".1f"),
    ("fixed at cue onset", "fixed_at_cue_onset", ".1%"),
    ("fixed at cue offset", "fixed_at_cue_offset", ".1%"),
    ("carried by x", "carried_by_x", ".0%"),
    ("carried by m", "carried_by_m", ".1%"),
    ("push along alignment", "push_alignment", "+.3f"),
    ("axis, area", "axis_auc", ".2f"),
    ("weight of misbinding", "misbinding", ".3f"),
    ("weight of misselection", "misselection", ".2f"),
    ("weight of misinterpretation", "misinterpretation", ".2f"),
    ("way to the error at cue offset", "way_at_cue_offset", ".3f"),
    ("swaps with the other cue's memory there", "cue_misread", ".1%"),
    ("decoded before the cue, area", "decoding_before_cue", ".3f"),
    ("fixed points", "fixed_points", ".0f"),
)


def over_networks(members: pd.DataFrame) -> str:
    """Means over the seeds of each set, with Student's interval, and the range over networks; how many are of which
    kind. Networks of one seed share their start and count once, by their mean."""
    asked = members[members["half_time"].notna()]
    sets = {name: asked[asked["recipe"] == name] for name in ("paper", "persistent")}
    lines = []
    for name, key, form in _OVER:
        line = [name]
        for own in sets.values():
            found, values = ensemble_mean(own.groupby("seed")[key].mean().to_numpy(float)), own[key].dropna()
            line += [f"{found.mean:{form}} [{found.low:{form}}, {found.high:{form}}]"]
            line += [f"{values.min():{form}} to {values.max():{form}}"]
        lines.append([cell.replace("%", " %") for cell in line])
    kinds = [own["kind"].value_counts() for own in sets.values()]
    for kind in (*MECHANISMS, "no mark", "cannot tell"):
        lines.append([f"kind: {kind}", *(cell for count in kinds for cell in (str(count.get(kind, 0)), ""))])
    header = ["over seeds"]
    for name, own in sets.items():
        header += [f"{name} set, {len(own)} networks of {own['seed'].nunique()} seeds: mean [95 %]", "range"]
    return markdown(header, lines)


def threshold(rule: dict) -> str:
    """How a claim's threshold is written on a page."""
    return f"> {rule['above']:g}" if "above" in rule else f"< {rule['below']:g}"


def rules() -> str:
    """What each claim is, its statistic, its threshold and why: claims.toml as a table."""
    header = ["id", "claim", "statistic", "holds if", "paper", "why this threshold"]
    rows = []
    for id, rule in criteria().items():
        paper = str(rule.get("paper", ""))
        rows.append([f"`{id}`", rule["claim"], rule["statistic"], threshold(rule), paper, rule["reason"]])
    return markdown(header, rows)


def changes() -> str:
    """What each statistic was before, where it is another now; claims with the same reason on one line."""
    by_reason: dict[str, list[str]] = {}
    for id, rule in criteria().items():
        if "changed" in rule:
            by_reason.setdefault(rule["changed"], []).append(f"`{id}`")
    return "\n".join(f"- {', '.join(ids)}: {reason}" for reason, ids in by_reason.items())


def judged(recipe: str) -> list[Claim]:
    """Every claim on all networks of a recipe of which there is a value."""
    found = recorded(recipe, STUDIES / "claims.csv")
    return [
        judge_networks(id, found[id]) if id in found else not_computed(id, f"no network {CLAIMS[id].units[0][0]}")
        for id in criteria()
    ]


def results(claims: list[Claim]) -> str:
    """The verdicts with values, intervals and the numbers of networks and seeds that each rests on."""
    header = ["id", "value", "95 % interval", "holds if", "seeds", "networks", "of which hold alone", "verdict"]
    rows, known = [], criteria()
    for claim in claims:
        rule = known[claim.id]
        limit = threshold(rule)
        if claim.value is None:
            rows.append([f"`{claim.id}`", "–", claim.statistic, limit, "0", "0", "–", claim.verdict])
            continue
        interval = f"{claim.low:.3g} to {claim.high:.3g}"
        alone = f"{round((claim.holding or 0) * claim.networks)}"
        numbers = [f"{claim.value:.3g}", interval, limit, str(claim.seeds), str(claim.networks), alone]
        rows.append([f"`{claim.id}`", *numbers, verdict(claim)])
    return f"{markdown(header, rows)}\n\n{count(claims)}"


def verdict(claim: Claim) -> str:
    """With a word where it is that of one seed."""
    return f"{claim.verdict} in one seed" if claim.seeds == 1 and claim.verdict != "undecided" else claim.verdict


def each(claims: list[Claim]) -> str:
    """Values of single networks, of the claims that rest on several."""
    rows = []
    for claim in claims:
        if len(claim.each) > 1:
            values = [f"{name}: {v:.3g} [{low:.3g}, {high:.3g}]" for name, (v, low, high) in claim.each.items()]
            rows.append([f"`{claim.id}`", "; ".join(values)])
    return markdown(["id", "network: value [95 % interval within it]"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mechanism", type=Path, help="mechanism.csv of `lapsus analyse --swapping -o FOLDER`")
    given = parser.parse_args()
    if given.mechanism:
        rows = pd.read_csv(given.mechanism)
        for which, name in (("paper", "networks"), ("persistent", "persistent networks")):
            own = rows[[set_of(network) == which for network in rows["network"]]]
            if len(own):
                put(DOCS / "mechanism.md", name, mechanism(own))
    put(DOCS / "mechanism.md", "over networks", over_networks(pd.read_csv(STUDIES / "members.csv")))
    put(DOCS / "claims.md", "rules", rules())
    put(DOCS / "claims.md", "changes", changes())
    for name, recipe in (("results", "paper"), ("persistent", "persistent")):
        claims = judged(recipe)
        put(DOCS / "claims.md", name, results(claims))
        put(DOCS / "claims.md", f"{name} by network", each(claims))
    beside(DOCS / "claims.md", "persistent", "results")


if __name__ == "__main__":
    main()
