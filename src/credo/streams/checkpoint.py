"""Saving and loading, in one versioned and checksummed safetensors file that is written atomically.

The arrays are tensors, and the structure (which records, which hyper-parameters) is JSON in the file's
header. There is no pickle: only credo's records, plain containers and optax states can be named in a file, so
loading runs no foreign code. A user's functions are not stored: they are taken from the learner passed to
`load`.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, overload

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as to_bytes

from credo.core.errors import CredoError, DataError, FormatError
from credo.core.files import write_atomically
from credo.learners import Learner
from credo.streams.codec import Decoder, Functions, Tensors, encode
from credo.streams.outline import require_same
from credo.streams.renamed import upgraded
from credo.streams.soundness import require_sound

__all__ = ["FORMAT", "Saved", "load", "read", "save"]

FORMAT = 1
"""The number of the file format; it grows when older readers could misread a file."""

L = TypeVar("L", bound=Learner[Any])
"""The kind of learner."""

B = TypeVar("B")
"""The kind of belief that the learner keeps."""


class Saved(NamedTuple):
    """The contents of a file: a learner, its belief, and the JSON data and named arrays beside them."""

    learner: Learner[Any]
    belief: Any
    meta: dict[str, Any]
    arrays: Tensors


def save(
    path: str | os.PathLike[str],
    learner: Learner[B],
    belief: B,
    *,
    meta: Mapping[str, object] | None = None,
    arrays: Mapping[str, np.ndarray] | None = None,
) -> Path:
    """Write a learner with its belief to one file.

    Arguments:
        path: the file, whose name usually ends in `.credo`. An older file is replaced completely or not at
            all.
        learner, belief: any learner and one of its beliefs.
        meta: JSON data to keep beside them.
        arrays: NumPy arrays to keep beside them.

    Returns:
        The path.

    Raises:
        DataError: the file cannot be written.
        CredoError: something in them cannot be saved; the message names it.

    Example:
        >>> import credo, jax.numpy as jnp, tempfile, pathlib
        >>> learner = credo.BetaBernoulli()
        >>> path = credo.save(pathlib.Path(tempfile.mkdtemp()) / "coin.credo", learner, learner.init())
        >>> credo.load(path) == (learner, learner.init())
        True
    """
    tensors: Tensors = {}
    lent: Functions = {}
    kept: Functions = {}
    tree = {
        "learner": encode(learner, "learner", tensors, lent),
        "belief": encode(belief, "belief", tensors, kept),
    }
    for place, value in kept.items():
        if not any(value is one or value == one for one in lent.values()):
            raise CredoError(
                f"cannot save {place}: {value} is a structure that the learner does not hold, so no learner "
                "could lend it to load; use dicts and lists of arrays, or credo.from_equinox."
            )
    for name, array in (arrays or {}).items():
        tensors[f"extra/{name}"] = np.asarray(array, order="C")
    import credo

    header = {
        "format": FORMAT,
        "credo": credo.__version__,
        "tree": tree,
        "meta": dict(meta or {}),
    }
    header["sha256"] = _digest(header, tensors)
    write_atomically(Path(path), to_bytes(tensors, metadata={"credo": json.dumps(header)}))
    return Path(path)


@overload
def load(path: str | os.PathLike[str], learner: L) -> tuple[L, Any]: ...


@overload
def load(path: str | os.PathLike[str], learner: None = None) -> tuple[Learner[Any], Any]: ...


def load(path: str | os.PathLike[str], learner: Learner[Any] | None = None) -> tuple[Learner[Any], Any]:
    """Read a learner and its belief back. A run then continues bit by bit as if it had never stopped.

    Arguments:
        path: a file written by `save`.
        learner: a learner of the same structure, which lends its functions: a model's own functions are not
            stored. Hyper-parameters come from the file. Without functions it is not needed.

    Returns:
        The learner and the belief.

    Raises:
        DataError: the file cannot be read.
        FormatError: the file was not written by `save`, is damaged, or has a newer format or another model.

    Example:
        >>> import credo, pathlib, tempfile
        >>> coin = credo.BetaBernoulli()
        >>> path = credo.save(pathlib.Path(tempfile.mkdtemp()) / "coin.credo", coin, coin.init())
        >>> learner, belief = credo.load(path)
        >>> belief == coin.init()
        True
    """
    saved = read(path, learner)
    return saved.learner, saved.belief


def read(path: str | os.PathLike[str], learner: Learner[Any] | None = None) -> Saved:
    """Read everything in a file written by `save`. The arguments are those of `load`."""
    header, tensors = _open(Path(path))
    form = header.get("format", 0)
    if isinstance(form, int) and form > FORMAT:
        raise FormatError(
            f"{path} has format {form}, written by credo {header.get('credo')}; "
            f"this version reads up to {FORMAT}: upgrade credo."
        )
    if header.get("sha256") != _digest(header, tensors):
        raise FormatError(f"{path} is damaged: its contents do not match its checksum.")
    functions: Functions = {}
    structure, meta = upgraded(header.get("tree")), header.get("meta", {})
    if not isinstance(structure, dict) or set(structure) != {"learner", "belief"}:
        raise FormatError(f"{path} cannot be read: it must hold a learner and a belief.")
    if not isinstance(meta, dict):
        raise FormatError(f"{path} cannot be read: the notes beside the learner must be named.")
    if learner is not None:
        lender = encode(learner, "learner", {}, functions)
        require_same(structure["learner"], lender, "learner", str(path))
    decoder = Decoder(tensors, functions, str(path))
    tree = {part: decoder(structure[part], part) for part in ("learner", "belief")}
    decoder.require_all_used()
    if not isinstance(tree["learner"], Learner):
        raise FormatError(f"{path} cannot be used: learner must be a Learner; got {tree['learner']!r}.")
    require_sound(tree["learner"], tree["belief"], str(path))
    extra = {
        name.removeprefix("extra/"): value for name, value in tensors.items() if name.startswith("extra/")
    }
    return Saved(tree["learner"], tree["belief"], meta, extra)


def _open(path: Path) -> tuple[dict[str, Any], Tensors]:
    if not path.is_file():
        raise DataError(f"no saved learner at {path}.")
    try:
        with safe_open(str(path), framework="numpy") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except PermissionError:
        raise DataError(f"cannot read {path}: permission denied.") from None
    except (SafetensorError, OSError, ValueError) as error:
        raise FormatError(f"{path} is not a saved learner, or is cut short: {error}.") from None
    if "credo" not in metadata:
        raise FormatError(f"{path} is a safetensors file, but not one that credo saved.")
    try:
        header = json.loads(metadata["credo"])
    except ValueError as error:
        raise FormatError(f"{path} is damaged: its header is not JSON ({error}).") from None
    if not isinstance(header, dict):
        raise FormatError(f"{path} is damaged: its header is no JSON object.")
    return header, tensors


def _digest(header: Mapping[str, object], tensors: Mapping[str, np.ndarray]) -> str:
    """The checksum of the numbers in the header (hyper-parameters, notes) and of the arrays."""
    signed = {name: value for name, value in header.items() if name != "sha256"}
    total = hashlib.sha256(json.dumps(signed, sort_keys=True).encode())
    for name in sorted(tensors):
        total.update(f"{name}:{tensors[name].dtype}:{tensors[name].shape};".encode())
        total.update(np.ascontiguousarray(tensors[name]).tobytes())
    return total.hexdigest()
