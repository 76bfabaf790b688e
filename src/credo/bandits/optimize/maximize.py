"""The largest value of a function that is cheap to compute, over a space."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from credo.bandits.optimize.space import Space, even_points
from credo.core.types import Array

__all__ = ["ascend_in_box", "maximize"]

Climb: TypeAlias = tuple[Array, Array, Array, Array, Array]
"""A row, its last gradient, its step lengths, the best row so far, and its value."""

FASTER, SLOWER = 1.2, 0.5
FIRST, LONGEST, SHORTEST = 0.05, 0.5, 1e-7
"""How long the steps of a climb are at first, at most and at least."""


def ascend_in_box(
    function: Callable[[Array], Array],
    starts: Array,
    box: Array,
    free: Array,
    steps: int,
    first: Array | None = None,
) -> tuple[Array, Array]:
    """Climb a function of a row (D,) from starts (S, D), by projected gradient steps whose lengths adapt.

    Each number of a row moves by a length of its own in the direction of the sign of its derivative. The
    length grows by 1.2 while the sign stays and halves when it turns, so the scale of the function does not
    matter (Rprop: Riedmiller & Braun 1993). The first steps have the lengths `first` (S,), or 0.05. Rows are
    projected onto -box <= row <= box, and only the numbers that are `free` (D,) move. The best row of each
    path (S, D) is kept, with its value (S,), which is not below that of its start.
    """
    slope = jax.value_and_grad(lambda row: jnp.reshape(function(row), ()))
    kind = starts.dtype

    def finite(value: Array) -> Array:
        return jnp.where(jnp.isfinite(value), value, -jnp.inf).astype(kind)

    def climb(start: Array, length: Array) -> tuple[Array, Array]:
        def step(carry: Climb, _: None) -> tuple[Climb, None]:
            row, before, length, best, top = carry
            value, gradient = slope(row)
            value = finite(value)
            best, top = jnp.where(value > top, row, best), jnp.maximum(top, value)
            turn = jnp.sign(gradient) * jnp.sign(before)
            factor = jnp.where(turn > 0, FASTER, jnp.where(turn < 0, SLOWER, 1.0))
            length = jnp.clip(length * factor, SHORTEST, LONGEST).astype(kind)
            move = jnp.nan_to_num(jnp.where(free, jnp.sign(gradient) * length, 0.0))
            return (jnp.clip(row + move, -box, box), gradient.astype(kind), length, best, top), None

        lowest = jnp.full((), -jnp.inf, kind)
        begin = (start, jnp.zeros_like(start), jnp.broadcast_to(length, start.shape), start, lowest)
        (_, _, _, best, top), _ = jax.lax.scan(step, begin, None, length=steps)
        return best, top

    return jax.vmap(climb)(starts, jnp.full(starts.shape[0], FIRST, kind) if first is None else first)


MOST = 512
"""The largest space of which every point is looked at."""

EVEN, NEAR, NEAR_SDS = 256, 64, (0.2, 0.05, 0.01, 0.002)
"""How many candidates are spread evenly, how many lie near good points, and how near, in turn."""

FIRST_SHARE = 0.3
"""The first step from a candidate near a good point, as a share of how near it is."""

STARTS, STEPS, ROUNDS = 8, 30, 2
"""How many of the best candidates are improved, by how many gradient steps, in how many rounds."""


def maximize(function: Callable[[Array], Array], space: Space, good: Array, key: Array) -> Array:
    """The point (D,) of a space where a differentiable function is largest, as far as a search finds it.

    Candidates are spread evenly and around rows (M, D) that are known to be good, and the best are improved
    by `ascend_in_box`. If there are whole numbers or choices, a second round follows: in the first, whole
    numbers move freely and are rounded; in both, each row then moves to the best of its neighbours, which
    differ in one whole number by 1 or in one choice. A space of at most 512 points is searched whole. Values
    that are not finite count as the worst. Half of the candidates near a good point
    differ from it in half of their numbers. Cost: 320 + M values, and 240 gradients a round.
    """
    kind = good.dtype

    def score(rows: Array) -> Array:
        values = jax.vmap(lambda row: jnp.reshape(function(row), ()))(rows)
        return jnp.where(jnp.isfinite(values), values, -jnp.inf).astype(kind)

    every = space.points(MOST)
    if every is not None:
        rows = jnp.asarray(every, kind)
        return rows[jnp.argmax(score(rows))]
    box, ordered, smooth = jnp.asarray(space.box, kind), jnp.asarray(space.ordered), jnp.asarray(space.smooth)

    def improve(carry: tuple[Array, Array], free: Array) -> tuple[tuple[Array, Array], None]:
        rows, values = carry
        climbed, _ = ascend_in_box(function, rows, box, free, STEPS, first)
        climbed = jax.vmap(space.snap)(climbed)
        beside = jax.vmap(space.neighbours)(climbed)
        options = jnp.concatenate([climbed[:, None], beside], axis=1)
        scores = jax.vmap(score)(options)
        rows = jnp.concatenate([rows[:, None], options], axis=1)
        values = jnp.concatenate([values[:, None], scores], axis=1)
        places = jnp.argmax(values, axis=1)[:, None]
        chosen = jnp.take_along_axis(rows, places[:, :, None], axis=1)[:, 0]
        return (chosen, jnp.take_along_axis(values, places, axis=1)[:, 0]), None

    one, two, three = jax.random.split(key, 3)
    even = jax.vmap(space.place)(even_points(one, 0, EVEN, len(space.variables))).astype(kind)
    turns = np.arange(NEAR)
    sds = jnp.asarray(np.asarray(NEAR_SDS)[turns % len(NEAR_SDS)], kind)
    moves = sds[:, None] * jax.random.normal(two, (NEAR, space.size), kind)
    some = jax.random.bernoulli(three, 0.5, (NEAR, space.size)) | (turns % 2 == 0)[:, None]
    places = (turns // len(NEAR_SDS)) % good.shape[0]
    near = good[places] + jnp.where(some & ordered[None, :], moves, 0.0)
    rows = jnp.concatenate([even, jax.vmap(space.snap)(jnp.concatenate([near, good]))])
    values, chosen = jax.lax.top_k(score(rows), STARTS)
    paces = jnp.concatenate(
        [jnp.full(EVEN, FIRST, kind), FIRST_SHARE * sds, jnp.full(good.shape[0], 0.01, kind)]
    )
    first = paces[chosen]
    mixed = not bool(space.smooth.all())
    free = jnp.stack([ordered, smooth][: ROUNDS if mixed else 1])
    (rows, values), _ = jax.lax.scan(improve, (rows[chosen], values), free)
    return rows[jnp.argmax(values)]
