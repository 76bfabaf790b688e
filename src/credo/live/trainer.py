"""Learning from rows that are not scored, by their whole batch or one after the other, and forecasts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self, TypedDict

import jax
import numpy as np

from credo.adapt import Hypotheses, Monitoring, Resettable
from credo.core.archive import join, leaves_of, refill, split
from credo.core.constraints import require_possible
from credo.core.errors import DataError
from credo.core.forms import Seed, Size, require_form
from credo.core.outlying import known_spread
from credo.core.types import PyTree
from credo.learners import Info, Learner
from credo.live import passes
from credo.live.change_steps import collect
from credo.live.encoding import GrowingEncoder
from credo.live.passes import CHUNK, Ask, EncodedRows
from credo.live.recovery import Recovery, SavedRecovery
from credo.live.runner import Early, Part, Runner
from credo.programs.packed import PackedBelief
from credo.recipes.assembly import inputs_fit
from credo.recipes.networks import Origin
from credo.recipes.settings import Settings
from credo.tables import Chunk, Encoder, EncoderState, Moments, Schema

__all__ = ["Trainer"]


class _SavedTrainer(TypedDict):
    """The result of `summary`."""

    schema: dict[str, Any]
    clip: float
    classes: Size
    settings: dict[str, Any] | None
    seed: Seed | None
    units: bool
    seen: int
    refused: int
    log_evidence: float
    changes: list[int]
    recovery: SavedRecovery


class Trainer(Runner):
    """A learner with all scaling around it, which learns the rows of a table without scoring them.

    A `Session` scores each row before it learns from it. A trainer leaves that out, takes weights, and can
    standardise by a whole batch of rows. Its targets are numbers or class numbers, apart from the rows.

    Arguments:
        schema: what the columns mean; its target is not used.
        clip: the largest size of a standardised number.
        classes: the number of classes, 0 for a regression.
        settings: the settings of the learner; None for a learner built elsewhere.
        learner, prior: a learner built elsewhere, and its prior belief. Its rows have no feature for missing
            cells that columns share.
        seed: the seed of learners that draw; None for one that draws nothing.

    Attributes:
        belief: the belief so far.
        units: whether the units of the targets are known; they are after a batch.
        seen: how many rows there were, those that wait among them.
        log_evidence: the sum of the log evidences of rows, times their weights, in the target's own units.
        changes: the rows, from 1, at which a change was reported.
        rows_refused: how many rows were refused, since the belief would not have been finite.

    Raises:
        DataError: the learner takes rows of another number of inputs.

    Example:
        >>> from credo.sessions import Options, resolve
        >>> from credo.tables.schema import ColumnSpec, TargetSpec
        >>> schema = Schema(TargetSpec("y", "regression"), (ColumnSpec("a", "numeric"),))
        >>> settings = resolve(Options(model="linear"), "regression", (2,), 0)
        >>> trainer, x = Trainer(schema, 3.0, 0, settings), np.arange(30.0)
        >>> rows, y = [trainer.encoder.prepare_numbers(x[:, None])], 5.0 * x
        >>> trainer.standardise(rows, y)
        >>> trainer.learn(rows, y, online=False)
        >>> location, scale = trainer.location_scale
        >>> abs(location + scale * float(trainer.forecast(rows, passes.moments)[0][10]) - 50.0) < 1.0
        True
    """

    def __init__(
        self,
        schema: Schema,
        clip: float,
        classes: int,
        settings: Settings | None = None,
        *,
        learner: Learner[Any] | None = None,
        prior: Any = None,
        seed: int | None = None,
    ) -> None:
        self.table = GrowingEncoder(schema, clip)
        self.seed = seed
        self._built = settings is not None
        origin = Origin(schema.first_width, schema.first_width) if self._built else None
        shape = (len(self.features),)
        super().__init__(settings, shape, classes, 0, origin, chunk=CHUNK, learner=learner, prior=prior)
        self._late = len(schema.late)
        self.table.admit_width = self._admits
        self.key = None if seed is None else jax.random.key(seed)
        if settings is None:
            self._require_fit()
        self.seen = 0
        self.log_evidence = 0.0
        self.changes: tuple[int, ...] = ()

    @property
    def encoder(self) -> Encoder:
        """The encoding that turns cells into numbers."""
        return self.table.encoder

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the inputs."""
        schema = self.table.schema
        if self._built:
            return schema.features
        return tuple(one for column in schema.columns for one in column.features)

    def take_columns(self, rows: Iterable[Chunk]) -> None:
        """Take in all columns that some rows have values for, before any of these is learned.

        Arguments:
            rows: the rows, in chunks.
        """
        if any(column.only is not None for column in self.table.schema.dropped):
            for chunk in rows:
                self.table.wake_all(chunk)
            self._follow(self.table.schema)

    def copy(self) -> Trainer:
        """A trainer that goes on from here, of which this one sees nothing."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        recovery = self.recovery
        other.early = self.early.copy()
        other.table = self.table.copy()
        other.table.admit_width = other._admits
        other.recovery = Recovery(recovery.rows, recovery.streak, recovery.seen)
        return other

    def standardise(self, rows: Iterable[Chunk], y: np.ndarray, weights: np.ndarray | None = None) -> None:
        """Take the moments of a whole batch, by which its rows and targets are then standardised.

        Arguments:
            rows: the rows, in chunks.
            y: their targets (n,), numbers or class numbers.
            weights: their weights (n,), above 0; None for 1.
        """
        numbers = [self.encoder.complete(chunk).numbers for chunk in rows]
        self.table.state = EncoderState(Moments.of(np.concatenate(numbers), weights))
        if not self.classes:
            self.scaler = Moments.of(np.asarray(y, float)[:, None], weights)
            self.units = True

    def learn(
        self,
        rows: Iterable[Chunk],
        y: np.ndarray,
        weights: np.ndarray | None = None,
        *,
        online: bool = True,
        again: bool = False,
    ) -> None:
        """Learn rows, in order.

        Arguments:
            rows: the rows, in chunks.
            y: their targets (n,), numbers or class numbers.
            weights: their weights (n,), above 0; None for 1.
            online: whether each row is standardised by the rows before it; otherwise by those of the batch.
            again: whether the rows were learned before, so that they count neither as seen nor as evidence.

        Raises:
            DataError: a cell is not of the kind of its column; nothing can be learned from its chunk.
        """
        for chunk, part in self._chunks(rows, grow=True):
            self._follow(self.table.schema)
            some = None if weights is None else weights[part]
            after, x = self._encode(chunk, online, some)
            before = self.seen, self.log_evidence, self.changes
            self._learn(x, y[part], some, self._note, online=online)
            self.table.go_on(after)
            self.seen += len(x)
            if again:
                self.seen, self.log_evidence, self.changes = before

    def _note(self, part: Part) -> None:
        """Add the evidence of rows, and the changes that were reported of them."""
        self._count(part)
        if part.info.extras is not None:
            alarms = np.flatnonzero(part.info.extras.alarm)
            self.changes += tuple((self.seen + part.rows.start + 1 + alarms).tolist())

    def _count(self, part: Part) -> None:
        """Add the evidence of rows, in the target's own units."""
        evidence = np.asarray(part.info.log_evidence, float)
        evidence = evidence if part.scaling is None else evidence - np.log(part.scaling.scale)
        evidence = evidence if part.weights is None else part.weights * evidence
        learned = evidence[np.asarray(part.info.ok)]
        # a running sum adds row by row, so that groups of rows change no bit
        self.log_evidence = float(np.cumsum(np.append(self.log_evidence, learned))[-1])

    _learned_late = _count

    def _pass(
        self, packed: PackedBelief, columns: EncodedRows, hasty: bool = False
    ) -> tuple[PackedBelief, None, Info]:
        reports = collect if issubclass(packed.form.kind, Hypotheses | Monitoring | Resettable) else None
        count = len(columns.x)
        weights = np.ones(count, np.float32) if columns.weights is None else columns.weights
        rows = (columns.x, columns.y, np.asarray(weights, np.float32))
        after, info = passes.learn_unscored(packed, rows, reports, hasty)
        return after, None, info

    def forecast(
        self, rows: Iterable[Chunk], ask: Ask, y: np.ndarray | None = None, levels: tuple[float, ...] = (0.5,)
    ) -> Any:
        """Forecast rows. Nothing is learned.

        Arguments:
            rows: the rows, in chunks.
            ask: what is asked of each forecast, in units of the standardised target.
            y: a number of each row that `ask` is given, standardised as the targets are; None for 0.
            levels: the probabilities that `ask` is given.

        Returns:
            The answers, with a leading axis N.

        Raises:
            DataError: a cell is not of the kind of its column.
        """
        answers: list[PyTree] = []
        packed = self.packed
        probabilities = np.asarray(levels, np.float32)
        for chunk, part in self._chunks(rows, grow=False):
            x = self._encode(chunk, False, None)[1]
            own = np.zeros(len(x)) if y is None else y[part]
            own = own.astype(np.int32 if self.classes else np.float32)
            for start in range(0, len(x), CHUNK):
                some = slice(start, start + CHUNK)
                answers.append(passes.ask_rows(packed, x[some], own[some], probabilities, ask))
        return jax.tree.map(lambda *parts: np.concatenate(parts), *answers)

    @property
    def location_scale(self) -> tuple[float, float]:
        """The mean and the spread of the targets so far, which are 0 and 1 of the standardised target."""
        location = self.scaler.mean()[0]
        spread = self.scaler.sd()[0]
        return float(location), float(spread) if known_spread(location, spread) else 1.0

    def _chunks(self, rows: Iterable[Chunk], *, grow: bool) -> Iterator[tuple[Chunk, slice]]:
        start = 0
        for chunk in rows:
            for piece in self.table.pieces(chunk) if grow else (chunk,):
                yield piece, slice(start, start + len(piece))
                start += len(piece)

    def _admits(self, width: int) -> bool:
        """Whether there may be so many features."""
        settings = self.settings
        return settings is not None and inputs_fit(settings, (width,), self.classes, 0, self.origin)

    def _encode(self, chunk: Chunk, online: bool, weights: np.ndarray | None) -> tuple[Any, np.ndarray]:
        after, x, _, report = self.encoder.encode(
            self.table.state, chunk, online, need_target=False, weights=weights
        )
        if report.bad:
            raise DataError(f"{report.bad[0]}.")
        return after, x[:, : len(self.features)]

    def _require_fit(self) -> None:
        row = np.zeros(len(self.features), np.float32)
        y = np.int32(0) if self.classes else np.float32(0)
        try:
            jax.eval_shape(lambda: self.learner.step(self.belief, row, y, key=self.key))
        except Exception as error:
            first = str(error).strip().splitlines()[0][:200] if str(error).strip() else type(error).__name__
            raise DataError(
                f"learner must take rows of {len(row)} inputs ({', '.join(self.features[:10])}"
                f"{', ...' if len(row) > 10 else ''}); with such a row it says: {first.rstrip('.')}.",
                field="learner",
            ) from error

    def summary(self) -> dict[str, Any]:
        """The settings of a trainer, and its counts, as JSON data."""
        return {
            "schema": self.table.schema.to_dict(),
            "clip": self.encoder.clip,
            "classes": self.classes,
            "settings": None if self.settings is None else self.settings.to_dict(),
            "seed": self.seed,
            "units": self.units,
            "seen": self.seen,
            "refused": self.rows_refused,
            "log_evidence": self.log_evidence,
            "changes": list(self.changes),
            "recovery": self.recovery.to_dict(),
        }

    def arrays(self) -> dict[str, np.ndarray]:
        """The moments, the rows that wait, and the prior of a learner that was built elsewhere."""
        return join(
            {
                "inputs": self.table.state.arrays(),
                "scaler": self.scaler.arrays(),
                "waiting": self.early.arrays(),
                "prior": {} if self.settings is not None else leaves_of(self.prior),
            }
        )

    @classmethod
    def restore(
        cls, saved: Mapping[str, Any], named: Mapping[str, np.ndarray], learner: Learner[Any], belief: Any
    ) -> Self:
        """The trainer of which `summary` and `arrays` were saved, with its learner and belief."""
        require_form(saved, _SavedTrainer, "trainer")
        parts = split(named, ("inputs", "scaler", "waiting", "prior"))
        settings = None if saved["settings"] is None else Settings.from_dict(saved["settings"])
        prior = None
        if settings is None:
            prior = refill(belief, parts["prior"], "prior")
            require_possible(prior, "prior")
        schema = Schema.from_dict(saved["schema"])
        seed = saved["seed"]
        trainer = cls(
            schema, saved["clip"], saved["classes"], settings, learner=learner, prior=prior, seed=seed
        )
        trainer.belief = belief
        trainer.table.state = EncoderState.from_arrays(parts["inputs"])
        trainer.scaler = Moments.from_arrays(parts["scaler"], "scaler")
        trainer.early = Early.from_arrays(parts["waiting"])
        trainer.units = saved["units"]
        trainer.seen = saved["seen"]
        trainer.rows_refused = saved["refused"]
        trainer.log_evidence = saved["log_evidence"]
        trainer.changes = tuple(saved["changes"])
        trainer.recovery = Recovery.from_dict(saved["recovery"])
        return trainer
