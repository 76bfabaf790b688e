"""`credo learn`: open the source, learn row by row, score held-out rows, and write the results."""

from __future__ import annotations

import time

from credo.cli import output, results
from credo.cli.drift_file import DriftFile
from credo.cli.flags import in_flags
from credo.cli.interrupt import Interruptible
from credo.cli.progress import Watch, note
from credo.cli.request import Request, is_named, slug
from credo.cli.resuming import resume, skip_known
from credo.cli.summary import Results
from credo.core.errors import CredoError, DataError
from credo.sessions import (
    Block,
    ColumnOptions,
    Progress,
    RowSource,
    Session,
    Tally,
    open_dataset,
    open_file,
)

__all__ = ["learn_from"]

SHOWN_BAD = 3


def learn_from(request: Request) -> int:
    """Learn from a source, and write the results.

    Returns:
        The exit status: 0, or 130 where the run was interrupted.

    Raises:
        DataError: the test file does not exist, or there is no row to learn from.
    """
    path = request.run.resume
    earlier = None if path is None else resume(request, path)
    source = _open(request, earlier)
    if earlier is None:
        session, prepared = _fresh(request, source)
    else:
        session = earlier
        prepared = [f"continuing {request.run.resume}, which has learned from {earlier.rows_used:,} rows"]
    session.chunk = source.rows_at_once(session.size)
    if request.data.test is not None and not request.data.test.is_file():
        raise DataError(f"--test {request.data.test} does not exist, or is no file.")
    path, about_folder = output.choose(
        request.run.out, request.source if source.total is not None else slug(request.source)
    )
    if request.run.save is not None:
        output.require_writable_file(request.run.save, "--save")
    sentences = [in_flags(sentence) for sentence in source.sentences] + prepared
    if earlier is None:
        sentences += [in_flags(sentence) for sentence in session.encoding.sentences]
    for sentence in [*sentences, about_folder] if about_folder else sentences:
        note(sentence, request.run.quiet)
    with output.writing(path) as folder, Interruptible() as interrupt:
        clock = time.monotonic()
        rows_before = session.rows_used
        with DriftFile(folder.files / "drift.csv", session.changes, session.rows_used) as record:
            bad = _stream(request, session, source, interrupt, record)
        seconds = time.monotonic() - clock
        if interrupt.stopped and session.rows_used == rows_before:
            raise KeyboardInterrupt
        if session.rows_used == 0:
            raise DataError(_nothing(source.name, bad))
        result = Results(
            request.source,
            session,
            tuple(sentences),
            bad,
            None if interrupt.stopped else _score_held_out(request, session, source),
            seconds,
            session.rows_used - rows_before,
            interrupt.stopped,
            source.ordered,
        )
        session.save(folder.files / "belief.credo")
        hints = results.write(folder.files, result, plots=not interrupt.stopped)
        if request.run.save is not None:
            session.save(request.run.save)
        folder.commit()
    saved = request.run.save or path / "belief.credo"
    if interrupt.stopped:
        again = f"credo learn {request.source} --resume {saved}"
        note(f"credo: interrupted after {session.rows_used:,} rows; the state is saved, go on with: {again}")
        return 130
    results.show(result)
    for hint in hints:
        note(hint, request.run.quiet)
    note(f"report: {path}/report.html   saved belief: {saved}", request.run.quiet)
    return 0


def _open(request: Request, earlier: Session | None) -> RowSource:
    data, chunk = request.data, request.run.chunk
    if is_named(request.source):
        seed = request.learner.seed
        if seed is None:
            seed = 0 if earlier is None else earlier.settings.seed
        source = open_dataset(
            request.source,
            request.columns,
            limit=data.limit,
            shuffle=data.shuffle,
            seed=seed,
            test_rows=data.test_rows,
            chunk=chunk,
        )
    else:
        if data.shuffle:
            raise CredoError("--shuffle is for named data sets; a file is read in its own order.")
        if data.test_rows is not None:
            raise CredoError(
                "--test-rows is for named data sets; give held-out rows of your own with --test FILE."
            )
        encoding = None if earlier is None else earlier.encoding
        source = open_file(request.source, request.columns, encoding=encoding, chunk=chunk, limit=data.limit)
    if earlier is not None:
        skip_known(source, earlier.progress, request.source)
    return source


def _fresh(request: Request, source: RowSource) -> tuple[Session, list[str]]:
    session = Session.create(source.encoding, request.options, ordered=source.ordered)
    settings = session.settings
    drift = "" if settings.drift.kind == "none" else f", drift {settings.drift}"
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


def _stream(
    request: Request, session: Session, source: RowSource, interrupt: Interruptible, record: DriftFile
) -> list[str]:
    """Learn from all rows, and return sentences about the bad ones."""
    bad: list[str] = []
    bad_rows, rows_read = 0, 0
    session.progress = Progress(request.source, session.progress.line, interrupted=True)
    with Watch(source.total, request.run.quiet) as watch:
        try:
            for rows in source.rows:
                interrupt.busy = True
                block = session.encoding.encode(rows, learn=True)
                _strict(request, source.name, block)
                record.add(block.lines, session.learn(block))
                for label, line in block.classes.items():
                    note(f"line {line:,} has the new class {label!r}; it is learned too", request.run.quiet)
                bad_rows += len(block.bad)
                few = block.bad[: max(0, SHOWN_BAD - len(bad))]
                bad += [f"{source.name}: {in_flags(str(row))}" for row in few]
                rows_read += block.read
                if len(rows.lines):
                    session.progress.line = int(rows.lines[-1])
                watch.tell(rows_read, session.tally, bad_rows)
                interrupt.busy = False
                if interrupt.stopped:
                    break
        except KeyboardInterrupt:
            if interrupt.busy:
                raise
            interrupt.stopped = True
    session.progress.interrupted = interrupt.stopped
    if bad_rows:
        more = "" if bad_rows <= len(bad) else f", and {bad_rows - len(bad):,} more"
        bad = [f"{bad_rows:,} bad row{'s'[: bad_rows != 1]} skipped: {'; '.join(bad)}{more}"]
        note(bad[0], request.run.quiet)
    return bad


def _strict(request: Request, name: str, block: Block) -> None:
    if request.data.strict and block.bad:
        raise DataError(f"{name}: {block.bad[0]} (--strict stops at the first bad row).")


def _nothing(name: str, bad: list[str]) -> str:
    return f"{name} has no row that can be learned from" + (f"; {bad[0]}." if bad else ".")


def _score_held_out(request: Request, session: Session, source: RowSource) -> Tally | None:
    chunks = source.test
    if request.data.test is not None:
        columns = ColumnOptions(strict=request.data.strict)
        file = open_file(str(request.data.test), columns, encoding=session.encoding, chunk=request.run.chunk)
        chunks = list(file.rows)
    if not chunks:
        return None
    tally = Tally(session.settings.task, len(session.encoding.classes))
    for rows in chunks:
        block = session.encoding.encode(rows, learn=False)
        _strict(request, str(request.data.test), block)
        session.test(block, tally)
    return tally
