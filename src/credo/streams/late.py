"""Test-then-train evaluation with late labels, as a stream of events: ask for a forecast, tell a label."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, Unpack

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.errors import CredoError
from credo.core.names import ForecastName
from credo.core.types import Array, ArrayLike, PyTree
from credo.core.verbs import verb
from credo.learners import Info, Learner
from credo.metrics import Scores
from credo.streams.decisions import Decision
from credo.streams.scoring import Outcome, Settings, forecast_outcome, to_scores

__all__ = ["as_delays", "evaluate_late"]

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
    return None if (values == 0).all() else np.broadcast_to(values, (length,))


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
def _events(
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
        return predicted, forecast_outcome(learner, predicted, x, seen, method, compare, key, decision)

    def tell(belief: B, i: Array) -> tuple[B, Info]:
        return learner.update(belief, *row(i), key=None if key is None else jax.random.fold_in(key, i))

    def blank(function: Callable[[B, Array], tuple[B, R]]) -> R:
        shapes = jax.eval_shape(function, belief, jnp.zeros((), jnp.int32))[1]
        zeros: R = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shapes)
        return zeros

    no_outcome, no_info = blank(ask), blank(tell)

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
