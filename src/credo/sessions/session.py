"""A learner at work on a stream of rows: encoding, scaling, belief and scores.

Forecasts of rows that are not learned from, in the target's own units.

A session in a file: the learner, the settings and counts as JSON, and the state as arrays.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeAlias, TypeVar, Unpack, cast

import jax
import numpy as np
from numpy.typing import ArrayLike

from credo.core import forks
from credo.core.archive import join as join_arrays
from credo.core.archive import refusing, split
from credo.core.errors import CredoError, FormatError, require_representable
from credo.core.locked_calls import Turns, in_turn
from credo.core.names import ForecastName
from credo.learners import Info
from credo.live import passes
from credo.live.change_steps import Steps, collect, join
from credo.live.clock import require_times, steps_after, steps_between
from credo.live.encoding import OTHER_UNITS, Block, Encoding, TableEncoding, members_at
from credo.live.intake import Rows, blocks_of, first_chunks, segments
from credo.live.passes import EncodedRows, forecast_rows
from credo.live.recovery import Recovery
from credo.live.restoring import restore
from credo.live.runner import Early, Part, Runner
from credo.live.targets import SCALER, WARMUP, baseline_sd, beside_baseline, own_log_prob, standardise
from credo.metrics import Scores, normal_crps, row_losses
from credo.programs.packed import PackedBelief
from credo.recipes.assembly import fits, inputs_fit
from credo.recipes.defaults import TABLE_CHUNK
from credo.recipes.options import Options, OptionWords, TaskName
from credo.recipes.resolution import input_clip, resolve
from credo.recipes.settings import Settings
from credo.sessions.change_tally import ChangeTally
from credo.sessions.fitting import NAMES, State, require_fitting
from credo.sessions.places import Progress
from credo.sessions.tally import Tally
from credo.streams import checkpoint, to_scores
from credo.streams.scoring import Outcome
from credo.tables import Moments, ScaledTarget, infer_schema

__all__ = ["Columns", "Forecasts", "Session", "forecast_blocks", "in_columns", "inverse", "read", "write"]

FORMAT = 1
"""The number of the format; it grows when older readers could misread a file."""


def write(path: str | os.PathLike[str], state: State) -> Path:
    """Write a session to a file, completely or not at all; a DataError if it cannot be written."""
    meta = {
        "session": FORMAT,
        "settings": state.settings.to_dict(),
        "encoding": state.encoding.to_dict(),
        "counters": {"read": state.rows_read, "used": state.rows_used, "refused": state.rows_refused},
        "missing": dict(sorted(state.missing.items())),
        "unseen": dict(sorted(state.unseen.items())),
        "progress": dataclasses.asdict(state.progress),
        "recovery": state.recovery.to_dict(),
        "places": [dataclasses.asdict(place) for place in state.places],
    }
    if state.clock is not None:
        meta["clock"] = state.clock
    arrays = {
        "encoding": state.encoding.arrays(),
        "scaler": state.scaler.arrays(),
        "tally": state.tally.arrays(),
        "changes": {} if state.changes is None else state.changes.arrays(),
        "early": state.early.arrays(),
    }
    return checkpoint.save(path, state.learner, state.belief, meta=meta, arrays=join_arrays(arrays))


def read(path: str | os.PathLike[str]) -> State:
    """Read a session back; refusals are those of `Session.load`."""
    with refusing(path, "session"):
        saved = checkpoint.read(path)
        state = _restored(saved, path)
        require_fitting(state)
    return state


def _restored(saved: checkpoint.Saved, path: str | os.PathLike[str]) -> State:
    meta = saved.meta
    if meta.get("session") != FORMAT:
        author = "by another version of credo" if "session" in meta else "by a program that kept no session"
        raise FormatError(f"{path} was saved {author}; only a session of this version can be continued.")
    arrays = split(saved.arrays, ("encoding", "scaler", "tally", "changes", "early"))
    settings = Settings.from_dict(meta["settings"])
    counts = meta["counters"]
    encoding = restore(meta["encoding"], arrays["encoding"])
    bank = members_at(settings, encoding)
    had = np.size(arrays["changes"].get("failures", ())) if bank else 0
    if had and had != len(bank):
        raise FormatError(
            f"{path} has a bank of {had} members, and the bank of this version of credo has {len(bank)}: "
            "learn its rows again, or continue with the version that saved it."
        )
    return State(
        settings,
        encoding,
        saved.learner,
        saved.belief,
        Moments.from_arrays(arrays["scaler"], "scaler"),
        Tally.from_arrays(settings.task, arrays["tally"]),
        ChangeTally.from_arrays(settings.drift, arrays["changes"], [str(member) for member in bank]),
        Progress(**meta["progress"]),
        [Progress(**place) for place in meta["places"]],
        rows_read=counts["read"],
        rows_used=counts["used"],
        rows_refused=counts["refused"],
        missing=Counter(meta["missing"]),
        unseen=Counter(meta["unseen"]),
        recovery=Recovery.from_dict(meta["recovery"]),
        early=Early.from_arrays(arrays["early"]),
        clock=meta.get("clock"),
    )


Column: TypeAlias = np.ndarray | None
"""The numbers of n rows, or None where there are none."""

Columns: TypeAlias = tuple[Column, Column, Column, Column, Column]
"""The columns of a forecast: `probs`, `mean`, `sd`, `quantiles` and `nlpd`."""


class Forecasts(NamedTuple):
    """Forecasts of n rows in the target's own units: class probabilities, or mean, sd and quantiles.

    Attributes:
        lines: the lines of the rows (n,), from 1; rows that could not be encoded are left out.
        classes: the class labels, in the order of `probs`; empty for a regression.
        probs: class probabilities (n, C).
        mean: the predictive means (n,).
        sd: the predictive standard deviations (n,).
        quantiles: the quantiles (n, levels), or None if no levels were asked for.
        targets: what was observed (n,), class numbers or numbers, where the rows were learned from.
        nlpd: their scores, -log p(target) (n,); NaN for the first numbers, whose units are not known yet.

    Example:
        >>> Forecasts(np.array([1]), ("no", "yes"), np.array([[0.2, 0.8]])).labels
        ['yes']
    """

    lines: np.ndarray
    classes: tuple[str, ...] = ()
    probs: np.ndarray | None = None
    mean: np.ndarray | None = None
    sd: np.ndarray | None = None
    quantiles: np.ndarray | None = None
    targets: np.ndarray | None = None
    nlpd: np.ndarray | None = None

    @property
    def labels(self) -> list[str]:
        """The most probable class of each row; empty for a regression."""
        if self.probs is None:
            return []
        return [self.classes[top] for top in self.probs.argmax(axis=1)]


def forecast_blocks(
    packed: PackedBelief,
    blocks: Sequence[Block],
    chunk: int,
    classes: tuple[str, ...],
    moments: Moments | None,
    levels: Sequence[float],
    clock: float | None = None,
) -> Forecasts:
    """Forecast encoded rows, with class labels or, for numbers, the moments of the targets so far (None if
    these are not standardised) and the probabilities of quantiles. Rows with times are forecast for then, by
    a belief of the time `clock`.
    """
    lines = _one_array([block.lines for block in blocks] or [np.zeros(0, int)])
    probabilities = None if classes else np.asarray(levels, np.float32)
    parts: list[tuple[np.ndarray, ...]] = []
    for block in blocks:
        for start in range(0, len(block), chunk):
            x = block.x[start : start + chunk]
            times = block.times
            dts = None if times is None else steps_after(times[start : start + chunk], clock)
            ahead = None if dts is None else dts.astype(np.float32)
            parts.append(forecast_rows(packed, x, chunk, probabilities, ahead))
    if not parts:
        return Forecasts(lines, classes)
    columns = [_one_array(column) for column in zip(*parts, strict=True)]
    if classes:
        return Forecasts(lines, classes, columns[0][:, : len(classes)])
    mean, sd, *rest = columns
    quantiles = rest[0] if rest else None
    if moments is not None:
        mean, sd = SCALER.inverse(moments, mean, sd)
        quantiles = None if quantiles is None else SCALER.inverse(moments, quantiles, quantiles)[0]
    return Forecasts(lines, (), None, mean, sd, quantiles)


def _one_array(parts: Sequence[np.ndarray]) -> np.ndarray:
    if len(parts) == 1:
        return parts[0]
    return np.concatenate(parts)


def inverse(outcome: Outcome, scaling: ScaledTarget) -> tuple[Column, Column, Column]:
    """Mean, sd and quantiles of n standardised targets in their own units; NaN for rows not scored yet."""
    known = scaling.known
    mean, sd = scaling.inverse(np.asarray(outcome.mean), np.asarray(outcome.sd))
    quantiles = None
    if outcome.quantiles is not None:
        location = scaling.location[:, None]
        scale = scaling.scale[:, None]
        quantiles = np.where(known[:, None], location + scale * np.asarray(outcome.quantiles, float), np.nan)
    if np.count_nonzero(known) < len(known):
        mean = np.where(known, mean, np.nan)
        sd = np.where(known, sd, np.nan)
    return mean, sd, quantiles


def in_columns(
    lines: np.ndarray, classes: tuple[str, ...], parts: Sequence[Columns], targets: np.ndarray
) -> Forecasts:
    """The forecasts of several chunks, one after the other; the arguments are those of `Forecasts`."""

    def joined(parts: Sequence[Column]) -> Column:
        present = [part for part in parts if part is not None]
        if len(present) > 1:
            return np.concatenate(present)
        return next(iter(present), None)

    wide = [(_wide(probs, len(classes)), *rest) for probs, *rest in parts]
    columns = wide[0] if len(wide) == 1 else map(joined, zip(*wide, strict=True))
    probs, mean, sd, quantiles, nlpd = columns
    return Forecasts(lines, classes, probs, mean, sd, quantiles, targets, nlpd)


def _wide(probs: Column, classes: int) -> Column:
    """Probabilities with a column for every class; those of a class that had not come are 0."""
    if probs is None or probs.shape[1] == classes:
        return probs
    return np.pad(probs, ((0, 0), (0, classes - probs.shape[1])))


class FrozenSession:
    """A session at one moment, as `Session.freeze` gives it.

    Arguments:
        parts: what a `State` holds beside the belief.
        packed: the learner and its belief.
    """

    def __init__(self, parts: Mapping[str, Any], packed: PackedBelief) -> None:
        changing = ("tally", "changes", "progress", "places", "missing", "unseen")
        kept = {name: copy.deepcopy(parts[name]) for name in changing}
        kept |= {"encoding": copy.copy(parts["encoding"]), "early": parts["early"].copy()}
        kept["recovery"] = Recovery.from_dict(copy.deepcopy(parts["recovery"].to_dict()))
        self._parts = {**parts, **kept}
        self._packed = packed

    @property
    def rows_used(self) -> int:
        """The number of rows learned from."""
        rows: int = self._parts["rows_used"]
        return rows

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write it to a file, as `Session.save` does; equal rows give equal files.

        Arguments:
            path: the file.

        Raises:
            DataError: the file cannot be written.
        """
        return write(path, State(**self._parts, belief=self._packed.tree))


