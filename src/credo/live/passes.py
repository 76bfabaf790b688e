"""The compiled passes over encoded rows: learn, forecast, judge, draw, and the size of a belief."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from credo.adapt import Around, Bank, Hypotheses
from credo.adapt.nested import within
from credo.beliefs import Gaussian, Particles
from credo.core.groups import Groups
from credo.core.kept_programs import Kept
from credo.core.names import ForecastName
from credo.core.records import replace
from credo.core.types import Array, PyTree
from credo.learners import Info
from credo.likelihoods import Predictive
from credo.metrics import Scores
from credo.programs.form import Form
from credo.programs.packed import PackedBelief
from credo.programs.words import Parts
from credo.recipes.assembly import Belief
from credo.streams.scoring import Outcome, Row, Scoring, forecast_outcome, scored_step

__all__ = [
    "CHUNK",
    "TILE",
    "Ask",
    "EncodedRows",
    "Score",
    "ask_rows",
    "draw_rows",
    "forecast_rows",
    "judge_rows",
    "largest_member",
    "learn_unscored",
    "log_prob",
    "moments",
    "of_classes",
    "parameter_count",
    "probs",
    "quantiles",
    "spread",
    "whole",
]

CHUNK = 256
"""The most rows of a compiled call that does not score."""

TILE = 16
"""The rows of a tile. Forecasts of an estimator are computed a whole tile at a time: the bits of a row in
single precision depend on how many rows are computed together."""


class EncodedRows(NamedTuple):
    """Encoded rows: inputs (n, ...), float32; what is learned (n,), class numbers, counts, or standardised
    and clipped numbers; what forecasts are judged by (n,), where that is not y; weights (n,) or None for 1;
    the lengths of the time steps (n,) or None for 1; and the probabilities of the quantiles that are asked
    for, or None.
    """

    x: np.ndarray
    y: np.ndarray
    targets: np.ndarray | None = None
    weights: np.ndarray | None = None
    dts: np.ndarray | None = None
    levels: np.ndarray | None = None

    def part(self, rows: slice) -> EncodedRows:
        """Some of the rows."""
        return self._each(lambda column: column[rows])

    def _each(self, change: Callable[[np.ndarray], np.ndarray]) -> EncodedRows:
        targets, weights, dts = (None if one is None else change(one) for one in self[2:-1])
        return EncodedRows(change(self.x), change(self.y), targets, weights, dts, self.levels)


@dataclasses.dataclass(frozen=True)
class Score:
    """The step that scores a row before it learns it; `compare` are further methods of forecasting, and
    `collect` makes what takes the place of the `extras` of an `Info`, of the belief and the `Info`.
    """

    compare: tuple[ForecastName, ...]
    collect: Callable[[Any, Info], Any] | None

    def __call__(
        self, learner: Any, belief: Belief, key: Any, row: tuple[Any, ...], levels: Array | None
    ) -> tuple[Belief, tuple[Outcome, Info]]:
        x, y, target, weight, dt = row
        one = Row(x, y, target, weight=weight, dt=dt)
        scoring = Scoring(compare=self.compare, levels=levels)
        new, outcome, info = scored_step(learner, belief, one, scoring, key)
        if self.collect is not None:
            info = replace(info, extras=self.collect(new, info))
        return new, (outcome, info)


def of_classes(scores: Scores, known: int | None) -> Scores:
    """Scores without the columns of classes that have not come; all of a regression."""
    if scores.probs is None or scores.probs.shape[1] == known:
        return scores
    return dataclasses.replace(scores, probs=scores.probs[:, :known])


@dataclasses.dataclass(frozen=True)
class _Forecast:
    """The question for class probabilities, or for mean, sd and quantiles."""

    classes: bool

    def __call__(
        self, learner: Any, belief: Belief, key: Any, row: tuple[Any, Any], levels: Array | None
    ) -> tuple[Array, ...]:
        x, dt = row
        predictive = learner.forecast(belief if dt is None else learner.predict(belief, dt), x)
        if self.classes:
            return (predictive.probs,)
        moments = (predictive.mean, predictive.sd)
        if levels is None:
            return moments
        return (*moments, predictive.quantile(levels))


def forecast_rows(
    packed: PackedBelief, x: np.ndarray, chunk: int, levels: np.ndarray | None, dts: np.ndarray | None = None
) -> tuple[np.ndarray, ...]:
    """Forecast N rows, at most a chunk: class probabilities (N, C), where `levels` is None; or mean (N,),
    sd (N,) and, where there are levels (L,), quantiles (N, L). The belief of each is moved by its time step,
    if there are any (N,). A row costs a row.
    """
    question = _Forecast(levels is None)
    asked = None if levels is None or not len(levels) else levels
    columns: tuple[np.ndarray, ...] = packed.ask("forecast_rows", question, (x, dts), chunk, asked)
    return columns


@dataclasses.dataclass(frozen=True)
class _Judge:
    """The question for the scores of a row that is not learned."""

    compare: tuple[ForecastName, ...]

    def __call__(self, learner: Any, belief: Belief, key: Any, row: tuple[Any, Any]) -> Outcome:
        x, y = row
        return forecast_outcome(learner, belief, x, y, Scoring(compare=self.compare))


def judge_rows(
    packed: PackedBelief, x: np.ndarray, y: np.ndarray, chunk: int, compare: tuple[ForecastName, ...]
) -> Outcome:
    """Forecast and score N rows (N, ...) and (N,), at most a chunk, also by the methods of `compare`, without
    learning. A row costs a row.
    """
    outcome: Outcome = packed.ask("judge_rows", _Judge(compare), (x, y), chunk)
    return outcome


def _draw(
    learner: Any, belief: Belief, key: Any, row: tuple[Any, Any], root: Array
) -> tuple[Array, Array, Array]:
    """The question for mean, sd and one draw of a row, by the key of its number."""
    x, number = row
    predictive = learner.forecast(belief, x)
    return predictive.mean, predictive.sd, predictive.sample(jax.random.fold_in(root, number))


def draw_rows(packed: PackedBelief, x: np.ndarray, key: Array) -> tuple[np.ndarray, ...]:
    """Forecast N rows of numbers: mean (N,), sd (N,), and one draw of each (N,)."""
    count = len(x)
    rows = (x, np.arange(count, dtype=np.int32))
    columns: tuple[np.ndarray, ...] = packed.ask("draw_rows", _draw, rows, count, key)
    return columns


@dataclasses.dataclass(frozen=True)
class _Learn:
    """The step that learns a row and scores nothing; `collect` is that of `Score`."""

    collect: Callable[[Any, Info], Any] | None

    def __call__(self, learner: Any, belief: Belief, key: Any, row: tuple[Any, ...]) -> tuple[Belief, Info]:
        x, y, weight = row
        new, info = learner.step(belief, x, y, weight=weight, key=key)
        extras = None if self.collect is None else self.collect(new, info)
        return new, replace(info, extras=extras)


def learn_unscored(
    packed: PackedBelief,
    rows: tuple[np.ndarray, np.ndarray, np.ndarray],
    collect: Callable[[Any, Info], Any] | None,
    hasty: bool = False,
) -> tuple[PackedBelief, Info]:
    """Learn inputs, observations and weights (N,), at most `CHUNK`, in order: the belief, and their infos.
    The bits do not depend on how rows are cut into chunks.
    """
    after, info = packed.learn("learn_rows", _Learn(collect), rows, CHUNK, hasty=hasty)
    return after, info


Ask: TypeAlias = Callable[[Predictive, Array, Array], PyTree]
"""The question to the forecast of a row: a function of the forecast, of the row's own number, and of the
probabilities of quantiles. It is part of the compiled program, so define it once."""


def probs(predictive: Predictive, y: Array, levels: Array) -> PyTree:
    """The class probabilities (C,)."""
    return predictive.probs


def moments(predictive: Predictive, y: Array, levels: Array) -> PyTree:
    """The mean and the standard deviation."""
    return predictive.mean, predictive.sd


def quantiles(predictive: Predictive, y: Array, levels: Array) -> PyTree:
    """The quantiles (L,)."""
    return predictive.quantile(levels)


def log_prob(predictive: Predictive, y: Array, levels: Array) -> PyTree:
    """The log probability of the row's own number, a target or the number of a class."""
    return predictive.log_prob(y)


