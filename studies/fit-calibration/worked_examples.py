"""Fits of data with a known truth, one of each kind. Prints Markdown.

python worked_examples.py [set-sizes subjects heavy-tails bias guesses]
"""

import sys

import numpy as np
from rates import experiment, observer

from lapsus.circular import wrap
from lapsus.fitting import fit
from lapsus.statistics.swaps import nearest_item
from lapsus.trials import Trials


def percent(row, name="swap"):
    return f"{100 * row[name]:.1f} % [{100 * row[name + '_low']:.1f}, {100 * row[name + '_high']:.1f}]"


def set_sizes():
    """Swaps grow with the set size; one observer, 300 trials at each of 2, 4 and 8 items."""
    rng, parts, truth = np.random.default_rng(0), [], {}
    for size, level in ((2, -3.5), (4, -2.0), (8, -1.2)):
        part, truth[size] = observer(rng, "s1", size, 300, level, 15.0, 0.05, lambda d: 0 * d)
        parts.append(part)
    trials = Trials(*(np.concatenate([part[i] for part in parts]) for i in range(3)))
    ours, shared = (fit(trials, "constant", sets=sets, progress=False) for sets in ("auto", "shared"))
    print("| set size | truth | kept: f " + ours.model.sets + " | one f for all |\n|---|---|---|---|")
    for (_, a), (_, b) in zip(ours.rates.iterrows(), shared.rates.iterrows()):
        size = int(a["set_size"])
        print(f"| {size} | {100 * truth[size]:.1f} % | {percent(a)} | {percent(b)} |", flush=True)
    failed = shared.checks[~shared.checks["passed"]]
    print(
        f"\nPredictive checks that fail: {int((~ours.checks['passed']).sum())} with offsets, {len(failed)} with one f."
    )


def subjects():
    """Six subjects who differ (s.d. 0.6 in log odds), 60 trials at each of 2, 4 and 8 items."""
    trials, truth = experiment(np.random.default_rng(2), 6, (2, 4, 8), 60)
    together = fit(trials, "constant", by="hierarchical", progress=False)
    alone = fit(trials, "constant", by="subject", progress=False)
    print("| subject, 8 items | truth | hierarchical | alone |\n|---|---|---|---|")
    tables = [result.rates[result.rates["set_size"] == 8].set_index("subject") for result in (together, alone)]
    for subject in tables[0].index:
        true = truth[8, subject, "a"]
        print(f"| {subject} | {100 * true:.1f} % | " + " | ".join(percent(t.loc[subject]) for t in tables) + " |")


def heavy_tails():
    """No swaps and no guesses, but a precision that varies from trial to trial: 900 trials of three items."""
    rng = np.random.default_rng(1)
    report = rng.uniform(-np.pi, np.pi, (900, 3))
    noise = rng.vonmises(0, np.maximum(rng.gamma(1.5, 20 / 1.5, 900), 0.05))
    trials = Trials(wrap(report[:, 0] + noise), report)
    found, plain = fit(trials, progress=False), fit(trials, "report", progress=False)
    print(f"Kept: {found.name}, scatter {found.model.emission.name}; swaps {percent(found.rates.iloc[0])}.")
    print(f"Model report with von Mises scatter alone would say: swaps {percent(plain.rates.iloc[0])}.", flush=True)


def bias():
    """Responses shifted by 5 degrees: 600 trials of two items, one in ten a swap."""
    rng = np.random.default_rng(3)
    (response, report, probe, *_), rate = observer(rng, "s1", 2, 600, -2.2, 20.0, 0.03, lambda d: 0 * d)
    found = fit(Trials(wrap(response + np.radians(5)), report, probe), "constant", progress=False)
    shown = {name: round(float(np.degrees(value)), 1) for name, value in (found.bias or {}).items()}
    print(f"Bias (truth 5°): {shown}; swaps (truth {100 * rate:.1f} %): {percent(found.rates.iloc[0])}.", flush=True)


def guesses():
    """15 % guesses and no swap at all: 800 trials of four items."""
    rng = np.random.default_rng(4)
    (response, report, probe, *_), _ = observer(rng, "s1", 4, 800, -np.inf, 15.0, 0.15, lambda d: 0 * d)
    trials = Trials(response, report, probe)
    found = fit(trials, progress=False)
    nearest = (nearest_item(trials.response, trials.report)[0] > 0).mean()
    print(
        f"Kept: {found.name}; swaps {percent(found.rates.iloc[0])}, guesses {percent(found.rates.iloc[0], 'guess')};"
        f" expected number of swap trials {found.expected_swaps['expected']:.0f}, though {100 * nearest:.1f} % of"
        " responses are nearest to a non-target.",
        flush=True,
    )


if __name__ == "__main__":
    kinds = {f.__name__.replace("_", "-"): f for f in (set_sizes, subjects, heavy_tails, bias, guesses)}
    for kind in sys.argv[1:] or kinds:
        print(f"\n## {kind}\n\n{kinds[kind].__doc__}\n")
        kinds[kind]()