M = TypeVar("M", bound=Callable[..., Any])
"""A method."""


class View(NamedTuple):
    """A belief, how rows are encoded, the labels of the classes (none for numbers), and the moments of the
    targets, None if these are forecast as they come; and the time of the latest row, and whether rows have
    times, None if there are none.
    """

    packed: PackedBelief
    encoding: Encoding
    classes: tuple[str, ...]
    moments: Moments | None
    clock: float | None
    timed: bool | None

    def forecast(
        self, rows: Rows, chunk: int, levels: Sequence[float], times: ArrayLike | None = None
    ) -> Forecasts:
        """Forecast rows in the target's own units."""
        given = rows.times if isinstance(rows, Block) else times
        ahead = require_times(given, self.clock, self.timed, ordered=False)
        blocks = list(blocks_of(rows, self.encoding, learn=False, need_target=False, times=ahead))
        return forecast_blocks(self.packed, blocks, chunk, self.classes, self.moments, levels, self.clock)


def changing(method: M) -> M:
    """A method that changes a session, in its turn, and leaves a `View` to threads that do not wait."""

    @functools.wraps(method)
    def leaving_a_view(self: Any, *args: Any, **kwargs: Any) -> Any:
        if forks.forked:  # before the lock, which another thread of the parent may have had
            forks.require_threads()
        with self._turns.lock:
            try:
                return method(self, *args, **kwargs)
            finally:
                self._look()

    return cast(M, leaving_a_view)


