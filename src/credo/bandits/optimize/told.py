"""What an optimiser was told: points, their values, and which trials failed, as arrays for a search."""

from __future__ import annotations

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np

from credo.bandits.optimize.space import Candidate, Space
from credo.bandits.optimize.trials import Trials
from credo.core.errors import CredoError
from credo.core.types import Array

__all__ = ["Told", "read_value"]

ROOM = 64
"""The room for trials at first; it doubles when it is full, and each size is compiled once."""


class Told:
    """The trials of an optimiser, in order; the value of one that failed is None."""

    def __init__(self, space: Space) -> None:
        self._space = space
        self.points: list[Candidate] = []
        self.rows: list[np.ndarray] = []
        self.values: list[float | None] = []

    def add(self, point: object, row: np.ndarray, value: float | None) -> None:
        """One more trial."""
        self.points.append(self._space.plain(point))
        self.rows.append(row)
        self.values.append(value)

    @property
    def good(self) -> list[tuple[Candidate, np.ndarray, float]]:
        """The trials that gave a value."""
        every = zip(self.points, self.rows, self.values, strict=True)
        return [(point, row, value) for point, row, value in every if value is not None]

    @property
    def failed(self) -> list[np.ndarray]:
        """The rows of the trials that failed."""
        return [row for row, value in zip(self.rows, self.values, strict=True) if value is None]

    def units(self, scaled: bool) -> tuple[float, float]:
        """The mean and standard deviation of the values, in double precision whatever their size."""
        values = np.asarray([value for _, _, value in self.good])
        if not scaled or not len(values):
            return 0.0, 1.0
        largest = float(np.max(np.abs(values))) or 1.0
        centre, spread = float(np.mean(values / largest)), float(np.std(values / largest))
        return largest * centre, largest * spread if spread > 1e-15 * abs(centre) else 1.0

    def trials(
        self,
        key: Array,
        asked: int,
        scaled: bool,
        rows: Sequence[np.ndarray] = (),
        means: Sequence[float] | None = None,
    ) -> Trials:
        """The trials with values, in units near 1, and rows whose values are believed.

        Of those, `means` are the values; without them a search that is fitted believes its own.
        """
        centre, spread = self.units(scaled)
        good = self.good
        values = [value for _, _, value in good] + list(means if means is not None else [centre] * len(rows))
        points = [row for _, row, _ in good] + list(rows)
        believed = 0 if means is not None else len(rows)
        return self._table(key, asked, points, (np.asarray(values) - centre) / spread, believed)

    def labels(self, key: Array, asked: int) -> Trials:
        """All trials, with 1 for each that gave a value and -1 for each that failed."""
        values = np.asarray([-1.0 if value is None else 1.0 for value in self.values])
        return self._table(key, asked, self.rows, values, 0)

    def _table(
        self, key: Array, asked: int, rows: Sequence[np.ndarray], values: np.ndarray, believed: int
    ) -> Trials:
        room = ROOM
        while room < len(rows):
            room *= 2
        empty = Trials.start(key, room, self._space.size)
        kind = empty.values.dtype
        table, targets = np.zeros(empty.rows.shape, kind), np.zeros(room, kind)
        if len(rows):
            table[: len(rows)], targets[: len(rows)] = np.stack(rows), values
        count, questions, free = (jnp.asarray(one, jnp.int32) for one in (len(rows), asked, believed))
        return Trials(jnp.asarray(table), jnp.asarray(targets), count, questions, empty.key, free)


def read_value(value: object) -> float:
    """A finite number; a `CredoError` says that it is none."""
    array = np.asarray(value) if not isinstance(value, str | bytes) else np.asarray(np.nan)
    number = float(array.reshape(())) if array.size == 1 and array.dtype.kind in "biuf" else np.nan
    if not np.isfinite(number):
        raise CredoError(f"value must be a finite number; got {value!r}.", field="value")
    return number
