"""Networks, and a whole trial against an oracle in plain NumPy loops."""

import math

import numpy as np
import pytest
import torch

from lapsus import DendriticTree, IndexCued, LapsusError, PointNeurons, TwoLayer, check_network, read_experiment, rng
from lapsus.networks import behavioural, nullspace
from lapsus.training.model import Model

NETWORKS = [
    DendriticTree(7),
    DendriticTree(7, units=5, branching=(3,)),
    DendriticTree(7, units=4, branching=(2, 3, 2), nonlinearity="softplus"),
    DendriticTree(7, response_size=1),
    PointNeurons(7),
    TwoLayer(7),
    TwoLayer(7, nonlinearity="softplus", response_size=3),
]


@pytest.mark.parametrize("network", NETWORKS, ids=range(len(NETWORKS)))
def test_check(network):
    check_network(network, 7)


def test_subspaces_are_orthogonal_and_complete():
    W_x = DendriticTree(3).readout
    W_perp = nullspace(W_x)
    both = torch.cat([W_x, W_perp])
    torch.testing.assert_close(both @ both.T, torch.eye(16), atol=1e-5, rtol=0)
    r = torch.randn(4, 16, generator=rng.generator("r"))
    assert behavioural(r, W_x).shape == (4, 2)


def test_readouts_of_different_seeds_are_uniform_rotations():
    # Under the uniform distribution every entry of W_x has mean 0 and mean square 1/n.
    entries = torch.stack([DendriticTree(2, units=4, branching=(), seed=s).readout for s in range(400)])
    assert float(entries.mean(0).abs().max()) < 0.12
    torch.testing.assert_close(entries.square().mean(0), torch.full((2, 4), 0.25), atol=0.05, rtol=0)


def _oracle(model, conditions, c, r, noise, path, forced):
    """One trial of condition c, node by node, straight from the paper's equations. Returns r after every step."""
    task, net = model.task, model.network
    relu = lambda value: max(value, 0.0)
    value = {name: tensor.detach().double().numpy() for name, tensor in model.state_dict().items()}
    zr, zp = conditions["report"][c].double().numpy(), conditions["probe"][c].double().numpy()
    cued = int(conditions["cued"][c])

    def sensory(epoch):
        if isinstance(task, IndexCued):
            colours = [math.cos(z) for z in zr] + [math.sin(z) for z in zr] if task.encoding == "circular" else list(zr)
            if epoch == "stimulus":
                return np.array(colours + [0.0] * task.cue_size)
            return np.concatenate([np.zeros(len(colours)), value["encoder.cue"][cued]])
        preferred = [2 * math.pi * i / 16 - math.pi for i in range(16)]
        S = np.zeros((16, 16))
        for i in range(16):
            for j in range(16):
                if epoch == "stimulus":
                    S[i, j] = sum(
                        math.exp(math.cos(zp[n] - preferred[i]) + math.cos(zr[n] - preferred[j]))
                        for n in range(task.items)
                    )
                else:
                    S[i, j] = math.exp(math.cos(zp[cued] - preferred[i]))
        return (value["encoder.probe_weight"] @ S @ value["encoder.report_weight"].T).reshape(-1)

    def bias(layer, node, t):
        if t is None:
            return value[f"network.time.constant.{layer}"][node]
        code = [math.sin(math.pi * k * t / T) for k in range(1, 9)] + [
            math.cos(math.pi * k * t / T) for k in range(1, 9)
        ]
        shared = value["network.time.shared"] @ np.array(code)
        return shared @ value[f"network.time.weight.{layer}"][:, node]

    T = task.denoise
    W_x = value["network.readout"]
    sigmas = model.schedule.sigma.numpy()
    states, step = [r.copy()], 0
    for epoch, steps in task.epochs.items():
        s = sensory(epoch) if epoch in ("stimulus", "cue") else None
        for k in range(steps):
            t = k if epoch == "denoise" else None
            if forced and t is not None:
                r = r + W_x.T @ (path[t] - W_x @ r)
            h = []
            for leaf in range(net.drive_size):
                total = value["network.leaf_weight"][leaf] @ r + bias(0, leaf, t)
                if s is not None:
                    total += value["network.input_weight"][leaf] @ s
                h.append(relu(total))
            for layer in range(len(net.branching)):
                weight = value[f"network.branch_weights.{layer}"]
                children = weight.shape[1]
                h = [
                    relu(sum(weight[i, j] * h[i * children + j] for j in range(children)) + bias(layer + 1, i, t))
                    for i in range(len(weight))
                ]
            sigma = sigmas[t] if t is not None else sigmas[0]
            r = (1 - net.alpha) * r + net.alpha * np.array(h) + sigma * noise[step]
            states.append(r.copy())
            step += 1
    return np.array(states)


