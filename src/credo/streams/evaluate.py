"""Test-then-train evaluation of any learner on a stream, with labels on time or late."""

from __future__ import annotations

import contextlib
import dataclasses
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Generic, Literal, TypeAlias, TypeVar, Unpack

import jax
import jax.numpy as jnp
import numpy as np
from rich import progress as bars
from rich.console import Console
from rich.table import Table

from credo.core.errors import CredoError, require_integer, require_nonnegative
from credo.core.keys import as_key
from credo.core.names import ForecastName
from credo.core.types import Array, ArrayLike, Key, PyTree
from credo.core.verbs import verb
from credo.learners import Info, Learner
from credo.learners.base import require_learner
from credo.learners.decide import Loss
from credo.learners.decide import LossName as DecisionName
from credo.metrics import METRICS, LossName, Scores, require_metrics, running, summarize, windowed
from credo.streams.decisions import Decision, as_decision
from credo.streams.run import At, leading, require_settings
from credo.streams.scoring import Outcome, Scoring, Settings, forecast_outcome, score_chunk, to_scores

__all__ = ["Report", "count_refusals", "evaluate", "sentence"]


B = TypeVar("B")
"""The kind of belief that a learner keeps."""

R = TypeVar("R")


def as_delays(delay: ArrayLike, length: int) -> np.ndarray | None:
    """One delay a row (N,), a whole number of at least 0, or None if no label is late."""
    values = np.asarray(delay)
    if (
        values.dtype.kind not in "iu"
        or values.ndim > 1
        or (values.ndim == 1 and len(values) != length)
        or (values < 0).any()
    ):
        raise CredoError(
            f"delay must be a whole number of rows, at least 0, or one a row ({length},); got {delay!r}."
        )
    if (values == 0).all():
        return None
    return np.broadcast_to(values, (length,))


def evaluate_late(
    learner: Learner[B],
    belief: B,
    xs: PyTree,
    ys: ArrayLike,
    delays: np.ndarray,
    **settings: Unpack[Settings],
) -> tuple[B, Scores, np.ndarray]:
    """Scan over events ask(i) at time i, tell(i) at i + delay: belief, scores, which rows were taken in."""
    length = len(delays)
    when = np.concatenate([np.arange(length), np.arange(length) + delays])
    kind = np.repeat([0, 1], length)
    index = np.tile(np.arange(length), 2)
    order = np.lexsort((index, kind, when))
    tells = kind[order] == 1
    belief, outcome, info = _events(learner, belief, xs, ys, tells, index[order], **settings)
    outcome = jax.tree.map(lambda leaf: np.asarray(leaf)[~tells], outcome)
    back = np.argsort(index[order][tells])
    info = jax.tree.map(lambda leaf: np.asarray(leaf)[tells][back], info)
    return belief, to_scores(outcome, info, np.asarray(ys)), info.ok


@verb(static=("method", "compare"))
def _events(  # noqa: PLR0913 - settings, each by its name
    learner: Learner[B],
    belief: B,
    xs: PyTree,
    ys: ArrayLike,
    tells: ArrayLike,
    index: ArrayLike,
    *,
    key: Array | None,
    method: ForecastName | None,
    compare: tuple[ForecastName, ...],
    decision: Decision | None,
) -> tuple[B, Outcome, Info]:
    xs, ys = jax.tree.map(jnp.asarray, (xs, ys))

    def row(i: Array) -> tuple[PyTree, PyTree]:
        x, y = jax.tree.map(lambda leaf: leaf[i], (xs, ys))
        return x, y

    def ask(belief: B, i: Array) -> tuple[B, Outcome]:
        x, y = row(i)
        predicted = learner.predict(belief)
        seen = jnp.nan_to_num(y)
        scoring = Scoring(method, compare, decision)
        return predicted, forecast_outcome(learner, predicted, x, seen, scoring, key)

    def tell(belief: B, i: Array) -> tuple[B, Info]:
        return learner.update(belief, *row(i), key=None if key is None else jax.random.fold_in(key, i))

    def blank(function: Callable[[B, Array], tuple[B, R]]) -> R:
        shapes = jax.eval_shape(function, belief, jnp.zeros((), jnp.int32))[1]
        zeros: R = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shapes)
        return zeros

    no_outcome = blank(ask)
    no_info = blank(tell)

    def body(belief: B, event: tuple[Array, Array]) -> tuple[B, tuple[Outcome, Info]]:
        is_tell, i = event

        def on_tell(belief: B) -> tuple[B, tuple[Outcome, Info]]:
            new, info = tell(belief, i)
            return new, (no_outcome, info)

        def on_ask(belief: B) -> tuple[B, tuple[Outcome, Info]]:
            new, outcome = ask(belief, i)
            return new, (outcome, no_info)

        step: tuple[B, tuple[Outcome, Info]] = jax.lax.cond(is_tell, on_tell, on_ask, belief)
        return step

    last, (outcome, info) = jax.lax.scan(body, belief, (jnp.asarray(tells), jnp.asarray(index, jnp.int32)))
    return last, outcome, info


