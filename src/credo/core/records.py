"""Records: frozen dataclasses that are pytrees, print, compare and can be saved.

Arrays and hyper-parameters are leaves, so `jax.vmap`, `jax.grad` and `replace` work on them. Fields marked
`static_field()` (functions, integers, names) are metadata of the tree. Nothing is mutated.
"""

from __future__ import annotations

import dataclasses
import importlib
import operator
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Protocol, TypeVar, dataclass_transform, overload

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from credo.core.extensions import extensions
from credo.core.fields import field
from credo.core.types import ArrayLike

__all__ = [
    "REGISTRY",
    "find_function",
    "find_record",
    "function_name",
    "named_function",
    "record",
    "record_name",
    "replace",
    "static_field",
]

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

REGISTRY: dict[str, type] = {}
"""Every record class by its name. The saved format refers to classes only by these names."""

_FUNCTIONS: dict[str, Callable[..., Any]] = {}
"""The functions that files can name. A file names no other function, so that a forged one runs none."""

_OWN = ("credo", "credo_papers")
"""The packages whose records have bare names, so that a file does not say in which of them a record lives."""


class _Record(Protocol):
    """A class to which `record` can give its methods: a dataclass."""

    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]


@overload
def static_field() -> Any: ...


@overload
def static_field(*, default: T) -> T: ...


def static_field(*, default: object = dataclasses.MISSING) -> object:
    """Declare a field that is metadata of the tree rather than a leaf. Its value must be hashable.

    Arguments:
        default: the value if none is passed; without a default the field is required.

    Returns:
        The declaration of the field, which stands for its value to a type checker.

    Example:
        >>> @record
        ... class Layer:
        ...     weights: jax.Array
        ...     activation: str = static_field(default="relu")
        >>> len(jax.tree.leaves(Layer(np.ones(3))))
        1
    """
    declared: object = dataclasses.field(default=default, metadata={"static": True})
    return declared


@dataclass_transform(frozen_default=True, field_specifiers=(static_field, field, dataclasses.field))
def record(cls: type[T]) -> type[T]:
    """Turn a class with annotated fields into a frozen dataclass that is a pytree.

    Arguments:
        cls: the class. Fields made with `static_field()` become metadata; all others are leaves or sub-trees.

    Returns:
        The same class: frozen, registered with JAX, comparable (`==` compares structure and every leaf),
        hashable where its leaves are, printed with array shapes rather than contents, and known to
        `credo.save` by its name.

    Example:
        >>> @record
        ... class Line:
        ...     slope: float
        ...     name: str = static_field(default="line")
        >>> jax.tree.map(lambda v: 2 * v, Line(1.5))
        Line(slope=3.0, name='line')
    """
    cls = dataclasses.dataclass(frozen=True, eq=False, repr=False)(cls)
    _register(cls)
    methods = {"__eq__": _equal, "__hash__": _hash, "__repr__": cls.__dict__.get("__repr__", _show)}
    for name, method in methods.items():
        setattr(cls, name, method)
    name = record_name(cls)
    if name in REGISTRY and REGISTRY[name].__module__ != cls.__module__:
        raise TypeError(f"{cls.__module__} must not call a record {name}: {REGISTRY[name].__module__} does.")
    REGISTRY[name] = cls
    return cls


def record_name(cls: type) -> str:
    """The name of a record class in files: bare in credo and credo-papers, else with its module."""
    own = cls.__module__.split(".")[0] in _OWN
    if own:
        return cls.__name__
    return f"{cls.__module__}.{cls.__qualname__}"


def find_record(name: str) -> type | None:
    """The record class of a name that a file holds, which another distribution may bring; None if unknown."""
    if name not in REGISTRY:
        _import_all()
    return REGISTRY.get(name)


def _import_all() -> None:
    """Import what has records and functions that files may name: of credo, and of other distributions."""
    importlib.import_module("credo.records")
    for entry in extensions("credo.records").values():
        entry.load()


def named_function(function: F) -> F:
    """Name a function for files, so that a record which holds it is loaded with nothing passed along.

    Every function that a default of the library puts into a record must be named.

    Arguments:
        function: a function at the top of a module that is imported before files are read.

    Returns:
        The same function.

    Example:
        >>> @named_function
        ... def twice(x):
        ...     return 2 * x
        >>> find_function(function_name(twice)) is twice
        True
    """
    name = function.__name__
    known = _FUNCTIONS.get(name, function)
    if known.__module__ != function.__module__:
        raise TypeError(f"{function.__module__} must not name a function {name}: {known.__module__} does.")
    _FUNCTIONS[name] = function
    return function


