"""What happens to valid files: accidents in their bytes, and other parts in their structure."""

import gzip
import io
import json
import random
import struct

NASTY = (
    "",
    "nan",
    "inf",
    "-inf",
    "1e308",
    "1e-320",
    "-0",
    "9" * 400,
    "0x10",
    "1,5",
    "$\\frac{$",
    "\ud83d",
    "\x00",
    "\u202e",
    "../../x",
    "/etc/passwd",
    "=1+1",
    "None",
    "true",
    '"',
    "'",
    "\n",
    "\r",
    ";",
    "\t",
    "é" * 300,
    "12 345",
    "٣",
    "1_000",
)
NAMES = (
    "non_target_20260101",
    "non_target_0",
    "response",
    "target",
    "target.1",
    "cued",
    "report_1",
    "probe_99",
    "id",
    "",
)
VALUES = (
    None,
    True,
    False,
    0,
    -1,
    1,
    2**31,
    2**63,
    -(2**63),
    10**30,
    0.5,
    1e308,
    float("nan"),
    float("inf"),
    "",
    "x" * 5000,
    "lapsus.data.__main__:x",
    "subprocess:Popen",
    "os:system",
    "../../x",
    [],
    [[]],
    [1, 2],
    {},
    {"kind": "none"},
)


# Values as TOML writes them that JSON has no words for, and keys that make depth without brackets.
TOML = (
    "1979-05-27",
    "1979-05-27T07:32:00Z",
    "07:32:00",
    "9" * 5000,
    "0x" + "f" * 400,
    "[" * 400 + "]" * 400,
    "nan",
    "-inf",
    '"""\n"""',
    "{}",
    "{a = {b = [{}]}}",
    "[[1], [2]]",
    "[[]]",
    '["x", "y"]',
    "[nan]",
    "[1e308, -1e308]",
)
DEEP = ".".join("a" * 3000)


def mutate_bytes(data: bytes, chance: random.Random) -> bytes:
    """A few of the usual accidents."""
    data = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 4, 16))):
        at = chance.randrange(len(data) + 1)
        kind = chance.randrange(7)
        if kind == 0 and data:
            data[at % len(data)] ^= 1 << chance.randrange(8)
        elif kind == 1:
            del data[at : at + chance.choice((1, 2, 8, 100, len(data)))]
        elif kind == 2:
            data[at:at] = chance.randbytes(chance.choice((1, 4, 64)))
        elif kind == 3:
            data[at:at] = data[: chance.choice((1, 16, 200))]
        elif kind == 4:
            data[at : at + 4] = struct.pack("<i", chance.choice((0, -1, 1, 2**31 - 1, -(2**31), 255, 65536)))
        elif kind == 5:
            data[at : at + 8] = struct.pack("<q", chance.choice((0, -1, 2**63 - 1, 2**40, 1)))
        else:
            data[at:at] = chance.choice(NASTY).encode("utf-8", "surrogatepass")
    return bytes(data)


def mutate_cells(data: bytes, chance: random.Random) -> bytes:
    """A table of text with other names, cells, separators, fields too many and too few."""
    rows = [line.split(",") for line in data.decode().splitlines()]
    for _ in range(chance.choice((1, 1, 3, 10))):
        row = chance.randrange(len(rows))
        kind = chance.randrange(6)
        if kind == 0:
            rows[row][chance.randrange(len(rows[row]))] = chance.choice(NASTY)
        elif kind == 1:
            rows[0][chance.randrange(len(rows[0]))] = chance.choice(NAMES)
        elif kind == 2:
            rows[row] = rows[row][: chance.randrange(len(rows[row]) + 1)] or [""]
        elif kind == 3:
            rows[row] = [*rows[row], chance.choice(NASTY)]
        elif kind == 4:
            rows = (
                [[*cells, ""] for cells in rows] if chance.random() < 0.5 else [rows[0], *([*c, "1"] for c in rows[1:])]
            )
        else:
            rows.insert(row, [chance.choice(NASTY)] * chance.randrange(1, 8))
    text = "\n".join(chance.choice((",", ",", ",", ";", "\t")).join(row) for row in rows)
    return text.encode(chance.choice(("utf-8", "utf-8", "utf-16", "utf-8-sig")), "surrogatepass")


def mutate_tree(value: object, chance: random.Random) -> object:
    """The same JSON with one part that is something else."""
    if isinstance(value, dict) and value and chance.random() < 0.9:
        key = chance.choice(list(value))
        changed = dict(value)
        kind = chance.randrange(8)
        if kind == 0:
            del changed[key]
        elif kind == 1:
            changed[chance.choice(("kind", "x" * 300, "", "update", "stage"))] = chance.choice(VALUES)
        else:
            changed[key] = mutate_tree(value[key], chance)
        return changed
    if isinstance(value, list) and value and chance.random() < 0.9:
        at = chance.randrange(len(value))
        return [*value[:at], mutate_tree(value[at], chance), *value[at + 1 :]]
    return chance.choice(VALUES)