MOST = 256
"""The most calls that may wait: to count a row costs as much as to count many."""


class Learned(NamedTuple):
    """Consecutive rows as the learner forecast and learned them: with their targets `y` (n,), in own units,
    and for numbers also how these were standardised, which of them are scored, how many came `before` each,
    and by which standardised targets the forecasts are judged (None: as they come).
    """

    outcome: Outcome
    info: Info
    y: np.ndarray
    scaling: ScaledTarget | None = None
    known: np.ndarray | None = None
    before: np.ndarray | None = None
    targets: np.ndarray | None = None


class Scored(NamedTuple):
    """Scores of consecutive rows, as the learner has them; of numbers also how the targets were standardised,
    how many came `before` each, and log densities in own units (None: as scored).
    """

    scores: Scores
    scaling: ScaledTarget | None = None
    before: np.ndarray | None = None
    log_prob: np.ndarray | None = None


class Counting:
    """A `Tally` and, where the learner reports changes, a `ChangeTally`: of single rows they are brought up
    to date by `settle`, and by every 256th. What is counted does not depend on when.
    """

    def __init__(self, tally: Tally, changes: ChangeTally | None) -> None:
        self.tally = tally
        self.changes = changes
        self._waiting: list[Learned] = []

    def add(self, rows: Learned) -> None:
        """Take in rows, which are scored when they are counted: many at once cost little more than one."""
        self._waiting.append(rows)
        if len(rows.y) > 1 or len(self._waiting) >= MOST:
            self.settle()

    def settle(self) -> Counting:
        """Score and count all that waits; this."""
        if not self._waiting:
            return self
        rows = _joined(self._waiting)
        self._waiting = []
        scored = scored_of(rows, self.tally)
        if len(scored.scores):
            add_scored(self.tally, scored)
        if self.changes is not None:
            self.changes.add(rows.info.extras)
        return self


