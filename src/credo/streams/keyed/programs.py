"""The compiled programs of keyed learners, on one matrix with the words of a belief in each row."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from credo.adapt.changepoints import ChangeReport
from credo.adapt.moments import collapse
from credo.beliefs import Ensemble, Particles
from credo.core.kept_programs import program
from credo.core.keys import as_key
from credo.core.records import replace
from credo.core.types import Array, PyTree
from credo.learners import Info
from credo.learners.acceptance import call_fenced
from credo.programs.build import Built, require_same
from credo.programs.form import Form, blank_words
from credo.programs.loops import each_row, first_rows
from credo.programs.words import NEVER, Parts, WordLayout
from credo.streams.live import Answer
from credo.streams.scoring import Row, scored_step

__all__ = [
    "POOLED",
    "Lanes",
    "Prior",
    "draws",
    "forecaster",
    "growing",
    "learner_of",
    "pooler",
    "putter",
    "taker",
]

Prior: TypeAlias = Callable[[PyTree], Any]
"""The first belief of a key by its first inputs."""

_DRAWING = Ensemble | Particles
"""The beliefs that hold a key of their own, by which they draw."""

POOLED = 1024
"""The most keys whose beliefs are pooled."""


@dataclass(frozen=True)
class Lanes:
    """The properties that the programs of keys depend on: the form of one key, how many keys are stepped side
    by side, the first belief of a key by its inputs, and whether beliefs draw by keys of their own.
    """

    form: Form
    tile: int
    prior: Prior | None
    own: bool

    def lane(self, words: Array, prior: Array, x: PyTree, known: Array, salt: Array | None) -> Any:
        """The belief of a key, or that with which it begins."""
        first = self.form.state.unpack((prior, ())) if self.prior is None else self.prior(x)
        first = _salted(first, salt) if self.own and salt is not None else first
        return jax.tree.map(
            lambda old, new: jnp.where(known, old, jnp.asarray(new, old.dtype)),
            self.form.state.unpack((words, ())),
            first,
        )

    def key_of(self, key: Array | None, salt: Array | None) -> Array | None:
        """The key of the draws of a lane."""
        if key is None or salt is None:
            return None
        return jax.random.fold_in(key, salt)

    def blank_lane(self, row: WordLayout) -> tuple[PyTree, ...]:
        """The shapes of what a lane is given."""
        words = _shape(self.form.state.size)
        return blank_words(self.form.setting), words, words, _shape(row.size)

    def blank(self, row: WordLayout, capacity: int, tiles: int) -> tuple[PyTree, ...]:
        """The shapes of the arguments of a pass over tiles."""
        words = self.form.state.size
        return (
            blank_words(self.form.setting),
            _shape(words),
            _shape(capacity, words),
            _shape(tiles, self.tile, row.size),
            _shape(tiles, self.tile, kind=np.int32),
            _shape(kind=np.int32),
        )


def draws(belief: PyTree) -> bool:
    """Whether a belief, or one inside of it, holds a key of its own."""
    return any(isinstance(one, _DRAWING) for one in jax.tree.leaves(belief, is_leaf=_is_drawing))


def _is_drawing(one: object) -> bool:
    return isinstance(one, _DRAWING)


def _salted(belief: Any, salt: Array) -> Any:
    """A belief whose own keys are folded with a salt: its draws are those of no other salt."""

    def fold(data: Array) -> Array:
        return jax.random.key_data(jax.random.fold_in(as_key(data), salt))

    def one(part: Any) -> Any:
        if not _is_drawing(part):
            return part
        each = jax.vmap(fold)(part.key.reshape(-1, part.key.shape[-1]))
        return replace(part, key=each.reshape(part.key.shape))

    return jax.tree.map(one, belief, is_leaf=_is_drawing)


def _shape(*shape: int, kind: Any = np.uint32) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, kind)


@functools.lru_cache(maxsize=256)
def learner_of(lanes: Lanes, row: WordLayout, capacity: int, tiles: int) -> Built:
    """Forecast, score and learn the rows of the first tiles: the stack, and reports (tiles, tile, words)."""
    build = functools.partial(_learning, lanes, row)
    return Built(*program("keyed", (lanes, row), build, lanes.blank(row, capacity, tiles), donate=(2,)))


def _learning(lanes: Lanes, row: WordLayout) -> Built:
    def one(learner: Any, key: Array | None, prior: Array, words: Array, values: Array) -> tuple[Any, PyTree]:
        x, y, weight, dt, salt, known = row.unpack((values, ()))
        belief = lanes.lane(words, prior, x, known, salt)
        draw = lanes.key_of(key, salt)
        new, outcome, info = scored_step(learner, belief, Row(x, y, weight=weight, dt=dt), key=draw)
        return new, (outcome, replace(info, extras=_changes(info)))

    def shapes(setting: Parts, prior: Array, words: Array, values: Array) -> tuple[Any, PyTree]:
        learner, key = lanes.form.open_setting(setting)
        return one(learner, key, prior, words, values)

    new, report = jax.eval_shape(shapes, *lanes.blank_lane(row))
    require_same(lanes.form, new)
    told = WordLayout.of(report, NEVER)

    def learn(
        setting: Parts, prior: Array, stack: Array, rows: Array, slots: Array, count: Array
    ) -> tuple[Array, Array]:
        learner, key = lanes.form.open_setting(setting)

        def side_by_side(learner: Any, key: Array | None, prior: Array, words: Array, rows: Array) -> Any:
            def lane(words: Array, values: Array) -> tuple[Array, Array]:
                new, report = one(learner, key, prior, words, values)
                return lanes.form.state.pack(new)[0], told.pack(report)[0]

            return jax.vmap(lane)(words, rows)

        def tile(stack: Array, number: Array) -> tuple[Array, Array]:
            at = slots[number]
            before = stack.at[at].get(mode="clip")
            after, report = call_fenced(side_by_side, (learner, key, prior, before, rows[number]))
            return stack.at[at].set(after, mode="drop"), report

        with jax.default_matmul_precision("highest"):
            return first_rows(tile, stack, rows.shape[0], count)

    return Built(learn, told)


def _changes(info: Info) -> PyTree:
    """The report of an update on changes; other reports are for those who step one learner."""
    extras = info.extras
    if isinstance(extras, ChangeReport):
        return {"change": extras.change, "alarm": extras.alarm}
    return None


@functools.lru_cache(maxsize=256)
def forecaster(lanes: Lanes, row: WordLayout, capacity: int, tiles: int, answer: Answer) -> Built:
    """The program that answers from the forecasts of the rows of the first tiles (tiles, tile, words)."""
    build = functools.partial(_forecasting, lanes, row, answer)
    return Built(*program("keyed-forecast", (lanes, row, answer), build, lanes.blank(row, capacity, tiles)))


def _forecasting(lanes: Lanes, row: WordLayout, answer: Answer) -> Built:
    def one(learner: Any, key: Array | None, prior: Array, words: Array, values: Array) -> PyTree:
        x, dt, salt, known = row.unpack((values, ()))
        predicted = learner.predict(lanes.lane(words, prior, x, known, salt), dt)
        draw = lanes.key_of(key, salt)
        if draw is not None:
            draw = jax.random.fold_in(jax.random.fold_in(draw, predicted.t), 1)
        return jax.tree.map(jnp.asarray, answer(learner.forecast(predicted, x, key=draw)))

    def shapes(setting: Parts, prior: Array, words: Array, values: Array) -> PyTree:
        return one(*lanes.form.open_setting(setting), prior, words, values)

    told = WordLayout.of(jax.eval_shape(shapes, *lanes.blank_lane(row)), NEVER)

    def ask(setting: Parts, prior: Array, stack: Array, rows: Array, slots: Array, count: Array) -> Array:
        learner, key = lanes.form.open_setting(setting)

        def side_by_side(learner: Any, key: Array | None, prior: Array, words: Array, rows: Array) -> Array:
            lane = functools.partial(one, learner, key, prior)
            return jax.vmap(lambda words, values: told.pack(lane(words, values))[0])(words, rows)

        def tile(number: Array) -> Array:
            before = stack.at[slots[number]].get(mode="clip")
            return call_fenced(side_by_side, (learner, key, prior, before, rows[number]))

        with jax.default_matmul_precision("highest"):
            return each_row(tile, rows.shape[0], count)

    return Built(ask, told)


@functools.lru_cache(maxsize=8)
def pooler(lanes: Lanes, capacity: int) -> Callable[..., Array]:
    """The prior for new keys: the mixture of the beliefs of some keys, by its first two moments."""
    words = lanes.form.state.size
    shapes = (_shape(words), _shape(capacity, words), _shape(POOLED, kind=np.int32), _shape(kind=np.int32))
    compiled, _ = program("keyed-pool", (lanes,), lambda: (_pooling(lanes.form), None), shapes)
    return compiled


def _pooling(form: Form) -> Callable[..., Array]:
    def pool(prior: Array, stack: Array, slots: Array, count: Array) -> Array:
        first = form.state.unpack((prior, ()))
        some = stack.at[slots].get(mode="clip")
        beliefs = jax.vmap(lambda words: form.state.unpack((words, ())))(some)
        rows = jnp.arange(slots.shape[0], dtype=jnp.int32)
        log_weights = jnp.where(rows < count, 0.0, -jnp.inf).astype(jax.dtypes.canonicalize_dtype(float))
        kept = {name: getattr(first, name) for name in ("t", "anchor") if hasattr(first, name)}
        merged: Any = replace(collapse(log_weights, beliefs), **kept)
        like = jax.tree.map(lambda leaf, old: jnp.asarray(leaf, old.dtype), merged, first)
        return form.state.pack(like)[0]

    return pool


@functools.partial(jax.jit, static_argnums=1)
def growing(stack: Array, capacity: int) -> Array:
    """The stack with room for more keys."""
    return jnp.zeros((capacity, stack.shape[1]), stack.dtype).at[: stack.shape[0]].set(stack)


@jax.jit
def taker(stack: Array, slots: Array) -> Array:
    """The words of some keys."""
    return stack.at[slots].get(mode="clip")


@functools.partial(jax.jit, donate_argnums=0)
def putter(stack: Array, slots: Array, words: Array) -> Array:
    """The stack with the words of some keys; slots beyond its end are passed over."""
    return stack.at[slots].set(words, mode="drop")
