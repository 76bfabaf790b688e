"""Test-then-train over a chunk of rows in one scan: forecast each row, score it, then learn from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from functools import partial
from typing import Any, NamedTuple, Protocol, TypedDict, TypeVar, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.errors import CredoError
from credo.core.names import ForecastName
from credo.core.records import record, replace
from credo.core.types import Array, ArrayLike, PyTree
from credo.core.verbs import verb
from credo.learners import Info, Learner
from credo.learners.acceptance import scored
from credo.learners.base import clean, isolate
from credo.likelihoods import Predictive
from credo.metrics import Scores
from credo.programs.loops import Columns, first_rows
from credo.streams.decisions import Decision
from credo.streams.run import At, at_step

__all__ = [
    "Outcome",
    "Row",
    "Scoring",
    "Settings",
    "forecast_outcome",
    "score_chunk",
    "scored_step",
    "to_scores",
]

B = TypeVar("B")
"""The kind of belief that a learner keeps."""


class Row(NamedTuple):
    """One row of a stream, or several with a leading axis.

    `target` is what its forecast is scored against, if that is not y; `real` is False for padding; `weight`
    and `dt` are those of an update and of the time before it, and `setting` is one of the learner.
    """

    x: PyTree
    y: PyTree
    target: PyTree = None
    real: ArrayLike | None = None
    weight: ArrayLike | None = None
    dt: ArrayLike | None = None
    setting: PyTree = None


class Scoring(NamedTuple):
    """The methods by which a row is forecast, the decision that is taken on it, and the probabilities of the
    quantiles that are given (L,).
    """

    method: ForecastName | None = None
    compare: Sequence[ForecastName] = ()
    decision: Decision | None = None
    levels: ArrayLike | None = None


_PLAIN = Scoring()
"""The forecasts of the learner's own method, and no decision."""


@runtime_checkable
class Clocked(Protocol):
    """A belief that counts its predictions."""

    @property
    def t(self) -> Array:
        """The number of calls of `predict`."""
        ...


class Settings(TypedDict):
    """The settings of forecasts of rows."""

    key: Array | None
    method: ForecastName | None
    compare: tuple[ForecastName, ...]
    decision: Decision | None


@record
class Outcome:
    """The forecast of one row with its observation; fields as in `Scores`, None if they do not apply."""

    mean: Array | None
    sd: Array | None
    log_prob: Array
    pit: Array | None
    probs: Array | None
    others: dict[str, Array]
    loss: Array | None = None
    action: Array | None = None
    quantiles: Array | None = None
    compared: dict[str, Array] = field(default_factory=dict)


def forecast_outcome(
    learner: Learner[B],
    belief: B,
    x: PyTree,
    y: PyTree,
    scoring: Scoring = _PLAIN,
    key: Array | None = None,
) -> Outcome:
    """Forecast one row from the *predicted* belief and score the forecast; the observation may be NaN."""
    method, compare, decision, levels = scoring

    def salted(salt: int) -> Array | None:
        if key is None:
            return None
        assert isinstance(belief, Clocked)
        return jax.random.fold_in(jax.random.fold_in(key, belief.t), salt)

    def forecast(name: ForecastName | None, salt: int) -> Predictive:
        return learner.forecast(belief, x, method=name, key=salted(salt))

    def quantiles_at(levels: ArrayLike) -> Array:
        # of a forecast of their own, so that no other number is rounded otherwise where they are asked for
        alone, prior, row, draw = isolate((learner, belief, x, salted(1)))
        return isolate(alone.forecast(prior, row, method=method, key=draw).quantile(jnp.asarray(levels)))

    predictive = forecast(method, 1)
    probs = _optional(lambda: predictive.probs)
    rivals = {name: forecast(name, 2 + i) for i, name in enumerate(compare)}
    others: dict[str, Array] = {name: rival.log_prob(y) for name, rival in rivals.items()}
    log_prob = predictive.log_prob(y)
    action = loss = None
    if decision is not None:
        action = decision.take(predictive, belief, salted(0))
        judge = jax.vmap(decision.cost) if log_prob.ndim else decision.cost
        kind = jnp.result_type(log_prob) if probs is None else jnp.int32
        loss = judge(action, jnp.asarray(y).astype(kind))
    if probs is not None:
        compared: dict[str, Array] = {name: rival.probs for name, rival in rivals.items()}
        return Outcome(None, None, log_prob, None, probs, others, loss, action, None, compared)
    pit = _optional(lambda: predictive.cdf(jnp.asarray(y, jnp.result_type(log_prob))))
    moments: dict[str, Array | None] = {
        name: _optional(partial(_moments, rival)) for name, rival in rivals.items()
    }
    mean = _optional(lambda: predictive.mean)
    sd = _optional(lambda: predictive.sd)
    quantiles = None if levels is None else quantiles_at(levels)
    compared = {name: one for name, one in moments.items() if one is not None}
    return Outcome(mean, sd, log_prob, pit, None, others, loss, action, quantiles, compared)


