"""Quasi-Newton ascent in a box, for a few numbers and a fixed count of evaluations."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from credo.core.types import Array
from credo.linalg.entries import identity

__all__ = ["climb_in_box"]

FIRST, LONGEST, SHORTER, ENOUGH = 0.1, 2.0, 0.3, 1e-4
"""The first inverse curvature, the longest step, what a failed step is cut to, and Armijo's share."""


class _Place(NamedTuple):
    """Where the descent is: the point, its value and gradient, the inverse Hessian, and the next step."""

    point: Array
    value: Array
    slope: Array
    inverse: Array
    step: Array


def climb_in_box(
    function: Callable[[Array], Array], start: Array, low: Array, high: Array, steps: int
) -> tuple[Array, Array]:
    """Climb a smooth function of a point (p,) in low <= point <= high, by projected BFGS.

    Each step evaluates the function and its gradient once. A step that does not rise enough (Armijo) is cut
    to 0.3 of it, and numbers that stand at an end of the box and want to leave it stay. Source: Nocedal &
    Wright 2006, Numerical Optimization, equation 6.17.

    Returns:
        The best point (p,), and its value, which is not below that of the start.
    """
    kind, size = start.dtype, start.shape[0]

    def look(point: Array) -> tuple[Array, Array]:
        both: tuple[Array, Array] = jax.value_and_grad(function)(point)
        value, slope = both
        good = jnp.isfinite(value)
        cost: Array = jnp.where(good, -value, jnp.inf)
        fall: Array = jnp.where(good & jnp.isfinite(slope), -slope, 0.0)
        return cost, fall

    def move(place: _Place, _: None) -> tuple[_Place, None]:
        point, value, slope, inverse, step = place
        held = ((point <= low) & (slope > 0)) | ((point >= high) & (slope < 0))
        free = jnp.where(held, 0.0, slope)
        way = jnp.where(held, 0.0, -(inverse @ free))
        falls = way @ free < 0
        way = jnp.where(falls, way, -free)
        way = way * jnp.minimum(1.0, LONGEST / jnp.maximum(jnp.max(jnp.abs(way)), 1e-30))
        new = jnp.clip(point + step * way, low, high)
        new_value, new_slope = look(new)
        moved, turned = new - point, new_slope - slope
        taken = new_value <= value + ENOUGH * (free @ moved)
        curve = moved @ turned
        curved = taken & (curve > 1e-10)
        per = 1.0 / jnp.where(curved, curve, 1.0)
        away = identity(size, kind) - per * jnp.outer(moved, turned)
        updated = away @ inverse @ away.T + per * jnp.outer(moved, moved)
        plain = jnp.where(falls, inverse, FIRST * identity(size, kind))
        return _Place(
            jnp.where(taken, new, point),
            jnp.where(taken, new_value, value),
            jnp.where(taken, new_slope, slope),
            jnp.where(curved, updated, plain),
            jnp.where(taken, jnp.ones_like(step), SHORTER * step),
        ), None

    value, slope = look(start)
    first = _Place(start, value, slope, FIRST * identity(size, kind), jnp.ones((), kind))
    last, _ = jax.lax.scan(move, first, None, length=steps)
    return last.point, -last.value