def mutate_json(data: bytes, chance: random.Random) -> bytes:
    tree = json.loads(data)
    for _ in range(chance.choice((1, 1, 2, 5))):
        tree = mutate_tree(tree, chance)
    return json.dumps(tree).encode("utf-8", "surrogatepass")


def mutate_lines(data: bytes, chance: random.Random) -> bytes:
    lines = data.splitlines()
    at = chance.randrange(len(lines))
    lines[at] = mutate_json(lines[at], chance) if chance.random() < 0.7 else mutate_bytes(lines[at], chance)
    return b"\n".join(lines)


def mutate_toml(data: bytes, chance: random.Random) -> bytes:
    import tomllib

    from lapsus.files import to_toml

    tree = tomllib.loads(data.decode())
    for _ in range(chance.choice((1, 1, 2, 4))):
        tree = mutate_tree(tree, chance)
    try:
        return to_toml(tree).encode("utf-8", "replace")
    except (AttributeError, TypeError):
        return mutate_bytes(data, chance)


def mutate_assignments(data: bytes, chance: random.Random) -> bytes:
    """TOML with other values and keys, as they are written."""
    lines = data.decode().splitlines()
    places = [at for at, line in enumerate(lines) if " = " in line]
    for _ in range(chance.choice((1, 1, 2))):
        at = chance.choice(places)
        key, _, value = lines[at].partition(" = ")
        if chance.random() < 0.2:
            lines[at] = f"{key}.{DEEP} = {value}" if chance.random() < 0.5 else f"{DEEP} = {value}"
        else:
            lines[at] = f"{key} = {chance.choice(TOML)}"
    return "\n".join(lines).encode()


def mutate_changes(data: bytes, chance: random.Random) -> bytes:
    """Changes as --set takes them, one to a line: other paths, other values."""
    lines = data.decode().splitlines()
    for _ in range(chance.choice((1, 1, 2))):
        at = chance.randrange(len(lines))
        key, _, value = lines[at].partition("=")
        parts = key.split(".")
        if chance.random() < 0.5:
            place = chance.randrange(len(parts) + 1)
            parts[place : place + chance.randrange(2)] = [
                chance.choice(("*", "-1", "0", "²", "9" * 5000, "", "kind", "task", "stage", "branching", DEEP))
            ]
        if chance.random() < 0.7:
            value = chance.choice((*TOML, *NASTY, json.dumps(chance.choice(VALUES))))
        lines[at] = f"{'.'.join(parts)}={value}"
    return "\n".join(lines).encode("utf-8", "replace")


def mutate_tensors(data: bytes, chance: random.Random) -> bytes:
    """Safetensors with another header."""
    size = int.from_bytes(data[:8], "little")
    header = mutate_json(data[8 : 8 + size], chance)
    size = len(header) if chance.random() < 0.9 else chance.choice((0, 1, 2**62, len(header) * 2))
    return size.to_bytes(8, "little") + header + data[8 + int.from_bytes(data[:8], "little") :]


def mutate_tsv(data: bytes, chance: random.Random) -> bytes:
    """As `mutate_cells`, between tabs."""
    return mutate_cells(data.replace(b"\t", b","), chance).replace(b",", b"\t")


def mutate_packed(data: bytes, chance: random.Random) -> bytes:
    """What a packed file holds, packed again."""
    return gzip.compress(mutate_bytes(gzip.decompress(data), chance), 1, mtime=0)


def mutate_variables(data: bytes, chance: random.Random) -> bytes:
    """netCDF with other variables: gone, under another name, of another type, shape or value."""
    import numpy as np
    import xarray as xr

    dataset = xr.load_dataset(io.BytesIO(data), engine="h5netcdf")
    for _ in range(chance.choice((1, 1, 2, 4))):
        name = chance.choice([*dataset.variables])
        found, kind = dataset[name], chance.randrange(7)
        values = found.to_numpy().copy()
        if kind == 0:
            dataset = dataset.drop_vars(name)
            continue
        if kind == 1:
            dataset = dataset.drop_vars(name).assign({chance.choice((*NAMES[3:8], "epoch", "readout")): found.variable})
            continue
        if kind == 2 and values.ndim:
            axis, count = chance.randrange(values.ndim), chance.choice((0, 1, 2))
            dataset = dataset.isel({found.dims[axis]: slice(0, count)})
            continue
        if kind == 3:
            dims = [f"other_{axis}" for axis in range(values.ndim)] if chance.random() < 0.5 else found.dims[::-1]
            values = values.transpose() if dims == found.dims[::-1] else values
            dataset = dataset.drop_vars(name).assign({name: (dims, values)})
            continue
        if kind == 4:
            values = np.full(values.shape, chance.choice(("", "x" * 300, "cue")), dtype=object)
        elif values.dtype.kind in "fiu":
            other = chance.choice((0, -1, 1, 1e30, float("nan"), float("inf"), 1e-320, 2**53))
            values = values.astype(float)
            if values.size:
                values.flat[slice(None) if chance.random() < 0.3 else chance.randrange(values.size)] = other
        dataset = dataset.drop_vars(name).assign({name: (found.dims, values)})
    buffer = io.BytesIO()
    dataset.to_netcdf(buffer, engine="h5netcdf")
    return buffer.getvalue()