Reason: TypeAlias = Literal["inputs", "targets", "weights", "labels", "update"]
"""The reason why a row was refused."""

FEW = 3
"""So many refused rows in a thousand are passed over in silence."""

_WORDS: dict[Reason, str] = {
    "inputs": "inputs that are not finite",
    "targets": "a target that is infinite",
    "weights": "a weight that is not finite",
    "labels": "a label that is none of the classes",
    "update": "an update that would not have been finite, or a target that the likelihood does not allow",
}


def _rows(tree: PyTree, length: int, test: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """The rows of which some floating-point number passes a test, booleans (N,)."""
    some = np.zeros(length, bool)
    for leaf in jax.tree.leaves(tree):
        array = np.asarray(leaf)
        if array.dtype.kind == "f":
            some |= test(array).reshape(length, -1).any(axis=1)
    return some


def _labels(ys: PyTree, length: int) -> np.ndarray:
    """The labels as one number a row (N,), or nothing if they are no single numbers."""
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(ys)]
    if len(leaves) == 1 and leaves[0].size == length:
        return leaves[0].reshape(length)
    return np.zeros(0)


def count_refusals(
    xs: PyTree, ys: PyTree, weights: ArrayLike | None, ok: np.ndarray, scores: Scores
) -> dict[Reason, int]:
    """The number of rows that were refused, by reason. A row without a target is missing, and not refused."""
    length = len(ok)
    missing = _rows(ys, length, np.isnan)
    reasons: dict[Reason, np.ndarray] = {
        "inputs": _rows(xs, length, lambda array: ~np.isfinite(array)),
        "targets": _rows(ys, length, np.isinf),
        "weights": _rows(weights, length, lambda array: ~np.isfinite(array)),
    }
    label = _labels(ys, length)
    if scores.probs is not None and label.size:
        if label.dtype.kind != "f":
            missing |= label < 0
        reasons["labels"] = (label < 0) | (label >= scores.probs.shape[1])
    left = ~ok & ~missing
    counts: dict[Reason, int] = {}
    for reason, rows in reasons.items():
        if found := int((left & rows).sum()):
            counts[reason] = found
        left = left & ~rows
    if left.any():
        counts["update"] = int(left.sum())
    return counts


def sentence(refused: Mapping[Reason, int], length: int) -> str:
    """The sentence on how many of the rows were refused, and why."""
    total = sum(refused.values())
    why = "; ".join(f"{count:,} with {_WORDS[reason]}" for reason, count in refused.items())
    was = "row was" if length == 1 else "rows were"
    return f"{total:,} of {length:,} {was} refused and not learned from: {why}."


Progress: TypeAlias = Callable[[int, int, Scores], None]
"""A function of the rows done, the rows in all, and the scores of the latest chunk."""


