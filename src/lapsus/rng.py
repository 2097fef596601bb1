"""Random streams as a function of explicit numbers: no state to save, so a resumed run repeats its bits."""

import hashlib

import torch

__all__ = ["generator", "seed_of"]


def seed_of(*names: int | str) -> int:
    """A 63-bit seed that depends on every name and on their order."""
    digest = hashlib.blake2b(repr(names).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1


def generator(*names: int | str) -> torch.Generator:
    """A CPU generator of its own for, say, (run seed, update, "conditions")."""
    return torch.Generator().manual_seed(seed_of(*names))