def function_name(function: Callable[..., Any]) -> str:
    """The name of a function in files: bare for a named one, else with its module, for people to read."""
    name = getattr(function, "__qualname__", type(function).__qualname__)
    if _FUNCTIONS.get(name) is function:
        return str(name)
    return f"{getattr(function, '__module__', '?')}.{name}"


def find_function(name: str) -> Callable[..., Any] | None:
    """The named function of a name that a file holds; None if there is none."""
    if name not in _FUNCTIONS:
        _import_all()
    return _FUNCTIONS.get(name)


def _register(cls: type) -> None:
    """Make a pytree of a dataclass, without `jax.tree_util.register_dataclass`, for two reasons.

    Its trees are rebuilt through `__init__`, whose checks would refuse what JAX puts in place of a value: the
    derivative by a variance may be negative. And JAX 0.10 compares the structures of two such classes by
    their metadata alone, so that two classes without metadata would share compiled code.
    """
    fields = dataclasses.fields(cls)
    meta = tuple(f.name for f in fields if f.metadata.get("static"))
    data = tuple(f.name for f in fields if not f.metadata.get("static"))
    keys = tuple(jax.tree_util.GetAttrKey(name) for name in data)

    get_data = _getter(data)
    get_meta = _getter(meta)

    def flatten(value: object) -> tuple[tuple[object, ...], tuple[object, ...]]:
        return get_data(value), get_meta(value)

    def flatten_with_keys(value: object) -> tuple[tuple[tuple[object, object], ...], tuple[object, ...]]:
        children, aux = flatten(value)
        return tuple(zip(keys, children, strict=True)), aux

    def unflatten(aux: Iterable[object], children: Iterable[object]) -> object:
        value: object = object.__new__(cls)
        value.__dict__.update(zip(data, children, strict=True))
        value.__dict__.update(zip(meta, aux, strict=True))
        return value

    jax.tree_util.register_pytree_with_keys(cls, flatten_with_keys, unflatten, flatten)


def _getter(names: tuple[str, ...]) -> Callable[[object], tuple[object, ...]]:
    if len(names) == 1:
        one = operator.attrgetter(names[0])
        return lambda value: (one(value),)
    if names:
        return operator.attrgetter(*names)
    return lambda value: ()


def replace(value: T, /, **changes: object) -> T:
    """A copy of a record with some fields changed (`dataclasses.replace`).

    Arguments:
        value: the record, which is not changed.
        changes: the fields that change, with their new values, which are checked as in the constructor.

    Returns:
        A record of the same class.

    Raises:
        TypeError: the record has no such field.

    Example:
        >>> import credo
        >>> credo.replace(credo.RandomWalk(1e-4), var=0.0)
        RandomWalk(var=0.0)
    """
    return dataclasses.replace(value, **changes)  # type: ignore[type-var]


def _equal(self: _Record, other: object) -> bool:
    if type(self) is not type(other):
        return False
    if self is other:
        return True
    left, left_tree = jax.tree.flatten(self)
    right, right_tree = jax.tree.flatten(other)
    structure: object = left_tree
    if structure != right_tree:
        return False
    return all(a is b or _equal_leaves(a, b) for a, b in zip(left, right, strict=True))


def _equal_leaves(left: ArrayLike, right: ArrayLike) -> bool:
    if np.shape(left) != np.shape(right):
        return False
    if getattr(left, "dtype", None) != getattr(right, "dtype", None):
        # JAX may refuse to compare mixed dtypes
        left = np.asarray(left)
        right = np.asarray(right)
    return bool(np.all(np.asarray(left == right)))


def _hash(self: _Record) -> int:
    return hash((type(self).__name__, *(getattr(self, f.name) for f in dataclasses.fields(self))))


def _show(self: _Record) -> str:
    parts = ", ".join(f"{f.name}={_brief(getattr(self, f.name))}" for f in dataclasses.fields(self) if f.repr)
    return f"{type(self).__name__}({parts})"


def _brief(value: object) -> str:
    if isinstance(value, jax.Array | np.ndarray):
        plain = value.dtype != object and not jnp.issubdtype(value.dtype, jax.dtypes.prng_key)
        if plain and value.ndim == 0 and not isinstance(value, Tracer):
            if value.dtype.kind == "f":
                return f"{value.item():.6g}"
            return str(value.item())
        return f"{value.dtype}[{','.join(map(str, value.shape))}]"
    name = getattr(value, "__qualname__", None) if callable(value) else None
    if isinstance(name, str):
        return name
    return repr(value)
