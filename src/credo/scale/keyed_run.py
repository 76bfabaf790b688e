"""A run over a source with one learner for each key: opened, continued, and saved on the way."""

from __future__ import annotations

import dataclasses
import importlib.util
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from credo.core import archive
from credo.core.actors import hire_actors
from credo.core.errors import CredoError, DataError, FormatError, require_integer
from credo.core.files import json_bytes, write_atomically
from credo.core.processes import begin_process
from credo.live.encoding import TableEncoding
from credo.live.restoring import restore
from credo.recipes import defaults
from credo.recipes.resolution import resolve
from credo.recipes.settings import Options, Settings
from credo.scale.batches import Feed
from credo.scale.generations import Generation
from credo.scale.shard import Plan
from credo.scale.workers import Here, Shards, Workers
from credo.sessions import ColumnOptions
from credo.sessions.cutting import after_line, last_line
from credo.tables import Chunk, Moments, TableSource, infer_schema, open_table

__all__ = ["KeyedOptions", "KeyedResult", "learn_keyed"]

FORMAT, STATE = 1, "run.credo"
_MARK = "credo-keyed-run"


@dataclass(frozen=True)
class KeyedOptions:
    """How a source is learned with one learner for each key.

    Arguments:
        key: the column of the keys; a cell is known by its text.
        columns: the target, and what else is known about the columns.
        learner: what is chosen about the learner, one for all keys; by default a linear model.
        shards: into how many parts the keys are divided, which cannot be changed later.
        workers: how many processes share the shards; 0 for none beside this one.
        ray: the address of a cluster of Ray whose actors the workers are, "local" for one in this machine;
            None for processes of this machine.
        tile: how many keys are stepped together; see `credo.Keyed`.
        evict: the most keys of a shard in memory; None for all.
        batch: the rows of a batch, which has a file of predictions for each shard.
        checkpoint: after how many batches the state is saved; so many are kept in memory.

    Raises:
        CredoError: a number is out of its range.

    Example:
        >>> KeyedOptions("user", ColumnOptions("y")).shards
        1
    """

    key: str
    columns: ColumnOptions
    learner: Options = dataclasses.field(default_factory=Options)
    shards: int = 1
    workers: int = 0
    tile: int = 16
    ray: str | None = None
    evict: int | None = None
    batch: int = 16_384
    checkpoint: int = 16

    def __post_init__(self) -> None:
        require_integer("shards", self.shards, 1, 4096)
        require_integer("workers", self.workers, 0, self.shards)
        require_integer("tile", self.tile, 1, 1024)
        require_integer("batch", self.batch, 1, 2**20)
        require_integer("checkpoint", self.checkpoint, 1)
        if self.ray is not None and not self.workers:
            raise CredoError("ray needs `workers`, the number of actors.", field="ray")
        if self.evict is not None:
            require_integer("evict", self.evict, 4)

    def words(self) -> dict[str, Any]:
        """What cannot be changed later, as JSON data."""
        fixed = {name: getattr(self, name) for name in ("key", "shards", "tile", "batch")}
        chosen = {name: one for name, one in dataclasses.asdict(self.learner).items() if one is not None}
        plain = {
            name: one if isinstance(one, int | float | str) else str(one) for name, one in chosen.items()
        }
        return {**fixed, "target": self.columns.target, "learner": plain}

    @staticmethod
    def of(folder: Path) -> KeyedOptions:
        """The options of the run in a folder, of which `workers`, `ray`, `evict` and `checkpoint` may change.

        Raises:
            DataError: there is no run.
            FormatError: it is damaged, or has a newer format.
        """
        with archive.refusing(folder / STATE, "run of keyed learners"):
            words = dict(_state(folder).header["options"])
            learner, columns = Options(**words.pop("learner")), ColumnOptions(words.pop("target"))
            return KeyedOptions(columns=columns, learner=learner, **words)


@dataclass(frozen=True)
class KeyedResult:
    """What a run has found so far, over all its parts.

    Attributes:
        folder: the folder of the run, with `predictions`, `metrics.json` and the state of the shards.
        line: the line up to which the source was read.
        metrics: rows, keys, nlpd, rmse and coverage_90 or error, reported changes, and the worst, newest and
            most changing keys, as lists.
        bad_rows: how many rows could not be used.
        bad: sentences about a few of them.

    Example:
        >>> KeyedResult(Path("runs"), 10, {"keys": 3}, 0, ()).metrics["keys"]
        3
    """

    folder: Path
    line: int
    metrics: dict[str, Any]
    bad_rows: int
    bad: tuple[str, ...]


