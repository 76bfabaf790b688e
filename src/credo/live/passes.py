"""The compiled passes over encoded rows: learn, forecast, judge, and the size of a belief."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from credo.adapt import Around, Bank, Hypotheses
from credo.adapt.nested import within
from credo.beliefs import Gaussian, Particles
from credo.core.groups import Groups
from credo.core.kept import Kept
from credo.core.names import ForecastName
from credo.core.types import Array
from credo.core.verbs import verb
from credo.learners import Info
from credo.live.packed import Form, Leaves, PackedBelief
from credo.metrics import Scores
from credo.recipes.assembly import Belief
from credo.streams.first_rows import each_row
from credo.streams.scoring import Outcome, forecast_outcome, score_chunk

__all__ = [
    "EncodedRows",
    "arrivals",
    "cuts",
    "forecast_rows",
    "judge_rows",
    "largest_member",
    "learn_rows",
    "of_classes",
    "pad",
    "parameter_count",
    "spread",
]


def pad(rows: np.ndarray, length: int) -> np.ndarray:
    """Repeat the last row, so that every compiled call sees the same shapes."""
    if len(rows) == length:
        return rows
    return np.concatenate([rows, np.repeat(rows[-1:], length - len(rows), axis=0)])


class EncodedRows(NamedTuple):
    """Encoded rows: inputs (n, ...), float32; what is learned (n,), class numbers, counts, or standardised
    and clipped numbers; what forecasts are judged by (n,), where that is not y; weights (n,) or None for 1;
    and the probabilities of the quantiles that are asked for, or None.
    """

    x: np.ndarray
    y: np.ndarray
    targets: np.ndarray | None = None
    weights: np.ndarray | None = None
    levels: np.ndarray | None = None

    def part(self, rows: slice) -> EncodedRows:
        """Some of the rows."""
        return self._each(lambda column: column[rows])

    def padded(self, length: int) -> EncodedRows:
        """The rows, up to a length as compiled programs take them."""
        return self._each(lambda column: pad(column, length))

    def _each(self, change: Callable[[np.ndarray], np.ndarray]) -> EncodedRows:
        targets, weights = (None if one is None else change(one) for one in (self.targets, self.weights))
        return EncodedRows(change(self.x), change(self.y), targets, weights, self.levels)


def learn_rows(
    packed: PackedBelief,
    rows: EncodedRows,
    chunk: int,
    *,
    compare: tuple[ForecastName, ...] = (),
    key: Array | None = None,
    collect: Callable[[Any, Info], Any] | None = None,
) -> tuple[PackedBelief, Outcome, Info]:
    """Forecast, score and learn N rows, padded to one chunk: the belief, their outcomes and their infos."""
    count, columns = len(rows.x), rows.padded(chunk)
    state, outcome, info = _score_rows(*packed.arguments, columns, np.int32(count), key, compare, collect)
    outcome, info = jax.tree.map(lambda leaf: np.asarray(leaf)[:count], (outcome, info))
    return packed.after(state), outcome, info


@verb(static=("form", "compare", "collect"), kept=True)
def _score_rows(
    form: Form,
    setting: Leaves,
    state: Leaves,
    rows: EncodedRows,
    count: np.int32,
    key: Array | None,
    compare: tuple[ForecastName, ...],
    collect: Callable[[Any, Info], Any] | None,
) -> tuple[Leaves, Outcome, Info]:
    x, y, targets, weights, levels = rows
    given: dict[str, Any] = {"targets": targets, "weights": weights, "levels": levels, "collect": collect}
    opened = form.open(setting, state)
    belief, outcome, info = score_chunk(*opened, x, y, count=count, compare=compare, key=key, **given)
    return form.close(belief, state), outcome, info


def arrivals(y: np.ndarray, known: int) -> list[int]:
    """The rows of class numbers (n,) that are the first of a class beyond those known."""
    if not (y >= known).any():
        return []
    numbers, rows = np.unique(y, return_index=True)
    return sorted(rows[numbers >= known].tolist())


def cuts(rows: int, chunk: int, starts: Sequence[int]) -> list[tuple[int, int]]:
    """Where to cut rows into chunks, which begin anew at some of them; `starts` are in order."""
    ends = [0, *(row for row in starts if 0 < row < rows), rows]
    return [
        (start, min(start + chunk, stop))
        for begin, stop in itertools.pairwise(ends)
        for start in range(begin, stop, chunk)
    ]


def of_classes(scores: Scores, known: int | None) -> Scores:
    """Scores without the columns of classes that have not come; all of a regression."""
    if scores.probs is None or scores.probs.shape[1] == known:
        return scores
    return dataclasses.replace(scores, probs=scores.probs[:, :known])


@verb(static=("form",), kept=True)
def forecast_rows(
    form: Form, setting: Leaves, state: Leaves, xs: np.ndarray, count: np.int32, levels: np.ndarray | None
) -> tuple[Array, ...]:
    """Forecast the first `count` of N rows: class probabilities (N, C), where `levels` is None; or
    mean (N,), sd (N,) and, where there are levels (L,), quantiles (N, L). A row costs a row.
    """
    learner, belief = form.open(setting, state)

    def one(row: Array) -> tuple[Array, ...]:
        predictive = learner.forecast(belief, jnp.asarray(xs)[row])
        if levels is None:
            return (predictive.probs,)
        if not len(levels):
            return predictive.mean, predictive.sd
        return predictive.mean, predictive.sd, predictive.quantile(levels)

    return each_row(one, len(xs), count)


@verb(static=("form", "compare"), kept=True)
def judge_rows(
    form: Form,
    setting: Leaves,
    state: Leaves,
    xs: np.ndarray,
    ys: np.ndarray,
    count: np.int32,
    compare: tuple[ForecastName, ...],
) -> Outcome:
    """Forecast and score the first `count` of N rows (N, ...) and (N,), also by the methods of
    `compare`, without learning. A row costs a row.
    """
    learner, belief = form.open(setting, state)

    def one(row: Array) -> Outcome:
        x, y = jnp.asarray(xs)[row], jnp.asarray(ys)[row]
        return forecast_outcome(learner, belief, x, y, None, compare, None)

    return each_row(one, len(xs), count)


def spread(packed: PackedBelief) -> tuple[float, float]:
    """The norm of the mean parameters, and the mean posterior standard deviation (NaN for a point)."""
    norm, sd = _spread(packed.form, packed.state)
    return float(norm), float(sd)


@functools.partial(Kept, static=("form",))
def _spread(form: Form, state: Leaves) -> tuple[Array, Array]:
    mean, var = _moments(jax.tree.unflatten(form.state, state))
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
    """How many members there are of each kind, and their number of parameters; a mixture counts once."""
    bank = within(belief, Bank)
    beliefs: Any = belief if bank is None else bank.beliefs
    if isinstance(beliefs, Groups):
        return [
            (len(group), int(part.size)) for part, group in zip(beliefs.parts, beliefs.places, strict=True)
        ]
    return [(1, int(beliefs.size))]
