"""Kernels of Gaussian processes: correlations of a function at two places, by their distance."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Literal, TypeAlias

import jax
import jax.numpy as jnp

from credo.core.types import Array

__all__ = ["CORRELATIONS", "KernelName", "correlations"]

KernelName: TypeAlias = Literal["matern", "squared-exponential"]
"""The smoothness of a function: twice differentiable, or arbitrarily often."""

ROOT = math.sqrt(5.0)


@jax.custom_jvp
def matern(squares: Array) -> Array:
    """The Matern kernel of order 5/2, (1 + s + s^2 / 3) exp(-s) with s^2 = 5 d^2, of squared distances d^2.

    Source: Rasmussen & Williams 2006, Gaussian Processes for Machine Learning, equation 4.17. Its derivative
    by d^2 is -5/6 (1 + s) exp(-s), also at 0, where that of s is infinite.
    """
    s = ROOT * jnp.sqrt(squares)
    return (1.0 + s + (5.0 / 3.0) * squares) * jnp.exp(-s)


@matern.defjvp
def _matern_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    s = ROOT * jnp.sqrt(primals[0])
    fall = jnp.exp(-s)
    value = (1.0 + s + (5.0 / 3.0) * primals[0]) * fall
    return value, (-5.0 / 6.0) * (1.0 + s) * fall * tangents[0]


def squared_exponential(squares: Array) -> Array:
    """The kernel exp(-d^2 / 2) of squared distances d^2."""
    return jnp.exp(-0.5 * squares)


CORRELATIONS: Mapping[KernelName, Callable[[Array], Array]] = {
    "matern": matern,
    "squared-exponential": squared_exponential,
}
"""The kernels by their names."""


def correlations(kernel: KernelName, left: Array, right: Array, length: Array) -> Array:
    """The correlations (A, B) of a function at rows (A, D) and (B, D), with a length scale a column (D,).

    Rows are subtracted before they are squared, so that close rows keep their digits in single precision.
    """
    per = 1.0 / length[None, :]
    gaps = (left * per)[:, None, :] - (right * per)[None, :, :]
    return CORRELATIONS[kernel](jnp.sum(gaps * gaps, axis=-1))
