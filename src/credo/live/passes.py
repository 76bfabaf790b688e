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
from credo.core.forks import require_threads
from credo.core.groups import Groups
from credo.core.kept import Kept, program
from credo.core.names import ForecastName
from credo.core.records import replace
from credo.core.types import Array
from credo.core.verbs import verb
from credo.learners import Info
from credo.learners.base import isolate
from credo.live.packed import Form, PackedBelief
from credo.metrics import Scores
from credo.recipes.assembly import Belief
from credo.streams.first_rows import each_row, first_rows
from credo.streams.lending import lend_rows
from credo.streams.programs import NEVER, Built, blank_words
from credo.streams.scoring import Outcome, Settings, forecast_outcome, scored_step
from credo.streams.words import Parts, WordLayout

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
    whole = np.empty((length, *rows.shape[1:]), rows.dtype)
    whole[: len(rows)], whole[len(rows) :] = rows, rows[-1]
    return whole


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

    def padded(self, length: int) -> EncodedRows:
        """The rows, up to a length as compiled programs take them."""
        return self._each(lambda column: pad(column, length))

    def _each(self, change: Callable[[np.ndarray], np.ndarray]) -> EncodedRows:
        targets, weights, dts = (None if one is None else change(one) for one in self[2:-1])
        return EncodedRows(change(self.x), change(self.y), targets, weights, dts, self.levels)


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
    require_threads()
    count, levels = len(rows.x), rows.levels
    layout = _row_layout(*(None if one is None else (one.shape[1:], one.dtype) for one in rows[:-1]))
    asked = None if levels is None else len(levels)
    draws = None if key is None else jax.ShapeDtypeStruct(key.shape, key.dtype)
    score, report = _scorer(packed.form, layout, chunk, asked, draws, compare, collect)
    words = lend_rows(layout, rows[:-1], chunk)  # the program has ended once it has told
    state, told = score(packed.setting, packed.state, words, _count(count), levels, key)
    outcome, info = report.take_rows(np.asarray(told)[:count])
    return packed.after(state), outcome, info


@functools.lru_cache(maxsize=1024)
def _count(count: int) -> Array:
    """A number of rows as a program takes it."""
    one: Array = jax.device_put(np.int32(count))
    return one


@functools.lru_cache(maxsize=256)
def _row_layout(*kinds: tuple[tuple[int, ...], np.dtype] | None) -> WordLayout:
    """The layout of a row with columns of such kinds."""
    return WordLayout.of(
        tuple(
            None if kind is None else jax.ShapeDtypeStruct(kind[0], jax.dtypes.canonicalize_dtype(kind[1]))
            for kind in kinds
        ),
        large=NEVER,
    )


@functools.lru_cache(maxsize=256)
def _scorer(
    form: Form,
    rows: WordLayout,
    chunk: int,
    levels: int | None,
    key: jax.ShapeDtypeStruct | None,
    compare: tuple[ForecastName, ...],
    collect: Callable[[Any, Info], Any] | None,
) -> Built:
    """The program of `learn_rows` for so many levels, and the layout of what it reports of a row."""
    blank = (*_blank(form, rows, chunk, levels), key)
    build = functools.partial(_score, form, rows, compare, collect, blank)
    return program("score_rows", (form, rows, compare, collect), build, blank)


def _score(
    form: Form,
    rows: WordLayout,
    compare: tuple[ForecastName, ...],
    collect: Callable[[Any, Info], Any] | None,
    blank: tuple[Any, ...],
) -> Built:
    """The program before it is compiled."""

    def step(
        learner: Any, words: Array, others: tuple[Array | None, Array | None], belief: Belief, row: Array
    ) -> tuple[Belief, tuple[Outcome, Info]]:
        # words are read and written row by row, since mostly one row of a chunk is real
        x, y, target, weight, dt = rows.unpack((words[row], ()))
        options: Settings = {"key": others[1], "method": None, "compare": compare, "decision": None}
        new, outcome, info = scored_step(learner, belief, x, y, target, weight, dt, others[0], **options)
        if collect is not None:
            info = replace(info, extras=collect(new, info))
        after: tuple[Belief, tuple[Outcome, Info]] = isolate((new, (outcome, info)))
        return after

    def first(setting: Parts, state: Parts, words: Array, row: Array, *others: Any) -> Any:
        learner, belief = form.open(setting, state)
        return step(learner, words, others, belief, row)[1]

    layout = WordLayout.of(jax.eval_shape(first, *blank), large=NEVER)

    def told(setting: Parts, state: Parts, words: Array, count: Array, *others: Any) -> tuple[Parts, Array]:
        learner, start = form.open(setting, state)

        def learn(belief: Belief, row: Array) -> tuple[Belief, Array]:
            belief, report = step(learner, words, others, belief, row)
            return belief, layout.pack(report)[0]

        end, reports = first_rows(learn, start, len(words), count)
        return form.close(end), reports

    return told, layout


