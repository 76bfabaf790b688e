"""How `forge.py` damages and forges files: their bytes, their members, their JSON data and their arrays.

What is damaged keeps its old checksum. What is forged is signed again, so that a reader has to look at it.
"""

from __future__ import annotations

import copy
import gzip
import io
import json
import random
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from credo.core import archive

__all__ = ["BOMB", "forge", "places", "with_value"]

BOMB = 3_000_000_000
"""The characters in the one line of a compressed table, which takes 2.9 MB on the disk."""

Header = dict[str, Any]
Arrays = dict[str, np.ndarray]

VALUES: list[Any] = [
    *(..., None, True, False, "", "x", "\x1b[31mred", "NaN", "-1", "<U300000000", "|O8", "<f8", [], {}),
    *(-1, 0, 1, 3, 10**5, 10**12, 10**30, 10**400, -(10**12), 2**31, 2**63, 0.5, -0.5, 1e-320),
    *(1e30, -1e30, 1e38, 1e308, float("nan"), float("inf"), float("-inf")),
    *([1, "x"], [None] * 3, [[]], {"a": 1}, [0] * 100_000, "x" * 100_000),
    *({"float": one} for one in ("nan", "inf", "-0x1p+1", "0x1p+120", "0x1p+1023", "many")),
    *({"array": "belief/mean"}, {"array": "nowhere"}, {"record": "Static", "fields": {}}, {"list": []}),
]
"""What is put in the place of a JSON value; `...` leaves it out."""


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of everything inside a JSON value."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = [path] if path else []
    return found + [place for name, child in inside for place in places(child, (*path, name))]


def with_value(header: Header, path: tuple[Any, ...], value: Any) -> Header:
    """The header with another value at a path; without any where the value is `...`."""
    changed = copy.deepcopy(header)
    *outer, last = path
    place: Any = changed
    for step in outer:
        place = place[step]
    if value is ...:
        del place[last]
    else:
        place[last] = value
    return changed


def _at(header: Header, path: tuple[Any, ...]) -> Any:
    for step in path:
        header = header[step]
    return header


def forge(good: Path, mark: str, chance: random.Random, target: Path) -> str:
    """Write a forgery of a good file to `target`, and say what it is."""
    if not mark:
        return _table(good, chance, target)
    kind = chance.choices((_bytes, _members, _json, _arrays), (15, 15, 45, 25))[0]
    return kind(good, mark, chance, target)


# Bytes and members, whose checksum is not right any more


def _bytes(good: Path, mark: str, chance: random.Random, target: Path) -> str:
    content, what = damage(good.read_bytes(), chance)
    target.write_bytes(content)
    return what


def damage(content: bytes, chance: random.Random) -> tuple[bytes, str]:
    """Bytes with a fault, and what it is."""
    data = bytearray(content)
    place = chance.randrange(len(content))
    kind = chance.choice(("flip", "flip", "cut", "zeros", "noise", "twice", "swap", "more", "gap"))
    if kind == "flip":
        data[place] ^= 1 << chance.randrange(8)
    elif kind == "cut":
        del data[place:]
    elif kind == "zeros":
        data[place : place + 64] = bytes(len(data[place : place + 64]))
    elif kind == "noise":
        data[place : place + 64] = chance.randbytes(len(data[place : place + 64]))
    elif kind == "twice":
        data = data + data
    elif kind == "swap":
        data = data[place:] + data[:place]
    elif kind == "more":
        data += chance.randbytes(200)
    else:
        del data[place : place + 40]
    return bytes(data), f"{kind} at byte {place}"


def _members(good: Path, mark: str, chance: random.Random, target: Path) -> str:
    """The table of a safetensors file is changed: what arrays there are, and where, and of what shape."""
    content = good.read_bytes()
    (size,) = struct.unpack("<Q", content[:8])
    table = json.loads(content[8 : 8 + size])
    body = content[8 + size :]
    names = [name for name in table if name != "__metadata__"]
    name = chance.choice(names)
    other = chance.choice(names)
    kind = chance.choice(
        (
            "left out",
            "swapped",
            "renamed",
            "shape",
            "dtype",
            "offsets",
            "huge",
            "twice",
            "deep",
            "words",
            "size",
        )
    )
    if kind == "left out":
        del table[name]
    elif kind == "swapped":
        table[name], table[other] = table[other], table[name]
    elif kind == "renamed":
        table[f"{name}x"] = table.pop(name)
    elif kind == "shape":
        table[name]["shape"] = chance.choice([[], [0], [-1], [2**62], [2**40, 2**40], [3, 3], ["x"], None, 7])
    elif kind == "dtype":
        table[name]["dtype"] = chance.choice(
            ["F64", "F32", "I64", "U8", "BOOL", "BF16", "<U300000000", "O", 3]
        )
    elif kind == "offsets":
        table[name]["data_offsets"] = chance.choice([[0, 0], [-4, 4], [0, 2**60], [8, 0], [0], None, "x"])
    elif kind == "huge":
        table[name] = {"dtype": "F64", "shape": [2**36], "data_offsets": [0, 2**39]}
    elif kind == "words":
        table["__metadata__"] = chance.choice([None, {}, {mark: "{}"}, {mark: ""}, {mark: 3}, [mark], "x"])
    text = json.dumps(table)
    if kind == "twice":
        text = text[:-1] + f', "{name}": {json.dumps(table[other])}}}'
    elif kind == "deep":
        deep = chance.choice((100, 5000, 200_000))
        words = chance.choice(("[" * deep + "]" * deep, '{"a":' * deep + "1" + "}" * deep))
        text = words if chance.random() < 0.3 else json.dumps({**table, "__metadata__": {mark: words}})
    length = chance.choice((0, 1, 2**31, 2**63)) if kind == "size" else len(text.encode())
    target.write_bytes(struct.pack("<Q", length) + text.encode() + body)
    return f"{kind} of {name}"


