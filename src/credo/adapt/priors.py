"""Conditional priors: what is believed about the parameters when a regime begins.

Given the auxiliary variable, BONE (Duran-Martin et al. 2024, arXiv 2411.10153) starts each update from a
prior that is made from the past belief. Here a conditional prior is either a record with a function `begin`,
such as `PriorReset()`, or any `Dynamics`, applied to the belief before the change: `Static()` keeps it,
`RandomWalk(var)` adds covariance, `Inflation(rate)` multiplies it, `OrnsteinUhlenbeck(forgetting)` moves it
toward the prior (a soft reset), `LinearGaussian(F, b, Q)` maps it. Where several pasts end in one
hypothesis, their mixture is matched in its first two moments first.
"""

from __future__ import annotations

import functools
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from credo.adapt.nested import Around, renewed
from credo.beliefs import Anchor, Beta, ClassNormals, Dirichlet, Gamma, Gaussian, Particles
from credo.beliefs.particles import RESET, moments
from credo.core.errors import CredoError
from credo.core.records import record, replace
from credo.core.trees import as_like
from credo.core.types import Array, ArrayLike
from credo.dynamics import Dynamics, Inflation, OrnsteinUhlenbeck, Static
from credo.learners.base import Belief

__all__ = [
    "ConditionalPrior",
    "PriorReset",
    "Subset",
    "descend",
    "moved",
    "moved_inside",
    "require_conditional_prior",
]

B = TypeVar("B", bound=Belief)


@runtime_checkable
class ConditionalPrior(Protocol[B]):
    """The protocol of conditional priors. To write your own, make a record with this function.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> @credo.record
        ... class SameMean:
        ...     def begin(self, parent, prior, dt):
        ...         return credo.replace(prior, mean=parent.mean, t=parent.t)
        >>> inner = credo.extended_kalman(credo.Model(jnp.dot, credo.Normal(0.1)))
        >>> learner = credo.RunLength(inner, hazard=0.1, conditional_prior=SameMean())
        >>> belief, info = learner.step(learner.init(jnp.zeros(2)), jnp.ones(2), 1.0)
        >>> bool(info.ok)
        True
    """

    def begin(self, parent: B, prior: B, dt: ArrayLike | None) -> B:
        """The belief with which a regime begins.

        Arguments:
            parent: the belief before the change.
            prior: the belief before any data.
            dt: the length of the time step; None means 1.
        """
        ...


@record
class PriorReset(Generic[B]):
    """A new regime begins with the belief before any data, and knows nothing of the old one.

    It works for every belief. Source: Adams & MacKay 2007.

    Example:
        >>> PriorReset()
        PriorReset()
    """

    def begin(self, parent: B, prior: B, dt: ArrayLike | None) -> B:
        """The prior, with new particles if it is a set of particles."""
        return renewed(prior, parent.t)


@record
class Subset(Generic[B]):
    """The observation does not belong to this regime: the prior explains it, and nothing is learned from it.

    It is for `ChangeTimes`, whose hypotheses are then subsets of the data. The observations left out are in
    `segments.times`. (CPL-Sub in BONE; coresets in Nguyen et al. 2018.)

    Example:
        >>> import credo, jax.numpy as jnp
        >>> inner = credo.extended_kalman(credo.Model(jnp.dot, credo.Normal(0.1)))
        >>> learner = credo.ChangeTimes(inner, hazard=0.1, capacity=4, conditional_prior=Subset())
        >>> ys = jnp.array([1.0, 1.1, 9.0, 0.9])
        >>> belief, _ = credo.run(learner, learner.init(jnp.zeros(1)), jnp.ones((4, 1)), ys)
        >>> [int(t) for t in belief.segments.times[belief.log_weights.argmax()] if t > 0]  # left out
        [3]
    """

    def begin(self, parent: B, prior: B, dt: ArrayLike | None) -> B:
        """The same belief, which waits for the next observation."""
        return parent


def require_conditional_prior(value: object) -> None:
    """Refuse a value that is neither dynamics nor has a function `begin`."""
    if not isinstance(value, ConditionalPrior | Dynamics):
        raise CredoError(
            f"conditional_prior must be PriorReset() or dynamics such as RandomWalk; got {value!r}."
        )


