"""Log weights of hypotheses, and one belief in place of their mixture, by matching its first two moments.

To support a kind of belief, register a function with `matched`: `(beliefs, weights) -> belief`, where
`beliefs` has a leading axis K and `weights` (K,) sum to one.
"""

from __future__ import annotations

import functools
import operator
from typing import TypeVar

import jax
import jax.numpy as jnp
import jax.scipy.special as jss

from credo.beliefs import Beta, Dirichlet, Gamma, Gaussian, InverseGamma, Particles
from credo.beliefs.particles import thinned
from credo.core.errors import CredoError
from credo.core.records import replace
from credo.core.types import Array
from credo.core.verbs import traced_once
from credo.covariances import collapse_mixture

__all__ = ["collapse", "log_sum", "matched", "normalized"]


def _log_sum(logs: Array, axis: int | None = None) -> Array:
    """logsumexp over an axis, by default over all, whose derivative is 0 if everything is -inf."""
    dead = jnp.max(logs, axis=axis) == -jnp.inf
    wide = dead if axis is None else jnp.expand_dims(dead, axis)
    return jnp.where(dead, -jnp.inf, jss.logsumexp(jnp.where(wide, 0.0, logs), axis=axis))


log_sum = traced_once(_log_sum, static=("axis",))


@traced_once
def log_sum_few(logs: Array) -> Array:
    """`log_sum` of a short vector, entry by entry: one loop in a compiled program instead of four."""
    entries = [logs[index] for index in range(logs.shape[0])]
    top = functools.reduce(jnp.maximum, entries)
    dead = top == -jnp.inf
    centre = jnp.where(dead, 0.0, top)
    total = functools.reduce(operator.add, [jnp.exp(entry - centre) for entry in entries])
    return jnp.where(dead, -jnp.inf, centre + jnp.log(jnp.where(dead, 1.0, total)))


def normalized(log_weights: Array) -> tuple[Array, Array]:
    """Log weights whose weights sum to one, and the log of their sum before; all -inf stays all -inf."""
    total = log_sum(log_weights)
    return jnp.where(total > -jnp.inf, log_weights - total, log_weights), total


T = TypeVar("T")


def collapse(log_weights: Array, beliefs: T) -> T:
    """The belief that has the first two moments of a mixture of K, whose weights may have any total.

    The moments are exact for `Full`, `Diagonal`, `Beta` and `Gamma`. `LowRank` keeps the marginal variances
    exactly and projects the rest. `Dirichlet` matches the means and the total variance. A learned noise
    variance matches the mean and variance of the precision. `Particles` stay particles: N of the K N are
    drawn by their weights, which keeps the whole shape of the mixture in expectation. Where all log weights
    are -inf, the first belief is returned.
    """
    alive = jnp.max(log_weights) > -jnp.inf
    first = jnp.arange(log_weights.shape[0]) == 0
    weights = jax.nn.softmax(jnp.where(alive, log_weights, jnp.where(first, 0.0, -jnp.inf)))
    belief = matched(_without_dead(beliefs, weights), weights)
    assert isinstance(belief, type(beliefs))
    return belief


def _without_dead(beliefs: T, weights: Array) -> T:
    """The beliefs, with the heaviest in place of those of weight 0, which may be infinite: 0 inf is NaN."""
    dead = weights == 0
    heaviest = jnp.argmax(weights)

    def fill(leaf: Array) -> Array:
        return jnp.where(dead.reshape((-1,) + (1,) * (leaf.ndim - 1)), leaf[heaviest], leaf)

    filled: T = jax.tree.map(fill, beliefs)
    return filled


@functools.singledispatch
def matched(beliefs: object, weights: Array) -> object:
    """The belief with the moments of `beliefs` under `weights`; dispatches on the kind of belief."""
    raise CredoError(
        "moments can be matched for Gaussian, Particles, Beta, Gamma and Dirichlet beliefs; got "
        f"{type(beliefs).__name__}: choose PriorReset() and overflow='drop'."
    )


@matched.register
def _(beliefs: Gaussian, weights: Array) -> Gaussian:
    mean = weights @ beliefs.mean
    gaps = beliefs.mean - mean[None, :]
    noise = beliefs.noise
    cov = beliefs.cov
    shares = weights
    if noise is not None:
        # The covariances are in units of each hypothesis's own noise variance.
        units = noise.scale / noise.shape
        noise = _matched_noise(noise, weights)
        unit = noise.scale / noise.shape
        cov = jax.vmap(lambda one, ratio: one.scale(ratio))(cov, units / unit)
        gaps = gaps / jnp.sqrt(unit)
    first: Gaussian = jax.tree.map(lambda leaf: leaf[0], beliefs)
    return replace(first, mean=mean, cov=collapse_mixture(cov, shares, gaps), noise=noise)


def _matched_noise(noise: InverseGamma, weights: Array) -> InverseGamma:
    shape = jnp.asarray(noise.shape)
    scale = jnp.asarray(noise.scale)
    mean, var = _moments(weights, shape / scale, shape / scale**2)
    return InverseGamma(mean**2 / var, mean / var, jnp.minimum(weights @ noise.forgetting, 1.0))


def _moments(weights: Array, mean: Array, var: Array) -> tuple[Array, Array]:
    centre = jnp.tensordot(weights, mean, axes=1)
    return centre, jnp.tensordot(weights, var + (mean - centre[None]) ** 2, axes=1)


@matched.register
def _(beliefs: Particles, weights: Array) -> Particles:
    return thinned(beliefs, weights)


@matched.register
def _(beliefs: Beta, weights: Array) -> Beta:
    mean, var = _moments(weights, beliefs.mean, beliefs.var)
    total = mean * (1 - mean) / var - 1
    return Beta(mean * total, (1 - mean) * total, beliefs.t[0])


@matched.register
def _(beliefs: Gamma, weights: Array) -> Gamma:
    mean, var = _moments(weights, beliefs.mean, beliefs.var)
    return Gamma(mean**2 / var, mean / var, beliefs.t[0])


@matched.register
def _(beliefs: Dirichlet, weights: Array) -> Dirichlet:
    mean, var = _moments(weights, jax.vmap(lambda b: b.mean)(beliefs), jax.vmap(lambda b: b.var)(beliefs))
    total = jnp.sum(mean * (1 - mean)) / jnp.sum(var) - 1
    return Dirichlet(mean * total, beliefs.t[0])
