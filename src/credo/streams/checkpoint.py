"""Saving and loading: one safetensors file, no pickle, versioned, checksummed, written atomically.

The arrays are tensors; the structure (which records, which hyper-parameters) is JSON in the file's header.
Only credo's records, plain containers and optax states can be named in a file, so loading runs no foreign
code. A user's functions are not stored: they are taken from the learner passed to `load`.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as to_bytes

from credo.core.errors import CredoError, DataError, FormatError
from credo.core.files import write_atomically
from credo.core.records import REGISTRY, record_name
from credo.streams.renamed import upgraded

__all__ = ["FORMAT", "Saved", "load", "read", "save"]

FORMAT = 1
"""The number of the file format; it grows when older readers could misread a file."""


_LATER = ("credo.adapt", "credo.ekf")
"""Rooms whose records are known only when they are imported."""


class Saved(NamedTuple):
    """What a file held: a learner, its belief, and what else was put beside them."""

    learner: Any
    belief: Any
    meta: dict[str, Any]
    arrays: dict[str, np.ndarray]


def save(
    path: str | os.PathLike[str],
    learner: Any,
    belief: Any,
    *,
    meta: Mapping[str, Any] | None = None,
    arrays: Mapping[str, np.ndarray] | None = None,
) -> Path:
    """Write a learner with its belief to one file.

    Arguments:
        path: the file; by custom it ends in `.credo`. An older file is replaced at once or not at all.
        learner, belief: any learner and a belief of it.
        meta: JSON data to keep beside them.
        arrays: NumPy arrays to keep beside them.

    Returns:
        The path.

    Raises:
        DataError: the file cannot be written.
        CredoError: something in them cannot be saved, named.

    Example:
        >>> import credo, jax.numpy as jnp, tempfile, pathlib
        >>> learner = credo.BetaBernoulli()
        >>> path = credo.save(pathlib.Path(tempfile.mkdtemp()) / "coin.credo", learner, learner.init())
        >>> credo.load(path) == (learner, learner.init())
        True
    """
    tensors: dict[str, np.ndarray] = {}
    tree = {"learner": _encode(learner, "learner", tensors), "belief": _encode(belief, "belief", tensors)}
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


def load(path: str | os.PathLike[str], learner: Any = None) -> tuple[Any, Any]:
    """Read a learner and its belief back; a run continues as if it had never stopped, bit by bit.

    Arguments:
        path: a file written by `save`.
        learner: needed where the model has functions of your own (they are not stored): a learner of the same
            structure, which lends its functions; hyper-parameters come from the file.

    Returns:
        The learner and the belief.

    Raises:
        DataError: the file cannot be read. FormatError: it is not such a file, is damaged, of a newer format,
        or of another model.
    """
    saved = read(path, learner)
    return saved.learner, saved.belief


def read(path: str | os.PathLike[str], learner: Any = None) -> Saved:
    """Everything in a file written by `save`; arguments and errors are those of `load`."""
    header, tensors = _open(Path(path))
    if header.get("format", 0) > FORMAT:
        raise FormatError(
            f"{path} has format {header.get('format')}, written by credo {header.get('credo')}; "
            f"this version reads up to {FORMAT}: upgrade credo."
        )
    if header.get("sha256") != _digest(header, tensors):
        raise FormatError(f"{path} is damaged: its contents do not match its checksum.")
    functions: dict[str, Any] = {}
    structure = upgraded(header["tree"])
    if learner is not None:
        given = _encode(learner, "learner", {}, functions)
        _same(structure["learner"], given, "learner", str(path))
    decoder = _Decoder(tensors, functions, str(path))
    tree = {part: decoder(structure[part], part) for part in ("learner", "belief")}
    extra = {
        name.removeprefix("extra/"): value for name, value in tensors.items() if name.startswith("extra/")
    }
    return Saved(tree["learner"], tree["belief"], header.get("meta", {}), extra)


def _open(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
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
        return json.loads(metadata["credo"]), tensors
    except ValueError as error:
        raise FormatError(f"{path} is damaged: its header is not JSON ({error}).") from None


def _digest(header: Mapping[str, Any], tensors: Mapping[str, np.ndarray]) -> str:
    """Of the numbers in the header (hyper-parameters, notes) as well as of the arrays."""
    signed = {name: value for name, value in header.items() if name != "sha256"}
    total = hashlib.sha256(json.dumps(signed, sort_keys=True).encode())
    for name in sorted(tensors):
        total.update(f"{name}:{tensors[name].dtype}:{tensors[name].shape};".encode())
        total.update(np.ascontiguousarray(tensors[name]).tobytes())
    return total.hexdigest()


def _encode(
    value: Any, path: str, tensors: dict[str, np.ndarray], functions: dict[str, Any] | None = None
) -> Any:
    """JSON for any structure of records and containers; arrays go to `tensors`, functions to `functions` by
    their path.
    """

    def inner(child: Any, name: Any) -> Any:
        return _encode(child, f"{path}/{name}", tensors, functions)

    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return {"float": value.hex()}
    if isinstance(value, jax.Array | np.ndarray | np.generic):
        if isinstance(value, jax.Array) and jax.dtypes.issubdtype(value.dtype, jax.dtypes.prng_key):
            return {"key": inner(jax.random.key_data(value), "key")}
        tensors[path] = np.ascontiguousarray(value).reshape(np.shape(value))
        return {"array": path, "weak": bool(getattr(value, "weak_type", False))}
    if isinstance(value, list):
        return {"list": [inner(child, i) for i, child in enumerate(value)]}
    if isinstance(value, dict):
        return {"dict": [[inner(k, "key"), inner(v, k)] for k, v in value.items()]}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        name = type(value).__name__
        if getattr(optax, name, None) is not type(value):
            raise CredoError(f"cannot save {path}: a named tuple {name!r} that is not optax's.")
        return {"optax": name, "items": [inner(child, i) for i, child in enumerate(value)]}
    if isinstance(value, tuple):
        return {"tuple": [inner(child, i) for i, child in enumerate(value)]}
    if isinstance(value, jax.tree_util.PyTreeDef):
        return {"treedef": inner(jax.tree.unflatten(value, range(value.num_leaves)), "treedef")}
    if REGISTRY.get(record_name(type(value))) is type(value) and dataclasses.is_dataclass(value):
        fields = {f.name: inner(getattr(value, f.name), f.name) for f in dataclasses.fields(value)}
        return {"record": record_name(type(value)), "fields": fields}
    if callable(value):
        if functions is not None:
            functions[path] = value
        return {
            "function": f"{getattr(value, '__module__', '?')}.{getattr(value, '__qualname__', repr(value))}"
        }
    raise CredoError(
        f"cannot save {path}: {type(value).__name__} is neither an array, a number, a container nor a record."
    )


class _Decoder:
    """The inverse of `_encode`."""

    def __init__(self, tensors: dict[str, np.ndarray], functions: dict[str, Any], file: str) -> None:
        self.tensors, self.functions, self.file = tensors, functions, file

    def __call__(self, code: Any, path: str) -> Any:
        if not isinstance(code, dict):
            return code
        kind = next(iter(code))
        body = code[kind]
        if kind == "float":
            return float.fromhex(body)
        if kind == "array":
            stored = self.tensors[body]
            array = jnp.asarray(stored)
            if array.dtype != stored.dtype:
                raise FormatError(f"{self.file} holds {stored.dtype}: set jax_enable_x64 before loading it.")
            # a number that took its dtype from Python, which a learner built anew would hold in the same way
            weak = code.get("weak") and array.ndim == 0 and jnp.asarray(stored.item()).dtype == array.dtype
            return jnp.asarray(stored.item()) if weak else array
        if kind == "key":
            return jax.random.wrap_key_data(self(body, f"{path}/key"))
        if kind == "list":
            return [self(child, f"{path}/{i}") for i, child in enumerate(body)]
        if kind == "tuple":
            return tuple(self(child, f"{path}/{i}") for i, child in enumerate(body))
        if kind == "dict":
            return {self(k, path): self(v, f"{path}/{k}") for k, v in body}
        if kind == "optax":
            made = getattr(optax, body)
            return made(*[self(child, f"{path}/{i}") for i, child in enumerate(code["items"])])
        if kind == "treedef":
            return jax.tree.structure(self(body, f"{path}/treedef"))
        if kind == "function":
            if path not in self.functions:
                raise FormatError(
                    f"{self.file} uses your function {body}: pass the learner, as load(path, learner)."
                )
            return self.functions[path]
        if body not in REGISTRY:
            for room in _LATER:
                importlib.import_module(room)
        if body not in REGISTRY:
            raise FormatError(
                f"{self.file} names the record {body!r}, which this version of credo does not know."
            )
        fields = {name: self(child, f"{path}/{name}") for name, child in code["fields"].items()}
        try:
            return REGISTRY[body](**fields)
        except TypeError as error:
            raise FormatError(f"{self.file} holds a {body} of another version: {error}.") from None


def _same(saved: Any, given: Any, path: str, file: str, static: bool = False) -> None:
    """Refuse a learner whose structure (records, sizes, names; not numbers) differs from the saved one's."""
    if _outline(saved, static) == _outline(given, static):
        return
    if (
        isinstance(saved, dict)
        and isinstance(given, dict)
        and saved.get("record", 0) == given.get("record", 1)
    ):
        fixed = _static_fields(saved["record"])
        for name, child in saved["fields"].items():
            _same(child, given["fields"].get(name), f"{path}.{name}", file, name in fixed)
    raise FormatError(
        f"{file} was saved by another model: {path} is {_spell(saved)} there and {_spell(given)} here."
    )


def _outline(code: Any, static: bool = False) -> Any:
    """The structure alone: numbers that are leaves of the tree count as equal, those that are `static` do
    not.
    """
    if isinstance(code, list):
        return [_outline(child, static) for child in code]
    if not isinstance(code, dict):
        return "number" if isinstance(code, int) and not isinstance(code, bool) and not static else code
    if "float" in code or "array" in code:
        return "number"
    if "record" in code:
        fixed = _static_fields(code["record"])
        return {"record": code["record"]} | {k: _outline(v, k in fixed) for k, v in code["fields"].items()}
    return {name: _outline(child, static) for name, child in code.items() if name != "function"}


def _static_fields(record: str) -> set[str]:
    cls: Any = REGISTRY.get(record)
    return set() if cls is None else {f.name for f in dataclasses.fields(cls) if f.metadata.get("static")}


def _spell(code: Any) -> str:
    if isinstance(code, dict):
        return str(code.get("record") or code.get("function") or next(iter(code)))
    return repr(code)