# JSON data and arrays, which are signed again


def _json(good: Path, mark: str, chance: random.Random, target: Path) -> str:
    header, arrays = archive.read(good, mark, 1, "file")
    known = places(header)
    whats = []
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        path = chance.choice(known)
        try:
            value = _json_value(header, path, known, chance)
            header = with_value(header, path, value)
        except (KeyError, IndexError, TypeError):
            continue  # an earlier change has taken the place away
        whats.append(f"{'.'.join(map(str, path))} = {repr(value)[:60]}")
    archive.write(target, mark, header, arrays)
    return "; ".join(whats)


def _json_value(
    header: Header, path: tuple[Any, ...], known: list[tuple[Any, ...]], chance: random.Random
) -> Any:
    old = _at(header, path)
    kind = chance.choice(("any", "any", "any", "number", "other", "twice", "deep"))
    if kind == "number" and isinstance(old, int | float) and not isinstance(old, bool):
        return chance.choice([-old, old + 1, old * 1000, old * 10**9, old * 10**18, 0, -1, float(old), 1e12])
    if kind == "other":
        return copy.deepcopy(_at(header, chance.choice(known)))
    if kind == "twice" and isinstance(old, list):
        return [*old, *old]
    if kind == "deep":
        deep = chance.choice((20, 60, 150))
        word = chance.choice(("list", "tuple", "", "dict"))
        value: Any = old
        for _ in range(deep):
            value = {word: [["a", value]] if word == "dict" else [value]} if word else [value]
            if _depth(value) > 170:
                break
        return value
    return chance.choice(VALUES)


def _depth(value: Any) -> int:
    depth = 0
    while isinstance(value, list | dict) and value:
        value = next(iter(value.values())) if isinstance(value, dict) else value[-1]
        depth += 1
    return depth


def _arrays(good: Path, mark: str, chance: random.Random, target: Path) -> str:
    header, arrays = archive.read(good, mark, 1, "file")
    whats = []
    for _ in range(chance.choice((1, 1, 2))):
        name, other = (chance.choice(sorted(arrays)) for _ in range(2))
        kind = chance.choice(("left out", "swapped", "copied", "spare", "shape", "dtype", *["numbers"] * 6))
        if kind == "left out":
            arrays = {key: one for key, one in arrays.items() if key != name}
        elif kind == "swapped":
            arrays[name], arrays[other] = arrays[other], arrays[name]
        elif kind == "copied":
            arrays[name] = arrays[other]
        elif kind == "spare":
            arrays[f"{name}/spare"] = arrays[other]
        else:
            arrays[name], detail = _changed(arrays[name], kind, chance)
            kind = f"{kind} ({detail})"
        whats.append(f"{kind} of {name}")
        if not arrays:
            break
    archive.write(target, mark, header, arrays)
    return "; ".join(whats)


def _changed(array: np.ndarray, kind: str, chance: random.Random) -> tuple[np.ndarray, str]:
    if kind == "shape":
        changes: dict[str, Callable[[], np.ndarray]] = {
            "flat": lambda: array.reshape(-1),
            "axis": lambda: array[None],
            "short": lambda: array[:-1] if array.ndim else array[None],
            "empty": lambda: np.zeros(0, array.dtype),
            "large": lambda: np.zeros(1_000_000, array.dtype),
            "turned": lambda: array.T,
            "scalar": lambda: np.zeros((), array.dtype),
        }
        name = chance.choice(sorted(changes))
        return np.ascontiguousarray(changes[name]()).reshape(changes[name]().shape), name
    if kind == "dtype":
        dtype = chance.choice(("f8", "f4", "f2", "i8", "i4", "u1", "?"))
        with np.errstate(all="ignore"):
            return array.astype(dtype), dtype
    value = chance.choice(
        (np.nan, np.inf, -np.inf, -1.0, 0.0, 1.0, 1e6, 1e18, 1e30, 3e38, -3e38, 1e300, 1e-40)
    )
    new = array.copy()
    with np.errstate(all="ignore"):
        if chance.random() < 0.5 and new.size:
            new.reshape(-1)[chance.randrange(new.size)] = np.asarray(value).astype(new.dtype)
        else:
            new = np.full_like(new, np.asarray(value).astype(new.dtype))
    return new, repr(value)