def _joined(parts: Sequence[Learned]) -> Learned:
    """The rows of several calls as those of one."""
    if len(parts) == 1:
        return parts[0]
    told = [(one.outcome, one.info) for one in parts]
    outcome, info = jax.tree.map(lambda *leaves: np.concatenate(leaves), *told)
    y = np.concatenate([one.y for one in parts])
    scalings = [one.scaling for one in parts if one.scaling is not None]
    if not scalings:
        return Learned(outcome, info, y)
    names = [field.name for field in dataclasses.fields(ScaledTarget)]
    scaling = ScaledTarget(*(np.concatenate([getattr(one, name) for one in scalings]) for name in names))
    known = np.concatenate([one.known for one in parts if one.known is not None])
    before = np.concatenate([one.before for one in parts if one.before is not None])
    judged = [one.targets for one in parts if one.targets is not None]
    targets = np.concatenate(judged) if judged else None
    return Learned(outcome, info, y, scaling, known, before, targets)


def scored_of(rows: Learned, tally: Tally) -> Scored:
    """The scores of rows that were learned, of the classes that a tally has so far."""
    if rows.scaling is None or rows.known is None or rows.before is None:
        return Scored(passes.of_classes(to_scores(rows.outcome, rows.info, rows.y), len(tally.counts)))
    known = rows.known
    every = np.count_nonzero(known) == len(known)
    scaling = rows.scaling if every else rows.scaling.part(known)
    scores = to_scores(rows.outcome, rows.info, rows.y, known)
    log_prob = None
    if tally.kind.standardised:
        targets = None if rows.targets is None else rows.targets[known]
        log_prob = own_log_prob(scores.log_prob, scaling, targets)
    return Scored(scores, scaling, rows.before[known], log_prob)


def add_scored(tally: Tally, scored: Scored) -> None:
    """Count rows beside the baseline before each of them."""
    tally.add(*_beside_baseline(scored, tally), _baseline_crps(scored, tally))


def _baseline_crps(scored: Scored, tally: Tally) -> np.ndarray | None:
    """The CRPS of the baseline for each row of a regression."""
    if scored.scaling is None or scored.before is None or not tally.kind.standardised:
        return None
    location = scored.scaling.location
    scale = scored.scaling.scale
    return normal_crps(np.asarray(scored.scores.y, float), location, baseline_sd(scale, scored.before))


def _beside_baseline(scored: Scored, tally: Tally) -> tuple[Scores, np.ndarray, np.ndarray]:
    """The scores, and the log probability and loss of the baseline for each row."""
    if scored.scaling is None or scored.before is None:
        return scored.scores, *tally.class_baseline(scored.scores.y)
    return beside_baseline(scored.scores, scored.scaling, scored.before, tally.kind, scored.log_prob)


