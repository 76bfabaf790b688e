"""The velocity of the published operator, and its divergence.

With the embedding e of the set and the observation o, the context layer and three concat-squash layers are

    h = tanh(W [W_x x; W_o o; e] + b),
    h <- tanh((W [h; e; o] + b) sigmoid(g t + c) + r),      r = t c as published, or t b' corrected,

and the last layer, of d outputs, has no tanh. The flow runs over an interval that e and o decide.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

import jax
import jax.numpy as jnp

from credo.core.types import Array, PyTree
from credo_papers.published_flow.embedding import apply_layer, start_layer

__all__ = ["TimeTerm", "divergence", "interval", "jacobians", "start_interval", "start_velocity", "velocity"]

TimeTerm: TypeAlias = Literal["published", "corrected"]
"""The term that a layer adds for the time: t times the bias of its gate, as the published code does, or t
times a bias of its own, which that code declares and never uses."""


def start_velocity(key: Array, dim: int, signal: int, hidden: int, layers: int) -> PyTree:
    """Parameters of the velocity, drawn as the published code draws them.

    Arguments:
        key: the key.
        dim: the dimension d of the state.
        signal: the length o of what is known of the observation.
        hidden: the width of all layers and of the embedding.
        layers: how many hidden concat-squash layers there are.
    """
    keys = jax.random.split(key, layers + 4)
    sizes = [hidden] * (layers + 1) + [dim]
    return {
        "state": _default_layer(keys[0], dim, hidden),
        "signal": _default_layer(keys[1], signal, hidden),
        "input": _default_layer(keys[2], 3 * hidden, hidden),
        "body": [
            _squash_layer(keys[3 + i], sizes[i] + hidden + signal, sizes[i + 1]) for i in range(layers + 1)
        ],
    }


def _default_layer(key: Array, inputs: int, outputs: int) -> PyTree:
    """A linear layer as torch draws it: weights and biases uniform within 1 / sqrt(inputs)."""
    keys = jax.random.split(key)
    bound = float(inputs) ** -0.5
    weights = jax.random.uniform(keys[0], (inputs, outputs), minval=-bound, maxval=bound)
    return {"weights": weights, "bias": jax.random.uniform(keys[1], (outputs,), minval=-bound, maxval=bound)}


def _squash_layer(key: Array, inputs: int, outputs: int) -> PyTree:
    keys = jax.random.split(key, 5)
    bound = (3.0 / outputs) ** 0.5
    names = ("bias", "gate", "gate_bias", "time_bias")
    vectors = {
        name: jax.random.uniform(own, (outputs,), minval=-bound, maxval=bound)
        for name, own in zip(names, keys[1:], strict=True)
    }
    return {"weights": start_layer(keys[0], inputs, outputs)["weights"], **vectors}


def velocity(
    params: PyTree, values: Array, t: Array, embedding: Array, signal: Array, time_term: TimeTerm
) -> Array:
    """The velocities (N, d) of particles (N, d) at time t.

    Arguments:
        params: the parameters.
        values: the particles.
        t: the time, a scalar.
        embedding: e (h,).
        signal: o, the same for all particles (1, o), or one row a particle (N, o).
        time_term: what a layer adds for the time.
    """
    size = embedding.shape[0]
    first = params["input"]["weights"]
    seen = apply_layer(params["signal"], signal) @ first[size : 2 * size]
    seen = seen + (embedding @ first[2 * size :] + params["input"]["bias"])[None, :]
    hidden = jnp.tanh(apply_layer(params["state"], values) @ first[:size] + seen)
    last = len(params["body"]) - 1
    for place, layer in enumerate(params["body"]):
        # [h; e; o] W by parts: what is the same for all particles is multiplied once
        inner, own, rest = jnp.split(layer["weights"], [hidden.shape[1], hidden.shape[1] + size])
        fixed = signal @ rest + (embedding @ own + layer["bias"])[None, :]
        gate = jax.nn.sigmoid(t * layer["gate"] + layer["gate_bias"])
        rise = t * layer["gate_bias" if time_term == "published" else "time_bias"]
        hidden = (hidden @ inner + fixed) * gate[None, :] + rise[None, :]
        hidden = hidden if place == last else jnp.tanh(hidden)
    return hidden


def start_interval(key: Array, signal: int, hidden: int) -> PyTree:
    """Parameters of the interval: a layer for the observation, and two networks of one hidden layer."""
    keys = jax.random.split(key, 5)
    return {
        "signal": start_layer(keys[0], signal, hidden),
        "start": [start_layer(keys[1], 2 * hidden, hidden), start_layer(keys[2], hidden, 1)],
        "length": [start_layer(keys[3], 2 * hidden, hidden), start_layer(keys[4], hidden, 1)],
    }


def interval(params: PyTree, embedding: Array, signal: Array, length: float) -> tuple[Array, Array]:
    """The interval [t0, t0 + length sigmoid(.)] with t0 = softplus(.), of the embedding and o (1, o)."""
    context = jnp.concatenate([embedding, apply_layer(params["signal"], signal)[0]])[None, :]

    def number(layers: PyTree) -> Array:
        value: Array = apply_layer(layers[1], jnp.tanh(apply_layer(layers[0], context)))[0, 0]
        return value

    start = jax.nn.softplus(number(params["start"]))
    return start, start + length * jax.nn.sigmoid(number(params["length"]))


def jacobians(function: Callable[[Array], Array], values: Array) -> tuple[Array, Array]:
    """A function of each particle (N, d) -> (N, d), and its Jacobians (d, N, d), the input's axis first.

    Arguments:
        function: takes all particles, and moves each without looking at the others.
        values: the particles.
    """
    out, push = jax.linearize(function, values)
    basis = jnp.eye(values.shape[1], dtype=values.dtype)
    return out, jax.vmap(lambda row: push(jnp.broadcast_to(row[None, :], values.shape)))(basis)


def divergence(function: Callable[[Array], Array], values: Array) -> tuple[Array, Array]:
    """A velocity (N, d) and its exact divergence (N,), which costs d derivatives."""
    out, slopes = jacobians(function, values)
    return out, jnp.trace(slopes, axis1=0, axis2=2)
