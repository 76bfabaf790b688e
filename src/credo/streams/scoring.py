"""Test-then-train over a chunk of rows: forecast each row, score it, then learn from it; one scan."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.errors import CredoError
from credo.core.records import record, replace
from credo.core.verbs import verb
from credo.learners import Info, Learner
from credo.learners.base import clean, isolate
from credo.likelihoods import Predictive
from credo.metrics import Scores

__all__ = ["Outcome", "forecast_outcome", "score_chunk", "to_scores"]


@record
class Outcome:
    """What a forecast said of one row, and what came of it; the fields are those of `Scores`."""

    mean: Any
    sd: Any
    log_prob: jax.Array
    pit: Any
    probs: Any
    others: dict[str, jax.Array]


def forecast_outcome(
    learner: Learner, belief: Any, x: Any, y: Any, method: str | None, compare: tuple[str, ...], key: Any
) -> Outcome:
    """Forecast one row at the predicted belief and score it against y (which may be NaN)."""

    def forecast(name: str | None, salt: int) -> Predictive:
        one_key = None if key is None else jax.random.fold_in(jax.random.fold_in(key, belief.t), salt)
        return learner.forecast(belief, x, method=name, key=one_key)

    predictive = forecast(method, 1)
    try:
        probs = predictive.probs
    except CredoError:
        probs = None
    others = {name: forecast(name, 2 + i).log_prob(y) for i, name in enumerate(compare)}
    log_prob = predictive.log_prob(y)
    if probs is not None:
        return Outcome(None, None, log_prob, None, probs, others)
    try:
        pit = predictive.cdf(jnp.asarray(y, jnp.result_type(log_prob)))
    except CredoError:
        pit = None
    return Outcome(predictive.mean, predictive.sd, log_prob, pit, None, others)


@verb(static=("method", "compare", "collect"))
def score_chunk(
    learner: Learner,
    belief: Any,
    xs: Any,
    ys: Any,
    *,
    targets: Any = None,
    real: Any = None,
    weights: Any = None,
    dts: Any = None,
    key: Any = None,
    method: str | None = None,
    compare: tuple[str, ...] = (),
    collect: Callable[[Any, Info], Any] | None = None,
) -> tuple[Any, Outcome, Info]:
    """Predict, forecast, score, update, for every row of a chunk.

    Arguments:
        learner, belief: where to start.
        xs, ys: the rows, with a leading axis N.
        targets: what forecasts are scored against, where that is not ys (N,).
        real: booleans (N,); False marks padding, which is skipped altogether (time does not pass). Pad chunks
            to one length so that the program is compiled once.
        weights, dts, key: see `run`.
        method: the forecast method; compare: further methods whose log_prob is reported.
        collect: a traceable function of the belief after each row and of its `Info`; what it returns takes
            the place of the `extras` of that `Info`, which are then stacked without keeping the beliefs.

    Returns:
        The belief after the chunk, and the outcomes and infos of its rows.
    """

    def learn(belief: Any, row: Any) -> tuple[Any, tuple[Outcome, Info]]:
        x, y, target, _, weight, dt = row
        outer, belief, x, y, target, weight, dt, one_key = isolate(
            (learner, belief, x, y, target, weight, dt, key)
        )
        predicted = outer.predict(belief, dt)
        scored = y if target is None else target
        outcome = forecast_outcome(outer, predicted, clean(x), clean(scored), method, compare, one_key)
        new, info = outer.update(predicted, x, y, weight=1.0 if weight is None else weight, key=one_key)
        if collect is not None:
            info = replace(info, extras=collect(new, info))
        return isolate((new, (outcome, info)))

    def body(belief: Any, row: Any) -> tuple[Any, tuple[Outcome, Info]]:
        if real is None:
            return learn(belief, row)
        shapes = jax.eval_shape(learn, belief, row)[1]
        blank = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shapes)
        return jax.lax.cond(row[3], learn, lambda belief, row: (belief, blank), belief, row)

    last, (outcome, info) = jax.lax.scan(body, belief, (xs, ys, targets, real, weights, dts))
    return last, outcome, info


def to_scores(outcome: Outcome, info: Info, ys: Any, keep: np.ndarray | None = None) -> Scores:
    """Scores on the host, of the rows whose observation came.

    Arguments:
        outcome, info: what `score_chunk` returned for N steps; of a joint model, each of B rows, which are
            scored one by one (and
            share their step's log evidence equally).
        ys: their observations (N,) or (N, C); (N, B, ...) for a joint model. A label below 0 is a missing
            one.
        keep: booleans (N,): further steps to leave out.
    """
    y = np.asarray(ys)
    said, done = jax.tree.map(np.asarray, (outcome, info))
    keep = np.ones(len(y), bool) if keep is None else keep
    log_evidence, ok = done.log_evidence, done.ok
    if said.log_prob.ndim == 2:
        count = said.log_prob.shape[1]
        y, said = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), (y, said))
        log_evidence, ok, keep = (
            np.repeat(log_evidence / count, count),
            np.repeat(ok, count),
            np.repeat(keep, count),
        )
    if y.dtype.kind == "f":
        keep = keep & ~np.isnan(y.reshape(len(y), -1)).any(axis=1)
    elif said.probs is not None:
        keep = keep & (y >= 0)
    said = jax.tree.map(lambda leaf: leaf[keep], said)
    return Scores(
        y[keep],
        said.mean,
        said.sd,
        said.log_prob,
        said.pit,
        said.probs,
        said.others,
        log_evidence[keep],
        ok[keep],
    )
