"""Saving and loading: a learner and its belief as one `credo.core.archive`.

The structure (which records, which hyper-parameters) is its JSON data. Only credo's records, plain containers
and optax states can be named there, so loading runs no foreign code. A user's functions are not stored: they
are taken from the learner passed to `load`.

The conversion of records and containers to JSON with arrays beside it, and back.

Only credo's records, plain containers and optax states can be named, so decoding runs no foreign code.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, TypeAlias, TypeVar, overload

import jax
import jax.numpy as jnp
import numpy as np

from credo.core import archive
from credo.core.errors import CredoError, FormatError
from credo.core.extensions import missing
from credo.core.forms import require_sizes
from credo.core.places import Where
from credo.core.records import REGISTRY, find_function, find_record, function_name, record_name
from credo.core.types import Array
from credo.learners import Learner
from credo.streams.annotations import misfit
from credo.streams.soundness import Acting, Saveable, require_sound

__all__ = [
    "FORMAT",
    "Decoder",
    "Functions",
    "Json",
    "Saved",
    "Tensors",
    "encode",
    "load",
    "read",
    "save",
    "write",
]

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
"""The values that JSON can hold."""

Tensors: TypeAlias = dict[str, np.ndarray]
"""Arrays by the path at which they stand in the structure."""

Functions: TypeAlias = dict[str, Any]
"""A user's functions by their path, which are not stored; and the structures of trees of other libraries."""


def encode(  # noqa: C901 - a case after the other
    value: object, path: str, tensors: Tensors, functions: Functions | None = None
) -> Json:
    """JSON for a structure of records and containers; `tensors` and `functions` collect theirs by path."""

    def inner(child: object, name: object) -> Json:
        return encode(child, f"{path}/{name}", tensors, functions)

    def each(children: Iterable[object]) -> list[Json]:
        return [inner(child, i) for i, child in enumerate(children)]

    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return {"float": value.hex()}
    if isinstance(value, jax.Array | np.ndarray | np.generic):
        if isinstance(value, jax.Array) and jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
            return {"key": inner(jax.random.key_data(value), "key")}
        tensors[path] = np.ascontiguousarray(value).reshape(np.shape(value))
        return {"array": path, "weak": bool(getattr(value, "weak_type", False))}
    if isinstance(value, list):
        return {"list": each(value)}
    if isinstance(value, dict):
        return {"dict": [[inner(k, "key"), inner(v, k)] for k, v in value.items()]}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        import optax  # which only those wait for who keep a state of it

        name = type(value).__name__
        if getattr(optax, name, None) is not type(value):
            raise CredoError(f"cannot save {path}: a named tuple {name!r} that is not optax's.")
        return {"optax": name, "items": each(value)}
    if isinstance(value, tuple):
        return {"tuple": each(value)}
    if isinstance(value, jax.tree_util.PyTreeDef):
        return {"treedef": _encode_treedef(value, f"{path}/treedef", functions)}
    cls = type(value)
    if REGISTRY.get(record_name(cls)) is cls and dataclasses.is_dataclass(cls):
        fields = {f.name: inner(getattr(value, f.name), f.name) for f in dataclasses.fields(cls)}
        return {"record": record_name(cls), "fields": fields}
    if callable(value):
        if functions is not None:
            functions[path] = value
        return {"function": function_name(value)}
    raise CredoError(
        f"cannot save {path}: {type(value).__name__} is neither an array, a number, a container nor a record."
    )


def _encode_treedef(treedef: Any, path: str, functions: Functions | None) -> Json:
    """A structure of plain containers, or the mark of one that only a learner can lend."""
    skeleton = jax.tree.unflatten(treedef, range(treedef.num_leaves))
    foreign: Functions = {}
    code: Json = None
    try:
        code = encode(skeleton, path, {}, foreign)
    except CredoError:
        foreign[path] = skeleton
    if not foreign:
        return code
    if functions is not None:
        functions[path] = treedef
    kind = type(skeleton)
    return {"function": f"{kind.__module__}.{kind.__qualname__}", "leaves": int(treedef.num_leaves)}


