"""Arrays as text, so that an experiment file holds the table and the density that it was made from."""

import base64
import binascii
import zlib

import numpy as np

from lapsus.errors import LapsusError

__all__ = ["pack", "unpack"]

_MOST_BYTES = 1 << 27


def pack(values: np.ndarray) -> str:
    """An array in single precision as text: its shape, then its compressed bytes.

    >>> from lapsus.designs import pack, unpack
    >>> unpack(pack(np.eye(2)), "an example").tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    values = np.ascontiguousarray(values, dtype="<f4")
    shape = "x".join(map(str, values.shape))
    return f"{shape}:{base64.b85encode(zlib.compress(values.tobytes(), 9)).decode()}"


def unpack(text: str, name: str) -> np.ndarray:
    """The array again; `name` says in an error what the text is."""
    shape, _, packed = text.partition(":")
    try:
        sizes = [int(size) for size in shape.split("x")]
        length = 4 * int(np.prod(sizes))
        if length > _MOST_BYTES:
            raise ValueError("too large")
        decoder = zlib.decompressobj()
        found = decoder.decompress(base64.b85decode(packed), length + 1)
        if not decoder.eof:  # with the last bytes, the checksum is missing
            raise ValueError("cut off")
        return np.frombuffer(found, "<f4").reshape(sizes).copy()
    except (ValueError, zlib.error, binascii.Error) as error:
        raise LapsusError(f"{name} is damaged: it does not hold the numbers that it should.") from error
