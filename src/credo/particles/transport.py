"""Flows that carry a set from prior to posterior by the gradient of the posterior's log density."""

from __future__ import annotations

from abc import abstractmethod
from typing import Literal, TypeAlias, get_args

import jax
import jax.numpy as jnp

from credo.beliefs import Particles
from credo.core.errors import require_choice, require_integer
from credo.core.records import replace
from credo.core.types import Array, PyTree
from credo.particles.base import ParticleLearner
from credo.particles.conditioning import Evidence
from credo.particles.linear_outputs import Moments, linear_outputs
from credo.particles.moves import Target
from credo.particles.smoothing import smooth

__all__ = ["Start", "TransportLearner"]

Start: TypeAlias = Literal["prior", "map"]
"""Where particles start: as predicted, or moved by the affine Gaussian map."""


class TransportLearner(ParticleLearner):
    """The base of learners that move particles along a flow to the posterior.

    The target is the smoothed predicted set times the likelihood. The flow acts in coordinates v of
    z = m + L (mu + R v), where N(m, L L') has the moments of the predicted set and N(mu, R R') is the
    posterior of u under the linearised model; so the posterior is about N(0, I) in v, whatever the units of
    the parameters and however much an observation says. No weights change. The log evidence is that of the
    predicted particles. A subclass is a record with the fields `start` and `steps`, and writes `carry`.
    """

    start: Start
    steps: int

    def __post_init__(self) -> None:
        super().__post_init__()
        require_choice("start", self.start, get_args(Start))
        require_integer("steps", self.steps, 1)

    @abstractmethod
    def carry(self, v: Array, log_weights: Array, target: Target) -> Array:
        """The particles (N, P) at the end of the flow towards a log density, up to a constant."""

    def assimilate(
        self, belief: Particles, x: PyTree, y: PyTree, weight: Array, key: Array
    ) -> tuple[Particles, Array]:
        prior = smooth(belief.values, belief.log_weights)
        outputs = linear_outputs(self, belief, x, Moments(prior.mean, prior.root))
        conditioned = outputs.condition(Evidence(self.model, belief.unravel, x, y, weight))
        spread = conditioned.squeeze(jnp.eye(prior.mean.shape[0], dtype=prior.mean.dtype))

        def color(v: Array) -> Array:
            return conditioned.mean[None, :] + v @ spread

        def target(v: Array) -> Array:
            u = color(v)
            logs = self.log_likelihood(prior.color(u), belief.unravel, x, y, weight)
            return prior.log_density(u) + logs

        u = prior.whiten(belief.values)
        if self.start == "map":
            u = conditioned.mean[None, :] + conditioned.contract(u)
        v = jnp.linalg.solve(spread.T, (u - conditioned.mean[None, :]).T).T
        carried = color(self.carry(v, belief.log_weights, target))
        whole = (weight > 0).astype(u.dtype)
        logs = belief.log_weights + self.log_likelihood(belief.values, belief.unravel, x, y, whole)
        values = prior.color(carried)
        return replace(belief, values=values), jax.nn.logsumexp(logs)
