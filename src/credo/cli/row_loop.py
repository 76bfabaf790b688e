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
    bad: list[str] = []
    bad_rows, rows_read, times = 0, 0, TimeMarks(session)
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
                        require_good(request, source.name, block)
                        bad_rows += len(block.bad)
                        few = block.bad[: max(0, SHOWN_BAD - len(bad))]
                        bad += [f"{source.name}: {in_flags(str(row))}" for row in few]
                        rows_read += block.read
                        for label, line in block.classes.items():
                            sentence = f"line {line:,} has the new class {label!r}; it is learned too"
                            note(sentence, request.run.quiet)
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
                watch.tell(rows_read, session.tally, bad_rows)
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
    if bad_rows:
        more = "" if bad_rows <= len(bad) else f", and {bad_rows - len(bad):,} more"
        bad = [f"{bad_rows:,} bad row{'s'[: bad_rows != 1]} skipped: {'; '.join(bad)}{more}"]
        note(bad[0], request.run.quiet)
    return bad


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
    start, said = time.monotonic(), False

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
