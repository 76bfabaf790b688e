"""The saved form of everything: named arrays beside JSON data, in one file that is written atomically.

It is a safetensors file whose header holds the JSON data and a checksum of all that it says. There is no
pickle, so reading runs no foreign code, and no array is larger than the file that holds it.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as to_bytes

from credo.core.errors import CredoError, DataError, FormatError
from credo.core.files import write_atomically
from credo.core.places import Address, Place, Where, fetched

__all__ = ["Archive", "Arrays", "join", "leaves_of", "pack", "read", "refill", "refusing", "split", "write"]

DEEPEST = 200
"""The depth to which lists and objects of the JSON data may be nested."""

Arrays: TypeAlias = dict[str, np.ndarray]
"""Arrays by name."""

_TOKENS = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]')
_STEPS = {"[": 1, "{": 1, "]": -1, "}": -1}

T = TypeVar("T")
"""The type of a tree."""


class Archive(NamedTuple):
    """The contents of a file: its JSON data and its arrays."""

    header: dict[str, Any]
    arrays: Arrays


def write(path: Where, mark: str, header: Mapping[str, object], arrays: Mapping[str, np.ndarray]) -> None:
    """Write a file completely or not at all, or raise a `DataError`. Its bytes are those of `pack`."""
    write_atomically(_place(path), pack(mark, header, arrays))


def pack(mark: str, header: Mapping[str, object], arrays: Mapping[str, np.ndarray]) -> bytes:
    """The bytes of a file.

    `mark` is the word that says what program the file is for, and `header` the JSON data, with the number of
    its format as "format".
    """
    named = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    signed = {**header, "sha256": _digest(header, named)}
    return to_bytes(named, metadata={mark: json.dumps(signed)})


def _place(path: Where) -> Place:
    if isinstance(path, Address):
        return path
    return Path(path)


def read(path: Where, mark: str, newest: int, what: str) -> Archive:
    """Read a file that `write` wrote, of a format up to `newest`; `what` it should hold is for errors.

    A `DataError` says that it is missing or may not be read; a `FormatError` that it is none of these, is
    damaged or cut short, or has a newer format.
    """
    place = _place(path)
    if not place.is_file():
        raise DataError(f"no {what} at {path}.")
    try:
        with fetched(place) as local, safe_open(str(local), framework="numpy") as file:
            metadata = file.metadata() or {}
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except DataError:
        raise
    except PermissionError:
        raise DataError(f"cannot read {path}: permission denied.") from None
    except (SafetensorError, OSError, ValueError, TypeError, AttributeError, KeyError) as error:
        raise FormatError(f"{path} is no {what}, or is cut short: {error}.") from None
    if mark not in metadata:
        raise FormatError(f"{path} is a safetensors file, but no {what} of credo's.")
    header = _header(path, metadata[mark])
    form = header.get("format", 0)
    if not isinstance(form, int) or form > newest:
        author = f", written by credo {header['credo']}" if "credo" in header else ""
        raise FormatError(
            f"{path} has format {form}{author}; this version reads up to {newest}: upgrade credo."
        )
    if header.pop("sha256", None) != _digest(header, arrays):
        raise FormatError(f"{path} is damaged: its contents do not match its checksum.")
    return Archive(header, arrays)


def _header(path: Where, text: str) -> dict[str, Any]:
    if _depth(text) > DEEPEST:
        raise FormatError(f"{path} is damaged: its header is nested more than {DEEPEST} deep.")
    try:
        header = json.loads(text)
    except ValueError as error:
        raise FormatError(f"{path} is damaged: its header is not JSON ({error}).") from None
    if not isinstance(header, dict):
        raise FormatError(f"{path} is damaged: its header is no JSON object.")
    return header


def _depth(text: str) -> int:
    """The depth to which the brackets of a JSON text are nested."""
    steps = (_STEPS.get(token, 0) for token in _TOKENS.findall(text))
    return max(itertools.accumulate(steps), default=0)


def _digest(header: Mapping[str, object], arrays: Mapping[str, np.ndarray]) -> str:
    """The checksum of the numbers in the header and of the arrays."""
    total = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    for name in sorted(arrays):
        total.update(f"{name}:{arrays[name].dtype}:{arrays[name].shape};".encode())
        total.update(np.ascontiguousarray(arrays[name]).tobytes())
    return total.hexdigest()


@contextlib.contextmanager
def refusing(path: Where, what: str) -> Iterator[None]:
    """Turn a failure to put the contents of a file together into a `FormatError` that names the file.

    `what` it should hold is for errors: "session".
    """
    try:
        yield
    except CredoError as error:
        if str(path) in str(error):
            raise
        raise FormatError(f"{path} cannot be used: {error}", field=error.field) from None
    except KeyError as error:
        raise FormatError(f"{path} cannot be used: the {what} has no {error.args[0]!r}.") from None
    except (TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
        reason = str(error).rstrip(".")
        raise FormatError(f"{path} cannot be used: the {what} is malformed ({reason}).") from None


def join(parts: Mapping[str, Mapping[str, np.ndarray]]) -> Arrays:
    """The arrays of several parts, each named "part/name"; `split` takes them apart."""
    return {f"{part}/{name}": array for part, named in parts.items() for name, array in named.items()}


def split(arrays: Mapping[str, np.ndarray], parts: tuple[str, ...]) -> dict[str, Arrays]:
    """The arrays of the parts, of which each may be empty; those of no part are left out."""
    found: dict[str, Arrays] = {part: {} for part in parts}
    for name, array in arrays.items():
        part, _, rest = name.partition("/")
        if part in found:
            found[part][rest] = array
    return found


def leaves_of(tree: Any) -> Arrays:
    """The leaves of a tree as arrays that are named by their numbers; `refill` puts them back."""
    return {str(number): np.asarray(leaf) for number, leaf in enumerate(jax.tree.leaves(tree))}


def refill(like: T, arrays: Mapping[str, np.ndarray], field: str) -> T:
    """The tree `like` with arrays in place of its leaves; a `FormatError` says where a shape differs."""
    leaves, structure = jax.tree.flatten(like)
    stored = [arrays[str(number)] for number in range(len(leaves))]
    if any(np.shape(one) != np.shape(leaf) for one, leaf in zip(stored, leaves, strict=True)):
        raise FormatError(f"{field} must have the shapes of the belief.", field=field)
    pairs = zip(stored, leaves, strict=True)
    tree: T = jax.tree.unflatten(structure, [jnp.asarray(one, leaf.dtype) for one, leaf in pairs])
    return tree
