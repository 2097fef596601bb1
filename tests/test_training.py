"""The loop, run folders and the promises made about them."""

import json
import math
import signal
import time

import pytest
import torch
from tiny_experiment import TINY

from lapsus import LapsusError, Run, evaluate, load, read_experiment, rng, simulate, train
from lapsus.engine import fused
from lapsus.files import to_toml
from lapsus.training.build import build
from lapsus.training.experiment import Stage
from lapsus.training.loop import Training, draw, gradient, learning_rate
from lapsus.training.model import Model


def _weights(path):
    return Run(path).training()


def _same(a, b):
    for name, tensor in a.tensors().items():
        assert torch.equal(tensor, b.tensors()[name]), name
    assert a.hard_tensors().keys() == b.hard_tensors().keys()
    assert all(torch.equal(tensor, b.hard_tensors()[name]) for name, tensor in a.hard_tensors().items())
    assert (a.update, a.trials_seen, a.optimiser.updates) == (b.update, b.trials_seen, b.optimiser.updates)


def test_same_seed_same_bits_and_another_seed_another_network(tiny, tmp_path):
    for name in ("a", "b"):
        train(Run.create(tmp_path / name, tiny))
    _same(_weights(tmp_path / "a"), _weights(tmp_path / "b"))
    train(Run.create(tmp_path / "c", read_experiment(TINY | {"seed": 2})))
    assert not torch.equal(_weights(tmp_path / "a").flat, _weights(tmp_path / "c").flat)


def test_stopping_anywhere_changes_nothing(tiny, tmp_path):
    train(Run.create(tmp_path / "whole", tiny))
    Run.create(tmp_path / "pieces", tiny)
    for steps in (1, 13, 3, 8, None):  # stops inside and between stages
        train(Run(tmp_path / "pieces"), steps=steps)
    _same(_weights(tmp_path / "whole"), _weights(tmp_path / "pieces"))


VARYING = {
    "name": "varying",
    "task": TINY["task"] | {"delay": {"from": 2, "to": 5}},
    "network": TINY["network"],
    "behaviour": TINY["behaviour"],
    "stage": [
        {"updates": 12, "conditions": 8, "trials": 4, "objective": {"kind": "task-optimal"}, "rate_budget": 0.05},
        {
            "updates": 20,
            "conditions": 8,
            "trials": 4,
            "task": {"delay": {"from": 0, "to": 9}, "cue": {"from": 1, "to": 3}, "denoise": {"from": 3, "to": 5}},
            "hard_example_fraction": 0.25,
            "principal_axes": 0.9,
            "rate_budget": 0.05,
        },
    ],
}


def test_stopping_changes_nothing_where_durations_and_the_price_of_rates_vary(tmp_path):
    experiment = read_experiment(VARYING)
    train(Run.create(tmp_path / "whole", experiment))
    Run.create(tmp_path / "pieces", experiment)
    for steps in (1, 9, 5, 8, None):
        train(Run(tmp_path / "pieces"), steps=steps, micro_batch=4)
    whole, pieces = (_weights(tmp_path / name) for name in ("whole", "pieces"))
    assert whole.price == pieces.price > 0.001  # a network above its budget pays more and more
    _same(whole, pieces)


def test_durations_are_drawn_anew_for_each_update_within_their_ranges():
    experiment = read_experiment(VARYING)
    seen = [state.durations for state in Training(experiment, Model.of(experiment)).run()]
    first, second = seen[:12], seen[12:]
    assert {tuple(found) for found in first} == {("delay",)}
    assert {found["delay"] for found in first} <= set(range(2, 6)) and len({found["delay"] for found in first}) > 1
    assert {found["cue"] for found in second} == {1, 2, 3} and {found["denoise"] for found in second} == {3, 4, 5}
    assert {found["delay"] for found in second} <= set(range(10)) and len({found["delay"] for found in second}) > 5


def test_metrics_record_durations_rate_and_price(tmp_path):
    train(Run.create(tmp_path / "run", read_experiment(VARYING)))
    line = Run(tmp_path / "run").metrics()[-1]
    assert set(line["durations"]) == {"delay", "cue", "denoise"} and line["rate"] > 0.05 and line["rate_price"] > 0.001