@pytest.mark.parametrize("engine", ["reference", "auto"])
@pytest.mark.parametrize("forced", [False, True])
@pytest.mark.parametrize(
    "task", [{"kind": "index-cued"}, {"kind": "index-cued", "encoding": "scalar", "items": 3}, {"kind": "feature-cued"}]
)
def test_a_whole_trial_against_the_oracle(task, forced, engine):
    short = {"prestimulus": 2, "stimulus": 2, "delay": 3, "cue": 2, "denoise": 6}
    experiment = read_experiment(
        {
            "name": "oracle",
            "task": task | short,
            "network": {"kind": "dendritic", "units": 6, "branching": [3, 2]},
            "behaviour": {"kind": "bns", "swap": {"kind": "constant", "p": 0.3}},
            "stage": [{"updates": 1}],
        }
    )
    model = Model.of(experiment).double()
    with torch.no_grad():
        for parameter in model.parameters():  # biases start at zero: give every parameter a say
            parameter.add_(0.1 * torch.randn(parameter.shape, dtype=torch.float64, generator=rng.generator("jitter")))
    conditions = model.task.sample(3, rng.generator("oracle"))
    conditions = {k: v.double() if v.is_floating_point() else v for k, v in conditions.items()}
    x_T = model.behaviour.sample(conditions, 2, rng.generator("x"))
    batch = model.batch(conditions, model.inputs(conditions), x_T, range(3), 5, forced=forced, engine=engine)
    for c, k in ((0, 0), (2, 1)):
        states = _oracle(
            model,
            conditions,
            c,
            batch.trajectory[0, :, c, k].detach().double().numpy(),
            batch.draws.noise[:, :, c, k].double().numpy(),
            batch.draws.path[:, :, c, k].double().numpy(),
            forced,
        )
        np.testing.assert_allclose(batch.trajectory[:, :, c, k].detach().numpy(), states, atol=1e-6)


@pytest.mark.parametrize(
    "kind", [{"kind": "dendritic", "units": 3, "branching": [2, 2]}, {"kind": "two-layer", "units": 3, "hidden": 5}]
)
@pytest.mark.parametrize("objective", ["diffusion", "task-optimal", "sample-mse"])
def test_gradients_of_every_objective_by_finite_differences(kind, objective):
    from lapsus.training.build import build

    experiment = read_experiment(
        {
            "name": "grad",
            "task": {"kind": "index-cued", "prestimulus": 1, "stimulus": 1, "delay": 1, "cue": 1, "denoise": 3},
            "network": kind | {"nonlinearity": "softplus"},
            "behaviour": {"kind": "bns", "swap": {"kind": "constant", "p": 0.3}},
            "stage": [{"updates": 1}],
        }
    )
    model = Model.of(experiment).double()
    made = build(
        "objective",
        {"kind": objective, "rate_penalty": 0.01}
        | ({"base_penalty": 0.3, "step_weight_exponent": 0.7} if objective == "diffusion" else {}),
    )
    conditions = {
        k: v.double() if v.is_floating_point() else v for k, v in model.task.sample(2, rng.generator("g")).items()
    }
    x_T = model.behaviour.sample(conditions, 3, rng.generator("gx"))
    names, values = zip(*model.named_parameters())
    engine = "reference" if kind["kind"] == "two-layer" else "auto"

    def loss(*parameters):
        def run():
            return sum(
                made(
                    model.batch(
                        conditions, model.inputs(conditions), x_T, range(2), 1, forced=made.forced, engine=engine
                    )
                ).values()
            ).sum()

        return torch.func.functional_call(_Call(model, run), {f"model.{n}": p for n, p in zip(names, parameters)}, ())

    class _Call(torch.nn.Module):
        def __init__(self, model, run):
            super().__init__()
            self.model, self.run = model, run

        def forward(self):
            return self.run()

    assert torch.autograd.gradcheck(
        loss, tuple(v.detach().clone().requires_grad_() for v in values), atol=1e-6, fast_mode=True
    )


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: DendriticTree(3, units=1), "too few for a response"),
        (lambda: DendriticTree(3, branching=(2, 0)), "network.branching"),
        (lambda: DendriticTree(3, alpha=0.0), "network.alpha"),
        (lambda: TwoLayer(3, hidden=0), "network.hidden"),
    ],
)
def test_bad_parameters(make, message):
    with pytest.raises(LapsusError, match=message):
        make()


def test_the_check_catches_leaks_between_trials():
    class Leaky(TwoLayer):
        def F(self, r, drive, biases):
            return super().F(r, drive, biases) + r.mean()

    with pytest.raises(LapsusError, match="mixes trials"):
        check_network(Leaky(7), 7)