def _moments(predictive: Predictive) -> Array:
    return jnp.stack([predictive.mean, predictive.sd])


def _optional(member: Callable[[], Array]) -> Array | None:
    """The answer of a predictive, or None if it has no such answer."""
    try:
        return member()
    except CredoError:
        return None


def scored_step(
    learner: Learner[B],
    belief: B,
    row: Row,
    scoring: Scoring = _PLAIN,
    key: Array | None = None,
) -> tuple[B, Outcome, Info]:
    """Predict, forecast, score and learn one row, in a compiled program; without a target, y is scored."""
    learner, belief, row, one_key, choice = isolate((learner, belief, row, key, scoring.decision))
    predicted = learner.predict(belief, row.dt)
    score_of = row.y if row.target is None else row.target
    seen = row.x if learner.takes_missing else clean(row.x)
    scoring = scoring._replace(decision=choice)
    outcome = forecast_outcome(learner, predicted, seen, scored(score_of), scoring, one_key)
    weight = 1.0 if row.weight is None else row.weight
    new, info = learner.update(predicted, row.x, row.y, weight=weight, key=one_key)
    return new, outcome, info


@verb(static=("method", "compare", "collect", "at"))
def score_chunk(  # noqa: PLR0913 - settings, each by its name
    learner: Learner[B],
    belief: B,
    xs: PyTree,
    ys: PyTree,
    *,
    targets: PyTree = None,
    real: ArrayLike | None = None,
    count: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    dts: ArrayLike | None = None,
    key: Array | None = None,
    method: ForecastName | None = None,
    compare: tuple[ForecastName, ...] = (),
    collect: Callable[[B, Info], PyTree] | None = None,
    decision: Decision | None = None,
    levels: ArrayLike | None = None,
    at: At[B] | None = None,
    settings: PyTree = None,
) -> tuple[B, Outcome, Info]:
    """Predict, forecast, score and update for every row of a chunk.

    Arguments:
        learner, belief: the learner and the belief to start from.
        xs, ys: the rows, with a leading axis N.
        targets: what forecasts are scored against, if that is not ys (N,).
        real: booleans (N,), where False marks padding, which is skipped entirely: time does not pass. Pad
            chunks to one length so that the program is compiled only once.
        count: how many of the rows are real, which come first: the same as such a `real`, and faster for
            large beliefs, which need not be copied for a choice at every row.
        weights, dts, key, at, settings: see `run`.
        method: the forecast method.
        compare: further methods whose log_prob, and probabilities or moments, are reported.
        collect: a traceable function of the belief after each row and of its `Info`; what it returns takes
            the place of the `extras` of that `Info`, which are then stacked without keeping the beliefs.
        decision: the decision to take for every row, and to judge when y comes.
        levels: the probabilities of the quantiles to give with each outcome (L,), where ys are numbers.

    Returns:
        The belief after the chunk, and the outcomes and infos of its rows.

    Example:
        >>> import credo
        >>> learner = credo.extended_kalman(credo.Model(lambda w, x: x @ w, credo.Normal(0.1)))
        >>> rows = jnp.ones((3, 2)), jnp.ones(3)
        >>> belief, outcome, info = score_chunk(learner, learner.init(jnp.zeros(2)), *rows)
        >>> outcome.mean.shape, int(belief.t)
        ((3,), 3)
    """
    scoring = Scoring(method, compare, decision, levels)

    def learn(belief: B, row: Row) -> tuple[B, tuple[Outcome, Info]]:
        outer = at_step(learner, at, row.setting)
        own = row._replace(real=None, setting=None)
        new, outcome, info = scored_step(outer, belief, own, scoring, key)
        if collect is not None:
            info = replace(info, extras=collect(new, info))
        step: tuple[B, tuple[Outcome, Info]] = isolate((new, (outcome, info)))
        return step

    def tell(belief: B, row: Row) -> tuple[B, tuple[Outcome, Info]]:
        if real is None:
            return learn(belief, row)
        shapes = jax.eval_shape(learn, belief, row)[1]
        blank = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shapes)
        step: tuple[B, tuple[Outcome, Info]] = jax.lax.cond(
            row.real, learn, lambda belief, row: (belief, blank), belief, row
        )
        return step

    found: list[Columns[tuple[Outcome, Info]]] = []

    def body(belief: B, row: Row) -> tuple[B, list[Array]]:
        belief, report = tell(belief, row)
        found.append(Columns(report))
        return belief, found[-1].gather(report)

    rows = Row(xs, ys, targets, real, weights, dts, settings)
    if count is None:
        last, arrays = jax.lax.scan(body, belief, rows)
        return last, *found[-1].part(arrays)

    def pick(index: Array) -> Row:
        row: Row = jax.tree.map(lambda leaf: jnp.asarray(leaf)[index], rows)
        return row

    length = jnp.shape(jax.tree.leaves(rows)[0])[0]
    last, arrays = first_rows(lambda belief, index: body(belief, pick(index)), belief, length, count)
    return last, *found[-1].part(arrays)


