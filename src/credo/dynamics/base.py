"""The dynamics protocol, and parameters that stand still."""

from __future__ import annotations

from abc import ABC, abstractmethod

from credo.beliefs import Anchor
from credo.core.records import record
from credo.core.types import Array, ArrayLike
from credo.covariances import Covariance

__all__ = ["Dynamics", "Static"]


class Dynamics(ABC):
    """How N(mean, cov) moves in a time step. To add dynamics, write `move`, which must be traceable.

    It acts on the mean and, through the protocol of covariances, on any family. A subclass is a
    `credo.record`, so that its hyper-parameters are leaves.

    Example:
        Parameters that drift at a known speed:

        >>> import credo, jax.numpy as jnp
        >>> @credo.record
        ... class Drift(Dynamics):
        ...     speed: float
        ...     def move(self, mean, cov, anchor, t, dt):
        ...         return mean + self.speed * (1.0 if dt is None else dt), cov
        >>> model = credo.Model(lambda w, x: x @ w, credo.Normal(0.1))
        >>> learner = credo.extended_kalman(model, dynamics=Drift(0.5))
        >>> learner.predict(learner.init(jnp.zeros(2)), 2.0).mean
        Array([1., 1.], dtype=float32)
    """

    anchored: bool = False
    """Whether the dynamics return to the prior, so that beliefs must carry it."""

    def anchor(self, mean: Array, prior: Covariance | None) -> Anchor | None:
        """What a belief must carry of its prior N(mean, prior): all of it where `anchored`, else nothing."""
        return Anchor(mean, prior) if self.anchored else None

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