def descend(
    conditional_prior: ConditionalPrior[B] | Dynamics, parent: B, prior: B, dt: ArrayLike | None
) -> B:
    """The belief with which a regime begins, from the one before the change and the one before any data."""
    if isinstance(conditional_prior, Static):
        return parent
    if isinstance(conditional_prior, ConditionalPrior):
        return conditional_prior.begin(parent, prior, dt)
    belief = moved(parent, prior, conditional_prior, dt)
    assert isinstance(belief, type(parent))
    return belief


@functools.singledispatch
def moved(parent: object, prior: object, dynamics: Dynamics, dt: ArrayLike | None) -> object:
    """The parent after a step of the dynamics, anchored at the prior; dispatches on the kind of belief."""
    raise CredoError(
        f"the conditional prior of a {type(parent).__name__} must be PriorReset() or Static(); "
        f"got {dynamics!r}."
    )


def moved_inside(
    parent: Around[Any], prior: Around[Any], dynamics: Dynamics, dt: ArrayLike | None
) -> Around[Any]:
    """`moved` of a belief around another one that is moved and keeps the rest."""
    return replace(parent, belief=moved(parent.belief, prior.belief, dynamics, dt))


@moved.register
def _(parent: Gaussian, prior: Gaussian, dynamics: Dynamics, dt: ArrayLike | None) -> Gaussian:
    mean, cov = dynamics.move(parent.mean, parent.cov, Anchor(prior.mean, prior.cov), parent.t, dt)
    return replace(parent, mean=mean, cov=cov)


@moved.register
def _(parent: Particles, prior: Particles, dynamics: Dynamics, dt: ArrayLike | None) -> Particles:
    # The prior's own set stands for its moments, as it does where dynamics return to it.
    anchor = parent.anchor if parent.anchor is not None else moments(prior)
    values = dynamics.propagate(
        parent.values, parent.log_weights, parent.step_key(RESET), anchor, parent.t, dt, parent.unravel
    )
    if parent.parents is None or parent.step is None:
        return replace(parent, values=values)
    return replace(parent, values=values, parents=values, step=0 * parent.step)


@moved.register
def _(parent: Beta, prior: Beta, dynamics: Dynamics, dt: ArrayLike | None) -> Beta:
    share = _retention(dynamics, parent.a, dt)
    return Beta(_blend(share, parent.a, prior.a), _blend(share, parent.b, prior.b), parent.t)


@moved.register
def _(parent: Gamma, prior: Gamma, dynamics: Dynamics, dt: ArrayLike | None) -> Gamma:
    share = _retention(dynamics, parent.shape, dt)
    return Gamma(_blend(share, parent.shape, prior.shape), _blend(share, parent.per, prior.per), parent.t)


@moved.register
def _(parent: Dirichlet, prior: Dirichlet, dynamics: Dynamics, dt: ArrayLike | None) -> Dirichlet:
    share = _retention(dynamics, parent.counts, dt)
    return Dirichlet(_blend(share, parent.counts, prior.counts), parent.t)


@moved.register
def _(parent: ClassNormals, prior: ClassNormals, dynamics: Dynamics, dt: ArrayLike | None) -> ClassNormals:
    return parent.toward(prior, _retention(dynamics, parent.counts, dt))


def _retention(dynamics: Dynamics, counts: Array, dt: ArrayLike | None) -> Array:
    """The share of the pseudo-counts of a conjugate belief that these dynamics keep."""
    if isinstance(dynamics, OrnsteinUhlenbeck):
        share = as_like(dynamics.forgetting, counts)
    elif isinstance(dynamics, Inflation):
        share = 1.0 / (1.0 + as_like(dynamics.rate, counts))
    else:
        raise CredoError(
            "the conditional prior of a conjugate learner must be PriorReset(), Static(), "
            f"OrnsteinUhlenbeck or Inflation; got {dynamics!r}."
        )
    if dt is None:
        return share
    return share ** as_like(dt, share)


def _blend(share: Array, counts: Array, prior: Array) -> Array:
    return share * counts + (1 - share) * prior
