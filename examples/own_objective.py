"""An objective of your own: the diffusion loss plus a price on change, which favours slow dynamics."""

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import lapsus


@dataclass(frozen=True)
class SlowDiffusion:
    """Adds slowness × the mean squared change of the rates from step to step before cue offset."""

    slowness: float = 1e-3
    forced = True

    def __call__(self, batch):
        losses = lapsus.Diffusion(rate_penalty=0.0)(batch)
        before = batch.trajectory[: -batch.draws.schedule.T]
        losses["slow"] = self.slowness * (before[1:] - before[:-1]).square().sum((0, 1)).mean(-1)
        return losses


if __name__ == "__main__":
    experiment = lapsus.read_experiment(
        {
            "name": "slow",
            "task": {"kind": "index-cued", "delay": 1, "denoise": 5},
            "network": {"kind": "dendritic", "units": 8, "branching": [4, 4]},
            "stage": [{"updates": 20, "objective": {"kind": "own_objective:SlowDiffusion", "slowness": 0.01}}],
        }
    )
    with TemporaryDirectory() as folder:
        run = lapsus.Run.create(Path(folder) / "run", experiment)  # an experiment that you give to a run is trusted
        lapsus.train(run, progress=False)
        last = run.metrics()[-1]
    print({name: round(value, 4) for name, value in last.items() if name.startswith("loss")})
