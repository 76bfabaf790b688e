"""The largest value of a smooth function over a box, from many starts at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import jax
import jax.numpy as jnp

from credo.core.types import Array

__all__ = ["ascend_in_box"]

Climb: TypeAlias = tuple[Array, Array, Array, Array, Array]
"""A row, its last gradient, its step lengths, the best row so far, and its value."""

FASTER, SLOWER = 1.2, 0.5
FIRST, LONGEST, SHORTEST = 0.05, 0.5, 1e-7


def ascend_in_box(
    function: Callable[[Array], Array], starts: Array, box: Array, free: Array, steps: int
) -> tuple[Array, Array]:
    """Climb a function of a row (D,) from starts (S, D), by projected gradient steps whose lengths adapt.

    Each number of a row moves by a length of its own in the direction of the sign of its derivative. The
    length grows by 1.2 while the sign stays and halves when it turns, so the scale of the function does not
    matter (Rprop: Riedmiller & Braun 1993). Rows are projected onto -box <= row <= box, and only the numbers
    that are `free` (D,) move. The best row of each path (S, D) is kept, with its value (S,), which is not
    below that of its start.
    """
    slope = jax.value_and_grad(lambda row: jnp.reshape(function(row), ()))
    kind = starts.dtype

    def finite(value: Array) -> Array:
        return jnp.where(jnp.isfinite(value), value, -jnp.inf).astype(kind)

    def climb(start: Array) -> tuple[Array, Array]:
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
        first = (start, jnp.zeros_like(start), jnp.full_like(start, FIRST), start, lowest)
        (_, _, _, best, top), _ = jax.lax.scan(step, first, None, length=steps)
        return best, top

    return jax.vmap(climb)(starts)
