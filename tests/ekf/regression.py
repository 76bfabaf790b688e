"""A small regression, and its log posterior in the forms that the transforms take."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

PARAMS = {"b": jnp.zeros(()), "w": jnp.array([0.5, -0.5])}
X = jnp.asarray(np.random.default_rng(0).normal(size=(6, 4, 2)))
Y = jnp.asarray(np.random.default_rng(1).normal(size=(6, 4)))


def rows(params: Any, batch: Any) -> tuple[jax.Array, Any]:
    x, y = batch
    eta = x @ params["w"] + params["b"]
    return -0.5 * (y - eta) ** 2, {"eta": eta}


def mean(params: Any, batch: Any) -> tuple[jax.Array, Any]:
    value, aux = rows(params, batch)
    return jnp.mean(value), aux


def silent(params: Any, batch: Any) -> tuple[jax.Array, None]:
    return mean(params, batch)[0], None


def loosely(value: object) -> Any:
    """A value of the wrong type, which no type checker is to see."""
    return value
