"""lapsus: from behaviour with its errors to the neural mechanisms that may cause them.

fit(trials)            a behaviour model from a trial table
train, Run, load       networks that answer like the behaviour model
simulate, evaluate     their activity, and how close they come
mechanism, paper       the mechanism
"""

import os

import lazy_loader

__version__ = "0.2.0"

# Where torch is not loaded yet: its threads otherwise spin for milliseconds after every operation, on the cores that
# the kernel needs next. This alone makes training half as fast again.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

# The names and where they come from are written once, in the stub that type checkers and editors read; they are
# imported when they are first used, so that `lapsus --help` does not wait for torch.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
