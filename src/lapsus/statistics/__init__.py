"""Statistics that several rooms need: each has its one home here."""

import lazy_loader

# Imported when they are first used: a fit needs neither SciPy's distributions nor xarray.
__getattr__, __dir__, _ = lazy_loader.attach(
    __name__, submodules=["counts", "intervals", "ks", "random_effects", "swaps"]
)
