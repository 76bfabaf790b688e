"""Constraints on the numbers of a field, which a record states where it declares the field."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple, TypeAlias, get_args, overload

import numpy as np

from credo.core.errors import require_choice

__all__ = ["Constraint", "Declaration", "Holds", "declarations", "declare", "field", "nonnegative_at"]

TOLERANCE = 1e-3
"""The share of the largest entry by which rounding may have taken a matrix from being symmetric and positive
semi-definite, and weights from summing to one."""

Holds: TypeAlias = Literal[
    "any",
    "positive",
    "nonnegative",
    "precision",
    "share",
    "run length",
    "log weights",
    "log probabilities",
    "covariance",
    "deviations",
    "observations",
]
"""The names of what a field may hold."""


class Constraint(NamedTuple):
    """A test of the numbers of a field, what it asks for in words, and whether they must be finite, too."""

    test: Callable[[np.ndarray], bool]
    words: str
    finite: bool = True


class Declaration(NamedTuple):
    """The statement of a record about one of its fields.

    Attributes:
        constraint: what its numbers may be; None if nothing more than finite.
        raw: whether these are data as they came, or squares of them, which may be larger than numbers that
            are multiplied.
        weighs: the field with the parts whose log probabilities this one holds; None if it holds none.
    """

    constraint: Constraint | None = None
    raw: bool = False
    weighs: str | None = None


def _every(test: Callable[[np.ndarray], np.ndarray]) -> Callable[[np.ndarray], bool]:
    return lambda array: bool(np.all(test(array)))


def _normalised(array: np.ndarray) -> bool:
    with np.errstate(over="ignore"):
        total = np.exp(array).sum(axis=-1)
    return not np.isnan(array).any() and bool(np.all(np.abs(total - 1) < TOLERANCE))


def _semidefinite(array: np.ndarray) -> bool:
    for matrix in array.reshape(-1, *array.shape[-2:]):
        scale = float(np.abs(matrix).max(initial=0.0))
        if np.abs(matrix - matrix.T).max(initial=0.0) > TOLERANCE * scale:
            return False
        rounding = TOLERANCE * scale + np.finfo(float).tiny
        try:
            np.linalg.cholesky(matrix + rounding * np.eye(len(matrix)))
        except np.linalg.LinAlgError:
            return False
    return True


def _centred(array: np.ndarray) -> bool:
    total = np.abs(array.sum(axis=-2))
    size = np.abs(array).sum(axis=-2)
    return bool(np.all(total <= TOLERANCE * size + np.finfo(float).tiny))


_CONSTRAINTS: dict[Holds, Constraint | None] = {
    "any": None,
    "positive": Constraint(_every(lambda array: array > 0), "must be above 0"),
    "nonnegative": Constraint(_every(lambda array: array >= 0), "must be at least 0"),
    "precision": Constraint(_every(lambda array: array >= 1e-30), "must be above 0, and no less than 1e-30"),
    "share": Constraint(_every(lambda array: (array >= 0) & (array <= 1 + TOLERANCE)), "must be in [0, 1]"),
    "run length": Constraint(_every(lambda array: array >= -1), "must be at least -1"),
    "log weights": Constraint(_normalised, "must be log probabilities that sum to one", finite=False),
    "log probabilities": Constraint(
        _every(lambda array: array < np.inf), "must be log probabilities", finite=False
    ),
    "covariance": Constraint(_semidefinite, "must be symmetric and positive semi-definite"),
    "deviations": Constraint(_centred, "must have columns that sum to 0"),
    "observations": Constraint(_every(lambda array: ~np.isinf(array)), "must not be infinite", finite=False),
}

_CLOCK = Declaration(_CONSTRAINTS["nonnegative"])
"""The declaration of every field `t`: a clock counts from 0."""

_NOTHING = Declaration()

_FOREIGN: dict[str, dict[str, Declaration]] = {}
"""Declarations of the fields of named tuples of other libraries."""


@overload
def field(
    holds: Holds | Constraint = ..., *, raw: bool = ..., weighs: str | None = ..., default: object
) -> Any: ...


@overload
def field(holds: Holds | Constraint = ..., *, raw: bool = ..., weighs: str | None = ...) -> Any: ...


def field(
    holds: Holds | Constraint = "any",
    *,
    raw: bool = False,
    weighs: str | None = None,
    default: object = dataclasses.MISSING,
) -> object:
    """Declare what the numbers of a field of a record may be, by which files that hold others are refused.

    Arguments:
        holds: "positive", "nonnegative", "precision" (at least 1e-30), "share" (in [0, 1]), "run length" (at
            least -1), "log weights" (log probabilities that sum to one over the last axis), "log
            probabilities", "covariance" (symmetric and positive semi-definite), "deviations" (columns that
            sum to 0), "observations" (which may be NaN), or "any", which is finite and at most 1e18 in size
            (1e150 in double precision).
        raw: whether these are data as they came, which may be of any finite size.
        weighs: the field whose parts have these log weights: what is in a part of weight 0 is not looked at.
        default: the value if none is passed; without a default the field is required.

    Returns:
        The declaration of the field, which stands for its value to a type checker.

    Raises:
        CredoError: `holds` has no such name.

    Only what is read from a file is checked, so that computing costs nothing. A field without a declaration
    holds "any", and a field `t` counts from 0.

    Example:
        >>> import credo
        >>> @credo.record
        ... class Gauge:
        ...     mean: jax.Array
        ...     var: jax.Array = credo.field("positive")
        >>> Gauge(1.0, 2.0)
        Gauge(mean=1.0, var=2.0)
    """
    said = Declaration(_constraint(holds), raw, weighs)
    declared: object = dataclasses.field(default=default, metadata={"declaration": said})
    return declared


def nonnegative_at(places: list[int], what: str) -> Constraint:
    """The constraint that these places of the last axis are at least 0; `what` stands there, in words."""
    return Constraint(_every(lambda array: array[..., places] >= 0), f"must have {what} of at least 0")


def declare(kind: str, **fields: Holds) -> None:
    """Declare what the fields of a named tuple of another library may hold, by its name, so that nobody needs
    to import it for this.
    """
    _FOREIGN[kind] = {name: Declaration(_constraint(holds)) for name, holds in fields.items()}


def _constraint(holds: Holds | Constraint) -> Constraint | None:
    if isinstance(holds, Constraint):
        return holds
    return _CONSTRAINTS[require_choice("holds", holds, get_args(Holds))]


def declarations(value: object) -> Mapping[str, Declaration] | None:
    """The declarations of the fields of a record or a named tuple; None for anything else."""
    names: tuple[str, ...] | None = getattr(value, "_fields", None)
    if dataclasses.is_dataclass(value):
        said = {one.name: one.metadata.get("declaration", _NOTHING) for one in dataclasses.fields(value)}
    elif names is not None:
        known = _FOREIGN.get(type(value).__name__, {})
        said = {name: known.get(name, _NOTHING) for name in names}
    else:
        return None
    if said.get("t") is _NOTHING:
        said["t"] = _CLOCK
    return said