class Session(Runner):
    """Everything that learning from a stream carries from one row to the next.

    Each row is forecast before it is learned from, and its forecast is scored beside a baseline (the running
    mean and spread of the targets, or the running frequencies of the classes). The scores are therefore about
    rows that were not known yet. `Session.from_rows` makes a session from the first rows of a table.

    Arguments:
        settings: how to learn.
        encoding: how rows become arrays.
        chunk: the number of rows in a compiled call; results do not depend on it.

    Attributes:
        learner, belief: the learner and its belief.
        tally: the scores so far.
        changes: the changes reported so far, where the drift is a wrapper.
        clock: the time of the latest row, None if rows have no times.
        rows_read, rows_used, rows_refused: how many rows were read, were learned from, and were refused
            because they would have given a belief that is not finite.
        missing, unseen: the numbers of cells without a value and of an unknown category, by column.
        progress, places: the places in the latest source and in earlier ones, which the caller sets.
        recovery: where the belief began again because it refused row after row.

    Cost: a row costs what the learner costs (see `credo.RecursiveLearner`); the scores take constant memory.

    Example:
        >>> rows = [{"a": float(i % 7), "b": "xyz"[i % 3], "y": 2.0 * (i % 7)} for i in range(60)]
        >>> session = Session.from_rows(rows, "y", model="linear")
        >>> _ = session.learn(rows)
        >>> forecasts = session.predict([{"a": 3.0, "b": "x"}], levels=(0.05, 0.95))
        >>> abs(float(forecasts.mean[0]) - 6.0) < 1.0, session.rows_used
        (True, 60)
    """

    def __init__(self, settings: Settings, encoding: Encoding, chunk: int = TABLE_CHUNK) -> None:
        shape = encoding.shape
        classes = len(encoding.classes)
        first = encoding.first
        super().__init__(settings, shape, classes, first, encoding.origin, chunk=chunk)
        self.settings: Settings = settings
        self._turns = Turns()
        self.encoding = encoding
        if isinstance(encoding, TableEncoding):
            encoding.limit(input_clip(settings))
            if encoding.first:
                encoding.admit = lambda classes: fits(
                    settings, encoding.shape, classes, encoding.first, encoding.origin
                )
            self._late = len(encoding.schema.late)
            encoding.admit_width = self._admits
        self.members = members_at(settings, encoding)
        changes = ChangeTally.of(settings.drift, [str(member) for member in self.members])
        self._counting = Counting(Tally(settings.task, len(encoding.classes)), changes)
        self.rows_read: int = 0
        self.rows_used: int = 0
        self.clock: float | None = None
        # after how many rows it is next noted how the weights settle; known between two such notes
        self._due = 0
        self.missing: Counter[str] = Counter()
        self.unseen: Counter[str] = Counter()
        self.progress = Progress()
        self.places: list[Progress] = []
        self._latest: View | None = None

    @staticmethod
    def create(
        encoding: Encoding, options: Options | None = None, *, ordered: bool = True, chunk: int = TABLE_CHUNK
    ) -> Session:
        """A session for data of a known encoding.

        Arguments:
            encoding: how rows become arrays.
            options: what the user chose; by default everything is chosen from the data.
            ordered: whether the rows are one stream, in which the past fades by default.
            chunk: rows in a compiled call.

        Raises:
            CredoError: an option is unknown or out of its range, or two do not fit together.
        """
        task = encoding.task
        shape = encoding.shape
        classes = len(encoding.classes)
        settings = resolve(options or Options(), task, shape, classes, ordered=ordered)
        return Session(settings, encoding, chunk)

    @staticmethod
    def from_rows(
        rows: Rows,
        target: str,
        *,
        task: TaskName | None = None,
        classes: Sequence[str] | None = None,
        drop: Sequence[str] = (),
        categorical: Sequence[str] = (),
        ordered: bool = True,
        chunk: int = TABLE_CHUNK,
        **options: Unpack[OptionWords],
    ) -> Session:
        """A session for a table, whose meaning is inferred from its first rows. Nothing is learned yet.

        Arguments:
            rows: a DataFrame, a list of dicts, a dict of columns, or a `Chunk`.
            target: the column to predict.
            task, classes, drop, categorical: see `credo.tables.infer_schema`.
            ordered: whether the rows are one stream, in which the past fades by default.
            chunk: rows in a compiled call.
            options: model, posterior, method, curvature, drift, prior_var, noise_var, learning_rate,
                iterations, seed and budget; see `Options`.

        Raises:
            DataError: a column is missing, or there is nothing to learn.
            CredoError: an option is unknown or out of its range, or two do not fit together.
        """
        schema = infer_schema(
            first_chunks(rows), target, task=task, classes=classes, drop=drop, categorical=categorical
        )
        return Session.create(TableEncoding(schema), Options(**options), ordered=ordered, chunk=chunk)

    @property
    def tally(self) -> Tally:
        """The scores so far."""
        return self._settled().tally

    @tally.setter
    def tally(self, tally: Tally) -> None:
        self._counting = Counting(tally, self._settled().changes)

    @property
    def changes(self) -> ChangeTally | None:
        """The changes reported so far, where the drift is a wrapper."""
        return self._settled().changes

    @in_turn
    def _settled(self) -> Counting:
        return self._counting.settle()

    @property
    def timed(self) -> bool | None:
        """Whether rows have times; None before the first row."""
        if self.clock is None and not self.rows_used:
            return None
        return self.clock is not None

    def _times(self, rows: Rows, times: ArrayLike | None) -> np.ndarray | None:
        """The times of rows that can be learned; others are refused, before anything is."""
        given = rows.times if isinstance(rows, Block) else times
        if given is not None:
            return require_times(given, self.clock, self.timed)
        if self.clock is not None:
            raise CredoError(
                "times must be given for all rows or for none; the earlier rows had them.", field="times"
            )
        return None

    def _admits(self, width: int) -> bool:
        """Whether there may be so many features."""
        classes = len(self.encoding.classes)
        return inputs_fit(self.settings, (width,), classes, self.encoding.first, self.encoding.origin)

    @property
    def uncertain(self) -> bool:
        """Whether the learner is a single one that keeps a posterior."""
        return self.settings.uncertain

    @functools.cached_property
    def regression(self) -> bool:
        """Whether numbers are predicted."""
        return not self.settings.target.classed

    @property
    def size(self) -> int:
        """The number P of parameters."""
        return passes.parameter_count(self.belief)

    @property
    def largest(self) -> int:
        """The number of parameters of the largest member of a bank, or of the learner."""
        return passes.largest_member(self.belief)

    @functools.cached_property
    def compare(self) -> tuple[ForecastName, ...]:
        """Further methods of forecasting that are scored beside the learner's own.

        The linearised forecast of a bank is that of its members as they compute it, before it is scaled.
        """
        if self.members:
            return ("linearized",)
        if self.uncertain:
            return ("plugin",)
        return ()

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"_latest": None}

    def _keep_up(self) -> None:
        """Make room for the columns that the encoding has taken in."""
        encoding = self.encoding
        if isinstance(encoding, TableEncoding) and len(encoding.schema.late) != self._late:
            self._follow(encoding.schema)

    def _make_room(self, classes: int) -> None:
        if self.classes and classes > self.classes:
            self.tally.widen(classes)
        super()._make_room(classes)

    def _look(self) -> View:
        """The state as it is now, in turn."""
        self._keep_up()
        classes = () if self.regression else self.encoding.classes
        if len(classes) > self.classes:
            self._make_room(len(classes))
        moments = None if self.own_units else self.scaler
        encoding = copy.copy(self.encoding)
        self._latest = View(self.packed, encoding, classes, moments, self.clock, self.timed)
        return self._latest

    def _view(self) -> View:
        """The state now or, while another thread changes it, before that change."""
        latest = self._latest
        # a reader waits for nobody where there is a view: while rows are learned, it gets the one before them
        if not self._turns.lock.acquire(blocking=latest is None):
            assert latest is not None
            return self._latest or latest
        try:
            return self._look()
        finally:
            self._turns.lock.release()

    def _other_units(self) -> None:
        if isinstance(self.encoding, TableEncoding):
            self.encoding.notify(OTHER_UNITS.format(f"the target {self.encoding.target!r}"))

    @changing
    def learn(
        self, rows: Rows, weights: ArrayLike | None = None, times: ArrayLike | None = None
    ) -> Steps | None:
        """Forecast, score and learn every row, in order.

        Arguments:
            rows: see `Rows`; rows without a target, or with text in a numeric column, are skipped.
            weights: how many equal rows each row counts as (n,), above 0; None counts each once. Scores count
                each once.
            times: when each row was observed (n,): what walks or forgets does so by the time since the row
                before, 0 at the first row. None for steps of 1. A session has times always or never.

        Returns:
            What was reported about changes, row by row, where the drift reports any and there were rows.

        Raises:
            DataError: a column is missing, weights are not above 0, or either are not as many as the rows.
            CredoError: times are not finite, go back, or are given where earlier rows had none.
        """
        clock = self._times(rows, times)
        steps: list[Steps] = []
        for block in blocks_of(rows, self.encoding, learn=True, weights=weights, times=clock):
            self._learn_block(block, steps)
        if len(steps) > 1:
            return join(steps)
        return steps[0] if steps else None

    @changing
    def forecast_then_learn(
        self,
        rows: Rows,
        levels: Sequence[float] = (),
        weights: ArrayLike | None = None,
        times: ArrayLike | None = None,
    ) -> tuple[list[Forecasts], Steps | None]:
        """`learn`, which also gives the forecast of each row, made before the row was learned from.

        These are the forecasts that are scored. A row without a usable target is forecast, too, as `predict`
        would do after the rows before it. Belief and scores are those of `learn`.

        Arguments:
            rows: see `Rows`.
            levels: the probabilities of the quantiles to give (regression).
            weights, times: as for `learn`.

        Returns:
            The forecasts, in the order of the rows, and what `learn` returns.

        Raises:
            DataError, CredoError: as for `learn`.

        Example:
            >>> rows = [{"a": float(i % 7), "y": 2.0 * (i % 7)} for i in range(60)]
            >>> session = Session.from_rows(rows, "y", model="linear")
            >>> (forecasts,), _ = session.forecast_then_learn(rows)
            >>> len(forecasts.lines), session.rows_used
            (60, 60)
        """
        forecasts: list[Forecasts] = []
        steps: list[Steps] = []
        asked = None
        if len(levels):
            require_representable("levels", levels)
            asked = np.asarray(levels, np.float32) if self.regression else None
        for block in segments(rows, self.encoding, weights, self._times(rows, times)):
            if not block.labelled:
                unlearned = self.predict(block, levels)
                if len(unlearned.lines):
                    forecasts.append(unlearned)
                continue
            columns: list[Columns] = []
            self._learn_block(block, steps, columns, asked)
            if columns:
                classes = () if self.regression else self.encoding.classes
                forecasts.append(in_columns(block.lines, classes, columns, block.y))
        return forecasts, join(steps) if steps else None

    def _learn_block(
        self,
        block: Block,
        steps: list[Steps],
        columns: list[Columns] | None = None,
        levels: np.ndarray | None = None,
    ) -> None:
        """Learn a block. `steps` are continued by what is reported about changes, and `columns` by the
        forecasts, where they are wanted, with quantiles if there are levels.
        """
        self.rows_read += block.read
        self.rows_used += len(block.y)
        if block.missing:
            self.missing.update(block.missing)
        if block.unseen:
            self.unseen.update(block.unseen)
        self._keep_up()
        size = len(block.lines)
        if not size:
            return
        dts = None
        if block.times is not None:
            dts = steps_between(block.times, self.clock)
            self.clock = float(block.times[-1])
        start = 0
        before = self.rows_used - size
        while start < size:
            if self._due <= before + start:
                self._due = Tally.next_mark(before + start)
            due = self._due
            rows = slice(start, min(due - before, size))
            y = block.y[rows]
            weights = None if block.weights is None else block.weights[rows]
            own = None if dts is None else dts[rows]
            note = functools.partial(self._note, y, steps, columns)
            self._learn(block.x[rows], y, weights, note, levels=levels, dts=own)
            start = rows.stop
            if before + start == due:
                self._counting.tally.mark(due, *passes.spread(self.packed))

    def _note(
        self, targets: np.ndarray, steps: list[Steps], columns: list[Columns] | None, part: Part
    ) -> None:
        """Note that a part of the rows with these targets was learned. `steps` and `columns`, where they are
        wanted, are continued by what was reported and by the forecasts in the target's own units.
        """
        y = targets[part.rows]
        rows = Learned(part.outcome, part.info, y)
        if part.scaling is not None:
            known = np.full(len(y), part.before >= WARMUP) if self.own_units else part.scaling.known
            # the members of a bank know of outliers themselves
            judged = None if self.members else part.targets
            before = part.before + np.arange(len(y))
            rows = Learned(part.outcome, part.info, y, part.scaling, known, before, judged)
        self._counting.add(rows)
        if self._counting.changes is not None:
            steps.append(part.info.extras)
        if columns is not None:
            columns.append(self._columns(rows))

    def _columns(self, rows: Learned) -> Columns:
        """The forecasts of rows in the target's own units."""
        scored = scored_of(rows, self._counting.tally)
        if rows.scaling is None or rows.known is None:
            nlpd = np.asarray(row_losses(scored.scores, "nlpd"), float)
            return scored.scores.probs, None, None, None, nlpd
        count = len(rows.y)
        units = rows.scaling
        if self.own_units:  # they are forecast as they come
            units = ScaledTarget(rows.y, np.zeros(count), np.ones(count), rows.known)
        log_prob = scored.log_prob
        nlpd = np.full(count, np.nan)
        nlpd[rows.known] = -(np.asarray(scored.scores.log_prob, float) if log_prob is None else log_prob)
        return None, *inverse(rows.outcome, units), nlpd

    @functools.cached_property
    def _step(self) -> passes.Score:
        """The step of a program at a row that is learned."""
        return passes.Score(self.compare, None if self._counting.changes is None else collect)

    def _pass(
        self, packed: PackedBelief, columns: EncodedRows, hasty: bool = False
    ) -> tuple[PackedBelief, Outcome, Info]:
        weights = columns.weights
        share = np.ones(len(columns.x), np.float32) if weights is None else np.asarray(weights, np.float32)
        dts = None if columns.dts is None else columns.dts.astype(np.float32)
        rows = (columns.x, columns.y, columns.targets, share, dts)
        levels = columns.levels
        after, (outcome, info) = packed.learn("score_rows", self._step, rows, self.chunk, levels, hasty=hasty)
        return after, outcome, info

    def predict(self, rows: Rows, levels: Sequence[float] = (), times: ArrayLike | None = None) -> Forecasts:
        """Forecast rows in the target's own units, at the present belief. Nothing is learned.

        It does not wait for another thread that learns: all its rows are forecast by the state before that.

        Arguments:
            rows: see `Rows`; the target may be absent, and rows with text in a numeric column are left out.
            levels: the probabilities of the quantiles to give (regression).
            times: when each row will be observed (n,), not before the latest row that was learned: the belief
                is moved to then. None forecasts by the belief of the latest row.

        Raises:
            DataError: a column is missing, or times are not as many as the rows.
            CredoError: times are not finite, go back, or are given where earlier rows had none.
        """
        forks.require_threads()
        require_representable("levels", levels)
        return self._view().forecast(rows, self.chunk, levels, times)

    @in_turn
    def test(self, rows: Rows, tally: Tally | None = None) -> Tally:
        """Score rows that are not learned from, beside the current baseline.

        Arguments:
            rows: see `Rows`.
            tally: the scores to add to; by default new ones.

        Returns:
            The scores.
        """
        self._keep_up()
        self._make_room(len(self.encoding.classes))
        tally = Tally(self.settings.task, len(self.encoding.classes)) if tally is None else tally
        for block in blocks_of(rows, self.encoding, learn=False):
            self._add_held_out(tally, block)
        return tally

    @in_turn
    def prepare(self, levels: Sequence[float] = (), *, timed: bool = False) -> None:
        """Compile all programs that learning from rows and forecasting them need. Nothing is learned.

        A service calls it before it answers, since the first row would otherwise wait for the compiler.

        Arguments:
            levels: the probabilities of the quantiles that will be asked for (regression).
            timed: whether rows will have times.

        Example:
            >>> rows = [{"a": float(i % 7), "y": 2.0 * (i % 7)} for i in range(60)]
            >>> session = Session.from_rows(rows, "y", model="linear")
            >>> session.prepare()
            >>> session.rows_used
            0
        """
        x = np.zeros((1, *self.encoding.shape), np.float32)
        one = np.ones(1, np.float32)
        asked = np.asarray(levels, np.float32)
        if self.regression:
            given = asked if len(levels) else None
            rows = EncodedRows(x, 0 * one, None if self.own_units else one, one, levels=given)
        else:
            rows = EncodedRows(x, np.zeros(1, np.int32))
        asked_to_learn = rows._replace(dts=one) if timed else rows
        for hasty in (True, False) if self.begins_in_haste else (False,):
            self._pass(self.packed, asked_to_learn, hasty)
        passes.spread(self.packed)
        block = Block(x, np.zeros(1), np.ones(1, int), 1)
        classes = () if self.regression else self.encoding.classes
        for times in (None, np.zeros(1)) if timed else (None,):
            asked_for = [dataclasses.replace(block, times=times)]
            forecast_blocks(self.packed, asked_for, self.chunk, classes, None, levels)

    def _add_held_out(self, tally: Tally, block: Block) -> None:
        """Score the rows of a block beside the baseline as it is now, and add the scores to a tally."""
        kind = self.settings.target
        counts = self.tally.counts
        chunk = self.chunk

        def judged(x: np.ndarray, y: np.ndarray, targets: np.ndarray) -> Scores:
            """The scores of at most a chunk of rows; `targets` are what their forecasts are judged by."""
            real: Any = passes.judge_rows(self.packed, x, targets, chunk, self.compare)
            fields = (real.mean, real.sd, real.log_prob, real.pit, real.probs, real.others)
            scores = Scores(y, *fields, real.log_prob, np.ones(len(x), bool))
            return dataclasses.replace(scores, compared=real.compared)

        for start in range(0, len(block), chunk):
            x = block.x[start : start + chunk]
            y = block.y[start : start + chunk]
            if kind.classed:
                share = (counts + 1) / (counts + 1).sum()
                scores = passes.of_classes(judged(x, y, y.astype(np.int32)), len(counts))
                tally.add(scores, np.log(share[y]), (share.argmax() != y).astype(float))
                continue
            scaling = SCALER.encode(self.scaler, y, learn=False)[1]
            scores = judged(x, y, standardise(y, scaling) if kind.standardised else y.astype(np.float32))
            add_scored(tally, Scored(scores, scaling, np.full(len(y), self.scaler.count[0])))

    @in_turn
    def metrics(self) -> dict[str, float]:
        """The scores so far, by name. `session.tally.baseline()` gives those of the baseline."""
        return self.tally.metrics(self.uncertain)

    @in_turn
    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the session to a file, completely or not at all.

        Arguments:
            path: the file; by custom it ends in `.credo`.

        Returns:
            The path.

        Raises:
            DataError: the file cannot be written.
        """
        return self.freeze().save(path)

    @in_turn
    def freeze(self) -> FrozenSession:
        """The session as it is now, which another thread may write while this one learns on.

        Example:
            >>> rows = [{"a": float(i % 7), "y": 2.0 * (i % 7)} for i in range(60)]
            >>> session = Session.from_rows(rows, "y", model="linear")
            >>> frozen, _ = session.freeze(), session.learn(rows)
            >>> frozen.rows_used, session.rows_used
            (0, 60)
        """
        return FrozenSession({name: getattr(self, name) for name in NAMES if name != "belief"}, self.packed)

    @classmethod
    def load(cls, path: str | os.PathLike[str], chunk: int = TABLE_CHUNK) -> Self:
        """Read a session back. It continues bit by bit as if it had never stopped.

        Arguments:
            path: a file that `save` or `credo learn` wrote.
            chunk: rows in a compiled call.

        Raises:
            DataError: there is no such file.
            FormatError: it is damaged, of another version, or does not hold a session.
        """
        state = read(path)
        session = cls(state.settings, state.encoding, chunk)
        for name in NAMES:
            if name not in ("tally", "changes"):
                setattr(session, name, getattr(state, name))
        session._counting = Counting(state.tally, state.changes)
        session.classes = 0 if session.regression else len(session.tally.counts)
        return session
