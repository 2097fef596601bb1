"""The tables of docs/memory.md, from the records that ship with the persistent set: `python benchmarks/memory.py`."""

from lapsus.evaluation.delays import growth
from lapsus.zoo.shipped import core_minutes, shipped

COLUMNS = {
    "median_error": "median error",
    "swap_curve_mad": "curve, mean",
    "swap_curve_max": "curve, max",
    "swap_likelihood_mad": "by likelihood",
    "away": "away",
    "excess": "excess",
}


def by_delay(facts: dict) -> list[str]:
    """One measure a cell, all delays in it."""
    diffusion = facts["config"]["stage"][-1]["objective"]["kind"] == "diffusion"
    cells = []
    for key in COLUMNS:
        if key == "excess" and not diffusion:
            cells.append("-")
        else:
            cells.append(" ".join(f"{row[key]:.3f}".removeprefix("0") for row in facts["delays"]))
    return cells


def main() -> None:
    networks = shipped("persistent")
    delays = ", ".join(str(row["delay"]) for row in next(iter(networks.values()))["delays"])
    print(f"At delays of {delays} steps:\n")
    print("| network | " + " | ".join(COLUMNS.values()) + " |\n|---" + "|---" * len(COLUMNS) + "|")
    for name, facts in networks.items():
        print(f"| {name} | " + " | ".join(by_delay(facts)) + " |")
    titles = ("network", "written", "held", "exponent", "up to 40", "norm left", "noise off: 40, 160, 640", "core-min")
    print(f"\n| {' | '.join(titles)} |")
    print("|---|---|---|---|---|---|---|---|")
    for name, facts in networks.items():
        points = [(row["delay"], row["median_error"]) for row in facts["delays"]]
        found, trained = growth(*zip(*points)), growth(*zip(*((d, e) for d, e in points if d <= 40)))
        still = " ".join(f"{row['median_error']:.3f}".removeprefix("0") for row in facts["noiseless"])
        exponents = f"{found.exponent:.2f} | {trained.exponent:.2f}"
        numbers = f"{found.written:.3f} | {found.held:.3f} | {exponents} | {facts['norm_ratio']:.2f}"
        print(f"| {name} | {numbers} | {still} | {core_minutes(facts):.1f} |")


if __name__ == "__main__":
    main()
