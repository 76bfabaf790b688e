"""`credo learn`: open the source, learn row by row, score held-out rows, and write what came of it."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path
from typing import Any

from credo.cli import output, results
from credo.cli.build import resolve
from credo.cli.changes import DriftFile
from credo.cli.encoding import Block
from credo.cli.interrupt import Interruptible
from credo.cli.options import WRAPPED, require_settings
from credo.cli.progress import Watch, note
from credo.cli.session import Session
from credo.cli.sources import Source, Table, after_line, is_named, open_named, open_tables, slug
from credo.cli.tally import Tally
from credo.core.errors import CredoError, DataError

__all__ = ["Request", "learn_from"]

SHOWN_BAD = 3


@dataclasses.dataclass(frozen=True)
class Request:
    """What `credo learn` was asked for."""

    source: str
    table: Table
    learner: dict[str, Any]
    test: Path | None
    test_rows: int | None
    limit: int | None
    shuffle: bool | None
    out: Path | None
    save: Path | None
    resume: Path | None
    chunk: int | None
    quiet: bool


def learn_from(request: Request) -> int:
    """Do it; returns the exit status."""
    before = None if request.resume is None else _resumed(request)
    source = _open(request, before)
    if before is None:
        session, prepared = _fresh(request, source)
    else:
        session, prepared = (
            before,
            [f"continuing {request.resume}, which has learned from {before.used:,} rows"],
        )
    session.chunk = source.chunk
    _check_test(request)
    name = request.source if source.total is not None else slug(request.source)
    path, said = output.choose(request.out, name)
    if request.save is not None:
        output.require_writable_file(request.save, "--save")
    sentences = [*source.sentences, *prepared]
    sentences += [] if before is not None else list(session.encoding.sentences)
    for sentence in [*sentences, said] if said else sentences:
        note(sentence, request.quiet)
    with output.writing(path) as folder, Interruptible() as interrupt:
        clock = time.monotonic()
        before_rows = session.used
        with DriftFile(folder.made / "drift.csv", session.changes, session.used) as record:
            bad = _stream(request, session, source, interrupt, record)
        seconds = time.monotonic() - clock
        if interrupt.stopped and session.used == before_rows:
            raise KeyboardInterrupt
        if session.used == 0:
            raise DataError(_nothing(source.name, bad))
        held = None if interrupt.stopped else _score_held_out(request, session, source)
        rows = session.used - before_rows
        made = results.Results(
            request.source,
            session,
            tuple(sentences),
            bad,
            held,
            seconds,
            rows,
            interrupt.stopped,
            source.ordered,
        )
        session.save(folder.made / "belief.credo")
        hints = results.write(folder.made, made, plots=not interrupt.stopped)
        if request.save is not None:
            session.save(request.save)
        folder.commit()
    if interrupt.stopped:
        _tell_interrupted(request, session, path)
        return 130
    results.show(made)
    for hint in hints:
        note(hint, request.quiet)
    note(f"report: {path}/report.html   saved belief: {request.save or path / 'belief.credo'}", request.quiet)
    return 0


def _resumed(request: Request) -> Session:
    given = [name for name, value in request.learner.items() if value is not None]
    given += [
        name for name in ("target", "task", "classes", "drop", "categorical") if getattr(request.table, name)
    ]
    assert request.resume is not None
    session = Session.load(request.resume)
    saved = session.settings.to_dict()
    for name in given:
        wanted = request.learner[name] if name in request.learner else getattr(request.table, name)
        held = {"target": session.encoding.target, "task": saved["task"]}.get(name, saved.get(name))
        if wanted != held:
            option = "--" + name.replace("_", "-")
            shown = "its own" if held is None else held
            raise CredoError(
                f"{request.resume} was saved with {option} {shown}, which cannot be changed to {wanted} when "
                f"resuming; leave {option} out."
            )
    return session


def _open(request: Request, before: Session | None) -> Source:
    named = is_named(request.source)
    if not named:
        if request.shuffle:
            raise CredoError("--shuffle is for named data sets; a file is read in its own order.")
        if request.test_rows is not None:
            raise CredoError(
                "--test-rows is for named data sets; give held-out rows of your own with --test FILE."
            )
        encoding = None if before is None else before.encoding
        source = open_tables(
            request.source, request.table, encoding=encoding, chunk=request.chunk, limit=request.limit
        )
    else:
        seed = request.learner["seed"]
        seed = (0 if before is None else before.settings.seed) if seed is None else seed
        source = open_named(
            request.source,
            request.table,
            limit=request.limit,
            shuffle=request.shuffle,
            seed=seed,
            test_rows=request.test_rows,
            chunk=request.chunk,
        )
    if before is not None:
        was = before.progress
        if was["interrupted"] and was["source"] == request.source and request.source != "-":
            source.rows = after_line(source.rows, was["line"])
            source.sentences.append(
                f"going on after row {was['line']:,} of {request.source}, where the earlier run was stopped"
            )
            source.total = None if source.total is None else max(source.total - was["line"], 1)
    return source


def _fresh(request: Request, source: Source) -> tuple[Session, list[str]]:
    encoding = source.encoding
    assert encoding is not None
    asked = request.learner | {
        "method": request.learner["method"] or "bong",
        "seed": request.learner["seed"] or 0,
    }
    require_settings(asked["method"], asked)
    settings, size = resolve(asked, encoding.task, encoding.shape, len(encoding.classes), source.ordered)
    drift = "" if settings.drift == "none" else f", drift {settings.drift}"
    said = f"learner: {settings.model} with {size:,} parameters, {settings.spelt}{drift}, prior variance "
    said += f"{settings.prior_var:g}"
    sentences = [said]
    if source.shuffled and settings.drift.startswith(WRAPPED):
        sentences.append(
            "the rows are shuffled by the seed, so that there are no changes to find: keep their order with "
            "--no-shuffle"
        )
    return Session(settings, encoding), sentences


def _check_test(request: Request) -> None:
    if request.test is not None and not request.test.is_file():
        raise DataError(f"--test {request.test} does not exist, or is no file.")


def _stream(
    request: Request, session: Session, source: Source, interrupt: Interruptible, record: DriftFile
) -> list[str]:
    """Learn from all rows; returns sentences on the bad ones."""
    bad: list[str] = []
    count, done = 0, 0
    session.progress = {"source": request.source, "line": session.progress["line"], "interrupted": True}
    with Watch(source.total, request.quiet) as watch:
        try:
            for rows in source.rows:
                interrupt.busy = True
                block = session.encoding.encode(rows, learn=True)
                _strict(request, source.name, block)
                record.add(block.lines, session.learn(block))
                count += len(block.bad)
                bad += [f"{source.name}: {one}" for one in block.bad[: max(0, SHOWN_BAD - len(bad))]]
                done += block.read
                if len(rows.lines):
                    session.progress["line"] = int(rows.lines[-1])
                watch.tell(done, session.tally, count)
                interrupt.busy = False
                if interrupt.stopped:
                    break
        except KeyboardInterrupt:
            if interrupt.busy:
                raise
            interrupt.stopped = True
    session.progress["interrupted"] = interrupt.stopped
    if count:
        more = "" if count <= len(bad) else f", and {count - len(bad):,} more"
        bad = [f"{count:,} bad row{'s'[: count != 1]} skipped: {'; '.join(bad)}{more}"]
        note(bad[0], request.quiet)
    return bad


def _strict(request: Request, name: str, block: Block) -> None:
    if request.table.strict and block.bad:
        raise DataError(f"{name}: {block.bad[0]} (--strict stops at the first bad row).")


def _nothing(name: str, bad: list[str]) -> str:
    return f"{name} has no row that can be learned from" + (f"; {bad[0]}." if bad else ".")


def _score_held_out(request: Request, session: Session, source: Source) -> Tally | None:
    rows = source.test
    if request.test is not None:
        table = Table(strict=request.table.strict)
        rows = list(
            open_tables(
                str(request.test), table, encoding=session.encoding, chunk=request.chunk, limit=None
            ).rows
        )
    if not rows:
        return None
    tally = Tally(session.settings.task, len(session.encoding.classes))
    for chunk in rows:
        block = session.encoding.encode(chunk, learn=False)
        _strict(request, str(request.test), block)
        session.test(block, tally)
    return tally


def _tell_interrupted(request: Request, session: Session, path: Path) -> None:
    where = request.save or path / "belief.credo"
    again = f"credo learn {request.source} --resume {where}"
    note(f"credo: interrupted after {session.used:,} rows; the state is saved, go on with: {again}")
