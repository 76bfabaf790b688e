"""The conversion of records and containers to JSON with arrays beside it, and back.

Only credo's records, plain containers and optax states can be named, so decoding runs no foreign code.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from typing import Any, NoReturn, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
import optax

from credo.core.errors import CredoError, FormatError
from credo.core.extensions import missing
from credo.core.forms import require_sizes
from credo.core.records import REGISTRY, find_function, find_record, function_name, record_name
from credo.core.types import Array
from credo.streams.annotations import misfit

__all__ = ["Decoder", "Functions", "Json", "Tensors", "encode"]

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