def to_scores(outcome: Outcome, info: Info, ys: ArrayLike, keep: np.ndarray | None = None) -> Scores:
    """The scores of the observed rows, on the host.

    Arguments:
        outcome, info: the results of `score_chunk` for N steps. The B rows of a step of a joint model are
            scored one by one, and share their step's log evidence equally.
        ys: their observations (N,) or (N, C); (N, B, ...) for a joint model. A label of no class is missing.
        keep: booleans (N,), where False leaves a step out.

    Returns:
        The scores of the rows that were observed, in their order.

    Example:
        >>> import credo
        >>> learner = credo.extended_kalman(credo.Model(lambda w, x: x @ w, credo.Normal(0.1)))
        >>> xs, ys = jnp.ones((3, 2)), jnp.array([1.0, jnp.nan, 1.0])
        >>> _, outcome, info = score_chunk(learner, learner.init(jnp.zeros(2)), xs, ys)
        >>> len(to_scores(outcome, info, ys))
        2
    """
    y = np.asarray(ys)
    found: Any = (outcome, info)
    if not isinstance(info.ok, np.ndarray):
        found = jax.tree.map(np.asarray, found)
    rows, steps = found
    kept = np.ones(len(y), bool) if keep is None else keep
    log_evidence = steps.log_evidence
    ok = steps.ok
    if rows.log_prob.ndim == 2:
        count = rows.log_prob.shape[1]
        y, rows = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), (y, rows))
        log_evidence = np.repeat(log_evidence / count, count)
        ok = np.repeat(ok, count)
        kept = np.repeat(kept, count)
    if y.dtype.kind == "f":
        missing = np.isnan(y.reshape(len(y), -1))
        if np.count_nonzero(missing):
            # of several outputs some may be observed, where the likelihood can tell how probable these were
            some = ~missing.all(axis=1) & ~np.isnan(rows.log_prob)
            kept = kept & (~missing.any(axis=1) | some)
    if rows.probs is not None:
        label = y.reshape(len(y), -1)
        kept = kept & ((label >= 0) & (label < rows.probs.shape[1])).all(axis=1)
    if np.count_nonzero(kept) < len(kept):
        rows = jax.tree.map(lambda leaf: leaf[kept], rows)
        y = y[kept]
        log_evidence = log_evidence[kept]
        ok = ok[kept]
    forecast = (rows.mean, rows.sd, rows.log_prob, rows.pit, rows.probs, rows.others)
    decided = (rows.loss, rows.action, rows.compared)
    return Scores(y, *forecast, log_evidence, ok, *decided)