def test_an_update_with_drawn_durations_is_that_of_the_task_with_these_durations():
    table = VARYING | {"stage": [VARYING["stage"][1] | {"updates": 1, "rate_budget": 0.3}]}
    varying = Training(read_experiment(table), Model.of(read_experiment(table)))
    (state,) = varying.run()
    table = table | {"stage": [table["stage"][0] | {"task": state.durations}]}
    fixed = Training(read_experiment(table), Model.of(read_experiment(table)))
    (same,) = fixed.run()
    assert torch.equal(varying.flat, fixed.flat) and state.loss == same.loss
    # The root mean square rate that the budget is held against, from the trajectory itself.
    model, stage, objective = (
        Model.of(read_experiment(table)),
        fixed.experiment.stage[0],
        build("objective", {"kind": "diffusion"}),
    )
    model = model.at_stage(stage)
    (drawn,) = draw(model, stage, objective, 1, 0)
    batch = model.simulate(drawn.draws, model.inputs(drawn.conditions), forced=True)
    assert state.rate == pytest.approx(float(batch.trajectory.detach().square().mean().sqrt()), rel=1e-5)


@pytest.mark.slow
def test_the_price_of_rates_brings_them_to_their_budget():
    stage = {"updates": 400, "conditions": 8, "trials": 4, "objective": {"kind": "task-optimal"}, "warmup": 0}
    end = {}
    for budget in (1e9, 1.0):
        experiment = read_experiment(TINY | {"stage": [stage | {"rate_budget": budget}]})
        rates = [state.rate for state in Training(experiment, Model.of(experiment), price=0.3).run()]
        end[budget] = (sum(rate**2 for rate in rates[-100:]) / 100) ** 0.5
    assert end[1e9] > 1.2 and 0.9 < end[1.0] < 1.1


def test_rates_are_held_only_at_a_budget():
    with pytest.raises(LapsusError, match=r"rate_hold = 0\.1 is not right: rates are held at rate_budget, which"):
        read_experiment(TINY | {"stage": [TINY["stage"][0] | {"rate_hold": 0.1}]})


@pytest.mark.slow
def test_held_rates_stay_at_their_budget_from_below_too():
    stage = {"updates": 400, "conditions": 8, "trials": 4, "objective": {"kind": "task-optimal"}, "warmup": 0}
    end = {}
    for hold in (0.0, 1.0):
        experiment = read_experiment(TINY | {"stage": [stage | {"rate_budget": 3.0, "rate_hold": hold}]})
        rates = [state.rate for state in Training(experiment, Model.of(experiment)).run()]
        end[hold] = (sum(rate**2 for rate in rates[-100:]) / 100) ** 0.5
    assert end[0.0] < 2.0 and 2.7 < end[1.0] < 3.3


@pytest.mark.slow
def test_a_killed_run_ends_with_the_same_bits(tiny, tmp_path, warm):
    # Many small updates and checkpoints every 0.05 s, killed without warning at moments that no code chose.
    experiment = read_experiment(TINY | {"stage": [TINY["stage"][1] | {"updates": 400}]})
    train(Run.create(tmp_path / "whole", experiment))
    Run.create(tmp_path / "killed", experiment)
    script = f"import lapsus; lapsus.train(lapsus.Run({str(tmp_path / 'killed')!r}), checkpoint_seconds=0.05)"
    kills = 0
    newest = lambda: max((path.name for path in (tmp_path / "killed").glob("checkpoint-*.json")), default="")
    for attempt in range(40):
        before = newest()
        process = warm.start(script, cwd=tmp_path)
        deadline = time.monotonic() + 60
        while process.running() and newest() <= before and time.monotonic() < deadline:
            time.sleep(0.01)
        if process.running():
            time.sleep(0.013 * (attempt % 5))
            process.send_signal(signal.SIGKILL)
        kills += process.wait().returncode == -signal.SIGKILL
        if Run(tmp_path / "killed").update == experiment.updates or kills == 3:
            break
    assert kills >= 1
    train(Run(tmp_path / "killed"))
    _same(_weights(tmp_path / "whole"), _weights(tmp_path / "killed"))
    updates = [line["update"] for line in Run(tmp_path / "killed").metrics()]
    assert updates == sorted(set(updates)) == [line["update"] for line in Run(tmp_path / "whole").metrics()]


