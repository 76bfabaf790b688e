"""`credo learn`: open the source, learn row by row, score held-out rows, and write the results."""

from __future__ import annotations

import contextlib
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from credo.cli import output
from credo.cli.flags import flag_of, in_flags
from credo.cli.interrupt import Interruptible
from credo.cli.learn_report import report_of
from credo.cli.progress import Watch, note
from credo.cli.report import show, write
from credo.cli.request import Request
from credo.cli.run_files import QUANTILES, KeptColumns, RunFiles, go_on
from credo.core.errors import CredoError, DataError, marked
from credo.core.files import write_atomically
from credo.live.intake import segments
from credo.recipes.defaults import SCHEMA_ROWS
from credo.sessions import (
    Block,
    ColumnOptions,
    Drift,
    Forecasts,
    Images,
    Network,
    PathForecast,
    Posterior,
    Progress,
    RowSource,
    SeriesEncoding,
    Session,
    TableEncoding,
    Tally,
    open_dataset,
    open_file,
    open_series,
    permutation_importance,
)
from credo.sessions.chunk_parts import last_line
from credo.sessions.forecast_table import as_csv
from credo.sessions.importance import no_table
from credo.sessions.origins import Origins
from credo.sessions.paths import Known, forecast_paths, ready
from credo.sessions.places import find_place
from credo.sessions.run_summary import Ahead, ImportanceSummary, Results
from credo.tables import Chunk
from credo.tables.live import Pipe, open_pipe
from credo.tables.prepared import Prepared
from credo.tables.styles import Style
from credo.tables.times import to_times

__all__ = ["learn_from"]


def resume(request: Request, path: Path) -> Session:
    """The saved session; refused if a flag asks for another learner, or for other columns."""
    session = Session.load(path)
    saved = _saved(session)
    for name, choice in _choices(request).items():
        present = saved.get(name)
        if not _same(name, choice, present):
            option = flag_of(name)
            value = "its own" if present is None else present
            raise CredoError(
                f"{path} was saved with {option} {value}, which cannot be changed to {choice} when "
                f"resuming; leave {option} out."
            )
    return session


def _choices(request: Request) -> dict[str, object]:
    """The flags that were given."""
    data = vars(request.data)
    names = ("target", "task", "classes", "drop", "categorical")
    return request.learner.plain() | {name: data[name] for name in names if data[name]}


def _saved(session: Session) -> Mapping[str, object]:
    budget = {"bank": "default", "wide-bank": "thorough"}.get(session.settings.model.kind, "fast")
    return {**session.settings.to_dict(), "target": session.encoding.target, "budget": budget}


def _same(name: str, choice: object, present: object) -> bool:
    """Whether a flag says what was saved, however it is spelled."""
    if choice == present or not (isinstance(choice, str) and isinstance(present, str)):
        return choice == present
    if name == "model":
        return Network.parse(choice) == Network.parse(present)
    if name == "posterior" and present != "none":
        return Posterior.parse(choice) == Posterior.parse(present)
    return name == "drift" and Drift.parse(choice) == Drift.parse(present)


def find_start(session: Session, request: Request, order: str) -> int:
    """The line after which a run goes on in its source, and 0 if the belief has not learned from it.

    The session's progress becomes that in this source. `order` is that of the rows of a named data set.
    Refused are rows that were learned from, in another order or beside others, unless they were asked for
    again.
    """
    name = request.source
    latest = session.progress
    places = [*session.places, latest] if latest.line else session.places
    place = None
    if order:
        place = next((one for one in reversed(places) if one.source == name and one.order), None)
        if place is not None and place.order != order and not request.run.again:
            raise DataError(
                f"{request.run.resume} has learned from {place.line:,} rows of {name}, {place.order}, which "
                f"cannot be told from the rest {order}; --again learns from all of them."
            )
    elif request.rereadable:
        place, changed = find_place(name, places)
        if changed and place is None and not request.run.again:
            raise DataError(
                f"{name} begins with rows that {request.run.resume} has learned from, and then differs; "
                "--again learns from all of them."
            )
    session.places = [one for one in places if one is not place]
    start = 0 if place is None or request.run.again else place.line
    session.progress = Progress(
        name, start, order=order, forecast_bytes=latest.forecast_bytes, forecast_tail=latest.forecast_tail
    )
    return start