def learn_keyed(
    source: str,
    folder: Path,
    options: KeyedOptions,
    *,
    resume: bool = False,
    say: Callable[[str], None] = lambda sentence: None,
) -> KeyedResult:
    """Learn a file with one learner for each key, each row forecast before it is learned.

    A run that was killed, or whose file has grown, is resumed from its folder: every key then has the bits
    that it would have had without a break, and every row has one prediction. Rows are standardised by the
    rows of all keys before them. Memory of this process: the batches since the latest checkpoint.

    Arguments:
        source: a CSV, TSV, JSON lines or Parquet file whose rows only grow.
        folder: the folder of the run, new, or with `resume` that of an earlier one.
        options: how to learn; with `resume`, those of the earlier run.
        resume: whether to go on.
        say: is given sentences about what happens.

    Returns:
        The result, over all parts of the run.

    Raises:
        CredoError: an option is out of its range, or another than that of the run that is resumed.
        DataError: the source cannot be read, lacks a column, or has become shorter; the folder is in use or
            cannot be written; or a worker dies again and again.
        FormatError: the folder has a newer format, or another learner.

    Example:
        >>> from tempfile import mkdtemp
        >>> folder = Path(mkdtemp())
        >>> text = "".join(f"{i % 3},{i % 7},{(i % 3) * (i % 7)}\\n" for i in range(300))
        >>> _ = (folder / "t.csv").write_text("user,a,y\\n" + text)
        >>> options = KeyedOptions("user", ColumnOptions("y", task="regression"))
        >>> result = learn_keyed(str(folder / "t.csv"), folder / "run", options)
        >>> result.metrics["keys"], result.metrics["rows"]
        (3, 300)
    """
    place, state = folder / STATE, None
    if resume:
        if source == "-":
            raise CredoError("source must be a file to go on with; got standard input.", field="source")
        state = _state(folder)
    elif place.exists():
        raise DataError(f"{folder} has a run already: `resume` goes on with it; or choose another folder.")
    strict = options.columns.strict
    with open_table(source, chunk_rows=min(options.batch, defaults.LONGEST_CHUNK), strict=strict) as table:
        feed, settings = _begin(table, options) if state is None else _continued(state, place, options)
        say(f"learner: {settings.model}, {settings.description}, one for each {options.key}")
        run, start = _Run(folder, options, feed, settings), feed.line
        if state is None:
            run.note()
        try:
            metrics = run.learn(_rows(table, feed, folder))
        finally:
            run.shards.close()
    if state is not None and feed.line == start:
        say(f"{source} has no row after line {start:,}, up to which {folder} has learned")
    bad = tuple(map(str, feed.bad))
    write_atomically(
        folder / "metrics.json", json_bytes({"line": feed.line, "bad_rows": feed.bad_rows, **metrics})
    )
    return KeyedResult(folder, feed.line, metrics, feed.bad_rows, bad)


class _Run:
    """A run at work: its feed, its shards, and the file that says how far it is."""

    def __init__(self, folder: Path, options: KeyedOptions, feed: Feed, settings: Settings) -> None:
        self.folder, self.options, self.feed, self.settings = folder, options, feed, settings
        self.generation = Generation(folder)
        plan = Plan(
            *(folder, dict(settings.to_dict()), feed.encoding.schema.width, feed.encoding.classes),
            *(options.tile, options.evict, importlib.util.find_spec("pyarrow") is not None),
        )
        self.shards = _shards(plan, options)

    def learn(self, rows: Iterator[Chunk]) -> dict[str, Any]:
        """Learn rows, with a checkpoint every now and then and at the end: what was found."""
        since = 0
        for batch in self.feed.batches(rows):
            self.shards.apply(batch.shards(self.options.shards))
            since += 1
            if since == self.options.checkpoint:
                self.save()
                since = 0
        if since:
            self.save()
        return self.shards.tally().summary()

    def save(self) -> None:
        """A checkpoint: of the shards, and then of the feed, which is never ahead of them."""
        self.shards.save()
        self.note()

    def note(self) -> None:
        """Write how far the feed is."""
        self.generation.require_latest()
        meta, parts = self.feed.state()
        header = {
            "format": FORMAT,
            "feed": meta,
            "settings": self.settings.to_dict(),
            "options": self.options.words(),
        }
        archive.write(self.folder / STATE, _MARK, header, archive.join(parts))


