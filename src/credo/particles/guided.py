"""Proposals of a particle filter: as the dynamics say, or with a look at the observation."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import jax
import jax.numpy as jnp

from credo.beliefs import Particles
from credo.core.errors import CredoError, require_integer
from credo.core.records import record, replace, static_field
from credo.core.types import Array, PyTree
from credo.particles.base import ParticleLearner
from credo.particles.conditioning import Evidence, condition
from credo.particles.resampling import resample

__all__ = [
    "Adapted",
    "BootstrapProposal",
    "Guided",
    "Observed",
    "Proposal",
    "distribution_of",
    "is_straight",
    "weigh",
]


class Proposal(ABC):
    """The way in which a particle filter proposes particles. A subclass is a record and writes `propose`.

    Example:
        >>> import credo
        >>> isinstance(credo.particles.BootstrapProposal(), Proposal)
        True
    """

    looks_back: bool = False
    """Whether it starts from the particles before the latest move, `belief.parents`."""

    def begin(self, learner: ParticleLearner, belief: Particles) -> Particles:
        """The first belief with what the proposal keeps, as `state`: by default nothing."""
        return belief

    @abstractmethod
    def propose(
        self, learner: ParticleLearner, belief: Particles, x: PyTree, y: PyTree, weight: Array, key: Array
    ) -> tuple[Particles, Array, Array]:
        """Particles for the present time, and how they are weighed.

        Arguments:
            learner: the particle filter, which has the model and the dynamics.
            belief: the predicted belief, whose log weights are those of the parents.
            x, y, weight: as for `ParticleLearner.assimilate`.
            key: the key of the draws.

        Returns:
            The belief with the proposed particles; their log weights (N,), whose logsumexp is an estimate of
            the log evidence of an observation of this weight; and the log evidence of a whole observation.
        """


@record
class BootstrapProposal(Proposal):
    """Propose what the dynamics say, and weigh by the likelihood.

    Example:
        >>> BootstrapProposal().looks_back
        False
    """

    def propose(
        self, learner: ParticleLearner, belief: Particles, x: PyTree, y: PyTree, weight: Array, key: Array
    ) -> tuple[Particles, Array, Array]:
        """The predicted particles, with weights W p(y | z)."""
        return weigh(learner, belief, x, y, weight, belief.values, belief.log_weights)


def weigh(
    learner: ParticleLearner,
    belief: Particles,
    x: PyTree,
    y: PyTree,
    weight: Array,
    values: Array,
    log_ratios: Array,
) -> tuple[Particles, Array, Array]:
    """Proposed particles (N, P) with log weights log_ratios + log p(y | z), as `Proposal.propose` returns
    them.
    """
    logs = learner.log_likelihood(values, belief.unravel, x, y, weight)
    whole = learner.log_likelihood(values, belief.unravel, x, y, (weight > 0).astype(values.dtype))
    log_evidence = jax.nn.logsumexp(log_ratios + whole)
    return replace(belief, values=values), log_ratios + logs, log_evidence


def distribution_of(learner: ParticleLearner, belief: Particles, parent: Array) -> tuple[Array, Array]:
    """The N(c, L L') of a particle, given the one before the latest move (P,); L is 0 at the prior."""
    assert belief.step is not None
    dynamics = learner.dynamics
    if not dynamics.gaussian:
        raise CredoError(
            "dynamics must have normal noise that is known here, as Transition.additive or RandomWalk; got "
            f"{dynamics!r}.",
            field="dynamics",
        )
    dt = None if dynamics.timeless else belief.step
    before = jnp.maximum(belief.t - 1, 0)
    mean, cov = dynamics.conditional(parent, belief.anchor, before, dt, belief.unravel)
    root = cov.color(jnp.eye(cov.deviates, dtype=parent.dtype)).T
    moved = belief.step > 0
    return jnp.where(moved, mean, parent), jnp.where(moved, root, 0.0)


def is_straight(learner: ParticleLearner, belief: Particles, x: PyTree) -> bool:
    """Whether the model is affine and the log-likelihood quadratic, so that one linearisation is exact."""
    model = learner.model
    return model.each.likelihood.quadratic and model.affine(belief.values[0], belief.unravel, x)


@record
class Guided(Proposal):
    """Propose from p(z_t | z_{t-1}, y_t) with the model linearised: an extended Kalman filter a particle.

    With p(z_t | z_{t-1}) = N(c, L L') and the Fisher information of the likelihood at c, every particle is
    drawn from its own normal distribution, and weighed by W p(y | z) p(z | z_{t-1}) / q(z) (Doucet, Godsill &
    Andrieu 2000, section II.D). The weights correct the linearisation, so any likelihood can be used. The
    dynamics must have normal noise that is known (`Transition.additive`, `RandomWalk`, ...); if they have
    none, the proposal is the bootstrap's.

    Arguments:
        iterations: how often the model is linearised for a particle, each time at the latest mean. Steps that
            would overshoot are shortened.

    Raises:
        CredoError: `iterations` is below 1.

    Cost of a step: N Jacobians, and N min(m, P)^3 where they differ by particle. Exact as N grows.

    Example:
        >>> import credo
        >>> model = credo.Model(lambda z, x: z, credo.Normal(1e-4))
        >>> learner = credo.particle_filter(model, 50, credo.RandomWalk(1.0), proposal="guided")
        >>> belief, info = learner.step(learner.init(jnp.zeros(1)), None, jnp.full(1, 2.0))
        >>> round(float(belief.mean[0]), 1), round(float(belief.sd[0]), 2)
        (2.0, 0.01)
    """

    iterations: int = static_field(default=1)
    looks_back = True

    def __post_init__(self) -> None:
        require_integer("iterations", self.iterations, 1)

    def propose(
        self, learner: ParticleLearner, belief: Particles, x: PyTree, y: PyTree, weight: Array, key: Array
    ) -> tuple[Particles, Array, Array]:
        """One particle for each parent, with the weights of importance sampling."""
        assert belief.parents is not None
        observed = Observed(learner, belief, x, y, weight)
        values, _, log_ratios = observed.draw(belief.parents, key, self.iterations)
        return observed.weigh(values, belief.log_weights + log_ratios)


@record
class Adapted(Proposal):
    """Resample with a look ahead, then propose from p(z_t | z_{t-1}, y_t): an auxiliary particle filter.

    Parents are drawn in proportion to W p(y_t | z_{t-1}) (Pitt & Shephard 1999), and each child from
    p(z_t | z_{t-1}, y_t), both with the model linearised as in `Guided`; the weights correct what that
    leaves. For an affine model with normal noise and normal dynamics nothing is left: all weights are equal,
    and the filter is fully adapted.

    Arguments:
        iterations: how often the model is linearised for a particle, each time at the latest mean. Steps that
            would overshoot are shortened.

    Raises:
        CredoError: `iterations` is below 1.

    Cost of a step: 2 N Jacobians, and N min(m, P)^3 where they differ by particle. Exact as N grows.

    Example:
        >>> import credo
        >>> model = credo.Model(lambda z, x: z, credo.Normal(1e-4))
        >>> learner = credo.particle_filter(model, 50, credo.RandomWalk(1.0), proposal="adapted")
        >>> belief, info = learner.step(learner.init(jnp.zeros(1)), None, jnp.full(1, 2.0))
        >>> round(float(belief.ess))
        50
    """

    iterations: int = static_field(default=1)
    looks_back = True

    def __post_init__(self) -> None:
        require_integer("iterations", self.iterations, 1)

    def propose(
        self, learner: ParticleLearner, belief: Particles, x: PyTree, y: PyTree, weight: Array, key: Array
    ) -> tuple[Particles, Array, Array]:
        """N children of parents that were drawn with a look ahead."""
        assert belief.parents is not None
        first, second = jax.random.split(key)
        observed = Observed(learner, belief, x, y, weight)
        _, looks, _ = observed.draw(belief.parents, first, self.iterations)
        ahead = belief.log_weights + looks
        count = belief.values.shape[0]
        ancestors = resample(first, ahead, count)
        values, again, log_ratios = observed.draw(belief.parents[ancestors], second, self.iterations)
        total = jax.nn.logsumexp(ahead) - math.log(count)
        return observed.weigh(values, total - again + log_ratios)


class Observed:
    """The common work of both proposals on an observation."""

    def __init__(
        self, learner: ParticleLearner, belief: Particles, x: PyTree, y: PyTree, weight: Array
    ) -> None:
        self.learner = learner
        self.belief = belief
        self.evidence = Evidence(learner.model, belief.unravel, x, y, weight)

    def draw(self, parents: Array, key: Array, iterations: int) -> tuple[Array, Array, Array]:
        """One child z of each parent; log p(y | m) p(m | z_{t-1}) / q(m) at the mean m of the proposal, which
        looks ahead for log p(y | z_{t-1}); and log p(z | z_{t-1}) / q(z).
        """
        learner = self.learner
        belief = self.belief
        straight = is_straight(learner, belief, self.evidence.x)

        def one(parent: Array, key: Array) -> tuple[Array, Array, Array]:
            centre, root = distribution_of(learner, belief, parent)
            conditioned = condition(self.evidence, centre, root, iterations, straight)
            noise = jax.random.normal(key, (1, root.shape[1]), parent.dtype)
            u = conditioned.mean + conditioned.squeeze(noise)[0]
            peak = self.evidence.log_prob(centre + root @ conditioned.mean)
            look = peak + conditioned.log_ratio(conditioned.mean)
            return centre + root @ u, look, conditioned.log_ratio(u)

        return jax.vmap(one)(parents, jax.random.split(key, parents.shape[0]))

    def weigh(self, values: Array, log_ratios: Array) -> tuple[Particles, Array, Array]:
        """The particles with log weights log_ratios + log p(y | z)."""
        evidence = self.evidence
        return weigh(self.learner, self.belief, evidence.x, evidence.y, evidence.weight, values, log_ratios)
