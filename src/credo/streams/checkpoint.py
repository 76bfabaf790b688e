"""Saving and loading: a learner and its belief as one `credo.core.archive`.

The structure (which records, which hyper-parameters) is its JSON data. Only credo's records, plain containers
and optax states can be named there, so loading runs no foreign code. A user's functions are not stored: they
are taken from the learner passed to `load`.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, TypeVar, overload

import numpy as np

from credo.core import archive
from credo.core.errors import CredoError, FormatError
from credo.core.places import Where
from credo.core.records import REGISTRY
from credo.learners import Learner
from credo.streams.codec import Decoder, Functions, Json, Tensors, encode
from credo.streams.soundness import Acting, Saveable, require_sound

__all__ = ["FORMAT", "Saved", "load", "read", "save", "write"]


def require_same(saved: Json, other: Json, path: str, file: str, static: bool = False) -> None:
    """Refuse a learner whose structure differs from the saved one's, and name the innermost place."""
    if _outline(saved, static) == _outline(other, static):
        return
    if not isinstance(saved, dict) or not isinstance(other, dict):
        _refuse(saved, other, path, file)
    name = saved.get("record")
    fields = saved.get("fields")
    others = other.get("fields")
    if name == other.get("record") and isinstance(fields, dict) and isinstance(others, dict):
        fixed = _static_fields(name)
        for field, child in fields.items():
            require_same(child, others.get(field), f"{path}.{field}", file, field in fixed)
    _refuse(saved, other, path, file)


def _refuse(saved: Json, other: Json, path: str, file: str) -> NoReturn:
    raise FormatError(
        f"{file} was saved by another model: {path} is {_spell(saved)} there and {_spell(other)} here."
    )


def _outline(code: Json, static: bool = False) -> Json:
    """The structure alone, in which numbers that are leaves of the tree, not `static`, count as equal."""
    if isinstance(code, list):
        return [_outline(child, static) for child in code]
    if not isinstance(code, dict):
        if isinstance(code, int) and not isinstance(code, bool) and not static:
            return "number"
        return code
    if "float" in code or "array" in code:
        return "number"
    fields = code.get("fields")
    if "record" in code and isinstance(fields, dict):
        fixed = _static_fields(code["record"])
        outlines = {name: _outline(child, name in fixed) for name, child in fields.items()}
        return {"record": code["record"]} | outlines
    return {name: _outline(child, static) for name, child in code.items() if name != "function"}


def _static_fields(record: Json) -> set[str]:
    cls = REGISTRY.get(record) if isinstance(record, str) else None
    if cls is None or not dataclasses.is_dataclass(cls):
        return set()
    return {f.name for f in dataclasses.fields(cls) if f.metadata.get("static")}


def _spell(code: Json) -> str:
    if isinstance(code, dict):
        return str(code.get("record") or code.get("function") or next(iter(code)))
    return repr(code)


AGENTS = ": pass an agent, as load(path, agent), or read a bandit with credo.bandits.Bandit.load"
"""The hint in the refusal of an agent."""

FORMAT = 1
"""The number of the file format; it grows when older readers could misread a file."""

L = TypeVar("L", bound=Saveable)
"""The kind of learner or agent."""


class Saved(NamedTuple):
    """The contents of a file: a learner or an agent, its belief, and the JSON data and arrays beside them."""

    learner: Any
    belief: Any
    meta: dict[str, Any]
    arrays: Tensors


def save(
    path: str | os.PathLike[str],
    learner: Saveable,
    belief: Any,
    *,
    meta: Mapping[str, object] | None = None,
    arrays: Mapping[str, np.ndarray] | None = None,
) -> Path:
    """Write a learner with its belief to one file.

    Arguments:
        path: the file, by custom `*.credo`. An older one is replaced completely or not at all.
        learner, belief: any learner, or an agent of `credo.bandits`, and one of its beliefs.
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
    write(path, learner, belief, meta=meta, arrays=arrays)
    return Path(path)


def write(
    path: Where,
    learner: Saveable,
    belief: Any,
    *,
    meta: Mapping[str, object] | None = None,
    arrays: Mapping[str, np.ndarray] | None = None,
) -> None:
    """Write what `save` does, to a path or an address."""
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

    header = {"format": FORMAT, "credo": credo.__version__, "tree": tree, "meta": dict(meta or {})}
    archive.write(path, "credo", header, tensors)


@overload
def load(path: str | os.PathLike[str], learner: L) -> tuple[L, Any]: ...


@overload
def load(path: str | os.PathLike[str], learner: None = None) -> tuple[Learner[Any], Any]: ...


def load(path: str | os.PathLike[str], learner: Saveable | None = None) -> tuple[Saveable, Any]:
    """Read a learner and its belief back. A run then continues bit by bit as if it had never stopped.

    Arguments:
        path: a file written by `save`.
        learner: a learner of the same structure, which lends its functions: a model's own functions are not
            stored. Hyper-parameters come from the file. Without functions it is not needed. An agent is read
            with one.

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
    saved = read(path, learner, Learner if learner is None or isinstance(learner, Learner) else type(learner))
    return saved.learner, saved.belief


def read(path: Where, learner: Saveable | None = None, kind: type[Any] = Learner) -> Saved:
    """Read everything in a file written by `save`, which must hold a learner of a kind; `learner` lends its
    functions.
    """
    header, tensors = archive.read(path, "credo", FORMAT, "saved learner")
    functions: Functions = {}
    with archive.refusing(path, "learner"):
        structure = header.get("tree")
        meta = header.get("meta", {})
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
        if not isinstance(tree["learner"], kind):
            held = type(tree["learner"]).__name__
            hint = AGENTS if isinstance(tree["learner"], Acting) else ""
            raise FormatError(
                f"{path} cannot be used: learner must be of the kind {kind.__name__}; got {held}{hint}."
            )
        require_sound(tree["learner"], tree["belief"], str(path))
    extra = {
        name.removeprefix("extra/"): value for name, value in tensors.items() if name.startswith("extra/")
    }
    return Saved(tree["learner"], tree["belief"], meta, extra)
