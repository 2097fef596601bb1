"""lapsus: from behaviour with its errors to the neural mechanisms that may cause them.

fit(trials)            a behaviour model from a trial table
train, Run, load       networks that answer like the behaviour model
simulate, evaluate     their activity, and how close they come
analysis, paper        the mechanism
"""

import os
from importlib import import_module

__version__ = "0.1.0"

# Where torch is not loaded yet: its threads otherwise spin for milliseconds after every operation, on the cores that
# the kernel needs next. This alone makes training half as fast again.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

_PUBLIC = {
    "LapsusError": "lapsus.errors",
    "LapsusWarning": "lapsus.errors",
    "read_trials": "lapsus.trials",
    "fit": "lapsus.inference",
    "BNS": "lapsus.behaviour",
    "NoSwap": "lapsus.behaviour",
    "ConstantSwap": "lapsus.behaviour",
    "SmoothSwap": "lapsus.behaviour",
    "TabulatedSwap": "lapsus.behaviour",
    "IndexCued": "lapsus.tasks",
    "FeatureCued": "lapsus.tasks",
    "CausalInference": "lapsus.behaviour",
    "CueCombination": "lapsus.tasks",
    "fit_causal_inference": "lapsus.inference.causal_inference",
    "DendriticTree": "lapsus.networks",
    "PointNeurons": "lapsus.networks",
    "TwoLayer": "lapsus.networks",
    "Diffusion": "lapsus.training",
    "TaskOptimal": "lapsus.training",
    "SampleMSE": "lapsus.training",
    "Experiment": "lapsus.training",
    "Model": "lapsus.training",
    "Run": "lapsus.library",
    "read_experiment": "lapsus.training",
    "train": "lapsus.training",
    "load": "lapsus.library",
    "evaluate": "lapsus.study",
    "simulate": "lapsus.study",
    "check_task": "lapsus.checks",
    "check_behaviour": "lapsus.checks",
    "check_network": "lapsus.checks",
    "rollout": "lapsus.engine",
    "discover": "lapsus.discovery",
    "Discovery": "lapsus.discovery",
}

_MODULES = (
    "analysis",
    "behaviour",
    "circular",
    "diffusion",
    "discovery",
    "engine",
    "inference",
    "library",
    "networks",
    "paper",
    "plots",
    "report",
    "statistics",
    "streams",
    "study",
    "sweep",
    "tasks",
    "training",
    "trials",
)

__all__ = sorted((*_PUBLIC, *_MODULES))


def __getattr__(name: str):
    # Lazy, so that `lapsus --help` does not wait for torch.
    if name in _PUBLIC:
        return getattr(import_module(_PUBLIC[name]), name)
    if name in _MODULES:
        return import_module(f"lapsus.{name}")
    raise AttributeError(f"module 'lapsus' has no attribute {name!r}")


def __dir__():
    return __all__
