"""Test-then-train evaluation of any learner on a stream, with labels on time or late."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from credo.core.errors import CredoError, require_integer, require_nonnegative
from credo.core.keys import as_key
from credo.core.verbs import verb
from credo.learners import Info, Learner
from credo.metrics import METRICS, LossName, Scores, running, summarize, windowed
from credo.streams.run import leading
from credo.streams.scoring import Outcome, forecast_outcome, score_chunk, to_scores

__all__ = ["Report", "evaluate"]


@dataclasses.dataclass(frozen=True)
class Report:
    """How a learner did on a stream.

    Attributes:
        metrics: numbers by name, over all scored rows.
        scores: predictions beside observations, row by row.
        belief: the belief after the stream.
        seconds: the time it took, compilation included.
        skipped: rows that were not taken in (missing or not finite).
    """

    metrics: dict[str, float]
    scores: Scores
    belief: Any
    seconds: float
    skipped: int

    def curve(self, name: LossName, window: int | None = None) -> np.ndarray:
        """A metric (nlpd, error, rmse, mae) over the rows so far, or over the latest `window` of them."""
        return running(self.scores, name) if window is None else windowed(self.scores, name, window)

    def __str__(self) -> str:
        table = Table(title=f"{len(self.scores)} rows in {self.seconds:.1f} s, {self.skipped} skipped")
        for heading in ("metric", "value", "meaning"):
            table.add_column(heading)
        for name, value in self.metrics.items():
            meaning = (
                METRICS[name].meaning
                if name in METRICS
                else f"NLPD of the {name.removeprefix('nlpd_')} forecast"
            )
            table.add_row(name, f"{value:.4f}", meaning)
        console = Console(width=100)
        with console.capture() as captured:
            console.print(table)
        return captured.get()


def evaluate(
    learner: Learner,
    belief: Any,
    data: tuple[Any, Any],
    *,
    metrics: Iterable[str] | None = None,
    method: str | None = None,
    compare: Iterable[str] = (),
    key: Any = None,
    weights: Any = None,
    dts: Any = None,
    delay: int | Any = 0,
    chunk: int = 1000,
    progress: bool | Callable[[int, int, Scores], None] = False,
) -> Report:
    """Predict each observation before learning from it, and report how good and how calibrated the
    predictions were.

    Arguments:
        learner, belief: where to start.
        data: (X, Y), with a leading time axis N. Rows with NaN in Y are forecast, not scored.
        metrics: names, see `credo.metrics.METRICS`; by default all that apply.
        method: the forecast method ("linearized", "plugin", "mc", "linearized-mc"; None: the learner's own).
        compare: further methods whose NLPD is reported as `nlpd_<method>`.
        key: a key, for Monte Carlo forecasts and learners that draw.
        weights, dts: see `run`.
        delay: how many rows later the label of a row arrives: one number, or one a row (N,). A label is
            learned from at the belief of its arrival, after that step's forecast; labels that never come
            within the stream are taken in at its end.
        chunk: rows per compiled call; results do not depend on it.
        progress: True for a progress bar, or a function of (rows done, rows in all, scores so far).

    Returns:
        A `Report`.

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
    length = leading(xs=xs, ys=ys, weights=weights, dts=dts)
    if length == 0:
        raise CredoError("the stream must hold at least one observation; got length 0.")
    require_integer("chunk", chunk, 1)
    require_nonnegative("dts", dts)
    delays = _delays(delay, length)
    started = time.perf_counter()
    settings: dict[str, Any] = {
        "key": None if key is None else as_key(key),
        "method": method,
        "compare": tuple(compare),
    }
    with _watch(progress, length) as tell:
        if delays is None:
            belief, scores, skipped = _on_time(
                learner, belief, (xs, ys, weights, dts), length, chunk, settings, tell
            )
        else:
            if dts is not None or weights is not None:
                raise CredoError("delay cannot be combined with dts or weights.")
            belief, scores, skipped = _late(learner, belief, xs, ys, delays, settings)
    return Report(summarize(scores, names), scores, belief, time.perf_counter() - started, skipped)


def _on_time(
    learner: Learner, belief: Any, rows: tuple, length: int, chunk: int, settings: dict[str, Any], tell: Any
) -> tuple[Any, Scores, int]:
    chunk = min(chunk, length)
    parts: list[Scores] = []
    skipped = 0
    for start in range(0, length, chunk):
        count = min(chunk, length - start)

        def cut(leaf: Any, start: int = start, count: int = count) -> np.ndarray:
            piece = np.asarray(leaf[start : start + count])
            return (
                piece
                if count == chunk
                else np.concatenate([piece, np.repeat(piece[-1:], chunk - count, axis=0)])
            )

        xs, ys, weights, dts = jax.tree.map(cut, rows)
        real = np.arange(chunk) < count
        belief, outcome, info = score_chunk(
            learner, belief, xs, ys, real=real, weights=weights, dts=dts, **settings
        )
        part = to_scores(outcome, info, ys, real)
        parts.append(part)
        skipped += count - int(np.asarray(info.ok)[:count].sum())
        tell(start + count, part)
    return belief, Scores.concatenate(parts), skipped


def _delays(delay: Any, length: int) -> np.ndarray | None:
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
    return None if (values == 0).all() else np.broadcast_to(values, (length,))


def _late(
    learner: Learner, belief: Any, xs: Any, ys: Any, delays: np.ndarray, settings: dict[str, Any]
) -> tuple[Any, Scores, int]:
    """Turn the stream into events, ask(i) at time i and tell(i) at time i + delay, and scan over them."""
    length = len(delays)
    when = np.concatenate([np.arange(length), np.arange(length) + delays])
    kind = np.repeat([0, 1], length)
    index = np.tile(np.arange(length), 2)
    order = np.lexsort((index, kind, when))
    belief, outcome, info = _events(learner, belief, xs, ys, kind[order] == 1, index[order], **settings)
    asked, told = kind[order] == 0, kind[order] == 1
    outcome = jax.tree.map(lambda leaf: np.asarray(leaf)[asked], outcome)
    back = np.argsort(index[order][told])
    info = jax.tree.map(lambda leaf: np.asarray(leaf)[told][back], info)
    return belief, to_scores(outcome, info, np.asarray(ys)), length - int(info.ok.sum())


@verb(static=("method", "compare"))
def _events(
    learner: Learner,
    belief: Any,
    xs: Any,
    ys: Any,
    tells: Any,
    index: Any,
    *,
    key: Any,
    method: Any,
    compare: Any,
) -> tuple[Any, Outcome, Info]:
    xs, ys = jax.tree.map(jnp.asarray, (xs, ys))

    def row(i: jax.Array) -> Any:
        return jax.tree.map(lambda leaf: leaf[i], (xs, ys))

    def ask(belief: Any, i: jax.Array) -> tuple[Any, Outcome]:
        x, y = row(i)
        predicted = learner.predict(belief)
        return predicted, forecast_outcome(learner, predicted, x, jnp.nan_to_num(y), method, compare, key)

    def tell(belief: Any, i: jax.Array) -> tuple[Any, Info]:
        return learner.update(belief, *row(i), key=None if key is None else jax.random.fold_in(key, i))

    def blank(function: Callable) -> Any:
        shapes = jax.eval_shape(function, belief, jnp.zeros((), jnp.int32))[1]
        return jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shapes)

    no_outcome, no_info = blank(ask), blank(tell)

    def body(belief: Any, event: Any) -> tuple[Any, tuple[Outcome, Info]]:
        told, i = event

        def on_tell(belief: Any) -> tuple[Any, tuple[Outcome, Info]]:
            new, info = tell(belief, i)
            return new, (no_outcome, info)

        def on_ask(belief: Any) -> tuple[Any, tuple[Outcome, Info]]:
            new, outcome = ask(belief, i)
            return new, (outcome, no_info)

        return jax.lax.cond(told, on_tell, on_ask, belief)

    last, (outcome, info) = jax.lax.scan(body, belief, (jnp.asarray(tells), jnp.asarray(index, jnp.int32)))
    return last, outcome, info


@contextlib.contextmanager
def _watch(progress: Any, total: int) -> Iterator[Callable[[int, Scores], None]]:
    """A progress bar, a caller's function, or nothing: yields `tell(done, scores)`."""
    if progress is True:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with Progress(*columns) as bar:
            task = bar.add_task("learning", total=total)
            yield lambda done, scores: bar.update(task, completed=done)
    elif callable(progress):
        yield lambda done, scores: progress(done, total, scores)
    else:
        yield lambda done, scores: None
