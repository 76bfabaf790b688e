"""The affine Gaussian map: particles that follow a Kalman filter's mean and covariance."""

from __future__ import annotations

from credo.beliefs import Particles
from credo.core.errors import require_integer
from credo.core.names import ForecastName
from credo.core.records import record, replace, static_field
from credo.core.types import Array, Key, PyTree
from credo.dynamics import Dynamics, Static
from credo.likelihoods import Predictive, Rows
from credo.models.model import Model
from credo.particles.base import ParticleLearner
from credo.particles.conditioning import Evidence
from credo.particles.linear_outputs import LinearOutputs, linear_outputs, predicted_moments, set_moments

__all__ = ["GaussianMap", "MomentLearner", "gaussian_map"]


class MomentLearner(ParticleLearner):
    """The base of learners that linearise the model once for the whole set.

    Forecasts are "linearized" unless they are asked for otherwise, and the log evidence is that of the
    linearised model: exact where the belief is normal and the model affine with normal noise.
    """

    @property
    def looks_back(self) -> bool:  # type: ignore[override]
        """Whether the noise of the dynamics is known, so that the moments need no draws of it."""
        return self.dynamics.gaussian

    def predictive(
        self, belief: Particles, x: PyTree, method: ForecastName | None, samples: int | None, key: Key | None
    ) -> Predictive:
        """The forecast, which is "linearized" by default; see `ParticleLearner.predictive`."""
        return super().predictive(belief, x, "linearized" if method is None else method, samples, key)

    def output_moments(self, belief: Particles, x: PyTree) -> tuple[Array, Array]:
        """The mean (C,) and covariance (C, C) of the linearised outputs."""
        outputs = linear_outputs(self, belief, x, predicted_moments(self, belief))
        return outputs.eta, outputs.cov

    def log_evidence(self, outputs: LinearOutputs, y: PyTree, weight: Array) -> Array:
        """The log density of a whole observation under the linearised model."""
        likelihood = self.model.likelihood
        predictive = likelihood.linearized(outputs.eta, outputs.cov)
        if weight.ndim and isinstance(likelihood, Rows):
            return likelihood.log_evidence(predictive, outputs.eta, y, weight > 0, None)
        return predictive.log_prob(y)


@record
class GaussianMap(MomentLearner):
    """Move all particles by the affine map that turns the predicted moments into the posterior ones.

    With the predicted moments N(m, S), S = L L', and the set's own m~ and L~, a particle z becomes

        m + L (mu + C^(1/2) inv(L~) (z - m~)),   C = inv(I + B B'),

    where N(mu, C) is the posterior of u in z = m + L u (see `credo.particles.conditioning`). For an affine
    model with normal noise and normal dynamics, the moments of the set are then those of a Kalman filter,
    without any Monte Carlo error but that of the first draw, and its shape is carried along. Other models are
    linearised by regression on the particles, as in an ensemble Kalman filter. No weights change.

    Arguments:
        model: a `Model`; `joint(model)` for mini-batches.
        particles: the number N, at least 2; more than P, or the map acts in the span of the particles only.
        dynamics: how a particle moves. Where its noise is normal and known, the predicted moments take it as
            it is; otherwise they are those of the moved particles.
        iterations: how often a likelihood that is not normal is made quadratic, each time at the latest mean.

    Raises:
        CredoError: there are fewer than 2 particles or 1 iteration.

    Cost of a step: N P^2, P^3 and C^3, and a Jacobian or N evaluations of the model. Exact for
    linear-Gaussian models; for others it keeps a normal approximation.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> model = credo.Model(lambda z, x: z @ x, credo.Normal(0.1))
        >>> learner = GaussianMap(model, particles=50)
        >>> belief, info = learner.step(learner.init(jnp.zeros(2)), jnp.ones(2), 1.0)
        >>> belief.values.shape
        (50, 2)
    """

    model: Model
    particles: int = static_field(default=256)
    dynamics: Dynamics = Static()
    iterations: int = static_field(default=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        require_integer("iterations", self.iterations, 1)

    def assimilate(
        self, belief: Particles, x: PyTree, y: PyTree, weight: Array, key: Array
    ) -> tuple[Particles, Array]:
        around = predicted_moments(self, belief)
        outputs = linear_outputs(self, belief, x, around)
        evidence = Evidence(self.model, belief.unravel, x, y, weight)
        conditioned = outputs.condition(evidence, self.iterations)
        white = set_moments(belief.values, belief.log_weights).whiten(belief.values)
        u = conditioned.mean[None, :] + conditioned.contract(white)
        return replace(belief, values=around.color(u)), self.log_evidence(outputs, y, weight)


def gaussian_map(
    model: Model, particles: int = 256, dynamics: Dynamics | None = None, *, iterations: int = 1
) -> GaussianMap:
    """Particles that follow a Kalman filter's mean and covariance; see `GaussianMap`.

    Arguments:
        model, particles, iterations: as for `GaussianMap`.
        dynamics: a `Transition`, or any other dynamics; None stands still.

    Returns:
        The learner.

    Example:
        >>> import credo
        >>> gaussian_map(credo.Model(lambda z, x: z @ x, credo.Normal(0.1)), 100).particles
        100
    """
    return GaussianMap(model, particles, Static() if dynamics is None else dynamics, iterations)