@dataclasses.dataclass(frozen=True)
class Report(Generic[B]):
    """The results of a learner on a stream.

    Attributes:
        metrics: numbers by name, over all scored rows.
        scores: predictions and observations, row by row.
        belief: the belief after the stream.
        seconds: the time it took, compilation included.
        skipped: the number of rows that were not taken in, whether they were missing or refused.
        rows: the number of rows of the stream.
        refused: how many of the skipped rows were refused, by reason: "inputs", "targets" or "weights" that
            are not finite, "labels" outside the classes, or an "update" that would not have been finite.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> learner = credo.extended_kalman(credo.Model(lambda w, x: x @ w, credo.Normal(0.1)))
        >>> report = credo.evaluate(learner, learner.init(jnp.zeros(2)), (jnp.ones((9, 2)), jnp.ones(9)))
        >>> report.skipped, report.curve("rmse").shape
        (0, (9,))
    """

    metrics: dict[str, float]
    scores: Scores
    belief: B
    seconds: float
    skipped: int
    rows: int = 0
    refused: Mapping[Reason, int] = dataclasses.field(default_factory=dict)

    @property
    def missing(self) -> int:
        """The number of rows that had no target."""
        return self.skipped - sum(self.refused.values())

    def curve(self, name: LossName, window: int | None = None) -> np.ndarray:
        """A metric over the rows so far.

        Arguments:
            name: "nlpd", "error", "brier", "rmse", "mae", or "loss" where decisions were taken.
            window: how many of the latest rows count; None for all.

        Returns:
            The curve (N,).

        Raises:
            CredoError: the metric has no curve, or does not apply.
        """
        if window is None:
            return running(self.scores, name)
        return windowed(self.scores, name, window)

    def __str__(self) -> str:
        table = Table(title=f"{len(self.scores)} rows in {self.seconds:.1f} s, {self.skipped} skipped")
        for heading in ("metric", "value", "meaning"):
            table.add_column(heading)
        for name, value in self.metrics.items():
            other = f"NLPD of the {name.removeprefix('nlpd_')} forecast"
            meaning = METRICS[name].meaning if name in METRICS else other
            table.add_row(name, f"{value:.4f}" if abs(value) < 1e7 else f"{value:.2e}", meaning)
        console = Console(width=100, highlight=False)
        with console.capture() as captured:
            console.print(table)
            if self.missing:
                noun = "row" if self.missing == 1 else "rows"
                console.print(f"{self.missing:,} {noun} without a target: neither scored nor learned from.")
            if self.refused:
                console.print(sentence(self.refused, self.rows), soft_wrap=True)
        return captured.get()


