"""A run over a source with one learner for each key: opened, continued, and saved on the way.

The runs in a folder have generations, of which only the latest may save into it.

Scores of the forecasts by key: sums over all keys, and a few numbers for each.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib.util
import itertools
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

import jax
import numpy as np

from credo.adapt import Standardized
from credo.core import archive
from credo.core.actors import hire_actors
from credo.core.errors import CredoError, DataError, FormatError, Named
from credo.core.files import claim, json_bytes, replacing, write_atomically
from credo.core.places import Address, Place, Where, place_of
from credo.core.processes import Answer, Gone, Hire, begin_process
from credo.live.encoding import TableEncoding
from credo.live.live_learner import TARGET_CLIP
from credo.live.restoring import restore
from credo.live.targets import WARMUP
from credo.recipes import defaults
from credo.recipes.assembly import build
from credo.recipes.options import ColumnOptions, KeyedOptions, Options
from credo.recipes.resolution import resolve
from credo.recipes.settings import Settings
from credo.scale.feed import Batch, Feed, FileEnd, Marks, are_dates
from credo.scale.kafka import SCHEME
from credo.scale.sources import Source, open_source
from credo.streams.keyed import Keyed, KeyedRows
from credo.streams.keyed.engine import Late
from credo.streams.keyed.naming import from_text, to_text
from credo.streams.keyed.pages import latest
from credo.tables import Chunk, Moments, TableSource, infer_schema
from credo.tables.cells import to_list

__all__ = [
    "BEFORE",
    "FORMAT",
    "MARK",
    "STATE",
    "Generation",
    "KeyTally",
    "KeyedResult",
    "Plan",
    "Shard",
    "Worker",
    "Workers",
    "learn_keyed",
    "options_of",
    "state_of",
]

FORMAT = 1
TALLY_FORMAT = 1
KEPT = 2
LEAST = 20
"""The least rows of a key that is called one of the worst."""

_TOTALS = ("rows", "scored", "loss", "error", "inside", "alarms", "late")
_OF_KEY = ("count", "losses", "first", "changes", "came")


class KeyTally:
    """Sums of the scores of rows, over all keys and by key.

    Arguments:
        classes: whether classes are forecast, and otherwise numbers.
        warmup: how many first rows of each key are not scored, while its units are not known.

    Attributes:
        totals: rows, scored rows, the sums of their losses (negative log densities in the target's own
            units) and errors (squared errors, or wrong classes), how many targets lay within the central
            interval of 90%, how many changes were reported, and how many rows were late.
        count, losses, first, changes, came: of each key its scored rows, the sum of their losses, the line of
            its first row, its reported changes, and with a `warmup` its rows.
    """

    def __init__(self, classes: bool, warmup: int = 0) -> None:
        self.classes = classes
        self.warmup = warmup
        self.places: dict[str, int] = {}
        self._of_slot = np.full(0, -1)
        self.totals = np.zeros(len(_TOTALS))
        self.count = np.zeros(0)
        self.losses = np.zeros(0)
        self.first = np.zeros(0)
        self.changes = np.zeros(0)
        self.came = np.zeros(0)

    def add(self, rows: Batch, told: KeyedRows, *, stay: bool = False) -> None:
        """Take in the scores of rows; whether keys `stay` in their slots, so that these are known again."""
        fresh = len(self.places)
        at = self._places_of(rows.keys, told.slots if stay else None)
        self._grow()
        outcome = told.outcome
        known = rows.known & told.ok
        if self.warmup:
            known = known & (self.came[at] + _earlier_tally(at) >= self.warmup)
        losses = np.log(rows.scale) - np.asarray(outcome.log_prob, float)
        inside = np.zeros(len(losses), bool)
        if outcome.probs is None:
            errors = (rows.scale * (np.asarray(outcome.mean, float) - rows.y)) ** 2
            if outcome.pit is not None:
                inside = np.abs(np.asarray(outcome.pit, float) - 0.5) <= 0.45
        else:
            errors = (outcome.probs.argmax(axis=1) != rows.y).astype(float)
        alarms = np.zeros(len(losses), bool) if told.alarm is None else told.alarm
        sums = (known, np.where(known, losses, 0.0), np.where(known, errors, 0.0), known & inside, alarms)
        late = 0 if told.late is None else int(told.late.sum())
        self.totals += [len(losses), *(float(one.sum()) for one in sums), late]
        np.add.at(self.count, at, known.astype(float))  # a cast within `at` takes 40 times as long
        np.add.at(self.losses, at, sums[1])
        if told.alarm is not None:
            np.add.at(self.changes, at, alarms.astype(float))
        if self.warmup:
            np.add.at(self.came, at, 1.0)
        new = at >= fresh
        self.first[at[new][::-1]] = rows.lines[new][::-1]

    def _places_of(self, keys: Sequence[str], slots: np.ndarray | None) -> np.ndarray:
        """The places of keys (n,), which new ones get; by their slots if these were seen before."""
        places = self.places
        if slots is None:
            at = np.fromiter(map(places.get, keys, itertools.repeat(-1)), np.int64, len(keys))
            for row in np.flatnonzero(at < 0).tolist():
                at[row] = places.setdefault(keys[row], len(places))
            return at
        if (more := int(slots.max()) + 1 - len(self._of_slot)) > 0:
            blank = np.full(max(more, len(self._of_slot)), -1)
            self._of_slot = np.concatenate([self._of_slot, blank])
        for row in np.flatnonzero(self._of_slot[slots] < 0).tolist():
            self._of_slot[slots[row]] = places.setdefault(keys[row], len(places))
        known: np.ndarray = self._of_slot[slots]
        return known

    def _grow(self) -> None:
        room = len(self.count)
        if len(self.places) > room:
            more = max(len(self.places), 2 * room) - room
            for name in _OF_KEY:
                setattr(self, name, np.concatenate([getattr(self, name), np.zeros(more)]))

    def summary(self, most: int = 10) -> dict[str, Any]:
        """The means over all keys, and the worst, newest and most changing keys."""
        rows, scored, loss, error, inside, alarms, late = self.totals.tolist()
        names = list(self.places)
        size = len(self.places)
        count = self.count[:size]
        losses = self.losses[:size]
        first = self.first[:size]
        changes = self.changes[:size]
        mean = losses / np.maximum(count, 1)
        enough = np.flatnonzero(count >= LEAST)
        worst = enough[np.argsort(-mean[enough], kind="stable")[:most]]
        newest = np.argsort(-first, kind="stable")[:most]
        moving = np.flatnonzero(changes)
        moving = moving[np.argsort(-changes[moving], kind="stable")[:most]]
        per = max(scored, 1.0)
        quality = (
            {"error": error / per}
            if self.classes
            else {"rmse": (error / per) ** 0.5, "coverage_90": inside / per}
        )
        return {
            "rows": int(rows),
            "scored": int(scored),
            "keys": size,
            "nlpd": loss / per,
            **quality,
            "changes": int(alarms),
            "late": int(late),
            "worst": [[names[at], int(count[at]), float(mean[at])] for at in worst],
            "newest": [[names[at], int(count[at]), int(first[at])] for at in newest],
            "drifting": [[names[at], int(count[at]), int(changes[at])] for at in moving],
        }

    def join(self, other: KeyTally) -> None:
        """Take in the tally of another shard, which has other keys."""
        self.totals = self.totals + other.totals
        sizes = len(self.places), len(other.places)
        for name in _OF_KEY:
            mine = getattr(self, name)[: sizes[0]]
            theirs = getattr(other, name)[: sizes[1]]
            setattr(self, name, np.concatenate([mine, theirs]))
        self.places = dict.fromkeys([*self.places, *other.places])  # type: ignore[assignment]
        self.places = {name: place for place, name in enumerate(self.places)}

    def save(self, folder: Place, line: int) -> None:
        """Write the tally beside a checkpoint that goes up to a line; those before the latest two go."""
        size = len(self.places)
        arrays = {name: getattr(self, name)[:size] for name in _OF_KEY}
        names = np.frombuffer(to_text(list(self.places)), np.uint8)
        header = {"format": TALLY_FORMAT, "classes": self.classes, "warmup": self.warmup}
        archive.write(
            _path(folder, line), "credo-tally", header, {**arrays, "totals": self.totals, "names": names}
        )
        for name in sorted(path.name for path in folder.glob("tally-*.credo"))[: -KEPT - 1]:
            (folder / name).unlink(missing_ok=True)

    @staticmethod
    def load(folder: Place, line: int) -> KeyTally:
        """The tally beside a checkpoint."""
        path = _path(folder, line)
        header, arrays = archive.read(path, "credo-tally", TALLY_FORMAT, "tally of keys")
        with archive.refusing(path, "tally"):
            tally = KeyTally(bool(header["classes"]), int(header["warmup"]))
            names = [str(name) for name in from_text(arrays["names"].tobytes())]
            if any(len(arrays[name]) != len(names) for name in _OF_KEY):
                raise FormatError("a tally must have as many numbers as keys.")
            tally.places = {name: place for place, name in enumerate(names)}
            tally.totals = np.array(arrays["totals"])
            for name in _OF_KEY:
                setattr(tally, name, np.array(arrays[name]))
        return tally


def _earlier_tally(at: np.ndarray) -> np.ndarray:
    """The number of earlier entries that are the same as each (n,)."""
    order = np.argsort(at, kind="stable")
    ordered = at[order]
    earlier = np.empty(len(at), np.int64)
    earlier[order] = np.arange(len(at)) - np.searchsorted(ordered, ordered)
    return earlier


def _path(folder: Place, line: int) -> Place:
    return folder / f"tally-{line:012d}.credo"


STATE = "run.credo"
BEFORE = "run-before.credo"
MARK = "credo-keyed-run"


@dataclass(frozen=True)
class KeyedResult:
    """The results of a run so far, over all its parts.

    Attributes:
        folder: the folder of the run, with `predictions`, `metrics.json` and the state of the shards.
        line: the line up to which the source was read.
        metrics: rows, keys, nlpd, rmse and coverage_90 or error, reported changes, rows that were late, and
            the worst, newest and most changing keys, as lists.
        bad_rows: how many rows could not be used.
        bad: sentences about a few of them.

    Example:
        >>> from pathlib import Path
        >>> KeyedResult(Path("runs"), 10, {"keys": 3}, 0, ()).metrics["keys"]
        3
    """

    folder: Place
    line: int
    metrics: dict[str, Any]
    bad_rows: int
    bad: tuple[str, ...]


def state_of(folder: Place, name: str = STATE) -> archive.Archive:
    """The file that says how far the run in a folder is; a DataError if there is none."""
    return archive.read(folder / name, MARK, FORMAT, "run of keyed learners")


def options_of(folder: Place) -> KeyedOptions:
    """The options of the run in a folder, of which `workers`, `ray`, `evict` and `checkpoint` may change.

    Raises:
        DataError: there is no run.
        FormatError: it is damaged, or has a newer format.
    """
    with archive.refusing(folder / STATE, "run of keyed learners"):
        words = dict(state_of(folder).header["options"])
        learner = Options(**words.pop("learner"))
        columns = ColumnOptions(words.pop("target"))
        return KeyedOptions(columns=columns, learner=learner, **words)


class Generation:
    """A number that nobody else has, taken by creating a file that was not there; the largest may save.

    Arguments:
        folder: the folder, which is made if need be, or its address.
    """

    def __init__(self, folder: Place) -> None:
        self.folder = folder
        self.number = claim(folder, _name, self._latest() + 1)
        for number in self._numbers():
            if number < self.number:
                (folder / _name(number)).unlink(missing_ok=True)

    def require_latest(self) -> None:
        """Refuse to go on where another has begun."""
        if self._latest() > self.number:
            raise DataError(f"another run goes on in {self.folder}; this one is older, and may not save.")

    def _numbers(self) -> list[int]:
        return [int(path.name.partition("-")[2]) for path in self.folder.glob("generation-*")]

    def _latest(self) -> int:
        return max(self._numbers(), default=0)


def _name(number: int) -> str:
    return f"generation-{number:08d}"


@dataclass(frozen=True)
class Plan:
    """The settings that all shards have in common, which are the same in every process.

    Attributes:
        folder: the folder of the run, or its address.
        settings: the settings of the learner, as JSON data.
        inputs: the number of inputs.
        classes: the labels of the classes, none for numbers.
        tile, evict: see `Keyed`; `evict` is for one shard.
        parquet: whether predictions are Parquet, and otherwise CSV.
        scaled: which inputs each key standardises by its own rows, as it then does with its target; None
            where rows come standardised.
        late: see `Keyed.learn`.
    """

    folder: Place
    settings: dict[str, Any]
    inputs: int
    classes: tuple[str, ...]
    tile: int
    evict: int | None
    parquet: bool
    scaled: tuple[bool, ...] | None = None
    late: Late = "now"

    def begin(self) -> tuple[Any, Any, Settings]:
        """The learner, its prior, and the settings."""
        settings = Settings.from_dict(self.settings)
        learner, prior = build(settings, (self.inputs,), len(self.classes))
        if self.scaled is None:
            return learner, prior, settings
        own = Standardized(learner, True, not self.classes, defaults.CLIP, WARMUP, TARGET_CLIP)
        return own, own.wrap(prior, self.inputs, np.asarray(self.scaled)), settings

    def folder_of(self, shard: int) -> Place:
        """The folder of the state of a shard."""
        return self.folder / f"shard-{shard:03d}"

    @property
    def predictions(self) -> Place:
        """The folder of the predictions."""
        return self.folder / "predictions"


class Shard:
    """A `Keyed` that knows up to which line it has learned; rows up to there are passed over.

    Arguments:
        plan: what all shards have in common.
        number: its number. Its folder is read if there is a checkpoint.
    """

    def __init__(self, plan: Plan, number: int) -> None:
        self.plan = plan
        self.number = number
        folder = plan.folder_of(number)
        self.generation = Generation(folder)
        learner, prior, settings = plan.begin()
        if latest(folder):
            self.keyed: Keyed[Any] = Keyed.load(folder, learner)
            self.line = self.keyed.offset
            self.tally = KeyTally.load(folder, self.line)
        else:
            key = jax.random.key(settings.seed) if settings.draws else None
            self.keyed = Keyed(learner, prior, tile=plan.tile, evict=plan.evict, key=key)
            warmup = 0 if plan.scaled is None or plan.classes else WARMUP
            self.line = 0
            self.tally = KeyTally(bool(plan.classes), warmup)
        self._forget_later()

    def apply(self, batch: Batch) -> None:
        """Forecast, score and learn the rows of a batch that come after those that it has learned."""
        if batch.last <= self.line:
            return
        if batch.before > self.line:
            raise DataError(
                f"shard {self.number} of {self.plan.folder} has learned up to line {self.line:,} only, and "
                f"the next rows come after line {batch.before:,}: a checkpoint is damaged or gone."
            )
        rows = batch.after(self.line)
        if rows.keys:
            told = self.keyed.learn(
                rows.keys, rows.x, rows.y, rows.weights, times=rows.times, late=self.plan.late
            )
            self.tally.add(rows, told, stay=self.plan.evict is None)
            self._write(rows, told)
        self.line = batch.last

    def save(self) -> int:
        """Write a checkpoint; the line up to which it goes."""
        self.generation.require_latest()
        folder = self.plan.folder_of(self.number)
        self.tally.save(folder, self.line)
        self.keyed.save(folder, offset=self.line)
        return self.line

    def _file(self, before: int) -> Place:
        """The file of the predictions of a batch, which has the same name when the batch comes again."""
        ending = "parquet" if self.plan.parquet else "csv"
        return self.plan.predictions / f"shard-{self.number:03d}-after-{before:012d}.{ending}"

    def _forget_later(self) -> None:
        """Take away predictions of rows that will be learned again, and files that were cut short."""
        torn = (
            (self.plan.folder_of(self.number), ".*"),
            (self.plan.predictions, f".shard-{self.number:03d}-*"),
        )
        for folder, pattern in torn:
            for path in folder.glob(pattern):
                path.unlink(missing_ok=True)
        for path in self.plan.predictions.glob(f"shard-{self.number:03d}-after-*"):
            if int(path.stem.rpartition("-")[2]) >= self.line:
                path.unlink(missing_ok=True)

    def _write(self, rows: Batch, told: KeyedRows) -> None:
        self.generation.require_latest()
        columns: dict[str, Any] = {"line": rows.lines, "key": rows.keys}
        outcome = told.outcome
        if outcome.probs is None:
            columns["mean"] = rows.location + rows.scale * np.asarray(outcome.mean, float)
            columns["sd"] = rows.scale * np.asarray(outcome.sd, float)
        else:
            columns |= {f"p({name})": outcome.probs[:, place] for place, name in enumerate(self.plan.classes)}
        with replacing(self._file(rows.before)) as path:
            _write_table(path, columns, self.plan.parquet)


def _write_table(path: Path, columns: dict[str, Any], parquet: bool) -> None:
    if parquet:
        import pyarrow as pa
        import pyarrow.parquet as pq

        # forecasts do not become smaller, and a dictionary of keys costs more than the rest of the file
        pq.write_table(
            pa.table(columns),
            path,
            use_dictionary=False,
            compression={"key": "snappy"},  # pyright: ignore[reportArgumentType]
            column_encoding={"line": "DELTA_BINARY_PACKED"},
            write_statistics=["line"],  # pyright: ignore[reportArgumentType]
        )
        return
    import csv

    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        lists = (column if isinstance(column, list) else column.tolist() for column in columns.values())
        writer.writerows(zip(*lists, strict=True))


class Request(NamedTuple):
    """The request to "open" the shards, or to let one "apply" a batch, "save", or give its "tally"."""

    what: str
    shard: int = 0
    given: Any = None


class ShardDesk:
    """The shards of a process."""

    def __init__(self, plan: Plan, numbers: Sequence[int]) -> None:
        jax.config.update("jax_cpu_enable_async_dispatch", False)  # no other thread is woken for a call
        self.plan = plan
        self.numbers = numbers
        self.shards: dict[int, Shard] = {}

    def answer(self, request: Request) -> Answer:
        """Do what is asked."""
        try:
            return Answer(True, self._do(*request))
        except CredoError as error:
            return Answer(False, error.sentence)

    def _do(self, what: str, number: int, given: Any) -> Any:
        if what == "open":
            self.shards = {one: Shard(self.plan, one) for one in self.numbers}
            return {one: shard.line for one, shard in self.shards.items()}
        shard = self.shards[number]
        if what == "apply":
            shard.apply(given)
            return None
        if what == "save":
            return shard.save()
        return shard.tally


FLIGHT = 4
"""The most batches that a worker was sent and has not answered."""

DEATHS = 5
"""After so many deaths of a worker without a batch that it has learned, the run ends."""

T = TypeVar("T")


class Shards(Protocol):
    """The shards of a run."""

    def apply(self, parts: Sequence[Batch]) -> None:
        """Give each shard its part of a batch, to be learned before the next `save` has ended."""
        ...

    def save(self) -> None:
        """Write a checkpoint of every shard."""
        ...

    def lines(self) -> list[int]:
        """The line up to which each shard had learned when it was opened."""
        ...

    def tally(self) -> KeyTally:
        """The joined tallies."""
        ...

    def close(self) -> None:
        """Release everything."""
        ...


class Here:
    """Shards in this process."""

    def __init__(self, plan: Plan, count: int) -> None:
        self.shards = [Shard(plan, number) for number in range(count)]

    def apply(self, parts: Sequence[Batch]) -> None:
        """Give each shard its part of a batch to learn."""
        for shard, part in zip(self.shards, parts, strict=True):
            shard.apply(part)

    def save(self) -> None:
        """Write a checkpoint of every shard."""
        for shard in self.shards:
            shard.save()

    def lines(self) -> list[int]:
        """The line up to which each shard has learned."""
        return [shard.line for shard in self.shards]

    def tally(self) -> KeyTally:
        """The joined tallies."""
        return _joined([shard.tally for shard in self.shards])

    def close(self) -> None:
        """Nothing is held."""


def _joined(tallies: Sequence[KeyTally]) -> KeyTally:
    whole = KeyTally(tallies[0].classes)
    for one in tallies:
        whole.join(one)
    return whole


class Worker:
    """A process with some shards, and the batches that it may have to learn again.

    Arguments:
        hire: begins the process.
        plan, numbers: what all shards have in common, and which are those of the process.
    """

    def __init__(self, hire: Hire, plan: Plan, numbers: Sequence[int]) -> None:
        self.hire = hire
        self.desk = functools.partial(ShardDesk, plan, numbers)
        self.kept: deque[tuple[int, Batch]] = deque()
        self.lines: dict[int, int] = {}
        self.flight = self.deaths = 0
        self.post = hire(self.desk)
        self._again(self._open)

    def apply(self, number: int, batch: Batch) -> None:
        """Send a shard a batch; waits where as many as allowed are on their way."""
        self.kept.append((number, batch))
        try:
            self._send(Request("apply", number, batch))
        except Gone:
            self._replace()
            self._again(self._open)  # which sends the batch

    def settle(self, what: str, number: int) -> Any:
        """The answer of a shard to a request, after all that were sent before."""

        def ask() -> Any:
            while self.flight:
                self._answer()
            self.post.send(Request(what, number))
            return self._receive()

        try:
            return ask()
        except Gone:
            self._replace()

        def open_and_ask() -> Any:
            self._open()
            return ask()

        return self._again(open_and_ask)

    def forget(self) -> None:
        """The batches are in checkpoints, and need not be sent again."""
        self.kept.clear()

    def close(self) -> None:
        """End the process."""
        self.post.end()

    def _open(self) -> None:
        """Make the process read its checkpoints, and send it what these lack."""
        self.flight = 0
        self.post.send(Request("open"))
        self.lines = self._receive()
        for number, batch in self.kept:
            if batch.last > self.lines[number]:
                self._send(Request("apply", number, batch))

    def _again(self, task: Callable[[], T]) -> T:
        """Do what a process is needed for, by new ones as often as they die."""
        while True:
            try:
                return task()
            except Gone:
                self._replace()

    def _replace(self) -> None:
        """Begin a new process in the place of one that died."""
        how = self.post.end()
        self.deaths += 1
        if self.deaths > DEATHS:
            raise DataError(
                f"a worker died {self.deaths} times without learning a batch between; the last time, {how}. "
                "What was saved is whole."
            )
        self.post = self.hire(self.desk)

    def _send(self, request: Request) -> None:
        while self.flight >= FLIGHT:
            self._answer()
        self.post.send(request)
        self.flight += 1

    def _answer(self) -> None:
        self._receive()
        self.flight -= 1
        self.deaths = 0

    def _receive(self) -> Any:
        good, value = self.post.receive()
        if not good:
            raise DataError(value)
        return value


class Workers:
    """Shards in worker processes, each of which has every so manieth shard."""

    def __init__(self, plan: Plan, count: int, workers: int, hire: Hire) -> None:
        self.count = count
        self.workers = [Worker(hire, plan, range(first, count, workers)) for first in range(workers)]

    def apply(self, parts: Sequence[Batch]) -> None:
        """Send each shard its part of a batch; waits where a worker has enough to do."""
        for number, part in enumerate(parts):
            self._of(number).apply(number, part)

    def save(self) -> None:
        """Write a checkpoint of every shard; then no earlier batch is kept."""
        for number in range(self.count):
            self._of(number).settle("save", number)
        for worker in self.workers:
            worker.forget()

    def lines(self) -> list[int]:
        """The line up to which each shard had learned when it was opened."""
        return [line for worker in self.workers for line in worker.lines.values()]

    def tally(self) -> KeyTally:
        """The joined tallies."""
        return _joined([self._of(number).settle("tally", number) for number in range(self.count)])

    def close(self) -> None:
        """End the processes."""
        for worker in self.workers:
            worker.close()

    def _of(self, number: int) -> Worker:
        return self.workers[number % len(self.workers)]


def learn_keyed(
    source: str | TableSource,
    folder: Where,
    options: KeyedOptions,
    *,
    resume: bool = False,
    follow: float | None = None,
    say: Callable[[str], None] = lambda sentence: None,
) -> KeyedResult:
    """Learn a file or a folder with one learner for each key, each row forecast before it is learned.

    A run that was killed, or whose source has grown, is resumed from its folder: every key then has the bits
    that it would have had without a break, and every row has one prediction. Memory of this process: the
    batches since the latest checkpoint.

    The files of a folder are read in the order of their names. Names that begin with "." or "_" or end with
    ".tmp" or ".part" are of files that are being written, and another file is taken once it has not changed
    for two seconds. The first file says what the columns mean. Lines are counted over all files.

    Arguments:
        source: a CSV, TSV, JSON lines or Parquet file whose rows only grow, or a folder of such files; or the
            address of one, such as s3://bucket/clicks, for fsspec; or a topic of Kafka whose messages are
            JSON objects, kafka://broker:9092/topic; or a table that is open already.
        folder: the folder of the run, new, or with `resume` that of an earlier one; or the address of one,
            such as s3://bucket/runs.
        options: how to learn; with `resume`, those of the earlier run.
        resume: whether to go on.
        follow: after how many seconds to look for new files in a folder, or without a message to save, until
            the process is interrupted; None to end after the last one.
        say: is given sentences about what happens.

    Returns:
        The result, over all parts of the run.

    Raises:
        CredoError: an option is out of its range, or another than that of the run that is resumed.
        DataError: the source cannot be read, lacks a column, has become shorter, or has a new file before
            those that were read; the folder is in use or cannot be written; or a worker dies again and again.
        FormatError: the folder has a newer format, or another learner.

    Example:
        >>> from pathlib import Path
        >>> from tempfile import mkdtemp
        >>> from credo.sessions import ColumnOptions
        >>> folder = Path(mkdtemp())
        >>> text = "".join(f"{i % 3},{i % 7},{(i % 3) * (i % 7)}\\n" for i in range(300))
        >>> _ = (folder / "t.csv").write_text("user,a,y\\n" + text)
        >>> options = KeyedOptions("user", ColumnOptions("y", task="regression"))
        >>> result = learn_keyed(str(folder / "t.csv"), folder / "run", options)
        >>> result.metrics["keys"], result.metrics["rows"]
        (3, 300)
    """
    folder = place_of(folder, "folder")
    if isinstance(folder, Address) and folder.private and options.workers:
        raise CredoError(f"workers do not see {folder}: choose a folder, or the address of a store.")
    if isinstance(folder, Address) and isinstance(source, str) and source.startswith(SCHEME):
        raise CredoError(f"folder must be one of this machine for a topic of Kafka; got {folder}.")
    place = folder / STATE
    state = None
    if resume:
        if source == "-":
            raise CredoError("source must be a file to go on with; got standard input.", field="source")
        state = state_of(folder)
    elif place.exists():
        raise DataError(
            f"{folder} has a run already: {Named('resume')} goes on with it; or choose another folder."
        )
    strict = options.columns.strict
    rows = min(options.batch, defaults.LONGEST_CHUNK)
    with open_source(source, rows, strict, follow, say) as table:
        feed, settings = _begin(table, options) if state is None else _continued(state, place, options)
        by = f", standardised for each {options.key}" if feed.marks.own else ""
        say(f"learner: {settings.model}, {settings.description}, one for each {options.key}{by}")
        run = _Run(folder, options, feed, settings)
        try:
            if state is None:
                run.note()
            elif (behind := min(run.shards.lines())) < feed.line:
                feed = run.feed = _earlier(folder, behind, options)
                say(
                    f"the latest checkpoint of a shard is damaged or gone: rows after line {feed.line:,} are "
                    "learned again"
                )
            start = feed.line
            run.learn(table.after(feed, folder))
            metrics = run.metrics()
        finally:
            run.shards.close()
    if state is not None and feed.line == start:
        say(f"{table.name} has no row after line {start:,}, up to which {folder} has learned")
    return KeyedResult(folder, feed.line, metrics, feed.bad_rows, tuple(map(str, feed.bad)))


class _Run:
    """A run at work: its feed, its shards, and the file that says how far it is."""

    def __init__(self, folder: Place, options: KeyedOptions, feed: Feed, settings: Settings) -> None:
        self.folder = folder
        self.options = options
        self.feed = feed
        self.settings = settings
        self.generation = Generation(folder)
        self.noted = b""
        self.shards = _shards(_plan(folder, options, feed, settings), options)

    def learn(self, rows: Iterator[Chunk | None]) -> None:
        """Learn rows, with a checkpoint every now and then, if no more have come yet, and at the end."""
        since = 0
        said = True
        for batch in self.feed.batches(rows):
            if batch is not None:
                self.shards.apply(batch.shards(self.options.shards))
                since = since + 1
                said = False
            if since == self.options.checkpoint or (since and batch is None):
                self.save()
                since = 0
            if batch is None and not said:
                self.metrics()
                said = True
        if since:
            self.save()

    def metrics(self) -> dict[str, Any]:
        """Write the metrics beside the state, and return them."""
        found = self.shards.tally().summary()
        data = {"line": self.feed.line, "bad_rows": self.feed.bad_rows, **found}
        write_atomically(self.folder / "metrics.json", json_bytes(data))
        return found

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
        latest = archive.pack(MARK, header, archive.join(parts))
        if self.noted:
            write_atomically(self.folder / BEFORE, self.noted)
        write_atomically(self.folder / STATE, latest)
        self.noted = latest


def _shards(plan: Plan, options: KeyedOptions) -> Shards:
    """The shards, in this process or in others."""
    if not options.workers:
        return Here(plan, options.shards)
    hire = begin_process if options.ray is None else hire_actors(options.ray)
    return Workers(plan, options.shards, options.workers, hire)


def _plan(folder: Place, options: KeyedOptions, feed: Feed, settings: Settings) -> Plan:
    """The plan that all shards share."""
    encoding = feed.encoding
    scaled = np.zeros(encoding.schema.width, bool)
    scaled[encoding.encoder.places] = True
    return Plan(
        folder=folder,
        settings=dict(settings.to_dict()),
        inputs=encoding.schema.width,
        classes=encoding.classes,
        tile=options.tile,
        evict=options.evict,
        parquet=importlib.util.find_spec("pyarrow") is not None,
        scaled=tuple(scaled.tolist()) if feed.marks.own else None,
        late="refuse" if options.columns.strict else "now",
    )


def _begin(table: Source, options: KeyedOptions) -> tuple[Feed, Settings]:
    """The feed of a new run, whose columns are known by the first rows."""
    columns = options.columns
    for field, name in (("key", options.key), ("target", columns.target), ("time", options.time)):
        if name not in table.columns and (field, name) != ("time", None):
            listing = ", ".join(table.columns[:30])
            raise CredoError(
                f"{field} must be a column of {table.name}, one of {listing}; got {name!r}.", field=field
            )
    first = table.peek(defaults.SCHEMA_ROWS)
    drop = [*columns.drop, options.key]
    dates = False
    if options.time is not None:
        drop.append(options.time)
        cells = [to_list(chunk.columns.get(options.time, [None] * len(chunk))) for chunk in first]
        dates = are_dates(options.time, [cell for some in cells for cell in some])
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
    marks = Marks(options.key, options.time, dates, options.scale == "key")
    return Feed(encoding, marks, options.batch, strict=columns.strict), settings


def _continued(state: archive.Archive, place: Place, options: KeyedOptions) -> tuple[Feed, Settings]:
    """The feed and the settings of a run that goes on."""
    header = state.header
    here = options.words()
    for name, value in header["options"].items():
        if here[name] != value:
            raise CredoError(
                f"{name} was {value!r} when {place.parent} was begun, and cannot be changed; "
                f"got {here[name]!r}.",
                field=name,
            )
    with archive.refusing(place, "run of keyed learners"):
        meta = header["feed"]
        arrays = archive.split(state.arrays, ("encoding", "scaler"))
        encoding = restore(meta["encoding"], arrays["encoding"])
        if not isinstance(encoding, TableEncoding):
            raise FormatError(f"{place} must be of a table; got {type(encoding).__name__}.")
        scaler = Moments.from_arrays(arrays["scaler"], "scaler")
        feed = Feed(
            encoding,
            Marks(**meta["marks"]),
            options.batch,
            scaler,
            line=meta["line"],
            read=_pair(meta["read"]),
            files=[FileEnd(name, size, line, _pair(read)) for name, size, line, read in meta["files"]],
            strict=options.columns.strict,
        )
        feed.bad_rows = meta["bad"]
        return feed, Settings.from_dict(header["settings"])


def _earlier(folder: Place, line: int, options: KeyedOptions) -> Feed:
    """The feed of the checkpoint before the latest, which must not be after a line."""
    if line == 0:
        raise DataError(f"a shard of {folder} has no checkpoint that can be read: begin a new run.")
    feed, _ = _continued(state_of(folder, BEFORE), folder / BEFORE, options)
    if feed.line > line:
        raise DataError(
            f"a shard of {folder} has no checkpoint after line {line:,} that can be read, and the run none "
            f"before line {feed.line:,}: begin a new run."
        )
    return feed


def _pair(numbers: Sequence[int]) -> tuple[int, int]:
    first, second = map(int, numbers)
    return first, second
