"""`credo keyed`: a learner for each key of a file."""

from __future__ import annotations

import dataclasses
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Group, Parameter

from credo.cli.command_words import flowing, model_of_service, source_of
from credo.cli.flags import DATA, LearnerFlags, in_flags, whole_number
from credo.core.errors import CredoError, require_choice

if TYPE_CHECKING:
    from credo.scale import KeyedOptions, KeyedResult
    from credo.tables import TableSource

__all__ = ["KeyedFlags", "keyed"]

_KEYED = Group("Keys and processes", sort_key=3)


@Parameter(name="*")
@dataclass(frozen=True)
class KeyedFlags:
    """The flags about the keys, the data and the processes."""

    key: Annotated[str | None, Parameter(group=DATA, help="The column of the keys.")] = None
    target: Annotated[str | None, Parameter(group=DATA, help="The column to predict.")] = None
    task: Annotated[
        str | None, Parameter(group=DATA, help="classification or regression; by default it is inferred.")
    ] = None
    classes: Annotated[
        str | None,
        Parameter(group=DATA, help="All class labels, separated by commas, if the first rows lack some."),
    ] = None
    drop: Annotated[str | None, Parameter(group=DATA, help="Columns to leave out, separated by commas.")] = (
        None
    )
    categorical: Annotated[
        str | None,
        Parameter(group=DATA, help="Columns that are categories although they look like numbers."),
    ] = None
    time: Annotated[
        str | None,
        Parameter(
            group=DATA,
            help="The column of times: numbers, or ISO dates, which are counted in days. A step of a key is "
            "as long as the time since its latest row; 1 by default.",
        ),
    ] = None
    scale: Annotated[
        str | None,
        Parameter(
            group=DATA,
            help="shared: numbers and targets are standardised by the rows of all keys before; key: by those "
            "of the same key. shared by default.",
        ),
    ] = None
    follow: Annotated[
        float | None,
        Parameter(
            group=DATA,
            help="Look for new files in a folder every so many seconds, or save after so many without a "
            "message, until Ctrl-C; by default the run ends with what is there.",
        ),
    ] = None
    strict: Annotated[
        bool, Parameter(group=DATA, negative="", help="Stop at the first row that cannot be used.")
    ] = False
    shards: Annotated[
        int | None,
        Parameter(
            group=_KEYED,
            help="Into how many parts the keys are divided, well above the workers to come; it cannot be "
            "changed later. 1 by default.",
            converter=whole_number,
        ),
    ] = None
    workers: Annotated[
        int,
        Parameter(
            group=_KEYED, help="How many processes share the shards; 0 for this one.", converter=whole_number
        ),
    ] = 0
    ray: Annotated[
        str | None,
        Parameter(
            group=_KEYED,
            help="The address of a cluster of Ray whose actors are the workers, such as 10.0.0.1:6379, or "
            "local. All machines must see the place of the run.",
        ),
    ] = None
    evict: Annotated[
        int | None,
        Parameter(
            group=_KEYED,
            help="The most keys of a shard in memory; the others lie in a file. All by default.",
            converter=whole_number,
        ),
    ] = None
    tile: Annotated[
        int | None,
        Parameter(
            group=_KEYED,
            help="How many keys are stepped together: 16 by default, 8 is better if few keys have most rows.",
            converter=whole_number,
        ),
    ] = None
    batch: Annotated[
        int | None,
        Parameter(
            group=_KEYED, help="The rows of a file of predictions; 16384 by default.", converter=whole_number
        ),
    ] = None
    checkpoint: Annotated[
        int,
        Parameter(
            group=_KEYED,
            help="Save the state after so many batches, which are kept in memory until then.",
            converter=whole_number,
        ),
    ] = 16


_NO_FLAGS = KeyedFlags()
_NO_LEARNER_FLAGS = LearnerFlags()


@flowing
def keyed(
    source: Annotated[str, Parameter(group=DATA)],
    /,
    *,
    out: str,
    flags: KeyedFlags = _NO_FLAGS,
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
    return _run(source_of(source), out, flags, learner, resume, quiet)


def _run(source: str, out: str, flags: KeyedFlags, learner: LearnerFlags, resume: bool, quiet: bool) -> int:
    """Learn a file, and show what was found."""
    import jax

    from credo.cli.progress import note
    from credo.scale import learn_keyed

    jax.config.update("jax_cpu_enable_async_dispatch", False)  # no other thread is woken for a call
    rows, flags = _rows(source, flags)
    options = _options(out, flags, learner, resume)

    def say(sentence: str) -> None:
        note(in_flags(sentence), quiet)

    try:
        result = learn_keyed(rows, out, options, resume=resume, follow=flags.follow, say=say)
    except KeyboardInterrupt:
        words = shlex.join(["credo", "keyed", source, "--out", out, "--resume"])
        note(f"credo: interrupted; what was saved is whole; go on with: {words}")
        return 130
    _show(source, result, quiet)
    return 0


def _rows(source: str, flags: KeyedFlags) -> tuple[str | TableSource, KeyedFlags]:
    """What is to be learned: of a model of a service the open table, whose target is known."""
    place = model_of_service(source)
    if place is None:
        return source, flags
    from credo.serve.journal_source import journal_target, open_journal

    return open_journal(*place), dataclasses.replace(flags, target=flags.target or journal_target(*place))


def _options(out: str, flags: KeyedFlags, learner: LearnerFlags, resume: bool) -> KeyedOptions:
    """What the flags say; of a run that goes on, what they do not say is as it was."""
    from credo.core.places import place_of
    from credo.scale import KeyedOptions
    from credo.scale.options import FIXED
    from credo.sessions import ColumnOptions, Options
    from credo.tables.tasks import TARGET_KINDS

    chosen = Options(**dataclasses.asdict(learner))
    free: dict[str, Any] = {name: getattr(flags, name) for name in ("workers", "ray", "evict", "checkpoint")}
    fixed = {name: one for name in FIXED if (one := getattr(flags, name)) is not None}
    if resume:
        before = KeyedOptions.of(place_of(out, "out"))
        for name in ("task", "classes", "drop", "categorical"):
            if getattr(flags, name) is not None:
                raise CredoError(f"--{name} cannot be changed with --resume; leave it out.")
        columns = ColumnOptions(flags.target or before.columns.target, strict=flags.strict)
        learned = chosen if chosen != Options() else before.learner
        return dataclasses.replace(before, columns=columns, learner=learned, **fixed, **free)
    for name in ("key", "target"):
        if getattr(flags, name) is None:
            raise CredoError(f"--{name} is missing: name the column.")
    columns = ColumnOptions(
        flags.target,
        None if flags.task is None else require_choice("task", flags.task, TARGET_KINDS),
        _words(flags.classes) or None,
        _words(flags.drop),
        _words(flags.categorical),
        flags.strict,
    )
    return KeyedOptions(columns=columns, learner=chosen, **fixed, **free)


def _words(text: str | None) -> list[str]:
    if text:
        return [part.strip() for part in text.split(",") if part.strip()]
    return []


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