def learn_from(request: Request) -> int:
    """Learn from a source, and write the results; 0, or 128 and the number of the signal that stopped it."""
    _require_files(request)
    named = request.named  # which refuses what is neither a file nor a data set
    if request.series is not None and named:
        raise CredoError("--horizon is for a file; a named data set has no column of times.")
    saved = None if request.run.resume is None else output.saved_in(request.run.resume)
    folder = request.run.out
    begun = request.run.resume
    if folder is None and begun is not None and begun.is_dir():
        folder = begun
    with Interruptible() as interrupt, output.writing(folder, request.output_name, saved) as place:
        try:
            pipe = None if named else open_pipe(request.source)
            return _run(request, place, interrupt, saved, pipe)
        except KeyboardInterrupt:
            note(f"credo: {'stopped' if place.belief.is_file() else 'interrupted; nothing was written'}.")
            return interrupt.status
        finally:
            if place.belief.is_file() and not place.complete:
                words = go_on(request, place)
                note(f"credo: what was learned is saved in {place.belief}; continue with: {words}")


def _require_files(request: Request) -> None:
    """Refuse files that are not there, or cannot be written, before anything is computed."""
    if request.data.test is not None and not request.data.test.is_file():
        raise DataError(f"--test {request.data.test} does not exist, or is no file.")
    if request.run.save is not None:
        output.require_writable_file(request.run.save, "--save")
    if request.run.keep and (request.named or request.series is not None):
        raise CredoError("--keep is for the rows of a table in a file, or of standard input.")
    if not request.named:
        if request.data.shuffle:
            raise CredoError("--shuffle is for named data sets; a file is read in its own order.")
        if request.data.test_rows is not None:
            raise CredoError(
                "--test-rows is for named data sets; give held-out rows of your own with --test FILE."
            )


def _let_notify(session: Session, quiet: bool) -> None:
    """Have a session note what it meets on its way."""
    session.recovery.notify = lambda sentence: note(f"credo: {in_flags(sentence)}")
    if isinstance(session.encoding, TableEncoding):
        session.encoding.notify = lambda sentence: note(f"credo: {sentence}", quiet)


def _require_unreported(request: Request, source: RowSource, saved: Path | None) -> None:
    """Refuse to go on with a source that has no more rows, unless its report is still missing."""
    if saved is None or not output.unreported(request.run.resume, saved):
        raise DataError(
            f"{source.name} has no row after {source.after:,}, up to which {request.run.resume} has "
            "learned; --again learns from its rows once more."
        )


def _run(
    request: Request, place: output.Folder, interrupt: Interruptible, saved: Path | None, pipe: Pipe | None
) -> int:
    earlier = None if saved is None else resume(request, saved)
    kept = KeptColumns(request.source, request.run.keep, ("row", "target"))
    try:
        source = _open(request, earlier, pipe, interrupt, kept)
    except DataError as error:
        if interrupt.stopped:  # too few rows had come
            note(f"credo: {error}")
            raise KeyboardInterrupt from None
        raise
    session, sentences = _begin(request, source, earlier)
    if place.sentence and (saved is None or saved.parent not in (place.path, place.files)):
        sentences.append(place.sentence)
    for sentence in sentences:
        note(sentence, request.run.quiet)
    _let_notify(session, request.run.quiet)
    clock = time.monotonic()
    rows_before = session.rows_used
    read_before = session.rows_read
    scored_before = None if earlier is None else session.tally.snapshot()
    with RunFiles(request, session, place, saved, kept) as files:
        origins = _begin_forecasts(request, session)
        source.rows = source.rows if origins is None else origins.cut(source.rows)
        comparison = Comparison(request, session, source)
        bad = stream(files, source, interrupt)
        seconds = time.monotonic() - clock
        came = session.rows_read > read_before
        if interrupt.stopped and not came and not place.belief.is_file():
            raise KeyboardInterrupt
        if session.rows_used == 0:
            raise DataError(_nothing(source.name, bad))
        if not came and source.after:
            _require_unreported(request, source, saved)
        files.save()
        files.forecasts.finish()
    if request.run.save is not None:
        session.save(request.run.save)
    unseen = [] if interrupt.stopped else _held_out(request, session, source)
    test = _score(request, session, unseen) if unseen else None
    matters = None if interrupt.stopped else comparison.finish(unseen, sentences)
    ahead = None if origins is None or interrupt.stopped else _finish_forecasts(origins, place.files)
    result = Results(
        source=request.source,
        session=session,
        sentences=tuple(sentences),
        bad=bad,
        test=test,
        seconds=seconds,
        rows=session.rows_used - rows_before,
        interrupted=interrupt.stopped,
        ordered=source.ordered,
        before=scored_before,
        ahead=ahead,
        importance=matters,
    )
    report = report_of(result)
    write(report, place.files, whole=not interrupt.stopped)
    place.commit()
    if interrupt.stopped:
        note(
            f"credo: interrupted after {session.rows_used:,} rows; the state is saved, continue with: "
            f"{files.command}"
        )
        return interrupt.status
    with contextlib.redirect_stdout(sys.stderr if request.run.predictions == "-" else sys.stdout):
        show(report)
    belief = request.run.save or place.path / output.BELIEF
    if ahead is not None:
        steps = len(ahead.forecast.times)
        note(f"forecast of the {steps} steps after the last row: {place.path}/{FORECAST}", request.run.quiet)
    note(f"report: {place.path}/report.html   saved belief: {belief}", request.run.quiet)
    return 0


