"""Networks that are not trained but made: activity with a known geometry and responses drawn from the target itself.

They let every figure and claim be computed in seconds, with answers that are known beforehand.
"""

import numpy as np
import torch
import xarray as xr

from lapsus.behaviour import BNS, ConstantSwap, NoSwap, SmoothSwap
from lapsus.behaviour.measures import prior_swap_probability
from lapsus.circular import angle, embed
from lapsus.evaluation.sample_sizes import QUICK_FIGURES
from lapsus.evaluation.simulation import _extra, _tensors
from lapsus.paper.roles import LABELS, Networks
from lapsus.tasks import FeatureCued, IndexCued

UNITS = 16
EPOCHS = {"initial": 1, "prestimulus": 3, "stimulus": 5, "delay": 15, "cue": 5, "denoise": 40}


def target_of(role: str) -> BNS:
    kind = role.split("-", 1)[1]
    if "constant" in kind:
        return BNS(ConstantSwap(int(kind[-2:]) / 100))
    if kind.startswith("smooth") or kind == "sample-mse":
        return BNS(SmoothSwap(), pi_correct=float(kind[-1]) if kind.startswith("smooth") else 0.0)
    return BNS(NoSwap())


class Made:
    """What figures need of a model."""

    def __init__(self, role: str):
        self.role, self.behaviour = role, target_of(role)
        self.task = IndexCued() if role.startswith("index") else FeatureCued()


class SyntheticNetworks(Networks):
    """Swaps are misselections at the cue. The planes of the two items' colours meet at an angle that falls with probe
    distance before the cue (smooth targets), and are parallel after it where the target has swaps. At the response,
    activity lies on two rings."""

    def __init__(
        self, roles=(*LABELS, "feature-point-constant-30", "feature-two-layer-constant-30"), sizes=QUICK_FIGURES
    ):
        loaders = {role: (lambda role=role: Made(role)) for role in roles}
        super().__init__(loaders, {role: role for role in roles}, sizes)

    def responses(self, role, conditions, trials, *, seed=0, noise_scale=1.0):
        dataset = self._respond(role, conditions, trials, seed, noise_scale)
        return dataset.drop_vars("recalled")

    # How far the direction between the rings turns with the fixed colour.
    turn = 0.5

    def turns_parallel(self, role):
        """Whether planes do so at the cue: in the paper, where the target has swaps (feature-cued: probe-dependent)."""
        return "smooth" in role or role in ("index-constant-05", "index-constant-10")

    def lean(self, role, gap):
        """Angle between the planes of the two colours before the cue, [trial]."""
        return 0.3 + 1.2 * gap / np.pi if "smooth" in role else np.full(len(gap), 1.4)

    def _respond(self, role, conditions, trials, seed, noise_scale):
        model = self.model(role)
        generator = torch.Generator().manual_seed(seed)
        given = model.task.sample(conditions, generator) if isinstance(conditions, int) else _tensors(conditions)
        extra = {} if isinstance(conditions, int) else _extra(conditions, trials)
        weights = model.behaviour.weights(given)
        if noise_scale == 0 or role.endswith("sample-mse"):
            recalled = given["cued"][:, None].expand(-1, trials)
        else:
            recalled = torch.multinomial(weights, trials, replacement=True, generator=generator)
        report = given["report"].gather(1, recalled).flatten().numpy()
        rng = np.random.default_rng(seed)
        x = embed(report, 2.5) + 0.2 * max(noise_scale, 0.05) * rng.standard_normal((len(report), 2))
        if role.endswith("sample-mse"):
            mean = torch.einsum("cn,cnd->cd", weights, embed(given["report"], 2.5)).numpy()
            x = np.repeat(mean, trials, 0) + 0.1 * rng.standard_normal((len(report), 2))
        probability = prior_swap_probability(model.behaviour, given).numpy()
        table = model.task.table(given)
        columns = {name: ("trial", np.repeat(table[name].to_numpy(), trials)) for name in table.columns}
        columns |= {
            "condition": ("trial", np.repeat(np.arange(len(table)), trials)),
            "probability": ("trial", np.repeat(probability, trials)),
        }
        columns["recalled"] = ("trial", recalled.flatten().numpy())
        return xr.Dataset({"x_T": (("trial", "dim"), x), "response": ("trial", angle(x))} | columns | extra)

    def simulate(self, role, conditions, trials, *, seed=0, noise_scale=1.0):
        data = self._respond(role, conditions, trials, seed, noise_scale)
        rng = np.random.default_rng(seed + 1)
        basis = np.linalg.qr(np.random.default_rng(7).standard_normal((UNITS, UNITS)))[0].T
        readout, memory_axes = basis[:2], basis[2:]
        colours = np.stack([data["report_1"], data["report_2"]], 1)
        probe = np.stack([data["probe_1"], data["probe_2"]], 1)
        cued, recalled = data["cued"].to_numpy() - 1, data["recalled"].to_numpy()
        gap = np.abs(np.angle(np.exp(1j * (probe[:, 0] - probe[:, 1]))))
        lean, rises = self.lean(role, gap), self.turns_parallel(role)
        lean_after = np.full(len(gap), 0.1) if rises else lean
        u = embed(colours)

        def spatial(angle):
            second = np.stack([u[:, 1, 0], u[:, 1, 1] * np.cos(angle), u[:, 1, 1] * np.sin(angle)], 1)
            return second + np.stack([u[:, 0, 0], u[:, 0, 1], np.zeros(len(u))], 1)

        rows = np.arange(len(u))
        slot = recalled if rises else np.zeros(len(u), dtype=int)
        ring = 0.2 * np.concatenate([u[rows, slot], u[rows, 1 - slot]], 1)
        place = (recalled == 0).astype(float) * 2 - 1
        time = np.arange(sum(EPOCHS.values())) - 28
        epoch = np.repeat(list(EPOCHS), list(EPOCHS.values()))
        shown = np.isin(epoch, ["stimulus", "delay"]).astype(float)
        late = (time > -5).astype(float)
        m = shown[None, :, None] * (spatial(lean) @ memory_axes[:3])[:, None]
        m = m + late[None, :, None] * ((0.8 * spatial(lean_after)) @ memory_axes[:3] + ring @ memory_axes[3:7])[:, None]
        m = (
            m
            + late[None, :, None]
            * (0.4 * rises * (place[:, None] * embed(self.turn * colours[:, 0])) @ memory_axes[7:9])[:, None]
        )
        m = m + late[None, :, None] * ((cued == 0)[:, None] * memory_axes[9])[:, None]
        m = m + 0.1 * rng.standard_normal((*m.shape[:2], UNITS - 2)) @ memory_axes
        progress = np.clip(time / 40, 0, 1)[None, :, None]
        x = progress * data["x_T"].to_numpy()[:, None] + (1 - progress) * rng.standard_normal((*m.shape[:2], 2))
        activity = (m + x @ readout).astype(np.float32)
        data = data.drop_vars(["recalled", "x_T"])
        data["activity"] = (("trial", "time", "unit"), activity)
        data["readout"] = (("dim", "unit"), readout)
        return data.assign_coords(time=time, epoch=("time", epoch))
