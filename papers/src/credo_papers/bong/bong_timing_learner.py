"""The learners of `bong-timing`: one update of a cell, compiled."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp

import credo
from credo.beliefs import Gaussian
from credo.core.types import Array
from credo.learners import Info
from credo_papers.bong.bong_grid import make_curvature, make_family, make_learner
from credo_papers.bong.bong_timing_plan import HIDDEN, RATES, Point

__all__ = ["compiled", "network"]


def network(params: dict[str, Array], x: Array) -> Array:
    """Return the logits (C,) of a network with one hidden layer of 8 units.

    Arguments:
        params: "in" (8, D), "bias" (8,) and "out" (C, 8).
        x: one row of inputs (D,).
    """
    return params["out"] @ jnp.tanh(params["in"] @ x + params["bias"])


def compiled(point: Point) -> tuple[Callable[[], None], float]:
    """Return one update of a cell, compiled and called once, which waits for its result; and its operations.

    The operations are those that the compiler counts: the body of a loop once, calls of LAPACK not at all.

    Arguments:
        point: the cell and its sizes; P must exceed 8 C + 8, the network's parameters without its inputs.
    """
    inputs = max(1, (point.P - HIDDEN - HIDDEN * point.C) // HIDDEN)
    keys = jax.random.split(jax.random.key(0), 3)
    params = {
        "in": jax.random.normal(keys[0], (HIDDEN, inputs), jnp.float32) / inputs**0.5,
        "bias": jnp.zeros(HIDDEN, jnp.float32),
        "out": jax.random.normal(keys[1], (point.C, HIDDEN), jnp.float32) / HIDDEN**0.5,
    }
    model = credo.Model(network, credo.Categorical(point.C))
    learner = make_learner(
        point.rule,
        model,
        make_family(point.family, point.R),
        make_curvature(point.curvature, point.M),
        learning_rate=RATES[point.rule],
        iterations=point.I,
    )
    belief = learner.init(params, var=0.1)
    x = jax.random.normal(keys[2], (inputs,), jnp.float32)
    args = (belief, x, jnp.asarray(0))

    def step(belief: Gaussian, x: Array, y: Array) -> tuple[Gaussian, Info]:
        return learner.update(belief, x, y, key=jax.random.key(1))

    program = jax.jit(step).lower(*args).compile()

    def call() -> None:
        jax.block_until_ready(program(*args))

    call()
    return call, (program.cost_analysis() or {}).get("flops", float("nan"))
