"""Conditional priors: what is believed of the parameters when a regime begins.

Given the auxiliary variable, BONE (Duran-Martin et al. 2024, arXiv 2411.10153) starts each update from a
prior that is made of the past belief. Here a conditional prior is either `PriorReset()`, or any
`Dynamics`, applied to the belief before the change: `Static()` keeps it, `RandomWalk(q)` adds covariance,
`Inflation(alpha)` multiplies it, `OrnsteinUhlenbeck(gamma)` moves it toward the prior (a soft reset),
`LinearGaussian(F, b, Q)` maps it. Where several pasts end in one hypothesis, their mixture is matched in its
first two moments first.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp

from credo.beliefs import Anchor, Beta, Dirichlet, Gamma, Gaussian, InverseGamma
from credo.core.errors import CredoError
from credo.core.records import record, replace
from credo.core.trees import as_like
from credo.covariances import collapse_mixture
from credo.dynamics import Dynamics, Inflation, OrnsteinUhlenbeck, Static

__all__ = ["PriorReset", "Subset", "collapse", "descend", "require_conditional_prior"]


@record
class PriorReset:
    """A new regime knows nothing of the old one: the belief before any data (Adams & MacKay 2007).

    Works for every belief.
    """


@record
class Subset:
    """The observation is not of this regime: the prior explains it, and nothing is learned from it.

    For `ChangeTimes`, whose hypotheses then are subsets of the data: those that were left out are in
    `segments.times`. (CPL-Sub in BONE; coresets in Nguyen et al. 2018.)
    """

    def begin(self, parent: Any, prior: Any, dt: Any) -> Any:
        """The same belief: it waits for the next observation."""
        return parent


def require_conditional_prior(value: Any) -> None:
    """Refuse what is neither `PriorReset()`, nor dynamics, nor has a `begin` of its own."""
    if not isinstance(value, PriorReset | Dynamics) and not hasattr(value, "begin"):
        raise CredoError(
            f"conditional_prior must be PriorReset() or dynamics such as RandomWalk; got {value!r}."
        )


def descend(conditional_prior: Any, parent: Any, prior: Any, dt: Any) -> Any:
    """The belief with which a regime begins.

    Arguments:
        conditional_prior: `PriorReset()`, dynamics, or anything with `begin(parent, prior, dt)`, a belief.
        parent: the belief before the change.
        prior: the belief before any data.
        dt: the length of the time step.

    Raises:
        CredoError: these dynamics do not act on this kind of belief.
    """
    if isinstance(conditional_prior, PriorReset):
        return replace(prior, t=parent.t)
    if isinstance(conditional_prior, Static):
        return parent
    if hasattr(conditional_prior, "begin"):
        return conditional_prior.begin(parent, prior, dt)
    if isinstance(parent, Gaussian):
        anchor = Anchor(prior.mean, prior.cov)
        mean, cov = conditional_prior.move(parent.mean, parent.cov, anchor, parent.t, dt)
        return replace(parent, mean=mean, cov=cov)
    if isinstance(parent, Beta | Gamma | Dirichlet):
        if isinstance(conditional_prior, OrnsteinUhlenbeck):
            keep = as_like(conditional_prior.forgetting, _counts(parent)[0])
        elif isinstance(conditional_prior, Inflation):
            keep = 1.0 / (1.0 + as_like(conditional_prior.rate, _counts(parent)[0]))
        else:
            raise CredoError(
                "the conditional prior of a conjugate learner must be PriorReset(), Static(), "
                f"OrnsteinUhlenbeck or Inflation; got {conditional_prior!r}."
            )
        keep = keep if dt is None else keep ** as_like(dt, keep)
        mixed = jax.tree.map(lambda a, b: keep * a + (1 - keep) * b, _counts(parent), _counts(prior))
        return _with_counts(parent, mixed)
    raise CredoError(
        f"the conditional prior of a {type(parent).__name__} must be PriorReset() or Static(); "
        f"got {conditional_prior!r}."
    )


def _counts(belief: Any) -> tuple[jax.Array, ...]:
    names = {Beta: ("a", "b"), Gamma: ("shape", "per"), Dirichlet: ("counts",)}[type(belief)]
    return tuple(getattr(belief, name) for name in names)


def _with_counts(belief: Any, counts: tuple[jax.Array, ...]) -> Any:
    return type(belief)(*counts, belief.t)


@functools.singledispatch
def _collapse(beliefs: Any, weights: jax.Array) -> Any:
    raise CredoError(
        "moments can be matched for Gaussian, Beta, Gamma and Dirichlet beliefs; got "
        f"{type(beliefs).__name__}: choose PriorReset() and overflow='drop'."
    )


def collapse(log_weights: jax.Array, beliefs: Any) -> Any:
    """The one belief with the first two moments of a mixture.

    Arguments:
        log_weights: (K,), of any total; where all are -inf, the first belief is given back.
        beliefs: a belief whose arrays have a leading axis K.

    Exact moments for `Full`, `Diagonal`, Beta and Gamma; `LowRank` keeps the marginal variances exactly and
    projects the rest; Dirichlet matches the means and the total variance. A learned noise variance matches
    the mean and variance of the precision.
    """
    alive = jnp.max(log_weights) > -jnp.inf
    first = jnp.arange(log_weights.shape[0]) == 0
    weights = jax.nn.softmax(jnp.where(alive, log_weights, jnp.where(first, 0.0, -jnp.inf)))
    return _collapse(beliefs, weights)


@_collapse.register
def _(beliefs: Gaussian, weights: jax.Array) -> Gaussian:
    mean = weights @ beliefs.mean
    gaps = beliefs.mean - mean[None, :]
    noise, cov, shares = beliefs.noise, beliefs.cov, weights
    if noise is not None:
        # The covariances are in units of each hypothesis's own noise variance.
        units = noise.scale / noise.shape
        noise = _collapse_noise(noise, weights)
        unit = noise.scale / noise.shape
        cov = jax.vmap(lambda one, ratio: one.scale(ratio))(cov, units / unit)
        gaps = gaps / jnp.sqrt(unit)
    first = jax.tree.map(lambda leaf: leaf[0], beliefs)
    return replace(first, mean=mean, cov=collapse_mixture(cov, shares, gaps), noise=noise)


def _collapse_noise(noise: InverseGamma, weights: jax.Array) -> InverseGamma:
    mean, var = _moments(weights, noise.shape / noise.scale, noise.shape / noise.scale**2)
    return InverseGamma(mean**2 / var, mean / var, weights @ noise.forgetting)


def _moments(weights: jax.Array, mean: jax.Array, var: jax.Array) -> tuple[jax.Array, jax.Array]:
    centre = jnp.tensordot(weights, mean, axes=1)
    return centre, jnp.tensordot(weights, var + (mean - centre[None]) ** 2, axes=1)


@_collapse.register
def _(beliefs: Beta, weights: jax.Array) -> Beta:
    mean, var = _moments(weights, beliefs.mean, beliefs.var)
    total = mean * (1 - mean) / var - 1
    return Beta(mean * total, (1 - mean) * total, beliefs.t[0])


@_collapse.register
def _(beliefs: Gamma, weights: jax.Array) -> Gamma:
    mean, var = _moments(weights, beliefs.mean, beliefs.var)
    return Gamma(mean**2 / var, mean / var, beliefs.t[0])


@_collapse.register
def _(beliefs: Dirichlet, weights: jax.Array) -> Dirichlet:
    mean, var = _moments(weights, jax.vmap(lambda b: b.mean)(beliefs), jax.vmap(lambda b: b.var)(beliefs))
    total = jnp.sum(mean * (1 - mean)) / jnp.sum(var) - 1
    return Dirichlet(mean * total, beliefs.t[0])
