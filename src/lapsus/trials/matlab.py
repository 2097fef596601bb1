"""Is this a MATLAB file whose parts fit into each other?

SciPy's reader is compiled code that believes what a file says of its own sizes, and reads beyond its memory where that
is not so; what has passed here it can be given.

Format: MathWorks, "MAT-File Format", level 5: elements of a tag (type, bytes) and data, arrays made of such elements.
"""

import math
import struct
import zlib

from lapsus.errors import LapsusError

__all__ = ["check_matlab"]

# Bytes of a number of each type that data may have; and the types of an array and of a compressed element.
_SIZES = {1: 1, 2: 1, 3: 2, 4: 2, 5: 4, 6: 4, 7: 4, 9: 8, 12: 8, 13: 8, 16: 1, 17: 2, 18: 4}
_ARRAY, _COMPRESSED = 14, 15
_CELL, _STRUCT, _TEXT, _NUMBERS = 1, 2, 4, range(6, 16)
_DEEPEST, _MOST_BYTES, _MOST_CELLS = 20, 1 << 29, 10**8


def _need(right: bool, what: str) -> None:
    if not right:
        raise LapsusError(f"it is damaged: {what}")


class _Elements:
    """The elements in a stretch of bytes, one after another."""

    def __init__(self, data: bytes | memoryview, order: str):
        self.data, self.order, self.at = memoryview(data), order, 0

    def __bool__(self) -> bool:
        return self.at < len(self.data)

    def next(self) -> tuple[int, memoryview]:
        """Type and data of the next element; small ones hold both in eight bytes."""
        _need(self.at + 8 <= len(self.data), "an element ends before its tag")
        first, second = struct.unpack_from(self.order + "II", self.data, self.at)
        if first >> 16:
            size, kind, start, padded = first >> 16, first & 0xFFFF, self.at + 4, 8
            _need(size <= 4, "a small element is too long")
            self.at += padded
        else:
            kind, size, start = first, second, self.at + 8
            # Elements begin at multiples of eight bytes, except after compressed ones.
            self.at = start + size + (0 if kind == _COMPRESSED else -size % 8)
        _need(start + size <= len(self.data), "an element is longer than the file")
        return kind, self.data[start : start + size]

    def expect(self, *kinds: int) -> tuple[int, memoryview]:
        """The next element, which must be of one of these types and hold whole numbers of it."""
        kind, data = self.next()
        _need(kind in kinds and len(data) % _SIZES[kind] == 0, f"an element of type {kind} is in the wrong place")
        return kind, data


def check_matlab(data: bytes) -> None:
    """Raise LapsusError unless the file's arrays are numbers, text, cells and structures of the sizes they say.

    Files of other levels (4, 7.3) are left to their reader.
    """
    if len(data) < 128 or data[126:128] not in (b"IM", b"MI") or 0 in data[:4]:
        return
    order = "<" if data[126:128] == b"IM" else ">"
    if struct.unpack_from(order + "H", data, 124)[0] != 0x0100:
        return
    elements, unpacked = _Elements(data[128:], order), 0
    while elements:
        kind, content = elements.next()
        if kind == _COMPRESSED:
            inner = _inflated(bytes(content))
            unpacked += len(inner)
            _need(unpacked <= _MOST_BYTES, "it unpacks to too much")
            parts = _Elements(inner, order)
            kind, content = parts.next()
        _need(kind == _ARRAY, f"an element of type {kind} stands alone")
        _array(content, order, 0)


def _inflated(data: bytes) -> bytes:
    stream = zlib.decompressobj()
    try:
        inner = stream.decompress(data, _MOST_BYTES)
    except zlib.error as error:
        raise LapsusError(f"it is damaged: {error}") from error
    _need(stream.eof, "a compressed element does not end")
    return inner


def _array(content: memoryview, order: str, depth: int) -> None:
    if not len(content):  # an empty cell
        return
    _need(depth < _DEEPEST, "its arrays are nested too deep")
    parts = _Elements(content, order)
    _, flags = parts.expect(6)
    _need(len(flags) == 8, "an array's flags are not right")
    word = struct.unpack_from(order + "I", flags)[0]
    kind, is_complex = word & 0xFF, bool(word & 0x0800)
    _, shape = parts.expect(5)
    dimensions = struct.unpack(f"{order}{len(shape) // 4}i", shape)
    _need(2 <= len(dimensions) <= 32 and min(dimensions) >= 0, "an array's shape is not right")
    count = math.prod(dimensions)
    _need(count <= _MOST_CELLS, "an array is too large")
    parts.expect(1)  # its name
    if kind in _NUMBERS or kind == _TEXT:
        for _ in range(1 + is_complex):
            own, numbers = parts.expect(*_SIZES)
            size = len(numbers) // _SIZES[own]
            # Text in UTF-8 may take several bytes a letter, and an empty one has no letters at all.
            _need(
                size == count or (kind == _TEXT and own == 16 and size >= count), "an array does not have its numbers"
            )
    elif kind in (_CELL, _STRUCT):
        fields = 1
        if kind == _STRUCT:
            _, length = parts.expect(5)
            _need(len(length) == 4, "a structure's names are not right")
            width = struct.unpack(order + "i", length)[0]
            _, names = parts.expect(1)
            _need(0 < width <= 64 and len(names) % width == 0, "a structure's names are not right")
            fields = len(names) // width
        for _ in range(count * fields):
            own, inner = parts.next()
            _need(own == _ARRAY, "a cell holds no array")
            _array(inner, order, depth + 1)
    else:
        raise LapsusError("it holds something that is neither numbers, text, cells nor structures")
    _need(not parts, "an array has more parts than it says")
