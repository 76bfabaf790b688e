"""Solving the flow: the 3/8 Runge-Kutta rule in fixed steps, its gradient directly or by the adjoint, dopri5.

The direct gradient goes back through the steps and is that of the computed map, exactly. The adjoint solves
another differential equation backwards in time,

    da/dt = -a' df/dy,    dL/dtheta = int a' df/dtheta dt,

with the same rule. It keeps nothing of the way forwards, but it is the gradient of the exact solution, not of
the computed one: with one step, as published, it is biased.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any, Literal, TypeAlias

import jax
import jax.numpy as jnp

from credo.core.errors import CredoError
from credo.core.types import Array, PyTree

__all__ = ["Field", "Gradient", "Method", "runge_kutta", "solve"]

Field: TypeAlias = Callable[[PyTree, Array, PyTree], PyTree]
"""dy/dt = field(args, t, y)."""

Method: TypeAlias = Literal["rk4", "dopri5"]
"""Fixed steps of the 3/8 rule, or adaptive steps of Dormand and Prince (needs diffrax)."""

Gradient: TypeAlias = Literal["direct", "adjoint"]
"""The way in which a solution is differentiated."""


def runge_kutta(field: Field, steps: int, args: PyTree, state: PyTree, start: Array, end: Array) -> PyTree:
    """The state at `end`, by steps of Kutta's 3/8 rule: fourth order, four evaluations a step.

        k1 = f(t, y), k2 = f(t + h/3, y + h k1/3), k3 = f(t + 2h/3, y + h (k2 - k1/3)),
        k4 = f(t + h, y + h (k1 - k2 + k3)),  y' = y + h (k1 + 3 k2 + 3 k3 + k4) / 8

    Arguments:
        field: the derivative.
        steps: how many steps.
        args: what the derivative depends on.
        state: the state at `start`.
        start, end: the times; `end` may be before `start`.
    """
    h = (end - start) / steps

    def shifted(state: PyTree, *parts: tuple[float, PyTree]) -> PyTree:
        for factor, slope in parts:
            state = jax.tree.map(lambda y, k, factor=factor: y + (factor * h) * k, state, slope)
        return state

    def step(state: PyTree, place: Array) -> tuple[PyTree, None]:
        t = start + place * h
        k1 = field(args, t, state)
        k2 = field(args, t + h / 3, shifted(state, (1 / 3, k1)))
        k3 = field(args, t + 2 * h / 3, shifted(state, (1.0, k2), (-1 / 3, k1)))
        k4 = field(args, t + h, shifted(state, (1.0, k1), (-1.0, k2), (1.0, k3)))
        return shifted(state, (1 / 8, k1), (3 / 8, k2), (3 / 8, k3), (1 / 8, k4)), None

    if steps == 1:
        return step(state, jnp.zeros_like(h))[0]
    return jax.lax.scan(step, state, jnp.arange(steps, dtype=h.dtype))[0]


@partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def adjoint_runge_kutta(
    field: Field, steps: int, args: PyTree, state: PyTree, start: Array, end: Array
) -> PyTree:
    """`runge_kutta`, differentiated by solving the adjoint equation with the same steps."""
    return runge_kutta(field, steps, args, state, start, end)


def _forwards(
    field: Field, steps: int, args: PyTree, state: PyTree, start: Array, end: Array
) -> tuple[PyTree, Any]:
    out = runge_kutta(field, steps, args, state, start, end)
    return out, (args, out, start, end)


def _backwards(field: Field, steps: int, kept: Any, slope: PyTree) -> Any:
    args, out, start, end = kept

    def augmented(args: PyTree, t: Array, state: PyTree) -> PyTree:
        y, adjoint, _ = state
        change, pull = jax.vjp(lambda args, y: field(args, t, y), args, y)
        of_args, of_y = pull(adjoint)
        return change, _negative(of_y), _negative(of_args)

    zero = jax.tree.map(jnp.zeros_like, args)
    first, adjoint, of_args = runge_kutta(augmented, steps, args, (out, slope, zero), end, start)
    of_end = _inner(slope, field(args, end, out))
    of_start = -_inner(adjoint, field(args, start, first))
    return of_args, adjoint, of_start, of_end


adjoint_runge_kutta.defvjp(_forwards, _backwards)


def _negative(tree: PyTree) -> PyTree:
    return jax.tree.map(lambda leaf: -leaf, tree)


def _inner(one: PyTree, other: PyTree) -> Array:
    products = jax.tree.map(lambda a, b: jnp.sum(a * b), one, other)
    return jnp.sum(jnp.stack(jax.tree.leaves(products)))


def solve(  # noqa: PLR0913 - settings, each by its name
    field: Field,
    args: PyTree,
    state: PyTree,
    start: Array,
    end: Array,
    *,
    method: Method = "rk4",
    steps: int = 1,
    gradient: Gradient = "direct",
    tolerance: float = 1e-5,
) -> PyTree:
    """The state of dy/dt = field(args, t, y) at `end`.

    Arguments:
        field: the derivative; it may close over other arrays.
        args: what the derivative depends on.
        state: the state at `start`.
        start, end: the times.
        method: "rk4" or "dopri5".
        steps: how many steps "rk4" takes.
        gradient: "direct" or "adjoint".
        tolerance: the relative and the absolute tolerance of "dopri5".

    Raises:
        CredoError: diffrax is missing.
    """
    if method == "dopri5":
        return _dopri5(field, args, state, start, end, gradient, tolerance)
    if gradient == "direct":
        return runge_kutta(field, steps, args, state, start, end)
    closed, around = jax.closure_convert(field, args, start, state)

    def open_field(args: PyTree, t: Array, state: PyTree) -> PyTree:
        return closed(args[0], t, state, *args[1])

    return adjoint_runge_kutta(open_field, steps, (args, around), state, start, end)


def _dopri5(
    field: Field, args: PyTree, state: PyTree, start: Array, end: Array, gradient: Gradient, tolerance: float
) -> PyTree:
    try:
        diffrax: Any = import_module("diffrax")
    except ImportError:
        raise CredoError(
            "the solver 'dopri5' needs diffrax: install credo-papers with the extra `flows`, or use 'rk4' "
            "with more `steps`.",
            field="solver",
        ) from None
    backwards = {"direct": diffrax.RecursiveCheckpointAdjoint, "adjoint": diffrax.BacksolveAdjoint}[gradient]
    closed, around = jax.closure_convert(field, args, start, state)

    def open_field(t: Array, state: PyTree, args: PyTree) -> PyTree:
        return closed(args[0], t, state, *args[1])

    with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
        solution = diffrax.diffeqsolve(
            diffrax.ODETerm(open_field),
            diffrax.Dopri5(),
            start,
            end,
            None,
            state,
            (args, around),
            stepsize_controller=diffrax.PIDController(rtol=tolerance, atol=tolerance),
            adjoint=backwards(),
            saveat=diffrax.SaveAt(t1=True),
        )
    return jax.tree.map(lambda leaf: leaf[0], solution.ys)
