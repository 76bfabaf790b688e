"""How a particle filter proposes new particles."""

from __future__ import annotations

from abc import ABC, abstractmethod

import jax

from credo.beliefs import Particles
from credo.core.records import record, replace
from credo.core.types import Array, PyTree
from credo.particles.base import ParticleLearner

__all__ = ["BootstrapProposal", "Proposal", "weigh"]


class Proposal(ABC):
    """How a particle filter proposes particles. A subclass is a record and writes `propose`.

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
        self,
        learner: ParticleLearner,
        belief: Particles,
        x: PyTree,
        y: PyTree,
        weight: Array,
        key: Array,
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
        self,
        learner: ParticleLearner,
        belief: Particles,
        x: PyTree,
        y: PyTree,
        weight: Array,
        key: Array,
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
