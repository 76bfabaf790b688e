"""A digest of everything that a compiled program depends on, which is the same in every process."""

from __future__ import annotations

import dataclasses
import enum
import functools
import hashlib
import operator
import os
import platform
import sys
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import Any

import jax
import numpy as np

from credo.core.caches import machine

__all__ = ["Nameless", "fingerprint", "known_by_name", "option"]

_PLAIN = (type(None), bool, int, float, complex, str, bytes)

_KNOWN = ("credo", "jax", "jaxlib", "numpy", "builtins", "collections", "functools")
"""The packages whose classes and functions are known by their names, since the digest has their versions."""

_NO_MATTER = ("cache", "log", "traceback", "dump", "timeout", "color", "frames", "explain", "pgle")
"""Parts of the names of JAX's options that change no program."""


class Nameless(Exception):
    """Something that a program depends on has no name that another process would know it by."""


def fingerprint(*parts: object) -> str:
    """A digest of numbers, texts, trees, their structures, records, and classes and functions of credo.

    It covers the source of credo, the versions of Python and JAX, the processor and JAX's options, too: where
    any of them differs, so does the digest.

    Raises:
        Nameless: a part holds something else, such as a function of a user, whose code has no name.
    """
    digest = hashlib.sha256()
    for word in (*_surroundings(), *_options()):
        digest.update(_sized(word))
    words: list[str] = []
    _write(words, parts)
    for word in words:
        digest.update(_sized(word))
    return digest.hexdigest()


def known_by_name(module: str, name: str) -> bool:
    """Whether a module and a name say what a class or a function is: of a package whose versions count."""
    return module.split(".")[0] in _KNOWN and "<" not in name


def _sized(word: str) -> bytes:
    """A word in a form in which no two sequences of words look the same."""
    data = word.encode()
    return b"%d:" % len(data) + data


@functools.cache
def _surroundings() -> tuple[str, ...]:
    """The words for what stays as it is while a process runs."""
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # not on this system
        cores = os.cpu_count() or 1
    names = ("jax", "jaxlib", "numpy", "scipy")
    versions = [f"{name} {metadata.version(name)}" for name in names]
    flags = [f"{name}={os.environ.get(name, '')}" for name in ("XLA_FLAGS", "LIBTPU_INIT_ARGS")]
    python = f"{platform.python_implementation()} {sys.version}"
    device: Any = jax.devices()[0]
    devices = (device.platform, device.device_kind, device.client.platform_version)
    return (_source(), *versions, python, machine(), str(cores), *flags, *devices)


def _source() -> str:
    """A digest of the source of credo."""
    digest = hashlib.sha256()
    root = Path(__file__).resolve().parents[1]
    files = sorted(root.rglob("*.py"))
    if not files:
        raise Nameless("the source of credo")
    for path in files:
        digest.update(_sized(str(path.relative_to(root))))
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _options() -> Iterable[str]:
    """The words for JAX's options, as they are in this thread."""
    for name in sorted(jax.config.values):
        if not any(part in name for part in _NO_MATTER):
            yield f"{name}={option(name)!r}"


def option(name: str) -> Any:
    """An option of JAX as it is in this thread."""
    if hasattr(jax.config, name):
        return getattr(jax.config, name)
    return jax.config.values[name]


def _write(words: list[str], value: Any) -> None:
    """Add the words for a value."""
    kind = type(value)
    if kind in _PLAIN:
        words.append(f"{kind.__name__} {value!r}")
    elif isinstance(value, enum.Enum):
        words.append(f"enum {_reference(kind)} {value.name}")
    elif isinstance(value, np.dtype) or getattr(value, "type", None) is jax.dtypes.prng_key:
        words.append(f"dtype {value}")
    elif isinstance(value, type):
        words.append(f"type {_reference(value)}")
    elif isinstance(value, jax.tree_util.PyTreeDef):
        _write_structure(words, value)
    elif isinstance(value, tuple | list):
        _write_all(words, f"{_reference(kind)} {len(value)}", value)
    elif isinstance(value, dict):
        _write_all(words, f"dict {len(value)}", value.items())
    elif isinstance(value, jax.ShapeDtypeStruct):
        _write_all(words, "shape", (value.shape, value.dtype, value.weak_type))
    elif isinstance(value, np.ndarray | np.generic):
        _write_all(words, f"array {value.dtype} {value.shape}", (value.tobytes(),))
    elif dataclasses.is_dataclass(value):
        fields = [getattr(value, field.name) for field in dataclasses.fields(value)]
        _write_all(words, f"record {_reference(kind)} {len(fields)}", fields)
    elif isinstance(value, functools.partial):
        _write_all(words, "partial", (value.func, value.args, value.keywords))
    else:
        words.append(f"function {_reference(value)}")


def _write_all(words: list[str], head: str, parts: Iterable[object]) -> None:
    words.append(head)
    for part in parts:
        _write(words, part)


def _write_structure(words: list[str], structure: Any) -> None:
    node: Any = structure.node_data()
    if node is None:
        words.append(f"leaf {structure.num_leaves}")
        return
    kind, data = node
    children = structure.children()
    _write_all(words, f"node {_reference(kind)} {len(children)}", (data,))
    for child in children:
        _write_structure(words, child)


def _reference(value: Any) -> str:
    """The name of a class or a function of a known package, by which it is found again."""
    module = getattr(value, "__module__", None)
    name = getattr(value, "__qualname__", None)
    if value is type(None):
        return "None"
    if not isinstance(module, str) or not isinstance(name, str) or not known_by_name(module, name):
        raise Nameless(repr(value))
    try:
        found = operator.attrgetter(name)(sys.modules[module])
    except (AttributeError, KeyError):
        raise Nameless(repr(value)) from None
    if found is not value:
        raise Nameless(repr(value))
    return f"{module}.{name}"
