"""The dynamics protocol, and parameters that stand still."""

from __future__ import annotations

from abc import ABC, abstractmethod

import jax
import jax.numpy as jnp

from credo.beliefs import Anchor
from credo.core.records import record
from credo.core.trees import Unravel
from credo.core.types import Array, ArrayLike
from credo.covariances import Covariance, Diagonal
from credo.covariances.divergence import log_normal

__all__ = ["Dynamics", "Static"]


class Dynamics(ABC):
    """The movement of N(mean, cov) in a time step. To add dynamics, write `move`, which must be traceable.

    It acts on the mean and, through the protocol of covariances, on any family. A subclass is a
    `credo.record`, so that its hyper-parameters are leaves. How particles move follows from `move`: the
    distribution of z_t given z_{t-1} = z is what N(z, 0) becomes. If that is not so, because the dynamics act
    on the set or are not Gaussian, a subclass writes `propagate`, too.

    Example:
        Parameters that drift at a known speed:

        >>> import credo, jax.numpy as jnp
        >>> @credo.record
        ... class SteadyDrift(Dynamics):
        ...     speed: float
        ...     def move(self, mean, cov, anchor, t, dt):
        ...         return mean + self.speed * (1.0 if dt is None else dt), cov
        >>> model = credo.Model(lambda w, x: x @ w, credo.Normal(0.1))
        >>> learner = credo.extended_kalman(model, dynamics=SteadyDrift(0.5))
        >>> learner.predict(learner.init(jnp.zeros(2)), 2.0).mean
        Array([1., 1.], dtype=float32)
    """

    anchored: bool = False
    """Whether the dynamics return to the prior, so that beliefs must carry it."""

    timeless: bool = False
    """Whether a step has no length, so that a `dt` is refused."""

    gaussian: bool = True
    """Whether one particle moves by a normal distribution, which `conditional` gives."""

    def anchor(self, mean: Array, prior: Covariance | None) -> Anchor | None:
        """The part of the prior that a belief must carry: N(mean, prior) where `anchored`, else nothing."""
        if self.anchored:
            return Anchor(mean, prior)
        return None

    def affine(self, like: Array, dt: ArrayLike | None) -> tuple[Array, Array] | None:
        """The a and d of dynamics that make a covariance S into diag(a) S diag(a) + diag(d).

        Arguments:
            like: an array of the dtype of the parameters.
            dt: the length of the step; None means 1.

        Returns:
            Numbers or arrays (P,) a and d; None if the dynamics do something else.
        """
        return None

    @abstractmethod
    def move(
        self, mean: Array, cov: Covariance | None, anchor: Anchor | None, t: Array, dt: ArrayLike | None
    ) -> tuple[Array, Covariance | None]:
        """The belief after a step.

        Arguments:
            mean: the mean (P,).
            cov: the covariance, or None for point beliefs, which have only a mean to move.
            anchor: the prior, where `anchored` is True.
            t: how many steps came before this one.
            dt: the length of the step, at least 0; None means 1.

        Returns:
            The mean (P,) and the covariance, which is None for a point belief.
        """

    def certainty(self, value: Array, anchor: Anchor | None) -> Covariance:
        """A covariance of zero, in a form to which these dynamics can add their noise."""
        if anchor is not None and anchor.cov is not None:
            return anchor.cov.scale(jnp.zeros((), value.dtype))
        return Diagonal().init(jnp.zeros_like(value))

    def conditional(
        self, value: Array, anchor: Anchor | None, t: Array, dt: ArrayLike | None, unravel: Unravel
    ) -> tuple[Array, Covariance]:
        """The mean (P,) and covariance of z_t given z_{t-1} = value, where that distribution is Gaussian.

        Arguments:
            value: one particle (P,).
            anchor, t, dt: as for `move`.
            unravel: how a vector becomes the parameter tree.

        Raises:
            CredoError: the distribution is not Gaussian.
        """
        mean, cov = self.move(value, self.certainty(value, anchor), anchor, t, dt)
        assert cov is not None
        return mean, cov

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
        """Move every particle, with noise of its own.

        Arguments:
            values: the particles (N, P).
            log_weights: their log weights (N,).
            key: the key of the noise.
            anchor, t, dt: as for `move`.
            unravel: how a vector becomes the parameter tree.

        Returns:
            The particles (N, P) after the step, with the same weights.
        """

        def distribution(value: Array) -> tuple[Array, Covariance]:
            return self.conditional(value, anchor, t, dt, unravel)

        def one(value: Array, deviates: Array) -> Array:
            mean, cov = distribution(value)
            return mean + cov.color(deviates)

        size = jax.eval_shape(distribution, values[0])[1].deviates
        return jax.vmap(one)(values, jax.random.normal(key, (values.shape[0], size), values.dtype))

    def log_transition(
        self,
        later: Array,
        value: Array,
        anchor: Anchor | None,
        t: Array,
        dt: ArrayLike | None,
        unravel: Unravel,
    ) -> Array:
        """log p(z_t = later | z_{t-1} = value), a scalar.

        Arguments:
            later, value: particles (P,).
            anchor, t, dt, unravel: as for `conditional`.

        Raises:
            CredoError: the density is not known.
        """
        mean, cov = self.conditional(value, anchor, t, dt, unravel)
        return log_normal(later - mean, cov)


def follow(values: Array, log_weights: Array, mean: Array, var: Array) -> Array:
    """The particles (N, P), stretched and shifted to have this mean (P,) and these variances (P,)."""
    weights = jnp.exp(log_weights)
    centre = weights @ values
    gaps = values - centre[None, :]
    old = weights @ gaps**2
    stretch = jnp.sqrt(jnp.where(old > 0, var / jnp.where(old > 0, old, 1.0), 1.0))
    return mean[None, :] + stretch[None, :] * gaps


@record
class Static(Dynamics):
    """Dynamics in which parameters do not move: theta_t = theta_{t-1}.

    Example:
        >>> import jax.numpy as jnp
        >>> Static().move(jnp.ones(2), None, None, jnp.asarray(0), None)
        (Array([1., 1.], dtype=float32), None)
    """

    def move(
        self, mean: Array, cov: Covariance | None, anchor: Anchor | None, t: Array, dt: ArrayLike | None
    ) -> tuple[Array, Covariance | None]:
        """The same mean and covariance, bit by bit."""
        return mean, cov

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
        """The same particles, bit by bit."""
        return values