@pytest.mark.slow
def test_interrupt_saves_and_says_how_to_go_on(tmp_path, warm):
    (tmp_path / "long.toml").write_text(to_toml(TINY | {"stage": [TINY["stage"][1] | {"updates": 100_000}]}))
    metrics, deadline = tmp_path / "run" / "metrics.jsonl", time.monotonic() + 300
    with warm.lapsus("train", "long.toml", "-o", "run", cwd=tmp_path) as process:
        while not (metrics.exists() and metrics.read_text()) and process.running() and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        done = process.wait()
    assert done.returncode == 130 and "lapsus resume run" in done.stdout and "Traceback" not in done.stderr
    assert Run(tmp_path / "run").update > 0


@pytest.mark.parametrize("micro_batch", [4, 8])
def test_cutting_a_batch_changes_no_bit(tiny, micro_batch):
    stage = Stage(updates=1, conditions=16, trials=8)
    objective = build("objective", stage.objective)
    results = []
    for cut in (None, micro_batch):
        training = Training(tiny, Model.of(tiny))
        terms, excess, _ = gradient(
            training.model, stage, objective, draw(training.model, stage, objective, 1, 0, cut), with_excess=True
        )
        results.append((training.grad.clone(), terms, excess))
    torch.testing.assert_close(results[0][0], results[1][0], rtol=1e-4, atol=1e-6)
    assert results[0][1] == pytest.approx(results[1][1], rel=1e-5)
    assert results[0][2] == pytest.approx(results[1][2], rel=1e-4)
    if fused.instruction_set():
        assert torch.equal(results[0][0], results[1][0])


def test_gradient_is_that_of_the_whole_graph(tiny):
    """Cutting the graph at the drives and walking the rest once must give what plain autograd gives."""
    stage = Stage(updates=1, conditions=4, trials=3)
    objective = build("objective", stage.objective)
    training = Training(tiny, Model.of(tiny))
    gradient(training.model, stage, objective, draw(training.model, stage, objective, 1, 0), engine="reference")
    ours = training.grad.clone()
    model = Model.of(tiny)
    conditions = model.task.sample(4, rng.generator(1, 0, "conditions"))
    x_T = model.behaviour.sample(conditions, 3, rng.generator(1, 0, "responses"))
    batch = model.batch(
        conditions, model.inputs(conditions), x_T, range(4), rng.seed_of(1, 0), forced=True, engine="reference"
    )
    sum(objective(batch).values()).mean().backward()
    plain = torch.cat(
        [torch.zeros_like(p).flatten() if p.grad is None else p.grad.flatten() for p in model.parameters()]
    )
    torch.testing.assert_close(ours, plain, rtol=1e-4, atol=1e-7)


def test_adam_is_torchs_adam(tiny):
    stage = Stage(updates=100, learning_rate=1e-2, warmup=0, beta_2=0.999)
    training = Training(tiny, Model.of(tiny))
    twin = training.flat.clone().requires_grad_()
    adam = torch.optim.Adam([twin], lr=1e-2, betas=(0.9, 0.999))
    for step in range(20):
        training.grad.copy_(torch.randn(len(twin), generator=rng.generator(step)))
        twin.grad = training.grad.clone()
        training._step(stage, 1e-2, 1.0)
        adam.step()
    torch.testing.assert_close(training.flat, twin.detach(), rtol=1e-5, atol=1e-6)


def test_learning_rate_warms_up_and_decays():
    stage = Stage(updates=1000, learning_rate=1e-2, final_learning_rate=1e-4, warmup=10)
    assert learning_rate(stage, 0) == pytest.approx(1e-3)
    assert learning_rate(stage, 10) == pytest.approx(1e-2)
    assert learning_rate(stage, 999) == pytest.approx(1e-4)
    middle = (10 + 999) / 2
    assert learning_rate(stage, int(middle)) == pytest.approx(1e-3, rel=0.01)