# Tables


def _table(good: Path, chance: random.Random, target: Path) -> str:
    content = good.read_bytes()
    packed = good.name.endswith((".gz", ".zip"))
    kind = chance.choices(("bytes", "bomb" if packed else "long", "cells"), (50, 2 if packed else 10, 40))[0]
    if good.suffix == ".parquet":
        kind = "bytes"
    if kind == "bytes":
        data, what = damage(content, chance)
        target.write_bytes(data)
        return what
    if kind == "bomb":
        return _bomb(good, chance, target)
    text = _unpacked(good)
    if kind == "long":
        length = chance.choice((10**5, 10**7, 5 * 10**7))
        place = chance.randrange(len(text))
        text = text[:place] + chance.choice(('"', "9", "x", ";", ",")) * length + text[place:]
        what = "long"
    else:
        text, what = _cells(text, chance)
    _pack(good, text, target)
    return what


def _unpacked(good: Path) -> str:
    if good.suffix == ".gz":
        return gzip.decompress(good.read_bytes()).decode()
    if good.suffix == ".zip":
        with zipfile.ZipFile(good) as whole:
            return whole.read(whole.namelist()[0]).decode()
    return good.read_text()


def _pack(good: Path, text: str, target: Path) -> None:
    if good.suffix == ".gz":
        target.write_bytes(gzip.compress(text.encode("utf-8", "surrogatepass")))
    elif good.suffix == ".zip":
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as whole:
            whole.writestr("t.csv", text.encode("utf-8", "surrogatepass"))
    else:
        target.write_bytes(text.encode("utf-8", "surrogatepass"))


def _bomb(good: Path, chance: random.Random, target: Path) -> str:
    """A compressed table with one line that no memory holds, in the head or behind good rows."""
    text = _unpacked(good)
    block = b"9" * 10_000_000
    before = text.encode() if chance.random() < 0.5 else b""
    place: Any = io.BytesIO()
    if good.suffix == ".gz":
        with gzip.GzipFile(fileobj=place, mode="wb", compresslevel=9) as packed:
            packed.write(before)
            for _ in range(BOMB // len(block)):
                packed.write(block)
    else:
        with (
            zipfile.ZipFile(place, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as whole,
            whole.open("t.csv", "w", force_zip64=True) as member,
        ):
            member.write(before)
            for _ in range(BOMB // len(block)):
                member.write(block)
    target.write_bytes(place.getvalue())
    return f"one line of {BOMB:,} characters"


CELLS = [
    *("", "nan", "inf", "-inf", "1e400", "1e308", "-1e38", "9" * 5000, "0,788", "1.234,5", "\x1b[31m", "\0"),
    *(
        "=1+1",
        "\ud800",
        '"',
        '"""',
        "a\nb",
        "\r",
        "2024-99-99",
        "9999999-01-01",
        "-",
        "\u202e",
        "x" * 200_000,
    ),
    *("[" * 5000 + "]" * 5000, '{"a":' * 100_000, "[[1]]", "{}", "true", "1" * 400),
]


def _cells(text: str, chance: random.Random) -> tuple[str, str]:
    """Another cell, or other lines."""
    lines = text.splitlines(keepends=True)
    row = chance.randrange(len(lines))
    kind = chance.choice(("cell", "cell", "cell", "lines", "head", "cut"))
    if kind == "cut":
        return text[: chance.randrange(1, len(text))], "cut"
    if kind == "head":
        return "".join([chance.choice((lines[0] * 2, "\n" * 1000, ",".join(map(str, range(100_000))) + "\n")),
                        *lines[1:]]), "another head"  # fmt: skip
    if kind == "lines":
        chance.shuffle(lines)
        return "".join(lines), "shuffled lines"
    mark = ": " if lines[0].startswith("{") else ";" if ";" in lines[0] else ","
    cells = lines[row].split(mark)
    place = chance.randrange(len(cells))
    cell = chance.choice(CELLS)
    cells[place] = cell
    lines[row] = mark.join(cells)
    return "".join(lines), f"cell {cell[:20]!r} in line {row + 1}"
