"""`credo keyed`: a learner for each key of a file."""

from __future__ import annotations

import dataclasses
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, NamedTuple

from cyclopts import Group, Parameter

from credo.cli.command_words import flowing, model_of_service, source_of
from credo.cli.flags import DATA, LearnerFlags, flags, in_flags
from credo.core.errors import CredoError
from credo.core.setting import Setting
from credo.recipes.options import FIXED, ColumnOptions, KeyedOptions, Options

if TYPE_CHECKING:
    from credo.scale import KeyedResult
    from credo.tables import TableSource

__all__ = ["KeyedFlags", "keyed"]

_KEYED = Group("Keys and processes", sort_key=3)


@flags(DATA, like=KeyedOptions)
@dataclass(frozen=True)
class KeyedFlags(ColumnOptions):
    """The flags about the keys and the data."""

    key: str | None = None
    time: str | None = None
    scale: str | None = None
    follow: Annotated[
        float | None,
        Setting(
            "Look for new files in a folder every so many seconds, or save after so many without a message, "
            "until Ctrl-C; by default the run ends with what is there.",
            positive=True,
        ),
    ] = None


@flags(_KEYED, like=KeyedOptions)
@dataclass(frozen=True)
class WorkerFlags:
    """The flags about the processes."""

    shards: int | None = None
    workers: int = 0
    ray: str | None = None
    evict: int | None = None
    tile: int | None = None
    batch: int | None = None
    checkpoint: int = 16


_NO_FLAGS = KeyedFlags()
_NO_LEARNER_FLAGS = LearnerFlags()
_NO_WORKER_FLAGS = WorkerFlags()


@flowing
def keyed(
    source: Annotated[str, Parameter(group=DATA)],
    /,
    *,
    out: str,
    data: KeyedFlags = _NO_FLAGS,
    processes: WorkerFlags = _NO_WORKER_FLAGS,
    learner: LearnerFlags = _NO_LEARNER_FLAGS,
    resume: Annotated[bool, Parameter(negative="")] = False,
    quiet: Annotated[bool, Parameter(negative="")] = False,
) -> int:
    """Learn a file with one learner for each key, such as each user, predicting each row before learning it.

    SOURCE is a CSV, TSV, JSON lines or Parquet file, a folder of such files, which are read in the order of
    their names, or - for standard input; the address of a file or a folder, such as s3://bucket/clicks; a
    topic of Kafka, kafka://broker:9092/clicks; or FOLDER/MODEL for the rows that a model of credo serve has
    learned, FOLDER being that of the service. Columns are encoded alike for all keys; by default the learner
    of a key is a linear model. OUT gets a folder of predictions, metrics.json, and the state. A run that was
    killed, or whose file has grown, goes on with --resume, and every key then has the numbers that it would
    have had without a break.

    Parameters
    ----------
    source
        A file, a folder, an address, a topic or a model of a service, or - for standard input.
    out
        The folder of the run, or an address such as s3://bucket/runs.
    resume
        Go on with the run in OUT.
    quiet
        Say nothing but the table.
    """
    return _run(source_of(source), out, _Asked(data, processes, learner), resume, quiet)


class _Asked(NamedTuple):
    """The values of the flags."""

    data: KeyedFlags
    processes: WorkerFlags
    learner: LearnerFlags


def _run(source: str, out: str, asked: _Asked, resume: bool, quiet: bool) -> int:
    """Learn a file, and show what was found."""
    import jax

    from credo.cli.progress import note
    from credo.scale import learn_keyed

    jax.config.update("jax_cpu_enable_async_dispatch", False)  # no other thread is woken for a call
    rows, target = _rows(source, asked.data.target)
    options = _options(out, asked, target, resume)

    def say(sentence: str) -> None:
        note(in_flags(sentence), quiet)

    try:
        result = learn_keyed(rows, out, options, resume=resume, follow=asked.data.follow, say=say)
    except KeyboardInterrupt:
        words = shlex.join(["credo", "keyed", source, "--out", out, "--resume"])
        note(f"credo: interrupted; what was saved is whole; go on with: {words}")
        return 130
    _show(source, result, quiet)
    return 0


def _rows(source: str, target: str | None) -> tuple[str | TableSource, str | None]:
    """The rows to learn from, and their target, which a model of a service knows."""
    place = model_of_service(source)
    if place is None:
        return source, target
    from credo.serve.journal_source import journal_target, open_journal

    return open_journal(*place), target or journal_target(*place)


def _options(out: str, asked: _Asked, target: str | None, resume: bool) -> KeyedOptions:
    """The options that the flags give; if a run continues, the others stay as they were."""
    from credo.core.places import place_of
    from credo.scale.keyed_run import options_of

    data = asked.data
    chosen = Options(**asked.learner.plain())
    given = vars(data) | vars(asked.processes)
    free = {name: given[name] for name in ("workers", "ray", "evict", "checkpoint")}
    fixed = {name: given[name] for name in FIXED if given[name] is not None}
    if resume:
        before = options_of(place_of(out, "out"))
        for name in ("task", "classes", "drop", "categorical"):
            if given[name]:
                raise CredoError(f"{name} cannot be changed with --resume; leave it out.", field=name)
        columns = ColumnOptions(target or before.columns.target, strict=data.strict)
        learned = chosen if chosen != Options() else before.learner
        return dataclasses.replace(before, columns=columns, learner=learned, **fixed, **free)
    for name, value in (("key", data.key), ("target", target)):
        if value is None:
            raise CredoError(f"{name} is missing: name the column.", field=name)
    columns = ColumnOptions(target, data.task, data.classes, data.drop, data.categorical, data.strict)
    return KeyedOptions(columns=columns, learner=chosen, **fixed, **free)


def _show(source: str, result: KeyedResult, quiet: bool) -> None:
    """The table of what was found, with the keys that stand out."""
    from credo.cli.progress import note
    from credo.cli.report import Line, Report, Section, Table, show
    from credo.sessions.run_summary import MEANING, number

    metrics = result.metrics
    lines = [Line(name, (number(metrics[name]),), MEANING[name]) for name in MEANING if name in metrics]
    if "changes" in metrics:
        lines.append(Line("changes", (f"{metrics['changes']:,}",), "reported changes of all keys"))
    listings = []
    for name, what in (("worst", "mean loss"), ("newest", "first line"), ("drifting", "changes")):
        if metrics[name]:
            listing = ", ".join(f"{key} ({last:.4g})" for key, _, last in metrics[name][:5])
            listings.append(f"{name} keys, with {what}: {listing}")
    headline = f"{metrics['rows']:,} rows of {metrics['keys']:,} keys"
    scores = Section("Scores", [], Table(("metric", "value"), lines))
    show(Report(source, headline, [scores], remarks=listings))
    if metrics["late"]:
        note(
            f"{metrics['late']:,} rows came after later ones of their key, so no time passed",
            quiet,
        )
    if result.bad_rows:
        more = "" if result.bad_rows <= len(result.bad) else ", and more"
        note(f"{result.bad_rows:,} rows could not be used: {'; '.join(result.bad)}{more}", quiet)
    note(f"predictions: {result.folder}/predictions   metrics: {result.folder}/metrics.json", quiet)
