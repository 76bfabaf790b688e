"""A learner at work on a stream of rows: encoding, scaling, belief and scores."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import jax
import numpy as np

from credo.core.names import CurvatureName, ForecastName
from credo.metrics import Scores
from credo.sessions import defaults, passes, room, storage, targets
from credo.sessions.architecture import Network
from credo.sessions.assembly import build
from credo.sessions.change_steps import Steps, collect, join
from credo.sessions.change_tally import ChangeTally
from credo.sessions.counts import learn_counts
from credo.sessions.drift import Drift
from credo.sessions.encoding import Block, Encoding, TableEncoding
from credo.sessions.forecasts import Forecasts, forecast_blocks
from credo.sessions.held_out import score_held_out
from credo.sessions.intake import Rows, blocks_of, first_chunks
from credo.sessions.posterior import Posterior
from credo.sessions.resolution import resolve
from credo.sessions.settings import MethodName, NoiseVar, Options, Settings, TaskName
from credo.sessions.tally import Tally
from credo.streams import score_chunk, to_scores
from credo.tables import ScaledTarget, infer_schema

__all__ = ["Session"]

CHUNK = defaults.TABLE_CHUNK


class Session:
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
        rows_read, rows_used, rows_refused: how many rows were read, were learned from, and were refused
            because they would have given a belief that is not finite.
        missing, unseen: the numbers of cells without a value and of an unknown category, by column.
        progress: the position of a run over a file, which the caller sets.

    Cost: a row costs what the learner costs (see `credo.RecursiveLearner`); the scores take constant memory.

    Example:
        >>> rows = [{"a": float(i % 7), "b": "xyz"[i % 3], "y": 2.0 * (i % 7)} for i in range(60)]
        >>> session = Session.from_rows(rows, "y", model="linear")
        >>> _ = session.learn(rows)
        >>> forecasts = session.predict([{"a": 3.0, "b": "x"}], levels=(0.05, 0.95))
        >>> abs(float(forecasts.mean[0]) - 6.0) < 1.0, session.rows_used
        (True, 60)
    """

    def __init__(self, settings: Settings, encoding: Encoding, chunk: int = CHUNK) -> None:
        self.settings, self.encoding, self.chunk = settings, encoding, chunk
        self.learner, self.belief = build(settings, encoding.shape, len(encoding.classes), encoding.first)
        room.limit(settings, encoding)
        self.key = jax.random.key(settings.seed) if settings.draws else None
        self.tally = Tally(settings.task, len(encoding.classes))
        self.changes = ChangeTally.of(settings.drift)
        self.scaler = targets.SCALER.initial()
        self.rows_read = self.rows_used = self.rows_refused = 0
        self.missing: Counter[str] = Counter()
        self.unseen: Counter[str] = Counter()
        self.progress = storage.Progress()

    @staticmethod
    def create(
        encoding: Encoding, options: Options | None = None, *, ordered: bool = True, chunk: int = CHUNK
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
        task, shape, classes = encoding.task, encoding.shape, len(encoding.classes)
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
        model: Network | str | None = None,
        posterior: Posterior | str | None = None,
        method: MethodName | None = None,
        curvature: CurvatureName | None = None,
        drift: Drift | str | None = None,
        prior_var: float | None = None,
        noise_var: NoiseVar = None,
        learning_rate: float | None = None,
        iterations: int | None = None,
        seed: int = 0,
        chunk: int = CHUNK,
    ) -> Session:
        """A session for a table, whose meaning is inferred from its first rows. Nothing is learned yet.

        Arguments:
            rows: a DataFrame, a list of dicts, a dict of columns, or a `Chunk`.
            target: the column to predict.
            task, classes, drop, categorical: see `credo.tables.infer_schema`.
            ordered: whether the rows are one stream, in which the past fades by default.
            model, posterior, method, curvature, drift: see `Options`.
            prior_var, noise_var, learning_rate, iterations, seed: see `Options`.
            chunk: rows in a compiled call.

        Raises:
            DataError: a column is missing, or there is nothing to learn.
            CredoError: an option is unknown or out of its range, or two do not fit together.
        """
        schema = infer_schema(
            first_chunks(rows), target, task=task, classes=classes, drop=drop, categorical=categorical
        )
        options = Options(
            model, posterior, method, curvature, drift, prior_var, noise_var, learning_rate, iterations, seed
        )
        return Session.create(TableEncoding(schema), options, ordered=ordered, chunk=chunk)

    @property
    def uncertain(self) -> bool:
        """Whether the learner keeps a posterior."""
        return self.settings.uncertain

    @property
    def regression(self) -> bool:
        """Whether numbers are predicted."""
        return self.settings.task != "classification"

    @property
    def size(self) -> int:
        """The number P of parameters."""
        return passes.parameter_count(self.belief)

    def metrics(self) -> dict[str, float]:
        """The scores so far, by name. `session.tally.baseline()` gives those of the baseline."""
        return self.tally.metrics(self.uncertain)

    def learn(self, rows: Rows) -> Steps | None:
        """Forecast, score and learn every row, in order.

        Arguments:
            rows: see `Rows`; rows without a target, or with text in a numeric column, are skipped.

        Returns:
            What was reported about changes, row by row, where the drift reports any and there were rows.

        Raises:
            DataError: a column is missing.
        """
        steps = [self._learn_block(block) for block in blocks_of(rows, self.encoding, learn=True)]
        return join(present) if (present := [part for part in steps if part is not None]) else None

    def _learn_block(self, block: Block) -> Steps | None:
        self.rows_read += block.read
        self.rows_used += len(block.y)
        self.missing.update(block.missing)
        self.unseen.update(block.unseen)
        if not len(block):
            return None
        learn = self._learn_numbers if self.regression else self._learn_classes
        parts: list[Steps | None] = []
        for start, stop in passes.cuts(len(block), self.chunk, room.starts(self, block.y)):
            room.widen(self, 0 if self.regression else int(block.y[start]) + 1)
            parts.append(learn(block.x[start:stop], block.y[start:stop]))
        self.tally.mark(self.rows_used, *(float(number) for number in passes.spread(self.belief)))
        if self.changes is None:
            return None
        steps = join([part for part in parts if part is not None])
        self.changes.add(steps)
        return steps

    @property
    def known(self) -> int | None:
        """How many classes the learner knows; None for a regression."""
        return None if self.regression else len(self.tally.counts)

    def _learn_classes(self, x: np.ndarray, y: np.ndarray) -> Steps | None:
        scores, steps = self._score(x, y.astype(np.int32), np.ones(len(y), bool))
        self.tally.add(scores, *self.tally.class_baseline(y))
        return steps

    def _learn_numbers(self, x: np.ndarray, y: np.ndarray) -> Steps | None:
        before = self.scaler
        self.scaler, scaling = targets.SCALER.encode(before, y)
        if self.settings.task == "count":
            return learn_counts(self, self._score, x, y, int(before.count[0]), scaling)
        known = scaling.known
        scores, steps = self._score(x, scaling.z.astype(np.float32), known, y, scaling)
        location, scale = scaling.location[known], scaling.scale[known]
        counted = (before.count[0] + np.arange(len(y)))[known]
        own = targets.own_units(scores, location, scale)
        self.tally.add(own, *targets.number_baseline(scores.y, location, scale, counted))
        return steps

    def _score(
        self,
        x: np.ndarray,
        ys: np.ndarray,
        keep: np.ndarray,
        y: np.ndarray | None = None,
        scaling: ScaledTarget | None = None,
    ) -> tuple[Scores, Steps | None]:
        """Forecast, score and learn n rows.

        Arguments:
            x: inputs (n, ...).
            ys: targets (n,): class numbers, or numbers as they are learned.
            keep: which rows are scored (n,).
            y, scaling: numbers in their own units (n,), and how they were standardised.
        """
        count, chunk = len(x), self.chunk
        ys = passes.pad(ys, chunk)
        judged = weights = None
        if y is not None and scaling is not None:
            judged = passes.pad(targets.standardise(y, scaling), chunk)
            weights = passes.pad(scaling.known.astype(np.float32), chunk)
        self.belief, outcome, info = score_chunk(
            self.learner,
            self.belief,
            passes.pad(x, chunk),
            ys,
            targets=judged,
            real=np.arange(chunk) < count,
            weights=weights,
            compare=self.compare,
            key=self.key,
            collect=None if self.changes is None else collect,
        )
        self.rows_refused += count - int(np.asarray(info.ok)[:count].sum())
        steps = None
        if self.changes is not None:
            steps = jax.tree.map(lambda leaf: np.asarray(leaf)[:count], info.extras)
        scored = np.concatenate([keep, np.zeros(chunk - count, bool)])
        scores = to_scores(outcome, info, ys if y is None else passes.pad(y, chunk), scored)
        return passes.of_classes(scores, self.known), steps

    @property
    def compare(self) -> tuple[ForecastName, ...]:
        """Further methods of forecasting that are scored beside the learner's own."""
        return ("plugin",) if self.uncertain else ()

    def predict(self, rows: Rows, levels: Sequence[float] = ()) -> Forecasts:
        """Forecast rows in the target's own units, at the present belief. Nothing is learned.

        Arguments:
            rows: see `Rows`; the target may be absent, and rows with text in a numeric column are left out.
            levels: the probabilities of the quantiles to give (regression).

        Raises:
            DataError: a column is missing.
        """
        blocks = list(blocks_of(rows, self.encoding, learn=False, need_target=False))
        room.widen(self, len(self.encoding.classes))
        classes = () if self.regression else self.encoding.classes
        moments = None if self.settings.task == "count" else self.scaler
        return forecast_blocks(self.learner, self.belief, blocks, self.chunk, classes, moments, levels)

    def test(self, rows: Rows, tally: Tally | None = None) -> Tally:
        """Score rows that are not learned from, beside the current baseline.

        Arguments:
            rows: see `Rows`.
            tally: the scores to add to; by default new ones.

        Returns:
            The scores.
        """
        room.widen(self, len(self.encoding.classes))
        tally = Tally(self.settings.task, len(self.encoding.classes)) if tally is None else tally
        for block in blocks_of(rows, self.encoding, learn=False):
            for start in range(0, len(block), self.chunk):
                chunk = slice(start, start + self.chunk)
                score_held_out(self, block.x[chunk], block.y[chunk], tally)
        return tally

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the session to a file, completely or not at all.

        Arguments:
            path: the file; by custom it ends in `.credo`.

        Returns:
            The path.

        Raises:
            DataError: the file cannot be written.
        """
        state = storage.State(
            self.settings,
            self.encoding,
            self.learner,
            self.belief,
            self.scaler,
            self.tally,
            self.changes,
            storage.Counters(self.rows_read, self.rows_used, self.rows_refused, self.missing, self.unseen),
            self.progress,
        )
        return storage.write(path, state)

    @staticmethod
    def load(path: str | os.PathLike[str], chunk: int = CHUNK) -> Session:
        """Read a session back. It continues bit by bit as if it had never stopped.

        Arguments:
            path: a file that `save` or `credo learn` wrote.
            chunk: rows in a compiled call.

        Raises:
            DataError: there is no such file.
            FormatError: it is damaged, of another version, or does not hold a session.
        """
        state = storage.read(path)
        session = Session(state.settings, state.encoding, chunk)
        session.learner, session.belief = state.learner, state.belief
        session.scaler, session.tally, session.changes = state.scaler, state.tally, state.changes
        counters = state.counters
        session.rows_read, session.rows_used = counters.read, counters.used
        session.rows_refused = counters.refused
        session.missing, session.unseen = counters.missing, counters.unseen
        session.progress = state.progress
        return session
