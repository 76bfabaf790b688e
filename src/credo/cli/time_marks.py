"""When rows were observed, noted for the plots of a run whose rows have a column of times."""

from __future__ import annotations

import numpy as np

from credo.sessions import Block, Images, SeriesEncoding, Session, TableEncoding, Tally
from credo.tables import Chunk
from credo.tables.prepared import Prepared
from credo.tables.times import to_times

__all__ = ["TimeMarks"]


class TimeMarks:
    """Notes in the tally of a session when some rows were observed: the first one, and those after which it
    notes how the weights settle. It reads the first column of times, or that of a series.
    """

    def __init__(self, session: Session) -> None:
        self._session, self._name, self._number, self._origin = session, "", 0, 0.0
        encoding = session.encoding
        if isinstance(encoding, SeriesEncoding):
            clock = encoding.columns.clock
            self._name = clock.name if clock.kind != "numbers" else ""
        elif isinstance(encoding, TableEncoding):
            columns = encoding.schema.columns
            for place, column in enumerate(columns):
                if column.kind == "datetime":
                    self._name, self._origin = column.name, column.origin
                    self._number = sum(one.scaled for one in columns[:place])
                    break

    def note(self, rows: Chunk | Images, block: Block) -> None:
        """Note the times of the rows of a block that was just learned from; `rows` has its cells."""
        if not self._name or not isinstance(rows, Chunk):
            return
        tally, upto = self._session.tally, self._session.rows_used
        before = upto - len(block)
        row = 1 if before == 0 else Tally.next_mark(before)
        while row <= upto:
            seconds = self._seconds(rows, int(block.lines[row - before - 1]))
            if np.isfinite(seconds):
                tally.mark_time(row, seconds)
            row = Tally.next_mark(row)

    def _seconds(self, rows: Chunk, line: int) -> float:
        """The time of the row at a line, in seconds since 1970; NaN if it has none."""
        place = int(np.searchsorted(rows.lines, line))
        if isinstance(rows, Prepared):
            return self._origin + float(rows.numbers[place, self._number])
        cells = rows.columns.get(self._name)
        return float("nan") if cells is None else float(to_times(cells[place : place + 1])[0][0])