def test_damaged_checkpoint_falls_back_to_the_one_before(tiny, tmp_path):
    run = Run.create(tmp_path / "run", tiny)
    train(run, steps=10)
    train(run, steps=10)
    newest = tmp_path / "run" / "checkpoint-00000020.safetensors"
    newest.write_bytes(newest.read_bytes()[:100])
    with pytest.warns(UserWarning, match="checkpoint-00000020.*damaged"):
        training = run.training()
    assert training.update == 10
    (tmp_path / "run" / "checkpoint-00000010.json").write_text("{")
    with pytest.warns(UserWarning), pytest.raises(LapsusError, match="Every checkpoint"):
        run.training()


def test_only_two_checkpoints_are_kept(tiny, tmp_path):
    run = Run.create(tmp_path / "run", tiny)
    for _ in range(4):
        train(run, steps=3)
    assert len(list((tmp_path / "run").glob("checkpoint-*.safetensors"))) == 2


def test_warm_start_takes_the_averaged_weights_and_the_readout(tiny, tmp_path):
    train(Run.create(tmp_path / "first", tiny))
    second = read_experiment(TINY | {"seed": 9, "start_from": str(tmp_path / "first")})
    training = Run.create(tmp_path / "second", second).training()
    first = load(tmp_path / "first")
    assert all(torch.equal(a, b) for a, b in zip(first.state_dict().values(), training.model.state_dict().values()))
    other = read_experiment(
        TINY
        | {"network": {"kind": "dendritic", "units": 7, "branching": [3, 3]}, "start_from": str(tmp_path / "first")}
    )
    with pytest.raises(LapsusError, match="has shape"):
        Run.create(tmp_path / "third", other).training()


def test_a_run_may_be_called_like_the_network_that_it_starts_from(tmp_path):
    """It does not take its own folder, which holds no weights yet, for it."""
    shipped = load("index-no-swap")
    same = read_experiment("index-no-swap").model_copy(update={"start_from": "index-no-swap"})
    training = Run.create(tmp_path / f"index-no-swap-{same.seed}", same).training()
    assert all(torch.equal(a, b) for a, b in zip(shipped.state_dict().values(), training.model.state_dict().values()))


def test_loaded_run_gives_the_same_samples(tiny, tmp_path):
    run = Run.create(tmp_path / "run", tiny)
    train(run)
    a, b = simulate(load(run.path), 4, 3, seed=1), simulate(run.model(), 4, 3, seed=1)
    assert a.identical(b)
    assert a["activity"].dims == ("trial", "time", "unit") and a.sizes["trial"] == 12
    assert a["epoch"].values.tolist()[0] == "initial" and int(a["time"][-1]) == 4
    assert int(a["time"][a["epoch"].values == "cue"].max()) == 0
    a.to_netcdf(tmp_path / "a.nc", engine="h5netcdf")
    assert (tmp_path / "a.nc").stat().st_size > 0


def test_evaluation_reports_what_it_promises(tiny, tmp_path):
    run = Run.create(tmp_path / "run", tiny)
    train(run)
    result = evaluate(run.model(), conditions=64, trials=4)
    assert json.loads(json.dumps(result)) == result
    for key in (
        "excess",
        "swap_curve",
        "swap_curve_mad",
        "swap_curve_max",
        "median_error",
        "median_error_target",
        "away",
    ):
        assert key in result
    assert set(result["swap_curve"][0]) >= {"distance", "rate", "low", "high", "target"}
    assert result["excess_interval"][0] < result["excess"] < result["excess_interval"][1]


def _conditions_and_inputs(model, count):
    conditions = model.task.sample(count, rng.generator(1, 0, "conditions"))
    return (
        conditions,
        model.inputs(conditions),
        model.behaviour.sample(conditions, 4, rng.generator(1, 0, "responses")),
    )