SHOWN_BAD = 3


def stream(files: RunFiles, source: RowSource, interrupt: Interruptible) -> list[str]:
    """Learn from all rows, and return sentences about the bad ones."""
    request = files.request
    session = files.session
    forecasting = files.forecasts.out is not None
    bad = _BadRows(request, source)
    times = TimeMarks(session)
    rows_read = 0
    session.progress.interrupted = True
    with Watch(source.total, request.run.quiet, source.share) as watch:
        if interrupt.pipe is not None:
            interrupt.pipe.on_wait = files.tick
        try:
            for rows in source.rows:
                interrupt.busy = True
                chunk: list[Forecasts] = []
                blocks = segments(rows, session.encoding) if forecasting else session.encoding.learned(rows)
                for block in blocks:
                    if block.labelled:
                        bad.add(block)
                        rows_read += block.read
                        _tell_classes(block, request.run.quiet)
                    if forecasting:
                        some, steps = session.forecast_then_learn(block, QUANTILES)
                        chunk += some
                    else:
                        steps = session.learn(block)
                    files.drift.add(block.lines, steps)
                    if block.labelled:
                        times.note(rows, block)
                session.progress.line = max(session.progress.line, last_line(rows))
                files.add(chunk)
                interrupt.busy = False
                files.tick()
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
            files.rescue(torn=interrupt.busy)
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


def require_good(request: Request, name: str, block: Block) -> None:
    """Refuse bad rows where the user asked for that."""
    if request.data.strict and block.bad:
        raise DataError(f"{name}: {marked(str(block.bad[0]))} (--strict stops at the first bad row).")


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


