"""Batches of rows with keys, and the parts of them that belong to shards."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from credo.streams.keyed.naming import salt

__all__ = ["Batch"]


@dataclass(frozen=True)
class Batch:
    """Consecutive rows of a source, or those of them that belong to a shard.

    Attributes:
        before: the last line before these rows.
        last: their last line, good or bad.
        keys: the key of each row.
        lines: the line of each row (n,).
        x, y: inputs (n, D) float32, and what is learned (n,): class numbers, or standardised numbers.
        weights: the weights (n,), 0 while the units of the targets are not known.
        location, scale: the mean and spread of the targets before each row (n,), 0 and 1 where `y` is in its
            own units.
        known: whether the units were known (n,), so that forecasts are scored.
        times: the times of the rows (n,); None if each row is one step.
    """

    before: int
    last: int
    keys: list[str]
    lines: np.ndarray
    x: np.ndarray
    y: np.ndarray
    weights: np.ndarray
    location: np.ndarray
    scale: np.ndarray
    known: np.ndarray
    times: np.ndarray | None = None

    def rows(self, some: np.ndarray) -> Batch:
        """Some of the rows, by their places."""
        arrays = {
            field.name: getattr(self, field.name)[some]
            for field in dataclasses.fields(self)
            if isinstance(getattr(self, field.name), np.ndarray)
        }
        return dataclasses.replace(self, keys=[self.keys[place] for place in some.tolist()], **arrays)

    def after(self, line: int) -> Batch:
        """The rows after a line."""
        if line <= self.before:
            return self
        part = self.rows(np.flatnonzero(self.lines > line))
        return dataclasses.replace(part, before=max(self.before, line))

    def shards(self, count: int) -> list[Batch]:
        """The rows of each of some shards, to which keys belong by a fixed hash."""
        if count == 1:
            return [self]
        shard = np.array([salt(key) % count for key in self.keys], np.int64)
        return [self.rows(np.flatnonzero(shard == number)) for number in range(count)]
