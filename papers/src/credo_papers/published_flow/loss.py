"""The losses of Algorithm 1: of a whole segment of observations, through which the particles flow in a chain.

With particles x_m and their log densities log q_m after m observations, a static state has the loss

    sum_m E_n[ log q_m(x_m) - log p(x_m) - sum_{i <= m} log p(o_i | x_m) ]  >=  -sum_m log p(o_1:m)

(Eq 17 and 20), and whose cost is quadratic in the number of observations; a moving state has

    sum_m E_n[ log q_m(x_m) - log p(o_m | x_m) - log 1/N sum_j p(x_m | x_{m-1}^j) ]  ~>=  -log p(o_1:M).

In the second a flow takes the posterior at m - 1 to that at m in one go, "absorbed", as the published code
does it. If the transition is "propagated", as the paper says, particles move with noise, and then the flow
begins with the kernel density estimate of Eq 18, log q = log p_hat, which also stands for the mixture.

The divergence makes a particle's density d times as dear as the particle. So the mean E_n may be that of the
first few particles: an estimate of the same loss without a bias, since particles are exchangeable, for a
fraction of the time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

import jax
import jax.numpy as jnp

from credo.core.types import Array, PyTree
from credo.flows.densities import KernelDensity, SetDensity
from credo.flows.operator import FlowMap, FlowOperator

__all__ = ["LogDensity", "TransitionMode", "absorbed_loss", "propagated_loss", "static_loss"]

LogDensity: TypeAlias = Callable[[Array, PyTree, PyTree], Array]
"""log p(y | value, x)."""

TransitionMode: TypeAlias = Literal["absorbed", "propagated"]
"""Whether the flow takes the state through time, too, or particles move before it."""


def static_loss(
    operator: FlowOperator,
    params: PyTree,
    values: Array,
    prior: SetDensity,
    log_likelihood: LogDensity,
    xs: PyTree,
    ys: PyTree,
    count: int | None = None,
) -> tuple[Array, Array]:
    """The cumulative loss of a static state over observations xs, ys with a leading axis M.

    Arguments:
        operator, params: the operator.
        values: particles (N, d) of the prior.
        prior: its density.
        log_likelihood: log p(y | value, x).
        xs, ys: the observations.
        count: the loss is the mean over this many particles, the first ones; None for all.

    Returns:
        The loss, and the last particles (N, d).
    """
    weights = _equal(values)
    places = jnp.arange(_length(ys))

    def step(
        state: tuple[Array, Array], row: tuple[Array, PyTree, PyTree]
    ) -> tuple[tuple[Array, Array], Array]:
        (points, logs) = state
        (place, x, y) = row
        bayes = operator.transport(params, points, weights, lambda z: log_likelihood(z, x, y), x, y)
        points, scored, log_det = _flowed(bayes, points, count)
        logs = logs - log_det

        def until_now(point: Array) -> Array:
            each = jax.vmap(lambda x, y: log_likelihood(point, x, y))(xs, ys)
            return jnp.sum(jnp.where(places <= place, each, 0.0))

        gaps = logs - prior.log_prob(scored) - jax.vmap(until_now)(scored)
        return (points, logs), jnp.mean(gaps)

    start = (values, prior.log_prob(values[:count]))
    (points, _), losses = jax.lax.scan(step, start, (places, xs, ys))
    return jnp.sum(losses), points


def absorbed_loss(  # noqa: PLR0913 - the parts of one call, in their order
    operator: FlowOperator,
    params: PyTree,
    values: Array,
    prior: SetDensity,
    log_likelihood: LogDensity,
    log_forecast: Callable[[Array, Array], Array],
    xs: PyTree,
    ys: PyTree,
    count: int | None = None,
) -> tuple[Array, Array]:
    """The loss of a moving state, by a flow that absorbs the transition.

    Arguments:
        operator, params, values, prior, log_likelihood, xs, ys, count: as for `static_loss`.
        log_forecast: log 1/N sum_j p(x_m | x_{m-1}^j) of points (N, d), from particles (N, d): (N,).
    """
    weights = _equal(values)

    def step(state: tuple[Array, Array], row: tuple[PyTree, PyTree]) -> tuple[tuple[Array, Array], Array]:
        (before, logs) = state
        (x, y) = row
        bayes = operator.transport(params, before, weights, lambda z: log_likelihood(z, x, y), x, y)
        points, scored, log_det = _flowed(bayes, before, count)
        logs = logs - log_det
        gaps = logs - log_forecast(scored, before) - jax.vmap(lambda z: log_likelihood(z, x, y))(scored)
        return (points, logs), jnp.mean(gaps)

    (points, _), losses = jax.lax.scan(step, (values, prior.log_prob(values[:count])), (xs, ys))
    return jnp.sum(losses), points


def propagated_loss(  # noqa: PLR0913 - the parts of one call, in their order
    operator: FlowOperator,
    params: PyTree,
    values: Array,
    log_likelihood: LogDensity,
    move: Callable[[Array, Array], Array],
    xs: PyTree,
    ys: PyTree,
    key: Array,
    count: int | None = None,
) -> tuple[Array, Array]:
    """The loss of a moving state, whose particles move with noise before they flow.

    Arguments:
        operator, params, values, log_likelihood, xs, ys, count: as for `static_loss`.
        move: particles (N, d) and a key; the particles after the transition.
        key: the key of the noise.
    """
    weights = _equal(values)
    keys = jax.random.split(key, _length(ys))

    def step(before: Array, row: tuple[PyTree, PyTree, Array]) -> tuple[Array, Array]:
        x, y, own = row
        moved = move(before, own)
        kernel = KernelDensity.of(jax.lax.stop_gradient(moved), weights)
        bayes = operator.transport(params, moved, weights, lambda z: log_likelihood(z, x, y), x, y)
        points, scored, log_det = _flowed(bayes, moved, count)
        likelihoods = jax.vmap(lambda z: log_likelihood(z, x, y))(scored)
        gaps = kernel.log_prob(moved[:count]) - log_det - kernel.log_prob(scored) - likelihoods
        return points, jnp.mean(gaps)

    points, losses = jax.lax.scan(step, values, (xs, ys, keys))
    return jnp.sum(losses), points


def _flowed(bayes: FlowMap, values: Array, count: int | None) -> tuple[Array, Array, Array]:
    """The images of particles (N, d) under a flow, of the first `count`, and their log-determinants."""
    scored, log_det = bayes.forward_density(values[:count])
    if count is None or count >= values.shape[0]:
        return scored, scored, log_det
    return jnp.concatenate([scored, bayes.forward(values[count:])]), scored, log_det


def _equal(values: Array) -> Array:
    return jnp.full(values.shape[0], -jnp.log(float(values.shape[0])), values.dtype)


def _length(ys: PyTree) -> int:
    return int(jax.tree.leaves(ys)[0].shape[0])
