"""Search spaces: named ranges and choices, and the rows of numbers by which a learner sees their points."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from credo.bandits.optimize.variables import (
    Choices,
    Condition,
    Given,
    Option,
    Range,
    read_condition,
    read_variable,
)
from credo.core.errors import CredoError, suggest
from credo.core.types import Array, ArrayLike, PyTree

__all__ = ["AnyBounds", "Candidate", "Space", "even_points"]

Candidate: TypeAlias = "dict[str, Option] | np.ndarray"
"""A point as users see it: a dict by names, or an array (d,) where the bounds are an array."""

AnyBounds: TypeAlias = "Mapping[str, Sequence[object] | Given] | Sequence[Sequence[float]] | ArrayLike"
"""The description of a space: see `Optimizer`."""


ABSENT = object()
"""The value of a variable that a point does not have."""


@dataclass(frozen=True)
class Space:
    """A search space, whose points are encoded as rows of D numbers between -1 and 1.

    A range takes one number of the row, linear or logarithmic, and a choice takes one for each option: all
    options are sqrt(2) * sqrt(2) = 2 apart, as the ends of a range are. The numbers of ranges are kept on a
    grid of 2^-22, so that rows are the same in single and double precision.

    Attributes:
        variables: the variables, in the order of the bounds.
        named: whether points are dicts; else they are arrays.
        conditions: for each variable the choice on which it depends, or None; empty if none does.

    Example:
        >>> space = Space.read({"rate": (1e-4, 1.0, "log"), "depth": (1, 5, "whole"), "kind": ["a", "b"]})
        >>> space.encode({"rate": 1e-2, "depth": 5, "kind": "a"}).round(2).tolist()
        [0.0, 1.0, 0.71, -0.71]
        >>> space.decode(space.encode({"rate": 1.0, "depth": 2, "kind": "b"}))
        {'rate': 1.0, 'depth': 2, 'kind': 'b'}
    """

    variables: tuple[Range | Choices, ...]
    named: bool = True
    conditions: tuple[Condition | None, ...] = ()

    @staticmethod
    def read(bounds: AnyBounds) -> Space:
        """The space of some bounds.

        Raises:
            CredoError: a bound is not allowed; the sentence names it.
        """
        if isinstance(bounds, Mapping):
            if not bounds or not all(isinstance(name, str) for name in bounds):
                raise CredoError(
                    f"bounds must name at least one variable by a text; got {bounds!r}.", field="bounds"
                )
            known: dict[str, Range | Choices] = {}
            conditions: list[Condition | None] = []
            for name, one in bounds.items():
                conditions.append(read_condition(name, one, known) if isinstance(one, Given) else None)
                known[name] = read_variable(name, one.bounds if isinstance(one, Given) else one)
            return Space(tuple(known.values()), True, tuple(conditions) if any(conditions) else ())
        try:
            table: Any = np.asarray(bounds, np.float64)
        except (TypeError, ValueError, OverflowError):
            table = np.zeros(0)
        if table.ndim != 2 or table.shape[1] != 2 or len(table) == 0:
            raise CredoError(
                f"bounds must be an array (d, 2) of lows and highs, or a dict; got {bounds!r}.",
                field="bounds",
            )
        rows = enumerate(table.tolist())
        return Space(tuple(Range(f"bounds[{i}]", low, high) for i, (low, high) in rows), named=False)

    @property
    def size(self) -> int:
        """The length D of a row."""
        return sum(variable.columns for variable in self.variables)

    @property
    def smooth(self) -> np.ndarray:
        """Which numbers of a row may take any value (D,)."""
        return self._columns(lambda one: isinstance(one, Range) and not one.whole)

    @property
    def ordered(self) -> np.ndarray:
        """Which numbers of a row belong to ranges (D,)."""
        return self._columns(lambda one: isinstance(one, Range))

    def _columns(self, test: Callable[[Range | Choices], bool]) -> np.ndarray:
        return np.concatenate([np.full(one.columns, test(one)) for one in self.variables])

    @property
    def box(self) -> np.ndarray:
        """The largest absolute value of each number of a row (D,)."""
        return np.concatenate([np.full(one.columns, one.edge) for one in self.variables])

    def points(self, most: int) -> np.ndarray | None:
        """All points as rows (M, D), if there are at most `most`; else None."""
        total = 1
        for one in self.variables:
            total *= one.count or most + 1
            if total > most:
                return None
        every = itertools.product(*(one.every() for one in self.variables))
        rows = np.stack([np.concatenate(parts) for parts in every])
        if not self.conditions:
            return rows
        return np.unique(
            np.stack([np.concatenate(self._present(self._split(row))[0]) for row in rows]), axis=0
        )

    def _present(self, parts: Sequence[Any]) -> tuple[list[np.ndarray], list[bool]]:
        """Parts with 0 for the variables that are not there, and which are there."""
        there: list[bool] = []
        for i in range(len(parts)):
            condition = self.conditions[i] if self.conditions else None
            met = condition is None or (
                there[condition.choice] and int(np.argmax(parts[condition.choice])) in condition.options
            )
            there.append(met)
        return [part if met else 0.0 * part for part, met in zip(parts, there, strict=True)], there

    def _masked(self, parts: list[Array]) -> list[Array]:
        """The same for parts in a compiled program."""
        there: list[Array] = []
        for i in range(len(parts) if self.conditions else 0):
            condition = self.conditions[i]
            met = jnp.ones((), bool)
            if condition is not None:
                met = there[condition.choice] & condition.met(parts[condition.choice])
            there.append(met)
        if there:
            return [jnp.where(met, part, 0.0) for part, met in zip(parts, there, strict=True)]
        return parts

    def encode(self, point: object) -> np.ndarray:
        """The row (D,) of a point.

        Raises:
            CredoError: a name is unknown or missing, or a value is outside its bounds.
        """
        values = self._values_of(point)
        parts = [
            np.zeros(one.columns) if value is ABSENT else one.encode(value)
            for one, value in zip(self.variables, values, strict=True)
        ]
        if self.conditions:
            self._check(values, self._present(parts)[1])
        return np.concatenate(parts)

    def _check(self, values: Sequence[object], there: Sequence[bool]) -> None:
        """Refuse a point that has a variable which is not there, or lacks one that is."""
        for one, value, met in zip(self.variables, values, there, strict=True):
            if met and value is ABSENT:
                raise CredoError(f"point must have a value for {one.name}.", field="point")
            if not met and value is not ABSENT:
                raise CredoError(
                    f"point must have no value for {one.name}, which is not there with its other values.",
                    field="point",
                )

    def _values_of(self, point: object) -> Sequence[object]:
        if not self.named:
            try:
                array = np.asarray(point, np.float64)
            except (TypeError, ValueError):
                array = np.zeros((0, 0))
            if array.shape != (len(self.variables),):
                raise CredoError(
                    f"point must be {len(self.variables)} numbers; got {point!r}.", field="point"
                )
            return list(array.tolist())
        if not isinstance(point, Mapping):
            raise CredoError(f"point must be a dict; got {point!r}.", field="point")
        names = [one.name for one in self.variables]
        for name in point:
            if name not in names:
                hint = suggest(str(name), names)
                raise CredoError(
                    f"point has the unknown name {name!r}; the names are {', '.join(names)}"
                    f"{f' ({hint})' if hint else ''}.",
                    field="point",
                )
        missing = [
            one.name
            for i, one in enumerate(self.variables)
            if one.name not in point and not (self.conditions and self.conditions[i])
        ]
        if missing:
            raise CredoError(f"point must have a value for {', '.join(missing)}.", field="point")
        return [point.get(name, ABSENT) for name in names]

    def decode(self, row: ArrayLike) -> Candidate:
        """The point of a row (D,)."""
        parts, there = self._present(self._split(np.asarray(row, np.float64)))
        values = [one.decode(part) for one, part in zip(self.variables, parts, strict=True)]
        if not self.named:
            return np.asarray(values, np.float64)
        pairs = zip(self.variables, values, there, strict=True)
        return {one.name: value for one, value, met in pairs if met}

    def plain(self, point: object) -> Candidate:
        """A copy of a point, of plain Python values, or an array of doubles."""
        values = self._values_of(point)
        if not self.named:
            return np.array(values, np.float64)
        pairs = zip(self.variables, values, strict=True)
        return {one.name: one.plain(value) for one, value in pairs if value is not ABSENT}

    def to_json(self) -> object:
        """The bounds as JSON data."""
        if not self.named:
            return [[one.low, one.high] for one in self.variables if isinstance(one, Range)]
        return {
            one.name: {"range": [one.low, one.high, *one.words]}
            if isinstance(one, Range)
            else {"options": list(one.options)}
            for one in self.variables
        }

    def to_given(self) -> dict[str, dict[str, list[Option]]]:
        """The choices on which variables depend, with their options, by the names of both, as JSON data."""
        told: dict[str, dict[str, list[Option]]] = {}
        for one, condition in zip(self.variables, self.conditions, strict=False):
            if condition is not None:
                parent = self.variables[condition.choice]
                assert isinstance(parent, Choices)
                told[one.name] = {parent.name: [parent.options[place] for place in condition.options]}
        return told

    def values(self, row: Array) -> PyTree:
        """The point of a row in a compiled program: numbers by name, or (d,); a choice is its place.

        A variable that is not there has the value in the middle of its range.
        """
        parts = self._split(row)
        values = [one.value(part) for one, part in zip(self.variables, parts, strict=True)]
        if not self.named:
            return jnp.stack(values)
        return {one.name: value for one, value in zip(self.variables, values, strict=True)}

    def snap(self, row: Array) -> Array:
        """The nearest row that is a point, in a compiled program."""
        parts = self._split(row)
        parts = [one.snap(part) for one, part in zip(self.variables, parts, strict=True)]
        return jnp.concatenate(self._masked(parts))

    def place(self, unit: Array) -> Array:
        """The row of a point in the unit cube (d,), one number a variable, in a compiled program."""
        return jnp.concatenate(self._masked([one.place(unit[i]) for i, one in enumerate(self.variables)]))

    def neighbours(self, row: Array) -> Array:
        """The rows (M, D) that differ in one whole number by 1, or in one choice."""
        parts = self._split(row)
        rows = []
        for i, one in enumerate(self.variables):
            for other in one.others(parts[i]):
                row = jnp.concatenate([*parts[:i], other, *parts[i + 1 :]])
                rows.append(self.snap(row) if self.conditions else row)
        if rows:
            return jnp.stack(rows)
        return jnp.zeros((0, self.size), row.dtype)

    def _split(self, row: Any) -> list[Any]:
        ends = np.cumsum([one.columns for one in self.variables])
        starts = [0, *ends[:-1].tolist()]
        return [row[a:b] for a, b in zip(starts, ends.tolist(), strict=True)]


def even_points(key: Array, first: Array | int, count: int, dimension: int) -> Array:
    """Points (count, d) of a low-discrepancy sequence in the unit cube, shifted at random.

    Point i, which counts from `first`, is shift + (i + 1) (1 / g, 1 / g^2, ...) modulo 1, where g^(d + 1) = g
    + 1: the additive sequence of Roberts (2018), which is that of the golden ratio for d = 1. Each point
    alone is uniform.
    """
    root = 2.0
    for _ in range(40):  # a contraction, so that this is exact
        root = (1.0 + root) ** (1.0 / (dimension + 1))
    steps = root ** -np.arange(1.0, dimension + 1.0)
    kind = jnp.result_type(float)
    shift = jax.random.uniform(key, (dimension,), kind)
    numbers = (jnp.arange(1, count + 1, dtype=jnp.int32) + jnp.asarray(first, jnp.int32)).astype(kind)
    return jnp.mod(shift[None, :] + numbers[:, None] * jnp.asarray(steps, kind)[None, :], 1.0)