class Decoder:
    """The inverse of `encode`; `file` is named in the sentences of errors."""

    def __init__(self, tensors: Tensors, functions: Functions, file: str) -> None:
        self.tensors = tensors
        self.functions = functions
        self.file = file
        self.used: set[str] = set()

    def __call__(self, code: Json, path: str) -> Any:
        """The structure that stands at a path; its names must be known, and values must fit their fields."""
        if not isinstance(code, dict):
            if isinstance(code, list):
                self._refuse(path, "a bare list")
            return code
        kind = next(iter(code), "nothing")
        body = code.get(kind)
        if kind in ("dict", "tuple", "list") and isinstance(body, list):
            return self._container(kind, body, path)
        if kind == "key":
            return self._key(body, path)
        if kind == "treedef":
            return self._treedef(body, f"{path}/treedef")
        if not isinstance(body, str):
            self._refuse(path, f"an unknown {kind!r}")
        if kind == "float":
            return self._float(body, path)
        if kind == "array":
            return self._array(body, bool(code.get("weak")), path)
        if kind == "optax":
            return self._optax(body, code.get("items"), path)
        if kind == "function":
            return self._function(body, path)
        if kind != "record":
            self._refuse(path, f"an unknown {kind!r}")
        return self._record(body, code.get("fields"), path)

    def require_all_used(self) -> None:
        """Refuse arrays that no field names."""
        spare = sorted(name for name in set(self.tensors) - self.used if not name.startswith("extra/"))
        if spare:
            raise FormatError(f"{self.file} holds an array {_spell(spare[0])} that no field names.")

    def _refuse(self, path: str, what: str) -> NoReturn:
        raise FormatError(f"{self.file} cannot be read: {_spell(path)} is {what}.")

    def _each(self, children: Json, path: str) -> Iterator[Any]:
        if not isinstance(children, list):
            self._refuse(path, "no list")
        return (self(child, f"{path}/{i}") for i, child in enumerate(children))

    def _container(self, kind: str, body: list[Json], path: str) -> object:
        if kind != "dict":
            if kind == "tuple":
                return tuple(self._each(body, path))
            return list(self._each(body, path))
        pairs = [pair for pair in body if isinstance(pair, list) and len(pair) == 2]
        names = [self(pair[0], path) for pair in pairs]
        if len(pairs) != len(body) or not all(isinstance(name, str | int | float) for name in names):
            self._refuse(path, "a malformed dict")
        return {name: self(pair[1], f"{path}/{name}") for name, pair in zip(names, pairs, strict=True)}

    def _key(self, body: Json, path: str) -> Array:
        data = self(body, f"{path}/key")
        try:
            key: Array = jax.random.wrap_key_data(data)
        except (TypeError, ValueError, AttributeError):
            self._refuse(path, "no random key")
        return key

    def _float(self, body: str, path: str) -> float:
        try:
            return float.fromhex(body)
        except (ValueError, OverflowError):
            self._refuse(path, f"no number but {body!r}")

    def _treedef(self, body: Json, path: str) -> Any:
        """A structure, which is the learner's own if it is of another library."""
        if not isinstance(body, dict) or "function" not in body:
            skeleton = self(body, path)
            try:
                return jax.tree.structure(skeleton)
            except (TypeError, ValueError):
                self._refuse(path, "no structure of parameters")
        lent = [value for value in self.functions.values() if isinstance(value, jax.tree_util.PyTreeDef)]
        fitting: list[Any] = [treedef for treedef in lent if treedef.num_leaves == body.get("leaves")]
        if not fitting:
            raise FormatError(
                f"{self.file} has parameters in a {body['function']}: pass the learner, as "
                "load(path, learner), with the same network."
            )
        return fitting[0]

    def _optax(self, name: str, items: Json, path: str) -> object:
        import optax

        kind = getattr(optax, name, None)
        if not isinstance(kind, type) or not hasattr(kind, "_fields"):
            self._refuse(path, f"{name!r}, which is no state of optax")
        values = list(self._each(items, path))
        try:
            return kind(*values)
        except TypeError as error:
            raise FormatError(f"{self.file} holds a {name} of another version of optax: {error}.") from None

    def _array(self, name: str, weak: bool, path: str) -> Array:
        if name not in self.tensors:
            self._refuse(path, "an array that is not in the file")
        stored = self.tensors[name]
        self.used.add(name)
        array = jnp.asarray(stored)
        if array.dtype != stored.dtype:
            raise FormatError(f"{self.file} holds {stored.dtype}: set jax_enable_x64 before loading it.")
        # a number that took its dtype from Python, which a learner built anew would hold in the same way
        if weak and array.ndim == 0 and jnp.asarray(stored.item()).dtype == array.dtype:
            return jnp.asarray(stored.item())
        return array

    def _function(self, name: str, path: str) -> Any:
        """A function that the learner lends, or a named one of the library."""
        if path in self.functions:
            return self.functions[path]
        named = find_function(name)
        if named is None:
            raise FormatError(
                f"{self.file} uses your function {name}: pass the learner, as load(path, learner)."
            )
        return named

    def _record(self, name: str, fields: Json, path: str) -> object:
        cls = find_record(name)
        if cls is None:
            raise FormatError(
                f"{self.file} names the record {name!r}, which this version of credo does not know"
                f"{missing('credo.records')}."
            )
        known = {f.name: f for f in dataclasses.fields(cls)}
        if not isinstance(fields, dict):
            self._refuse(path, f"a {name} without fields")
        unknown = sorted(set(fields) - set(known))
        absent = sorted(f.name for f in known.values() if _required(f) and f.name not in fields)
        if unknown or absent:
            what = f"it has no {absent[0]!r}" if absent else f"{unknown[0]!r} is unknown"
            raise FormatError(f"{self.file} holds a {name} of another version at {_spell(path)}: {what}.")
        values = {field: self(child, f"{path}/{field}") for field, child in fields.items()}
        for field, value in values.items():
            expected = misfit(cls, field, value)
            if expected:
                raise FormatError(
                    f"{self.file} cannot be used: {_spell(f'{path}/{field}')} must be {expected}; "
                    f"got {type(value).__name__}."
                )
        require_sizes(cls, values, f"{_spell(path)}.")
        try:
            return cls(**values)
        except (TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
            reason = str(error).rstrip(".")
            raise FormatError(f"{self.file} cannot be used: {_spell(path)} is no {name}: {reason}.") from None


def _required(field: dataclasses.Field[Any]) -> bool:
    return field.init and field.default is field.default_factory is dataclasses.MISSING


def _spell(path: str) -> str:
    return path.replace("/", ".")


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
    there = _spell_code(saved)
    here = _spell_code(other)
    raise FormatError(f"{file} was saved by another model: {path} is {there} there and {here} here.")


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


def _spell_code(code: Json) -> str:
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