def evaluate(  # noqa: PLR0913 - settings, each by its name
    learner: Learner[B],
    belief: B,
    data: tuple[PyTree, PyTree],
    *,
    metrics: Iterable[str] | None = None,
    method: ForecastName | None = None,
    compare: Iterable[ForecastName] = (),
    key: Key | None = None,
    weights: ArrayLike | None = None,
    dts: ArrayLike | None = None,
    at: At[B] | None = None,
    settings: PyTree = None,
    delay: ArrayLike = 0,
    loss: DecisionName | Loss | Decision | None = None,
    chunk: int = 1000,
    progress: bool | Progress = False,
) -> Report[B]:
    """Predict each observation before learning from it, and report the quality of the predictions.

    Arguments:
        learner, belief: the learner and the belief to start from.
        data: (X, Y), with a leading time axis N. Rows with NaN in Y are forecast but not scored.
        metrics: the names of metrics, see `credo.metrics.METRICS`; by default all that apply.
        method: the forecast method ("linearized", "plugin", "mc", "linearized-mc"; None: the learner's own).
        compare: further methods whose NLPD is reported as `nlpd_<method>`.
        key: a key, for Monte Carlo forecasts, decisions by draws and learners that draw.
        weights, dts, at, settings: see `run`.
        delay: how many rows later a label arrives: one number, or one a row (N,). It is learned from at the
            belief of its arrival, after that step's forecast; labels that never come, at the end.
        loss: a loss under which a decision is taken for every row, from the forecast before its label is
            known: a name or a function of `credo.decide`, or a `credo.Decision` with candidate actions or a
            rule of your own. The mean is the metric "loss", also as `report.curve("loss")`.
        chunk: the number of rows in a compiled call; results do not depend on it.
        progress: True for a progress bar, or a function of (rows done, rows in all, scores of the chunk).

    Returns:
        A `Report`.

    Warns:
        UserWarning: more than 3 rows in a thousand were refused; the sentence says why.

    Raises:
        CredoError: there is no observation, lengths differ, a metric or a method does not apply, or `delay`
            is combined with `dts`, `weights` or `settings`.

    Example:
        >>> import credo, jax, jax.numpy as jnp
        >>> X = jax.random.normal(jax.random.key(0), (50, 2))
        >>> learner = credo.extended_kalman(credo.Model(lambda w, x: x @ w, credo.Normal(0.1)))
        >>> data = (X, X @ jnp.ones(2))
        >>> report = credo.evaluate(learner, learner.init(jnp.zeros(2)), data, metrics=["rmse"])
        >>> list(report.metrics)
        ['rmse']
    """
    xs, ys = data
    names = None if metrics is None else list(metrics)
    require_learner("learner", learner)
    require_metrics(names or ())
    length = leading(xs=xs, ys=ys, weights=weights, dts=dts, settings=settings)
    if length == 0:
        raise CredoError("the stream must hold at least one observation; got length 0.")
    require_integer("chunk", chunk, 1)
    require_nonnegative("dts", dts)
    delays = as_delays(delay, length)
    started = time.perf_counter()
    require_settings(at, settings)
    options: Settings = {
        "key": None if key is None else as_key(key),
        "method": method,
        "compare": tuple(compare),
        "decision": as_decision(loss),
    }
    with _watch(progress, length) as show:
        if delays is None:
            belief, scores, ok = _on_time(
                learner, belief, (xs, ys, weights, dts, settings), at, length, chunk, options, show
            )
        else:
            if dts is not None or weights is not None or settings is not None:
                raise CredoError("delay cannot be combined with dts, weights or settings.", field="delay")
            belief, scores, ok = evaluate_late(learner, belief, xs, ys, delays, **options)
    seconds = time.perf_counter() - started
    refused = count_refusals(xs, ys, weights, ok, scores)
    if 1000 * sum(refused.values()) > FEW * length:
        warnings.warn(sentence(refused, length), stacklevel=2)
    skipped = length - int(ok.sum())
    return Report(summarize(scores, names), scores, belief, seconds, skipped, length, refused)


def _on_time(
    learner: Learner[B],
    belief: B,
    rows: tuple[PyTree, PyTree, ArrayLike | None, ArrayLike | None, PyTree],
    at: At[B] | None,
    length: int,
    chunk: int,
    options: Settings,
    show: Callable[[int, Scores], None],
) -> tuple[B, Scores, np.ndarray]:
    chunk = min(chunk, length)
    parts: list[Scores] = []
    taken: list[np.ndarray] = []
    for start in range(0, length, chunk):
        count = min(chunk, length - start)

        def cut(leaf: Array, start: int = start, count: int = count) -> np.ndarray:
            piece = np.asarray(leaf[start : start + count])
            padding = np.repeat(piece[-1:], chunk - count, axis=0)
            if len(padding):
                return np.concatenate([piece, padding])
            return piece

        xs, ys, weights, dts, settings = jax.tree.map(cut, rows)
        real = np.arange(chunk) < count
        belief, outcome, info = score_chunk(
            learner, belief, xs, ys, real=real, weights=weights, dts=dts, at=at, settings=settings, **options
        )
        part = to_scores(outcome, info, ys, real)
        parts.append(part)
        taken.append(np.asarray(info.ok)[:count])
        show(start + count, part)
    return belief, Scores.concatenate(parts), np.concatenate(taken)


@contextlib.contextmanager
def _watch(progress: bool | Progress, total: int) -> Iterator[Callable[[int, Scores], None]]:
    """A context that yields `show(rows, scores)`: a progress bar, a caller's function, or nothing."""
    if progress is True:
        columns = (
            bars.TextColumn("{task.description}"),
            bars.BarColumn(),
            bars.MofNCompleteColumn(),
            bars.TimeRemainingColumn(),
        )
        with bars.Progress(*columns) as bar:
            task = bar.add_task("learning", total=total)
            yield lambda rows, scores: bar.update(task, completed=rows)
    elif callable(progress):
        yield lambda rows, scores: progress(rows, total, scores)
    else:
        yield lambda rows, scores: None
