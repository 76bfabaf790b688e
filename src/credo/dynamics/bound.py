"""Dynamics whose variances stay within the prior's."""

from __future__ import annotations

import jax.numpy as jnp

from credo.beliefs import Anchor
from credo.core.records import record
from credo.core.trees import Unravel
from credo.core.types import Array, ArrayLike
from credo.covariances import Covariance, DiagonalCovariance
from credo.dynamics.base import Dynamics, follow

__all__ = ["PriorBound", "variances_of"]


def variances_of(mean: Array, prior: Covariance | None) -> Anchor:
    """The prior with its variances alone, which is all that some dynamics need: P numbers instead of P^2."""
    return Anchor(mean, None if prior is None else DiagonalCovariance(prior.diag()))


@record
class PriorBound(Dynamics):
    """Other dynamics, after which no parameter is less well known than it was before any data.

    With S the covariance that the other dynamics give, and s0 the variances of the prior, the covariance is
    D S D with D = diag(min(1, sqrt(s0 / diag S))). Variances above the prior's become the prior's, and all
    correlations stay. Without such a bound, `RandomWalk` and `Inflation(rate, "simple")` widen for ever what
    the data do not determine, such as the weights of a column that never moves, until the arithmetic fails.

    Two steps of dt/2 give the variances of one step of dt. With a simple inflation they give the same
    covariance; with a random walk the covariances differ to second order in q dt / s0 where the bound holds.

    Arguments:
        dynamics: the other dynamics.

    Cost: that of the other dynamics, and for the bound P^2 for `Full`, P for `Diagonal`, P R^2 for `LowRank`.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> model = credo.Model(lambda w, x: x @ w, credo.Normal(0.1))
        >>> learner = credo.extended_kalman(model, dynamics=PriorBound(credo.RandomWalk(0.5)))
        >>> belief, _ = learner.update(learner.init(jnp.zeros(2)), jnp.array([1.0, 0.0]), 1.0)
        >>> print(belief.var.round(2), learner.predict(belief).var.round(2))
        [0.09 1.  ] [0.59 1.  ]
    """

    dynamics: Dynamics
    anchored = True
    gaussian = False

    @property
    def timeless(self) -> bool:  # type: ignore[override]
        """Whether a step of the other dynamics has no length."""
        return self.dynamics.timeless

    def anchor(self, mean: Array, prior: Covariance | None) -> Anchor | None:
        """The prior's mean and variances, or what the other dynamics need of it."""
        return self.dynamics.anchor(mean, prior) or variances_of(mean, prior)

    def move(
        self, mean: Array, cov: Covariance | None, anchor: Anchor | None, t: Array, dt: ArrayLike | None
    ) -> tuple[Array, Covariance | None]:
        """The belief that the other dynamics give, with variances of at most the prior's."""
        step = self.dynamics.affine(mean, dt)
        if cov is not None and step is not None:
            assert anchor is not None and anchor.cov is not None
            mean, _ = self.dynamics.move(mean, None, anchor, t, dt)
            return mean, cov.affine_within(*step, anchor.cov.diag())
        mean, moved = self.dynamics.move(mean, cov, anchor, t, dt)
        if moved is None:
            return mean, None
        assert anchor is not None and anchor.cov is not None
        ratio = anchor.cov.diag() / moved.diag()
        return mean, moved.rescale(jnp.sqrt(jnp.minimum(ratio, 1.0)))

    def propagate(
        self,
        values: Array,
        log_weights: Array,
        key: Array,
        anchor: Anchor | None,
        t: Array,
        dt: ArrayLike | None,
        unravel: Unravel,
    ) -> Array:
        """The particles that the other dynamics give, drawn together where they are wider than the prior."""
        moved = self.dynamics.propagate(values, log_weights, key, anchor, t, dt, unravel)
        assert anchor is not None and anchor.cov is not None
        weights = jnp.exp(log_weights)
        mean = weights @ moved
        var = weights @ (moved - mean[None, :]) ** 2
        return follow(moved, log_weights, mean, jnp.minimum(var, anchor.cov.diag()))
