"""The conversion of records and containers to JSON with arrays beside it, and back.

Only credo's records, plain containers and optax states can be named, so decoding runs no foreign code.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
import optax

from credo.core.errors import CredoError, FormatError
from credo.core.records import REGISTRY, record_name
from credo.core.types import Array

__all__ = ["Decoder", "Functions", "Json", "Tensors", "encode"]

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
"""The values that JSON can hold."""

Tensors: TypeAlias = dict[str, np.ndarray]
"""Arrays by the path at which they stand in the structure."""

Functions: TypeAlias = dict[str, Callable[..., object]]
"""A user's functions by their path, which are not stored."""

_LATER = ("credo.adapt", "credo.ekf")
"""Rooms whose records are known only after they are imported."""


def encode(value: object, path: str, tensors: Tensors, functions: Functions | None = None) -> Json:
    """JSON for any structure of records and containers.

    Arguments:
        value: the structure.
        path: its name, from which the paths of what it holds are made.
        tensors: a dict that receives the arrays, by their path.
        functions: a dict that receives the user's functions, by their path.

    Returns:
        The structure as JSON.

    Raises:
        CredoError: something in it can be neither stored nor taken from a learner; the message gives its
            path.
    """

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
        treedef: Any = value
        return {"treedef": inner(jax.tree.unflatten(treedef, range(treedef.num_leaves)), "treedef")}
    cls = type(value)
    if REGISTRY.get(record_name(cls)) is cls and dataclasses.is_dataclass(cls):
        fields = {f.name: inner(getattr(value, f.name), f.name) for f in dataclasses.fields(cls)}
        return {"record": record_name(cls), "fields": fields}
    if callable(value):
        if functions is not None:
            functions[path] = value
        return {
            "function": f"{getattr(value, '__module__', '?')}.{getattr(value, '__qualname__', repr(value))}"
        }
    raise CredoError(
        f"cannot save {path}: {type(value).__name__} is neither an array, a number, a container nor a record."
    )


class Decoder:
    """The inverse of `encode`.

    Arguments:
        tensors: the arrays, by their path.
        functions: a user's functions, by their path.
        file: the name of the file, for the sentences of errors.
    """

    def __init__(self, tensors: Tensors, functions: Functions, file: str) -> None:
        self.tensors, self.functions, self.file = tensors, functions, file

    def __call__(self, code: Json, path: str) -> Any:
        """The structure that stands at a path.

        Raises:
            FormatError: it names a record, a field or a function that is not known.
        """
        if not isinstance(code, dict):
            return code
        kind = next(iter(code))
        body = code[kind]
        if isinstance(body, list):
            return self._container(kind, body, path)
        if kind == "key":
            return jax.random.wrap_key_data(self(body, f"{path}/key"))
        if kind == "treedef":
            return jax.tree.structure(self(body, f"{path}/treedef"))
        assert isinstance(body, str)
        if kind == "float":
            return float.fromhex(body)
        if kind == "array":
            return self._array(body, bool(code.get("weak")))
        if kind == "optax":
            return getattr(optax, body)(*self._each(code["items"], path))
        if kind == "function":
            if path not in self.functions:
                raise FormatError(
                    f"{self.file} uses your function {body}: pass the learner, as load(path, learner)."
                )
            return self.functions[path]
        return self._record(body, code["fields"], path)

    def _each(self, children: Json, path: str) -> Iterator[Any]:
        assert isinstance(children, list)
        return (self(child, f"{path}/{i}") for i, child in enumerate(children))

    def _container(self, kind: str, body: list[Json], path: str) -> object:
        if kind == "dict":
            pairs = [(pair[0], pair[1]) for pair in body if isinstance(pair, list)]
            return {self(key, path): self(child, f"{path}/{key}") for key, child in pairs}
        return tuple(self._each(body, path)) if kind == "tuple" else list(self._each(body, path))

    def _array(self, name: str, weak: bool) -> Array:
        stored = self.tensors[name]
        array = jnp.asarray(stored)
        if array.dtype != stored.dtype:
            raise FormatError(f"{self.file} holds {stored.dtype}: set jax_enable_x64 before loading it.")
        # a number that took its dtype from Python, which a learner built anew would hold in the same way
        if weak and array.ndim == 0 and jnp.asarray(stored.item()).dtype == array.dtype:
            return jnp.asarray(stored.item())
        return array

    def _record(self, name: str, fields: Json, path: str) -> object:
        if name not in REGISTRY:
            for room in _LATER:
                importlib.import_module(room)
        if name not in REGISTRY:
            raise FormatError(
                f"{self.file} names the record {name!r}, which this version of credo does not know."
            )
        assert isinstance(fields, dict)
        values = {field: self(child, f"{path}/{field}") for field, child in fields.items()}
        try:
            return REGISTRY[name](**values)
        except TypeError as error:
            raise FormatError(f"{self.file} holds a {name} of another version: {error}.") from None