class TimeMarks:
    """Notes in the tally of a session when some rows were observed: the first one, and those after which it
    notes how the weights settle. It reads the first column of times, or that of a series.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._name = ""
        self._number = 0
        self._origin = 0.0
        self._style: Style | None = None
        encoding = session.encoding
        if isinstance(encoding, SeriesEncoding):
            clock = encoding.columns.clock
            self._name = clock.name if clock.kind != "numbers" else ""
            self._style = clock.cells
        elif isinstance(encoding, TableEncoding):
            columns = encoding.schema.columns
            for place, column in enumerate(columns):
                if column.kind == "datetime":
                    self._name = column.name
                    self._origin = column.origin
                    self._style = column.style
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
        return float(to_times(cells[place : place + 1], self._style)[0][0])


def _begin(request: Request, source: RowSource, earlier: Session | None) -> tuple[Session, list[str]]:
    """The session, and what there is to say about source and learner."""
    sentences = [in_flags(sentence) for sentence in source.sentences]
    if earlier is None:
        session, prepared = _fresh(request, source)
        session.progress.source = request.source
        session.progress.order = source.order
        sentences += [*prepared, *map(in_flags, session.encoding.sentences)]
    else:
        session = earlier
        sentences.append(
            f"continuing {request.run.resume}, which has learned from {session.rows_used:,} rows"
        )
    session.chunk = source.suit(session.largest)
    return session, sentences


def _open(
    request: Request,
    earlier: Session | None,
    pipe: Pipe | None,
    interrupt: Interruptible,
    kept: KeptColumns,
) -> RowSource:
    data = request.data
    chunk = request.run.chunk
    encoding = None if earlier is None else earlier.encoding
    if request.named:
        seed = request.learner.seed
        if seed is None:
            seed = 0 if earlier is None else earlier.settings.seed

        def opened(after: int) -> RowSource:
            return open_dataset(
                request.source,
                request.data,
                limit=data.limit,
                shuffle=data.shuffle,
                seed=seed,
                test_rows=data.test_rows,
                chunk=chunk,
                after=after,
                encoding=encoding,
            )

        source = opened(0)
        start = 0 if earlier is None else find_start(earlier, request, source.order)
        source = opened(start) if start else source
    else:
        start = 0 if earlier is None else find_start(earlier, request, "")
        if pipe is not None:
            interrupt.pipe = pipe
            pipe.on_wait = waiting_for_rows(pipe, request.run.quiet)
        series = request.series
        common: Any = {"encoding": encoding, "chunk": chunk, "limit": data.limit, "after": start}
        if series is not None or isinstance(encoding, SeriesEncoding):
            if pipe is not None:
                raise CredoError("--horizon is for a file, whose rows can be read ahead; got standard input.")
            if data.test is not None:
                raise CredoError("--test is for tables; rows of a series are scored before they are learned.")
            if series is not None and isinstance(encoding, SeriesEncoding):
                encoding.horizon = series.horizon
            source = open_series(request.source, request.data, series, **common)
        else:
            source = open_file(request.source, request.data, pipe=pipe, on_rows=kept.note, **common)
    source.after = start
    if start:
        source.sentences.append(
            f"continuing after row {start:,} of {request.source}, up to which the belief has learned from it"
        )
    return source


def _fresh(request: Request, source: RowSource) -> tuple[Session, list[str]]:
    session = Session.create(source.encoding, request.learner, ordered=source.ordered)
    settings = session.settings
    drift = "" if settings.drift.kind == "none" else f", drift {settings.drift}"
    if session.members:
        kinds = Counter(member.kind for member in session.members)
        counts = ", ".join(f"{count} {name}" for name, count in kinds.items())
        sentences = [
            f"learner: a bank of {len(session.members)} members weighted by evidence ({counts}), "
            f"{session.size:,} parameters in all"
        ]
        return session, sentences
    sentences = [
        f"learner: {settings.model} with {session.size:,} parameters, {settings.description}{drift}, "
        f"prior variance {settings.prior_var:g}"
    ]
    if source.shuffled and settings.drift.wrapped:
        sentences.append(
            "the rows are shuffled by the seed, so that there are no changes to find: keep their order with "
            "--no-shuffle"
        )
    return session, sentences


def _nothing(name: str, bad: list[str]) -> str:
    return f"{name} has no row that can be learned from" + (f"; {bad[0]}." if bad else ".")


def _held_out(request: Request, session: Session, source: RowSource) -> list[Chunk | Images]:
    """The held-out rows."""
    if request.data.test is None:
        return list(source.test)
    columns = ColumnOptions(strict=request.data.strict)
    file = open_file(str(request.data.test), columns, encoding=session.encoding, chunk=request.run.chunk)
    return list(file.rows)


def _score(request: Request, session: Session, chunks: list[Chunk | Images]) -> Tally:
    """The scores of held-out rows."""
    tally = Tally(session.settings.task, len(session.encoding.classes))
    for rows in chunks:
        block = session.encoding.encode(rows, learn=False)
        require_good(request, str(request.data.test), block)
        session.test(block, tally)
    return tally


FORECAST = "forecast.csv"
"""The file with the forecast of the steps after the last row."""

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
"""The quantiles in it."""

PATHS = 100
"""The number of paths of a series that are drawn for its forecast."""


def _begin_forecasts(request: Request, session: Session) -> Origins | None:
    """The origins at which a series is forecast on its way into a session; None for other rows."""
    encoding = session.encoding
    flags = request.flags_of_series
    if not isinstance(encoding, SeriesEncoding):
        return None
    paths = flags.paths or PATHS

    def forecast(known: Known) -> PathForecast:
        return forecast_paths(session, encoding.horizon, paths, known)

    return Origins(session, flags.every or encoding.horizon, forecast)


def _finish_forecasts(origins: Origins, folder: Path) -> Ahead | None:
    """Forecast the steps after the last row, and write them; None if too few rows were learned."""
    if not ready(origins.session):
        return None
    forecast = origins.last()
    heads = ["step", "time", "mean", "sd", *(f"q{100 * level:02.0f}" for level in LEVELS)]
    numbers = np.column_stack([forecast.mean, forecast.sd, forecast.quantile(LEVELS)])
    rows = [
        [str(step), time, *(f"{cell:.8g}" for cell in cells)]
        for step, (time, cells) in enumerate(zip(forecast.times, numbers.tolist(), strict=True), 1)
    ]
    write_atomically(folder / FORECAST, as_csv([heads, *rows]).encode())
    return Ahead(origins.scores.summary(), forecast)


MOST = 400
FEWEST = 50
CELLS = 40_000
"""The most rows that are forecast for each column; if there are many columns, so many rows and columns
together, and at least `FEWEST` rows."""

WIDE = 200
"""From more columns on they are compared only if that is asked for, since each is forecast again."""

HELD_OUT = "held-out rows"
LATEST = "latest rows, after they were learned from"


class Comparison:
    """The importance of each column, measured on the held-out rows of a run, or else on its latest rows,
    which are noted as they pass.

    Raises:
        CredoError: it was asked for, and there are no columns to compare.
    """

    def __init__(self, request: Request, session: Session, source: RowSource) -> None:
        encoding = session.encoding
        asked = request.run.importance
        what = no_table(encoding)
        if asked and what:
            raise CredoError(f"--importance is for the columns of a table; got {what}.")
        self._session = session
        self._latest = list[Chunk | Images]()
        self._held_out = bool(source.test) or request.data.test is not None
        few = isinstance(encoding, TableEncoding) and len(encoding.schema.columns) <= WIDE
        self._wanted = not what and (self._held_out and few if asked is None else asked)
        if self._wanted and not self._held_out:
            source.rows = self._noted(source.rows)

    def _noted(self, rows: Iterable[Chunk | Images]) -> Iterator[Chunk | Images]:
        """The chunks of a source; the latest, with at least `MOST` rows if so many have come, are kept."""
        for chunk in rows:
            self._latest.append(chunk)
            while sum(map(len, self._latest[1:])) >= MOST:
                del self._latest[0]
            yield chunk

    def finish(self, held_out: list[Chunk | Images], sentences: list[str]) -> ImportanceSummary | None:
        """The importance of each column, if that is wanted; if it cannot be measured, a sentence says why."""
        if not self._wanted:
            return None
        rows = held_out if self._held_out else self._latest
        found, why = measure(self._session, rows, held_out=self._held_out)
        sentences += [why] if why else []
        return found


def measure(
    session: Session, chunks: Iterable[Chunk | Images], *, held_out: bool
) -> tuple[ImportanceSummary | None, str]:
    """The importance of each column, over at most `MOST` of some rows; or None, and why."""
    tables = [chunk for chunk in chunks if isinstance(chunk, Chunk) and len(chunk)]
    if not tables:
        return None, ""
    most = max(FEWEST, min(MOST, CELLS // len(session.encoding.features)))
    try:
        found = permutation_importance(session, tables if held_out else _latest(tables, most), most=most)
    except CredoError as error:
        return None, f"importance of the columns: {error}"
    loss = "rmse" if session.regression else "error"
    numbers = zip(found.columns, found.nlpd, found.nlpd_se, found.loss, strict=True)
    return {
        "rows": found.rows,
        "of": HELD_OUT if held_out else LATEST,
        "columns": {
            name: {"nlpd": float(nlpd), "nlpd_se": float(error), loss: float(rise)}
            for name, nlpd, error, rise in numbers
        },
    }, ""


def _latest(tables: list[Chunk], most: int) -> list[Chunk]:
    """The latest rows, so many or all."""
    extra = sum(map(len, tables)) - most
    if extra <= 0:
        return tables
    return [tables[0].part(extra, len(tables[0])), *tables[1:]]
