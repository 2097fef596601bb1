"""Claims about single trials, pushes, latent causes, windows and cue combination: computed on made networks in which
they hold and on others in which they do not."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from made_networks import AlignedSwaps, ForgetsUntilCue, ResponseWalks, made, nearest_counts
from synthetic_networks import SyntheticNetworks

from lapsus.analysis.activity import activity_dataset
from lapsus.circular import embed
from lapsus.errors import LapsusError
from lapsus.paper import appendix, claims, cue_combination
from lapsus.paper.roles import Networks
from lapsus.study import cues as on_cues
from lapsus.study.sizes import QUICK_FIGURES

pytestmark = pytest.mark.filterwarnings("ignore:The torch reference runs")


def judged(id, compute):
    return claims.judge_networks(id, {"made": compute}).verdict


class Leaning(SyntheticNetworks):
    """Before the cue each colour leans into the other's plane by another amount on each trial, and swaps are likelier
    (or, with a negative effect, less likely) the larger it is."""

    def __init__(self, effect):
        super().__init__(("feature-smooth-2",))
        self.effect = effect

    def simulate(self, role, conditions, trials, *, seed=0, noise_scale=1.0):
        given = {name: np.repeat(values, trials, 0) for name, values in conditions.items()}
        rng, count = np.random.default_rng(seed), len(given["cued"])
        lean = 0.4 * rng.standard_normal((count, 1))
        u, axes = embed(given["report"]), np.linalg.qr(np.random.default_rng(1).standard_normal((6, 6)))[0]
        held = (u[:, 0] + lean * u[:, 1]) @ axes[:2] + (u[:, 1] + lean * u[:, 0]) @ axes[2:4]
        swap = rng.random(count) < 1 / (1 + np.exp(1.0 - self.effect * lean[:, 0]))
        recalled = np.where(swap, 1 - given["cued"], given["cued"])
        activity = held[:, None] + 0.1 * rng.standard_normal((count, 6, 6))
        table = {"cued": given["cued"] + 1, "response": given["report"][np.arange(count), recalled]}
        for name in ("report", "probe"):
            table |= {f"{name}_{k + 1}": given[name][:, k] for k in range(2)}
        table["configuration"] = given["configuration"]
        epoch = np.array(["delay"] * 4 + ["cue", "denoise"])
        return activity_dataset(activity, pd.DataFrame(table), time=np.arange(6) - 5, epoch=epoch)


@pytest.mark.parametrize("effect, verdict", [(4.0, "holds"), (-4.0, "does not hold"), (0.0, None)])
def test_alignment_predicts_swaps(effect, verdict):
    found = judged("alignment-predicts-swaps", claims.prediction_ratio(Leaning(effect), "feature-smooth-2"))
    assert found == verdict if verdict else found != "holds"


def test_alignment_push_fails_where_memory_is_not_read(monkeypatch):
    nearest_counts(monkeypatch)
    model = made(ResponseWalks())
    networks = Networks({"feature-smooth-2": lambda: model}, {"feature-smooth-2": "walks"}, QUICK_FIGURES)
    value, low, high = claims.alignment_push(networks, "feature-smooth-2")
    assert abs(value) < 0.02 and judged("alignment-push", (value, low, high)) != "holds"


@pytest.mark.parametrize("sign, verdict", [(1.0, "holds"), (-1.0, "does not hold")])
def test_alignment_push_follows_what_the_cue_does_with_it(sign, verdict, monkeypatch):
    nearest_counts(monkeypatch)
    model = made(AlignedSwaps(sign))
    networks = Networks({"feature-smooth-2": lambda: model}, {"feature-smooth-2": "aligned"}, QUICK_FIGURES)
    found = claims.alignment_push(networks, "feature-smooth-2")
    assert sign * found[0] > 0.1 and judged("alignment-push", found) == verdict


@pytest.mark.parametrize("network, verdict", [(ForgetsUntilCue, "does not hold"), (ResponseWalks, "holds")])
def test_latent_before_cue(network, verdict, monkeypatch):
    nearest_counts(monkeypatch)
    model = made(network())
    sizes = replace(QUICK_FIGURES, commitment_conditions=24, commitment_groups=48)
    networks = Networks({"index-attended": lambda: model}, {"index-attended": "made"}, sizes)
    assert judged("latent-before-cue", claims.fixed_at(networks, "index-attended", "delay")) == verdict


class Windows(SyntheticNetworks):
    """Task-optimal networks whose planes turn as those of the network `plays` do."""

    def __init__(self, plays):
        super().__init__((*list(appendix.WINDOWS)[:2], plays))
        self.plays = plays

    def simulate(self, role, conditions, trials, *, seed=0, noise_scale=1.0):
        return super().simulate(self.plays, conditions, trials, seed=seed, noise_scale=noise_scale)


@pytest.mark.slow
@pytest.mark.parametrize("plays, verdict", [("feature-smooth-2", "does not hold"), ("feature-none", "holds")])
def test_windows_no_rise(plays, verdict):
    assert judged("windows-no-rise", claims.windows_rise(Windows(plays))) == verdict


@pytest.fixture
def cues(monkeypatch):
    """How the cue-combination claims come out for responses drawn by a function of behaviour and conditions."""
    from lapsus.library import load

    model, sizes = load("cue-combination"), replace(QUICK_FIGURES, cue_grid=10, cue_samples=800)

    def verdicts(respond):
        monkeypatch.setattr(on_cues, "respond", respond)
        networks = Networks({"cue-combination": lambda: model}, {"cue-combination": "made"}, sizes)
        return {
            "median": judged("cue-combination-median", cue_combination.ks_interval(networks, 0.5)),
            "p95": judged("cue-combination-p95", cue_combination.ks_interval(networks, 0.95)),
            "modes": judged("cue-combination-modes", cue_combination.modes_interval(networks)),
        }

    return verdicts


def test_cue_combination_claims(cues):
    from lapsus import streams

    def posterior(model, conditions, trials, seed):
        return model.behaviour.sample(conditions, trials, streams.generator(seed, "made"))

    def averages(model, conditions, trials, seed):
        mean = posterior(model, conditions, 400, seed).mean(-1, keepdim=True)
        noise = torch.randn((*mean.shape[:-1], trials), generator=streams.generator(seed, "noise"))
        return mean + 0.3 * noise

    assert set(cues(posterior).values()) == {"holds"}
    assert set(cues(averages).values()) == {"does not hold"}


def test_values_are_kept_by_network_and_not_believed_when_it_changed(tmp_path, monkeypatch):
    """A run that was cut goes on; other weights, or another statistic, are computed anew."""
    asked = []

    def compute(networks, role):
        asked.append(networks.sources[role])
        if len(asked) == 2:
            raise KeyboardInterrupt
        return 0.9, 0.88, 0.92

    id = "normal-separates"
    monkeypatch.setattr(claims, "CLAIMS", {id: claims.Test("fig4", compute, (("feature-smooth-0",),))})
    monkeypatch.setattr(claims, "criteria", lambda: {id: {}})
    models = [made(ResponseWalks()) for _ in range(2)]
    sets = [
        Networks({"feature-smooth-0": lambda model=model: model}, {"feature-smooth-0": name}, QUICK_FIGURES)
        for name, model in zip("ab", models)
    ]
    file = tmp_path / "values.json"
    with pytest.raises(KeyboardInterrupt):
        claims.evaluate_claims(sets, values=file)
    (found,) = claims.evaluate_claims(sets, values=file)
    assert asked == ["a", "b", "b"] and found.networks == 2 and set(found.each) == {"a", "b"}
    models[0].network.readout.mul_(-1)
    claims.evaluate_claims(sets, values=file)
    assert asked == ["a", "b", "b", "a"]
    longer = [one.at_delay(20) for one in sets]
    assert (
        [one.model("feature-smooth-0").task.delay for one in longer]
        == [20, 20]
        != [one.model("feature-smooth-0").task.delay for one in sets]
    )
    claims.evaluate_claims(longer, values=file)
    claims.evaluate_claims(sets, values=file)  # both are kept
    assert asked == ["a", "b", "b", "a", "a", "b"]
    file.write_text('{"a": 1}')
    with pytest.raises(LapsusError, match=r"values\.json"):
        claims.evaluate_claims(sets, values=file)
