"""Encoded rows on their way into a learner: they wait for units, and are learned or refused, in order."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from credo.adapt import Around, Bank
from credo.beliefs import embed
from credo.core.errors import FormatError
from credo.core.outlying import FAR, known_spread
from credo.core.records import replace
from credo.core.types import Array
from credo.learners import Info, Learner
from credo.live.passes import EncodedRows
from credo.live.recovery import Recovery
from credo.live.targets import SCALER, WARMUP, standardise
from credo.programs.packed import PackedBelief, PlainBelief
from credo.recipes.assembly import Belief, build
from credo.recipes.networks import Origin, with_waves
from credo.recipes.settings import Settings
from credo.recipes.tasks import RECIPES, slots
from credo.tables import Moments, ScaledTarget, Schema

__all__ = ["Early", "Part", "Runner"]

HASTY = 256
"""The rows of a bank that a program without optimisation learns, which is compiled in less than half of the
time: a short file is done before the usual program would be compiled.
"""


class Part(NamedTuple):
    """Consecutive rows that were learned together: which of those passed, their forecasts where the pass
    makes any, what was learned, how targets were standardised (None for classes), how many targets there were
    before, the weights (n,), None for 1, and the standardised targets (n,), None for others.
    """

    rows: slice
    outcome: Any
    info: Info
    scaling: ScaledTarget | None = None
    before: int = 0
    weights: np.ndarray | None = None
    targets: np.ndarray | None = None


class Early:
    """Rows that wait: inputs `x` (n, ...), float32, targets `y` (n,) in their own units, weights (n,), and
    the lengths of their time steps (n,), None for 1.
    """

    def __init__(self) -> None:
        self.x = np.zeros((0,), np.float32)
        self.y = np.zeros(0)
        self.weights = np.zeros(0)
        self.dts: np.ndarray | None = None

    def keep(self, x: np.ndarray, y: np.ndarray, weights: np.ndarray, dts: np.ndarray | None) -> None:
        """Keep rows, in their order."""
        if dts is not None:
            self.dts = dts if self.dts is None else np.concatenate([self.dts, dts])
        self.x = np.concatenate([self.x, x]) if len(self.y) else np.array(x)
        self.y = np.concatenate([self.y, y])
        self.weights = np.concatenate([self.weights, weights])

    def take(self) -> EncodedRows:
        """The rows, which are no longer kept."""
        rows = EncodedRows(self.x, self.y, None, self.weights, self.dts)
        self.__init__()  # type: ignore[misc]
        return rows

    def copy(self) -> Early:
        """The same rows, of which this one sees nothing more."""
        other = Early()
        other.x = self.x
        other.y = self.y
        other.weights = self.weights
        other.dts = self.dts
        return other

    def arrays(self) -> dict[str, np.ndarray]:
        """The state as arrays."""
        if not len(self.y):
            return {}
        rows: dict[str, np.ndarray] = {"x": self.x, "y": self.y, "w": self.weights}
        if self.dts is None:
            return rows
        return {**rows, "dts": self.dts}

    @staticmethod
    def from_arrays(arrays: Mapping[str, np.ndarray]) -> Early:
        """Restore what `arrays` gave: nothing if no row waits."""
        early = Early()
        if len(arrays.get("y", ())):
            y = np.array(arrays["y"], float)
            weights = np.array(arrays["w"], float)
            x = np.array(arrays["x"], np.float32)
            dts = np.array(arrays["dts"], float) if "dts" in arrays else None
            steps = np.zeros(y.shape) if dts is None else dts
            if y.ndim != 1 or not weights.shape == steps.shape == y.shape or len(x) != len(y):
                raise FormatError(
                    f"rows that wait must be as many as their targets, {y.shape}; got {x.shape}."
                )
            if not all(np.isfinite(one).all() for one in (x, y, weights, steps)) or (steps < 0).any():
                raise FormatError("rows that wait must be finite, and their time steps at least 0.")
            early.keep(x, y, weights, dts)
        return early


class Runner:
    """A learner, its belief, and what rows need before they get there.

    Targets are standardised by those before. The first `WARMUP`, or more if they are all the same, pass
    with the weight 0, and wait until the units are known. Results do not depend on how rows are grouped.
    `settings` are None for a `learner` and `prior` built elsewhere; `first` is how many classes, and `origin`
    which inputs the first rows showed, 0 or None if no more may come.
    """

    def __init__(
        self,
        settings: Settings | None,
        shape: tuple[int, ...],
        classes: int,
        first: int = 0,
        origin: Origin | None = None,
        *,
        chunk: int,
        learner: Learner[Any] | None = None,
        prior: Any = None,
    ) -> None:
        self.settings = settings
        self.chunk = chunk
        self.shape = shape
        self.classes = classes
        self.first = first
        self._own_prior = prior
        self.origin = origin
        self._late = 0
        if learner is None:
            learner, prior = self._build()
        self.learner: Learner[Any] = learner
        # one reference, so that another thread sees the belief of one row or of another
        self._now: PackedBelief | PlainBelief = PlainBelief(prior)
        self.scaler = SCALER.initial()
        self.early = Early()
        self.units = classes > 0
        draws = settings is not None and settings.draws
        self.key: Array | None = jax.random.key(settings.seed) if settings is not None and draws else None
        self.recovery = Recovery()
        self.rows_refused: int = 0

    @property
    def belief(self) -> Belief:
        """The belief after the latest row."""
        belief: Belief = self._now.tree
        return belief

    @belief.setter
    def belief(self, belief: Belief) -> None:
        self._now = PlainBelief(belief)

    @property
    def packed(self) -> PackedBelief:
        """The belief as compiled programs take it."""
        now = self._now
        if not isinstance(now, PackedBelief) or now.learner is not self.learner:
            self._now = now = PackedBelief.of(self.learner, now.tree, self.key)
        return now

    @packed.setter
    def packed(self, packed: PackedBelief) -> None:
        self._now = packed

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_now": PlainBelief(self.belief)}

    @functools.cached_property
    def own_units(self) -> bool:
        """Whether targets are learned in their own units, as counts are."""
        return self.settings is not None and self.settings.target.unit == "own"

    @property
    def prior(self) -> Any:
        """The belief before any row."""
        if self.settings is None:
            return self._own_prior
        scaling = SCALER.encode(self.scaler, np.zeros(1), learn=False)[1] if self.own_units else None
        return self._build(scaling)[1]

    def _build(self, scaling: ScaledTarget | None = None) -> tuple[Learner[Any], Any]:
        """The learner of the inputs and classes so far, and its prior, about the mean before a scaling."""
        assert self.settings is not None
        start = None if scaling is None else RECIPES[self.settings.task].start(float(scaling.location[0]))
        return build(self.settings, self.shape, self.classes, self.first, start, self.origin)

    def _pass(
        self, packed: PackedBelief, columns: EncodedRows, hasty: bool = False
    ) -> tuple[PackedBelief, Any, Info]:
        """Learn rows by a compiled program, or by one compiled in haste: the belief after them, their
        forecasts and infos.
        """
        raise NotImplementedError

    @functools.cached_property
    def begins_in_haste(self) -> bool:
        """Whether a program compiled in haste learns the first rows: that of a bank takes long to compile.

        On images it would take longer to run than to compile the usual one.
        """
        return self.settings is not None and self.settings.model.banked and len(self.shape) == 1

    def _pass_at(
        self, packed: PackedBelief, columns: EncodedRows, before: int
    ) -> tuple[PackedBelief, Any, Info]:
        """`_pass` for rows behind so many others: the first ones of a bank by the program that is compiled in
        haste. Which rows these are depends on their number alone, so that the bits repeat.
        """
        size = len(columns.x)
        first = min(max(HASTY - before, 0), size) if self.begins_in_haste else 0
        if first in (0, size):
            return self._pass(packed, columns, bool(first))
        between, *early = self._pass(packed, columns.part(slice(0, first)), True)
        after, *late = self._pass(between, columns.part(slice(first, size)))
        outcome, info = jax.tree.map(lambda *leaves: np.concatenate(leaves), early, late)
        return after, outcome, info

    def _make_room(self, classes: int) -> None:
        """Make room for so many classes, if there are fewer: a new class begins at the prior."""
        before = self.classes
        if classes <= before or self.settings is None:
            return
        self.classes = classes
        learner, fresh = self._build()
        self.learner = with_waves(learner, self.learner)
        if slots(self.first, before) == slots(self.first, classes):
            return
        self.belief = embed(self.belief, fresh)
        if self.settings.model.banked:
            # a member that fails begins again from the first weights of the wider network
            self.belief = _with_priors(self.belief, fresh)

    def _follow(self, schema: Schema) -> None:
        """Make room for the columns that have come, whose parameters begin at the prior."""
        if len(schema.late) == self._late:
            return
        gaps = schema.late_gaps(self._late)
        self._late = len(schema.late)
        more = schema.width - self.shape[0]
        self.shape = (schema.width,)
        if more:
            learner, fresh = self._build()
            self.learner = with_waves(learner, self.learner)
            self.belief = embed(self.belief, fresh)
        if len(self.early.y):
            self.early.x = np.pad(self.early.x, ((0, 0), (0, more)))
            self.early.x[:, gaps] = 1.0

    def _learn(
        self,
        x: np.ndarray,
        y: np.ndarray,
        weights: np.ndarray | None,
        note: Callable[[Part], None],
        *,
        online: bool = True,
        levels: np.ndarray | None = None,
        dts: np.ndarray | None = None,
    ) -> None:
        """Learn rows in order, weights above 0; if not `online`, targets are standardised by those so far.

        `note` is given each part once it is learned, before the next: should that one fail, what was noted is
        what the belief knows.
        """
        starts = _arrivals(y, self.classes) if self.classes else []
        every = EncodedRows(x, y, None, weights, dts, levels)
        whole = 0 < len(x) <= self.chunk and not starts
        for start, stop in [(0, len(x))] if whole else _cuts(len(x), self.chunk, starts):
            rows = every if stop - start == len(x) else every.part(slice(start, stop))
            if self.classes:
                self._make_room(int(y[start]) + 1)
                note(self._learn_rows(start, rows._replace(y=rows.y.astype(np.int32))))
            elif self.own_units:
                self._learn_counts(start, rows, note)
            else:
                self._learn_numbers(start, rows, note, online)

    def _learn_numbers(
        self, start: int, rows: EncodedRows, note: Callable[[Part], None], online: bool
    ) -> None:
        if not self.units or len(self.early.y):
            self._learn_early(self.scaler)  # what was loaded knows its units by its moments
        before = self.scaler
        size = len(rows.y)
        self.scaler, scaling = SCALER.encode(before, rows.y, learn=online, weights=rows.weights)
        if self.scaler.facts.restarts > before.facts.restarts:
            self._other_units()
        # all rows count, also those too far off for the moments, which may come in one call or in several
        first = 0 if self.units else _first_known(scaling)
        count = int(before.rows)
        if first:
            early = rows.part(slice(0, first))
            part = scaling.part(slice(0, first))
            own = np.ones(first) if early.weights is None else early.weights
            waiting = max(0, WARMUP - len(self.early.y))
            steps = early.dts
            waiting_steps = None if steps is None else steps[:waiting]
            self.early.keep(early.x[:waiting], early.y[:waiting], own[:waiting], waiting_steps)
            if steps is not None:  # time stands still until these rows are learned
                steps = np.where(np.arange(first) < waiting, 0.0, steps)
            passing = standardised(early._replace(weights=np.zeros(first), dts=steps), part)
            note(self._learn_rows(start, passing, part, count))
            known = SCALER.encode(before, early.y, weights=early.weights)[0] if first < size else self.scaler
            self._learn_early(known)
        if first < size:
            late = slice(first, None)
            rest, part = (rows.part(late), scaling.part(late)) if first else (rows, scaling)
            note(self._learn_rows(start + first, standardised(rest, part), part, count + first))

    def _learn_early(self, moments: Moments) -> None:
        """Learn the rows that waited, once they have said in which units the targets are."""
        self.units = self.units or _units_known(moments)
        if not self.units or not len(self.early.y):
            return
        waited = self.early.take()
        scaling = SCALER.encode(moments, waited.y, learn=False)[1]
        for start, stop in _cuts(len(waited.x), self.chunk, []):
            rows = slice(start, stop)
            part = scaling.part(rows)
            columns = standardised(waited.part(rows), part)
            self.packed, _, info = self._pass_at(self.packed, columns, self.recovery.seen)
            self._learned_late(Part(rows, None, info, part, 0, columns.weights))

    def _other_units(self) -> None:
        """Note that targets came in other units."""

    def _learned_late(self, part: Part) -> None:
        """Note what was learned of rows that waited."""

    def _learn_counts(self, start: int, rows: EncodedRows, note: Callable[[Part], None]) -> None:
        """Learn targets in their own units, once the first ones have said where their mean begins."""
        size = len(rows.y)
        for begin, stop in _cuts(size, size, [WARMUP - int(self.scaler.count[0])]):
            part = rows.part(slice(begin, stop))
            before = int(self.scaler.count[0])
            self.scaler, scaling = SCALER.encode(self.scaler, part.y, weights=part.weights)
            if before == WARMUP:
                learner, self.belief = self._build(scaling)
                self.learner = with_waves(learner, self.learner)
            warm = np.full(stop - begin, before >= WARMUP, np.float32)
            share = warm if part.weights is None else (warm * part.weights).astype(np.float32)
            columns = part._replace(y=part.y.astype(np.float32), weights=share)
            note(self._learn_rows(start + begin, columns, scaling, before))

    def _learn_rows(
        self, start: int, columns: EncodedRows, scaling: ScaledTarget | None = None, before: int = 0
    ) -> Part:
        size = len(columns.x)
        recovery = self.recovery
        later, outcome, info = self._pass_at(self.packed, columns, recovery.seen)
        if np.count_nonzero(info.ok) == size:
            recovery.streak = 0
        else:
            first = (later, outcome, info)
            later, outcome, info = recovery.go_on(self._pass_from(columns), first, self._begun, size)
            self.rows_refused += size - int(np.count_nonzero(info.ok))
        # after the pass, so that one that fails leaves the count and the belief of the row before it
        recovery.seen += size
        self._now = later
        rows = slice(start, start + size)
        return Part(rows, outcome, info, scaling, before, columns.weights, columns.targets)

    def _pass_from(
        self, columns: EncodedRows
    ) -> Callable[[PackedBelief, int], tuple[PackedBelief, Any, Info]]:
        """The pass over some rows from one of them on."""
        before = self.recovery.seen
        return lambda packed, first: self._pass_at(packed, columns.part(slice(first, None)), before + first)

    def _begun(self) -> PackedBelief:
        """The belief before any row."""
        return PackedBelief.of(self.learner, self.prior, self.key)


def standardised(rows: EncodedRows, scaling: ScaledTarget) -> EncodedRows:
    """Rows of numbers as they are learned: clipped, and with the weight (8 / z)^2 beyond 8 standard
    deviations.
    """
    exact = standardise(rows.y, scaling)
    share: np.ndarray = (FAR / np.maximum(np.abs(exact), FAR)) ** 2
    if rows.weights is not None:
        share = (rows.weights * share).astype(np.float32)
    return EncodedRows(rows.x, scaling.z.astype(np.float32), exact, share, rows.dts, rows.levels)


def _arrivals(y: np.ndarray, known: int) -> list[int]:
    """The rows of class numbers (n,) that are the first of a class beyond those known."""
    if not (y >= known).any():
        return []
    numbers, rows = np.unique(y, return_index=True)
    return sorted(rows[numbers >= known].tolist())


def _cuts(rows: int, chunk: int, starts: Sequence[int]) -> list[tuple[int, int]]:
    """The cuts of rows into chunks, which begin again at some of them; `starts` are in order."""
    ends = [0, *(row for row in starts if 0 < row < rows), rows]
    return [
        (start, min(start + chunk, stop))
        for begin, stop in itertools.pairwise(ends)
        for start in range(begin, stop, chunk)
    ]


def _units_known(moments: Moments) -> bool:
    """Whether enough targets, with some spread, were seen to say what the units are."""
    return bool(moments.count[0] >= WARMUP and known_spread(moments.mean(), moments.sd())[0])


def _first_known(scaling: ScaledTarget) -> int:
    """The number of rows up to the one that makes the units known; all of them where none does."""
    if scaling.known.any():
        return int(np.argmax(scaling.known))
    return len(scaling.known)


def _with_priors(belief: Any, fresh: Any) -> Any:
    """A belief whose bank, if it holds one, has the priors of another."""
    if isinstance(belief, Bank):
        return replace(belief, priors=fresh.priors)
    if isinstance(belief, Around):
        return replace(belief, belief=_with_priors(belief.belief, fresh.belief))
    return belief