def test_the_hardest_conditions_come_back(tiny):
    stage = Stage(updates=1, conditions=8, trials=4, hard_example_fraction=0.25)
    objective = build("objective", stage.objective)
    model = Training(tiny, Model.of(tiny)).model
    plain = Stage(updates=1, conditions=8, trials=4)
    losses = objective(model.batch(*_conditions_and_inputs(model, 8), range(8), rng.seed_of(1, 0), forced=True))[
        "ddpm"
    ].detach()
    terms, _, hardest = gradient(model, stage, objective, draw(model, stage, objective, 1, 0))
    assert gradient(model, plain, objective, draw(model, plain, objective, 1, 0))[2] == {}
    which = losses.argsort(descending=True)[:2]
    fresh = next(draw(model, stage, objective, 1, 0)).conditions
    for name, values in hardest.items():
        assert torch.equal(values, fresh[name][which])
    later = next(draw(model, stage, objective, 1, 2, hard=hardest))
    new = next(draw(model, stage, objective, 1, 2)).conditions
    assert later.new == 6
    for name, values in later.conditions.items():
        assert torch.equal(values[:6], new[name][:6]) and torch.equal(values[6:], hardest[name])
    # What is logged is of new conditions alone.
    x_T = model.behaviour.sample(later.conditions, 4, rng.generator(1, 2, "responses"))
    of_all = objective(
        model.batch(later.conditions, model.inputs(later.conditions), x_T, range(8), rng.seed_of(1, 2), forced=True)
    )["ddpm"].detach()
    terms, *_ = gradient(model, stage, objective, draw(model, stage, objective, 1, 2, hard=hardest))
    assert terms["ddpm"] == pytest.approx(float(of_all[:6].mean()), rel=1e-5)


@pytest.mark.parametrize("micro_batch", [None, 4])
def test_the_loop_feeds_the_hardest_of_two_updates_before(tiny, monkeypatch, micro_batch):
    from lapsus.training import loop

    given, found = {}, []
    draw_, gradient_ = loop.draw, loop.gradient

    def watched_draw(model, stage, objective, seed, update, cut, hard):
        given[update] = hard
        return draw_(model, stage, objective, seed, update, cut, hard)

    def watched_gradient(*arguments, **options):
        found.append(gradient_(*arguments, **options))
        return found[-1]

    monkeypatch.setattr(loop, "draw", watched_draw)
    monkeypatch.setattr(loop, "gradient", watched_gradient)
    list(Training(tiny, Model.of(tiny), micro_batch=micro_batch).run())
    stage = tiny.stage[1]
    for update in range(15, 40):  # the second stage; the first has another task and no hard conditions
        if update < 17:
            assert not given[update]
            continue
        assert len(given[update]["report"]) == int(stage.hard_example_fraction * stage.conditions) == 2
        for name, values in found[update - 2][2].items():
            assert torch.equal(given[update][name], values)


@pytest.mark.parametrize(
    "second",
    [
        {"conditions": 4},
        {"conditions": 4, "hard_example_fraction": 0.25},
        {"conditions": 16, "hard_example_fraction": 0.5},
        {"task": {"items": 1}, "hard_example_fraction": 0.5},
    ],
)
def test_hard_conditions_stop_at_a_stage_of_another_kind(second):
    plain = {"updates": 4, "conditions": 8, "trials": 4, "hard_example_fraction": 0.5}
    task = {"kind": "feature-cued", "prestimulus": 1, "stimulus": 2, "delay": 1, "cue": 2, "denoise": 4}
    experiment = read_experiment(
        TINY | {"task": task, "stage": [plain, {"updates": 4, "conditions": 8, "trials": 4} | second]}
    )
    steps = list(Training(experiment, Model.of(experiment)).run())
    assert len(steps) == 8 and all(math.isfinite(step.loss) for step in steps)


def test_non_finite_loss_stops_and_keeps_the_last_good_checkpoint(tmp_path):
    wild = TINY | {"stage": [TINY["stage"][1] | {"updates": 200, "learning_rate": 1e30, "clip": 1e30, "warmup": 5}]}
    run = Run.create(tmp_path / "run", read_experiment(wild))
    with pytest.raises(LapsusError, match=r"no longer a finite number.*last good checkpoint"):
        train(run)
    training = run.training()
    assert bool(torch.isfinite(training.flat).all())


def test_weights_that_are_not_numbers_are_refused(tiny, tmp_path):
    run = Run.create(tmp_path / "run", tiny)
    training = run.training()
    training.flat[3] = float("nan")
    training.update = 5
    with pytest.raises(LapsusError, match="no longer finite numbers after update 5"):
        run.save(training)
    assert run.training().update == 0