def whole(predictive: Predictive, y: Array, levels: Array) -> PyTree:
    """The forecast itself."""
    return predictive


@dataclasses.dataclass(frozen=True)
class _Asked:
    """The question that is an `Ask`."""

    ask: Ask

    def __call__(
        self, learner: Any, belief: Belief, key: Any, row: tuple[Array, Array], levels: Array
    ) -> PyTree:
        x, y = row
        return self.ask(learner.forecast(belief, x), y, levels)


def ask_rows(packed: PackedBelief, x: np.ndarray, y: np.ndarray, levels: np.ndarray, ask: Ask) -> PyTree:
    """The answers of the forecasts of N rows, at most `CHUNK`, with a leading axis N; as many tiles are
    computed as they take. `y` (N,) are the rows' own numbers. The bits of a row do not depend on the number
    of rows.
    """
    return packed.ask("ask_rows", _Asked(ask), (x, y), CHUNK, levels, tile=TILE)


def spread(packed: PackedBelief) -> tuple[float, float]:
    """The norm of the mean parameters, and the mean posterior standard deviation (NaN for a point)."""
    norm, sd = _spread(packed.form, packed.state)
    return float(norm), float(sd)


@functools.partial(Kept, static=("form",))
def _spread(form: Form, state: Parts) -> tuple[Array, Array]:
    mean, var = _moments(form.state.unpack(state))
    return jnp.linalg.norm(mean), jnp.mean(jnp.sqrt(var))


def _moments(belief: Belief) -> tuple[Array, Array]:
    """Mean and variances, in units of the standardised target whatever the noise."""
    if isinstance(belief, Bank) and isinstance(belief.beliefs, Groups):
        return jnp.full(1, jnp.nan), jnp.full(1, jnp.nan)  # the members have unlike parameters
    if isinstance(belief, Hypotheses | Bank):
        means, variances = jax.vmap(_moments)(belief.beliefs)
        mean = belief.weights @ means
        return mean, belief.weights @ (variances + (means - mean[None]) ** 2)
    if isinstance(belief, Around):
        return _moments(belief.belief)
    if isinstance(belief, Particles):
        return belief.mean, belief.var
    if not isinstance(belief, Gaussian):
        return belief.mean, jnp.full_like(belief.mean, jnp.nan)
    unit = 1.0 if belief.noise is None else belief.noise.mean
    return belief.mean, belief.var * unit


def parameter_count(belief: Belief) -> int:
    """The number P of parameters, of all members of a bank together."""
    return sum(count * size for count, size in _sizes(belief))


def largest_member(belief: Belief) -> int:
    """The number of parameters of the largest member of a bank, or of the belief."""
    return max(size for _, size in _sizes(belief))


def _sizes(belief: Belief) -> list[tuple[int, int]]:
    """The number of members of each kind, and their number of parameters; a mixture counts once."""
    bank = within(belief, Bank)
    beliefs: Any = belief if bank is None else bank.beliefs
    if isinstance(beliefs, Groups):
        return [
            (len(group), int(part.size)) for part, group in zip(beliefs.parts, beliefs.places, strict=True)
        ]
    return [(1, int(beliefs.size))]
