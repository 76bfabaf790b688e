"""The best point of a space for a function that is cheap to compute: many starts, gradients, local search."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp

from credo.bandits.optimizer.box_ascent import ascend_in_box
from credo.bandits.optimizer.even_points import even_points
from credo.bandits.optimizer.space import Space
from credo.core.types import Array

__all__ = ["maximize"]

MOST = 512
"""The largest space of which every point is looked at."""

EVEN, NEAR, NEAR_SD = 256, 64, 0.1
"""How many candidates are spread evenly, how many lie near good points, and how near."""

STARTS, STEPS, ROUNDS = 16, 40, 2
"""How many of the best candidates are improved, by how many gradient steps, in how many rounds."""


def maximize(function: Callable[[Array], Array], space: Space, good: Array, key: Array) -> Array:
    """The point (D,) of a space where a differentiable function is largest, as far as a search finds it.

    Candidates are spread evenly and around rows (M, D) that are known to be good, and the best are improved
    by `ascend_in_box`. Where there are whole numbers or choices, a second round follows: in the first, whole
    numbers move freely and are rounded; in both, each row then moves to the best of its neighbours, which
    differ in one whole number by 1 or in one choice. A space of at most 512 points is searched whole. Values
    that are not finite count as the worst. Cost: 320 + M values, and 640 gradients a round.
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
        climbed, _ = ascend_in_box(function, rows, box, free, STEPS)
        climbed = jax.vmap(space.snap)(climbed)
        beside = jax.vmap(space.neighbours)(climbed)
        options = jnp.concatenate([climbed[:, None], beside], axis=1)
        scores = jax.vmap(score)(options)
        rows = jnp.concatenate([rows[:, None], options], axis=1)
        values = jnp.concatenate([values[:, None], scores], axis=1)
        places = jnp.argmax(values, axis=1)[:, None]
        chosen = jnp.take_along_axis(rows, places[:, :, None], axis=1)[:, 0]
        return (chosen, jnp.take_along_axis(values, places, axis=1)[:, 0]), None

    first, second = jax.random.split(key)
    even = jax.vmap(space.place)(even_points(first, 0, EVEN, len(space.variables))).astype(kind)
    moves = NEAR_SD * jax.random.normal(second, (NEAR, space.size), kind)
    near = good[jnp.arange(NEAR) % good.shape[0]] + jnp.where(ordered[None, :], moves, 0.0)
    rows = jnp.concatenate([even, jax.vmap(space.snap)(jnp.concatenate([near, good]))])
    values, places = jax.lax.top_k(score(rows), STARTS)
    mixed = not bool(space.smooth.all())
    free = jnp.stack([ordered, smooth][: ROUNDS if mixed else 1])
    (rows, values), _ = jax.lax.scan(improve, (rows[places], values), free)
    return rows[jnp.argmax(values)]
