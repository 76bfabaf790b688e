"""The published particle flow Bayes rule transcribed plainly into JAX: a baseline for `flow_times.py`.

The network, solver and loss are those of the published code (Chen, Dai & Song 2019), in the way in which that
code computes them: inputs are concatenated for every particle, the divergence takes d reverse passes, and the
loss goes through one step of the 3/8 rule for each of the observations. Parameters are those of
`credo_papers.published_flow.PublishedOperator`, so that the results can be compared.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

__all__ = ["chain_loss", "update", "update_density"]

Array = jax.Array


def _linear(layer: Any, rows: Array) -> Array:
    product: Array = rows @ layer["weights"] + layer["bias"][None, :]
    return product


def _set(params: Any, values: Array, y: Array) -> tuple[Array, Array, Array]:
    embedding = jnp.mean(jnp.tanh(_linear(params["embedding"], jax.lax.stop_gradient(values))), axis=0)
    own = params["interval"]
    context = jnp.concatenate([embedding, _linear(own["signal"], y[None, :])[0]])[None, :]

    def number(layers: Any) -> Array:
        value: Array = _linear(layers[1], jnp.tanh(_linear(layers[0], context)))[0, 0]
        return value

    start = jax.nn.softplus(number(own["start"]))
    return embedding, start, start + jax.nn.sigmoid(number(own["length"]))


def _velocity(params: Any, values: Array, t: Array, embedding: Array, y: Array) -> Array:
    own = params["velocity"]
    count = values.shape[0]
    sets = jnp.broadcast_to(embedding[None, :], (count, embedding.shape[0]))
    ys = jnp.broadcast_to(y[None, :], (count, y.shape[0]))
    inputs = jnp.concatenate([_linear(own["state"], values), _linear(own["signal"], ys), sets], axis=1)
    hidden = jnp.tanh(_linear(own["input"], inputs))
    for place, layer in enumerate(own["body"]):
        joined = jnp.concatenate([hidden, sets, ys], axis=1)
        gate = jax.nn.sigmoid(t * layer["gate"] + layer["gate_bias"])
        hidden = _linear(layer, joined) * gate[None, :] + (t * layer["gate_bias"])[None, :]
        hidden = jnp.tanh(hidden) if place < len(own["body"]) - 1 else hidden
    return hidden


def _step(field: Callable[[Array, Any], Any], state: Any, start: Array, end: Array) -> Any:
    h = end - start

    def plus(state: Any, *parts: tuple[float, Any]) -> Any:
        for factor, slope in parts:
            state = jax.tree.map(lambda y, k, factor=factor: y + factor * h * k, state, slope)
        return state

    k1 = field(start, state)
    k2 = field(start + h / 3, plus(state, (1 / 3, k1)))
    k3 = field(start + 2 * h / 3, plus(state, (1.0, k2), (-1 / 3, k1)))
    k4 = field(end, plus(state, (1.0, k1), (-1.0, k2), (1.0, k3)))
    return plus(state, (1 / 8, k1), (3 / 8, k2), (3 / 8, k3), (1 / 8, k4))


def update(params: Any, values: Array, y: Array) -> Array:
    """The particles (N, d) after an observation."""
    embedding, start, end = _set(params, values, y)
    moved: Array = _step(lambda t, x: _velocity(params, x, t, embedding, y), values, start, end)
    return moved


def update_density(params: Any, values: Array, y: Array) -> tuple[Array, Array]:
    """The particles (N, d) after an observation, and the integral of the divergence (N,)."""
    embedding, start, end = _set(params, values, y)

    def field(t: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
        out, pull = jax.vjp(lambda x: _velocity(params, x, t, embedding, y), state[0])
        basis = jnp.eye(out.shape[1], dtype=out.dtype)
        slopes = jax.vmap(lambda row: pull(jnp.broadcast_to(row[None, :], out.shape))[0])(basis)
        return out, jnp.trace(slopes, axis1=0, axis2=2)

    moved: tuple[Array, Array] = _step(field, (values, jnp.zeros_like(values[:, 0])), start, end)
    return moved


def chain_loss(
    params: Any,
    values: Array,
    logs: Array,
    ys: Array,
    log_likelihood: Callable[[Array, Array], Array],
    log_forecast: Callable[[Array, Array], Array],
) -> Array:
    """The loss of a moving state over observations ys (M, k), from particles (N, d) with log densities."""

    def step(state: tuple[Array, Array], y: Array) -> tuple[tuple[Array, Array], Array]:
        before, heights = state
        points, total = update_density(params, before, y)
        heights = heights - total
        likelihoods = jax.vmap(lambda z: log_likelihood(z, y))(points)
        return (points, heights), jnp.mean(heights - likelihoods - log_forecast(points, before))

    return jnp.sum(jax.lax.scan(step, (values, logs), ys)[1])
