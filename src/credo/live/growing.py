"""An encoder of table rows that takes in columns as they come, and what it has learned about them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator

import numpy as np

from credo.tables import Chunk, Dropped, Encoder, EncoderState, Schema
from credo.tables.cells import Cells, cell_text, is_missing, to_list
from credo.tables.infer import late_column
from credo.tables.schema import HOLDS

__all__ = ["MOST_LATE", "OTHER_UNITS", "GrowingEncoder"]

OTHER_UNITS = "the numbers of {} are unlike all before, ten in a row: they are standardised anew"
"""The message when the moments of numbers begin again."""

MOST_LATE = 1000
"""The most columns that may come after the first rows; others are left out."""


class GrowingEncoder:
    """An encoder, its running statistics, and the columns that come later: one that was empty, held a single
    text or was absent in the first rows is learned from once a row has another value there, which says what
    it holds. Results do not depend on how rows are grouped. `admit_width` says whether there may be so many
    features, and `notify` is given a sentence about each column that came.
    """

    def __init__(self, schema: Schema, clip: float, state: EncoderState | None = None) -> None:
        self._take(schema, clip)
        self.state = self.encoder.initial() if state is None else state
        self.admit_width: Callable[[int], bool] = _any_width
        self.notify: Callable[[str], None] = _quiet

    def _take(self, schema: Schema, clip: float) -> None:
        self.schema = schema
        self.encoder = Encoder(schema, clip=clip)
        self._only = {column.name: column.only for column in schema.dropped}
        self._known = {column.name for column in (*schema.columns, *schema.late)} | {schema.target.name}

    def copy(self) -> GrowingEncoder:
        """An encoder that goes on from here, of which this one sees nothing."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        return other

    __copy__ = copy

    def become(self, schema: Schema) -> None:
        """Go on with another schema, whose columns are these and perhaps more."""
        self._take(schema, self.encoder.clip)
        fresh = self.encoder.initial().moments.count.size - self.state.moments.count.size
        if fresh:
            self.state = EncoderState(self.state.moments.widened(fresh))

    def pieces(self, chunk: Chunk, counts: np.ndarray | None = None) -> Iterator[Chunk]:
        """A chunk, cut where columns come in rows that count (n,); encode each before asking for the next."""
        while True:
            found = self._first_waking(chunk, counts)
            if found is None:
                yield chunk
                return
            row, cells = found
            if row:
                yield chunk.part(0, row)
                chunk = chunk.part(row, len(chunk))
                counts = None if counts is None else counts[row:]
            self._wake(cells)

    def go_on(self, after: EncoderState) -> None:
        """Go on with the running statistics after some rows, and say which columns came in other units."""
        begun = after.moments.begun_again(self.state.moments)
        for place in np.flatnonzero(begun).tolist() if np.count_nonzero(begun) else ():
            self.notify(OTHER_UNITS.format(f"column {self.encoder.scaled[place]!r}"))
        self.state = after

    def asleep(self, chunk: Chunk) -> list[str]:
        """The columns of a chunk that are not learned from yet, and will be once they have a value."""
        return [
            name for name in chunk.columns if name not in self._known and self._only.get(name, "") is not None
        ]

    def wake_all(self, chunk: Chunk) -> None:
        """Take in all columns that a chunk has values for, without encoding it."""
        for _ in self.pieces(chunk):
            pass

    def _first_waking(self, chunk: Chunk, counts: np.ndarray | None) -> tuple[int, dict[str, object]] | None:
        """The first row with a value in a column that is not learned from yet, and such values by name."""
        rows: dict[str, int] = {}
        for name in self.asleep(chunk):
            row = _first_value(chunk.columns[name], self._only.get(name) or "", counts)
            if row is not None:
                rows[name] = row
        if not rows:
            return None
        first = min(rows.values())
        names = sorted(name for name, row in rows.items() if row == first)
        return first, {name: to_list(chunk.columns[name])[first] for name in names}

    def _wake(self, cells: dict[str, object]) -> None:
        """Take in columns by their first values; if there is no room for one, it stays out for good."""
        only = {name: text or "" for name, text in self._only.items()}
        for name, cell in cells.items():
            column = late_column(name, cell, only.get(name, ""))
            if column is None:
                self._leave_out(name, "its first value is nested, or no finite number")
                continue
            schema = self.schema.including([column])
            if len(schema.late) > MOST_LATE or not self.admit_width(schema.width):
                self._leave_out(name, "it came after the first rows, and there is no room for it")
                continue
            self.become(schema)
            self.notify(f"column {name!r} has come, with {HOLDS[column.kind]}: it is learned from now on")

    def _leave_out(self, name: str, why: str) -> None:
        kept = tuple(column for column in self.schema.dropped if column.name != name)
        self.become(dataclasses.replace(self.schema, dropped=(*kept, Dropped(name, why))))
        self.notify(str(Dropped(name, why)))


def _any_width(width: int) -> bool:
    return True


def _quiet(sentence: str) -> None:
    pass


def _first_value(cells: Cells, only: str, counts: np.ndarray | None) -> int | None:
    """The first row that counts and has a value other than `only`; None if there is none."""
    if isinstance(cells, np.ndarray) and cells.dtype.kind == "f" and np.isnan(cells).all():
        return None
    for row, cell in enumerate(to_list(cells)):
        if cell is None or (counts is not None and not counts[row]):
            continue
        if not is_missing(cell) and (not only or cell_text(cell) != only):
            return row
    return None