def arrivals(y: np.ndarray, known: int) -> list[int]:
    """The rows of class numbers (n,) that are the first of a class beyond those known."""
    if not (y >= known).any():
        return []
    numbers, rows = np.unique(y, return_index=True)
    return sorted(rows[numbers >= known].tolist())


def cuts(rows: int, chunk: int, starts: Sequence[int]) -> list[tuple[int, int]]:
    """Where to cut rows into chunks, which begin again at some of them; `starts` are in order."""
    if rows <= chunk and not starts:
        return [(0, rows)] if rows else []
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


def forecast_rows(
    packed: PackedBelief, x: np.ndarray, chunk: int, levels: np.ndarray | None, dts: np.ndarray | None = None
) -> tuple[np.ndarray, ...]:
    """Forecast N rows, at most a chunk: class probabilities (N, C), where `levels` is None; or mean (N,),
    sd (N,) and, where there are levels (L,), quantiles (N, L). The belief of each is moved by its time step,
    if there are any (N,). A row costs a row.
    """
    require_threads()
    count, asked = len(x), None if levels is None else len(levels)
    layout = _row_layout((x.shape[1:], x.dtype), None if dts is None else ((), dts.dtype))
    words = lend_rows(layout, (x, dts), chunk)
    forecast = _forecaster(packed.form, layout, chunk, asked)
    columns = forecast(packed.setting, packed.state, words, _count(count), levels)
    return tuple(np.asarray(column)[:count] for column in columns)


@functools.lru_cache(maxsize=256)
def _forecaster(form: Form, rows: WordLayout, chunk: int, levels: int | None) -> Callable[..., Any]:
    """The program of `forecast_rows` for so many levels."""

    def forecast(
        setting: Parts, state: Parts, words: Array, count: Array, asked: Array | None
    ) -> tuple[Array, ...]:
        learner, belief = form.open(setting, state)

        def one(row: Array) -> tuple[Array, ...]:
            x, dt = rows.unpack((words[row], ()))
            predictive = learner.forecast(belief if dt is None else learner.predict(belief, dt), x)
            if asked is None:
                return (predictive.probs,)
            moments = predictive.mean, predictive.sd
            return (*moments, predictive.quantile(asked)) if levels else moments

        with jax.default_matmul_precision("highest"):
            return each_row(one, len(words), count)

    blank = _blank(form, rows, chunk, levels)
    return program("forecast_rows", (form, rows), lambda: (forecast, None), blank)[0]


def _blank(form: Form, rows: WordLayout, chunk: int, levels: int | None) -> tuple[Any, ...]:
    """The shapes of what the programs of rows take: a belief, the words of a chunk, a count and levels."""
    asked = None if levels is None else jax.ShapeDtypeStruct((levels,), np.float32)
    words = jax.ShapeDtypeStruct((chunk, rows.size), np.uint32)
    count = jax.ShapeDtypeStruct((), np.int32)
    return blank_words(form.setting), blank_words(form.state), words, count, asked


@verb(static=("form", "compare"), kept=True)
def judge_rows(
    form: Form,
    setting: Parts,
    state: Parts,
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
    """How many members there are of each kind, and their number of parameters; a mixture counts once."""
    bank = within(belief, Bank)
    beliefs: Any = belief if bank is None else bank.beliefs
    if isinstance(beliefs, Groups):
        return [
            (len(group), int(part.size)) for part, group in zip(beliefs.parts, beliefs.places, strict=True)
        ]
    return [(1, int(beliefs.size))]