def _shards(plan: Plan, options: KeyedOptions) -> Shards:
    """The shards, in this process or in others."""
    if not options.workers:
        return Here(plan, options.shards)
    hire = begin_process if options.ray is None else hire_actors(options.ray)
    return Workers(plan, options.shards, options.workers, hire)


def _state(folder: Path) -> archive.Archive:
    return archive.read(folder / STATE, _MARK, FORMAT, "run of keyed learners")


def _begin(table: TableSource, options: KeyedOptions) -> tuple[Feed, Settings]:
    """The feed of a new run, whose columns are known by the first rows."""
    columns = options.columns
    for field, name in (("key", options.key), ("target", columns.target)):
        if name not in table.columns:
            listing = ", ".join(table.columns[:30])
            raise CredoError(
                f"{field} must be a column of {table.name}, one of {listing}; got {name!r}.", field=field
            )
    first = table.peek(defaults.SCHEMA_ROWS)
    drop = (*columns.drop, options.key)
    schema = infer_schema(
        first,
        str(columns.target),
        task=columns.task,
        classes=columns.classes,
        drop=drop,
        categorical=columns.categorical,
    )
    encoding = TableEncoding(schema)
    chosen = options.learner
    if chosen.model is None and chosen.budget is None:
        chosen = dataclasses.replace(chosen, model="linear")
    settings = resolve(chosen, encoding.task, encoding.shape, len(encoding.classes))
    if settings.target.unit == "own":
        raise CredoError(
            "task must be classification or regression for keyed learners; got count.", field="task"
        )
    encoding.limit(defaults.CLIP)
    return Feed(encoding, options.key, options.batch, strict=columns.strict), settings


def _continued(state: archive.Archive, place: Path, options: KeyedOptions) -> tuple[Feed, Settings]:
    """The feed and the settings of a run that goes on."""
    header, here = state.header, options.words()
    for name, value in header["options"].items():
        if here[name] != value:
            raise CredoError(
                f"{name} was {value!r} when {place.parent} was begun, and cannot be changed; "
                f"got {here[name]!r}.",
                field=name,
            )
    with archive.refusing(place, "run of keyed learners"):
        meta, arrays = header["feed"], archive.split(state.arrays, ("encoding", "scaler"))
        encoding = restore(meta["encoding"], arrays["encoding"])
        if not isinstance(encoding, TableEncoding):
            raise FormatError(f"{place} must be of a table; got {type(encoding).__name__}.")
        scaler = Moments.from_arrays(arrays["scaler"], "scaler")
        strict = options.columns.strict
        first, second = map(int, meta["read"])
        feed = Feed(encoding, options.key, options.batch, scaler, meta["line"], (first, second), strict)
        feed.bad_rows = meta["bad"]
        return feed, Settings.from_dict(header["settings"])


def _rows(table: TableSource, feed: Feed, folder: Path) -> Iterator[Chunk]:
    """The rows after those that a feed has read, which the table must have as they were."""
    after, expected, last, read = feed.line, feed.read, 0, (0, 0)

    def watched() -> Iterator[Chunk]:
        nonlocal last, read
        for chunk in table:
            if last < after:
                known = int(np.searchsorted(chunk.lines, after, side="right"))
                read = feed.passed(chunk.part(0, known), read)
                last = max(last, last_line(chunk))
                if last >= after and read != expected:
                    raise DataError(
                        f"{table.name} is not the file from which {folder} has learned: up to line {after:,} "
                        f"its keys or targets have changed."
                    )
            last = max(last, last_line(chunk))
            yield chunk

    yield from after_line(watched(), after)
    if last < after:
        raise DataError(
            f"{table.name} ends at line {last:,}, before line {after:,} up to which {folder} has learned: it "
            "was cut, or is another file."
        )
