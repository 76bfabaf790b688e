"""Kalman's update by reflections, for noise that is singular or lost in rounding."""

from __future__ import annotations

import jax.numpy as jnp

from credo.beliefs import Gaussian
from credo.core.names import ForecastName
from credo.core.records import record, replace
from credo.core.trees import as_like
from credo.core.types import Array, ArrayLike, Key, PyTree
from credo.covariances import FullCovariance
from credo.learners.acceptance import Info, accept, clean, legible, usable
from credo.learners.recursive import RecursiveLearner
from credo.likelihoods import Predictive
from credo.likelihoods.root_normal import RootNormal, informative, resolution
from credo.linalg.jacobians import as_rows
from credo.linalg.matrices import rows_times, solve_lower, triangularize

__all__ = ["OrthogonalLearner"]


@record
class OrthogonalLearner(RecursiveLearner):
    """A recursive learner that squares and inverts no noise, by the array algorithm.

    With S = W W', R = N N' and the rows H of the outputs, one triangle has all of the update,

        [ N   H W ]         [ L   0  ]
        [ 0    W  ]  Q   =  [ K   W+ ],      mean+ = mean + K inv(L) (y - H mean),   S+ = W+ W+',

    where Q is orthogonal, L is the root of the covariance of y, and K = S H' inv(L)'. An output that those
    before it determine, to rounding, says nothing more and is left out, so that R may be 0 or singular. The
    evidence is then the density of the others. Source: Kailath, Sayed & Hassibi 2000, Linear Estimation.

    It is what `credo.kalman` gives for such noise. The likelihood is a `RootNormal`, the family `Full()`, and
    the rule Kalman's. Cost: (C + P)^3.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> learner = credo.kalman(jnp.eye(1), jnp.ones((2, 1)), 0.1, 0.0)
        >>> belief, info = learner.step(learner.init(jnp.zeros(1)), None, jnp.ones(2))
        >>> bool(info.ok), belief.mean.tolist(), belief.cov.dense().tolist()
        (True, [1.0], [[0.0]])
    """

    def _outputs(self, belief: Gaussian, x: PyTree) -> tuple[Array, Array]:
        """The outputs (C,) at the mean, and the root Z = H W (C, P) of their covariance."""
        eta, rows = self.model.linearize(belief.mean, belief.unravel, x)
        return eta, rows_times(as_rows(rows).dense(), _root(belief))

    def measurement_update(
        self, belief: Gaussian, x: PyTree, y: PyTree, weight: ArrayLike, key: Key | None
    ) -> tuple[Gaussian, Info]:
        likelihood = self.model.likelihood
        assert isinstance(likelihood, RootNormal)
        safe_y, there = legible(likelihood, y)
        observed, used = usable(there, weight, belief.mean.dtype)
        eta, spread = self._outputs(belief, clean(x))
        known = RootNormal(as_like(likelihood.root, eta) / jnp.sqrt(jnp.where(used > 0, used, 1.0)))
        forecast = known.with_spread(eta, spread)
        value = jnp.asarray(safe_y, eta.dtype).reshape(-1)
        seen = ~jnp.isnan(value)
        upper, free = informative(forecast.root, eta, seen)
        size = eta.shape[0]
        wide = jnp.zeros((belief.mean.shape[0], upper.shape[1]), eta.dtype)
        root = _root(belief)
        lower = wide.at[:, -size - spread.shape[1] : -size].set(root)
        triangle = triangularize(jnp.concatenate([upper, lower], axis=0))
        white = solve_lower(triangle[:size, :size], jnp.where(free, value - eta, 0.0))
        mean = belief.mean + triangle[size:, :size] @ white
        assert isinstance(belief.cov, FullCovariance)
        new = replace(belief, mean=mean, cov=belief.cov.with_root(_known(triangle[size:, size:], root)))
        law = likelihood.with_spread(eta, spread)
        log_evidence = jnp.where(used > 0, law.log_prob(safe_y), 0.0)
        return accept(belief, new, log_evidence, observed, x, y, used)

    def predictive(
        self, belief: Gaussian, x: PyTree, method: ForecastName | None, samples: int | None, key: Key | None
    ) -> Predictive:
        likelihood = self.model.likelihood
        if (method or self.forecasting) != "linearized":
            return super().predictive(belief, x, method, samples, key)
        assert isinstance(likelihood, RootNormal)
        return likelihood.with_spread(*self._outputs(belief, x))


def _known(root: Array, before: Array) -> Array:
    """The new root (P, P), with 0 where no more than the rounding of the old one is left."""
    level = 4.0 * resolution(before) * jnp.sqrt(jnp.sum(before**2, axis=1))
    return jnp.where(jnp.abs(root) > level[:, None], root, 0.0)


def _root(belief: Gaussian) -> Array:
    assert isinstance(belief.cov, FullCovariance)
    return belief.cov.as_root()
