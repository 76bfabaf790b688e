"""The loop over the rows of a source: learn, write what grows with the rows, and save the state."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np

from credo.cli.checkpoints import Checkpoints
from credo.cli.drift_file import DriftFile
from credo.cli.flags import in_flags
from credo.cli.forecast_file import QUANTILES, ForecastFile
from credo.cli.interrupt import Interruptible
from credo.cli.progress import Watch, note
from credo.cli.request import Request
from credo.core.errors import DataError
from credo.live.intake import segments
from credo.recipes.defaults import SCHEMA_ROWS
from credo.sessions import Block, Forecasts, Images, RowSource, SeriesEncoding, Session, TableEncoding, Tally
from credo.sessions.cutting import last_line
from credo.tables import Chunk
from credo.tables.live import Pipe
from credo.tables.prepared import Prepared
from credo.tables.times import to_times

__all__ = ["require_good", "stream", "waiting_for_rows"]


class TimeMarks:
    """Notes in the tally of a session when some rows were observed: the first one, and those after which it
    notes how the weights settle. It reads the first column of times, or that of a series.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._name = ""
        self._number = 0
        self._origin = 0.0
        encoding = session.encoding
        if isinstance(encoding, SeriesEncoding):
            clock = encoding.columns.clock
            self._name = clock.name if clock.kind != "numbers" else ""
        elif isinstance(encoding, TableEncoding):
            columns = encoding.schema.columns
            for place, column in enumerate(columns):
                if column.kind == "datetime":
                    self._name = column.name
                    self._origin = column.origin
                    self._number = sum(one.scaled for one in columns[:place])
                    break

    def note(self, rows: Chunk | Images, block: Block) -> None:
        """Note the times of the rows of a block that was just learned from; `rows` has its cells."""
        if not self._name or not isinstance(rows, Chunk):
            return
        tally = self._session.tally
        upto = self._session.rows_used
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
        if cells is None:
            return float("nan")
        return float(to_times(cells[place : place + 1])[0][0])


SHOWN_BAD = 3


def stream(
    request: Request,
    session: Session,
    source: RowSource,
    interrupt: Interruptible,
    record: DriftFile,
    forecasts: ForecastFile,
    checkpoints: Checkpoints,
) -> list[str]:
    """Learn from all rows, and return sentences about the bad ones."""
    bad = _BadRows(request, source)
    rows_read = 0
    times = TimeMarks(session)
    session.progress.interrupted = True
    with Watch(source.total, request.run.quiet, source.share) as watch:
        if interrupt.pipe is not None:
            interrupt.pipe.on_wait = checkpoints.tick
        try:
            for rows in source.rows:
                interrupt.busy = True
                chunk: list[Forecasts] = []
                for block in _blocks(session, rows, forecasts):
                    if block.labelled:
                        bad.add(block)
                        rows_read += block.read
                        _tell_classes(block, request.run.quiet)
                    if forecasts.out is None:
                        record.add(block.lines, session.learn(block))
                    else:
                        some, steps = session.forecast_then_learn(block, QUANTILES)
                        record.add(block.lines, steps)
                        chunk += some
                    if block.labelled:
                        times.note(rows, block)
                session.progress.line = max(session.progress.line, last_line(rows))
                checkpoints.add(chunk)
                interrupt.busy = False
                checkpoints.tick()
                watch.tell(rows_read, session.tally, bad.count)
                if interrupt.stopped and interrupt.pipe is None:
                    break
        except KeyboardInterrupt:
            if interrupt.busy:
                raise
            interrupt.stopped = True
        except BrokenPipeError:
            interrupt.stop_quietly()  # the rows of this chunk are learned
        except DataError:
            checkpoints.rescue(torn=interrupt.busy)
            raise
    session.progress.interrupted = interrupt.stopped
    return bad.tell()


class _BadRows:
    """The rows of a source that cannot be learned: how many, and the first of them."""

    def __init__(self, request: Request, source: RowSource) -> None:
        self._request = request
        self._name = source.name
        self._shown: list[str] = []
        self.count = 0

    def add(self, block: Block) -> None:
        """Count those of a block; an error where none may be bad."""
        require_good(self._request, self._name, block)
        self.count += len(block.bad)
        few = block.bad[: max(0, SHOWN_BAD - len(self._shown))]
        self._shown += [f"{self._name}: {in_flags(str(row))}" for row in few]

    def tell(self) -> list[str]:
        """The sentence about them, which is noted; none if all rows were good."""
        if not self.count:
            return []
        left = self.count - len(self._shown)
        more = f", and {left:,} more" if left > 0 else ""
        rows = "row" if self.count == 1 else "rows"
        sentence = f"{self.count:,} bad {rows} skipped: {'; '.join(self._shown)}{more}"
        note(sentence, self._request.run.quiet)
        return [sentence]


def _tell_classes(block: Block, quiet: bool) -> None:
    """Note the classes that are new in a block."""
    for label, line in block.classes.items():
        note(f"line {line:,} has the new class {label!r}; it is learned too", quiet)


def _blocks(session: Session, rows: Chunk | Images, forecasts: ForecastFile) -> Iterator[Block]:
    if forecasts.out is None:
        yield from session.encoding.learned(rows)
    else:
        yield from segments(rows, session.encoding)


def require_good(request: Request, name: str, block: Block) -> None:
    """Refuse bad rows where the user asked for that."""
    if request.data.strict and block.bad:
        raise DataError(f"{name}: {block.bad[0]} (--strict stops at the first bad row).")


def waiting_for_rows(pipe: Pipe, quiet: bool) -> Callable[[], None]:
    """A function that says once that first rows are awaited, where they come slowly."""
    start = time.monotonic()
    said = False

    def say() -> None:
        nonlocal said
        if not said and time.monotonic() - start > 1:
            said = True
            note(
                f"waiting for rows on {pipe.name}: what the columns mean is inferred from the first "
                f"{SCHEMA_ROWS:,}, or if they come slowly from those of the first {pipe.patience:g} s "
                f"(at least {pipe.least})",
                quiet,
            )

    return say
