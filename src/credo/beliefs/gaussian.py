"""Gaussian beliefs over a parameter tree, point beliefs, and ensembles of parameter vectors."""

from __future__ import annotations

from credo.beliefs.conjugate import InverseGamma
from credo.core.fields import field
from credo.core.records import record, static_field
from credo.core.trees import Unravel
from credo.core.types import Array, PyTree
from credo.covariances import Covariance, EnsembleCovariance

__all__ = ["Anchor", "Ensemble", "Gaussian", "Point"]


@record
class Anchor:
    """The prior to which dynamics return.

    Attributes:
        mean: the prior's mean (P,).
        cov: its covariance; None for point beliefs, which have no covariance.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> model = credo.Model(lambda w, x: x @ w, credo.Normal(0.1))
        >>> learner = credo.extended_kalman(model, dynamics=credo.OrnsteinUhlenbeck(0.9))
        >>> learner.init(jnp.ones(2)).anchor.mean
        Array([1., 1.], dtype=float32)
    """

    mean: Array
    cov: Covariance | None


class _Parameters:
    """The common base of beliefs with a mean."""

    mean: Array
    unravel: Unravel

    @property
    def params(self) -> PyTree:
        """The mean as a parameter tree."""
        return self.unravel(self.mean)

    @property
    def size(self) -> int:
        """The number P of parameters."""
        return self.unravel.size


@record
class Gaussian(_Parameters):
    """A belief about the parameters of a model: theta ~ N(mean, cov).

    Attributes:
        mean: the mean, laid out as a vector (P,).
        cov: its covariance, of some family.
        t: how many times `predict` has been called.
        unravel: how the vector becomes the parameter tree.
        anchor: the prior, kept only for dynamics that return to it.
        noise: the belief about the noise variance, if it is learned; `cov` is then in units of it.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> learner = credo.extended_kalman(credo.Model(lambda w, x: x @ w, credo.Normal(0.1)))
        >>> belief = learner.init({"w": jnp.zeros(2)}, var=4.0)
        >>> belief.sd, belief.params
        (Array([2., 2.], dtype=float32), {'w': Array([0., 0.], dtype=float32)})
    """

    mean: Array
    cov: Covariance
    t: Array
    unravel: Unravel = static_field()
    anchor: Anchor | None = None
    noise: InverseGamma | None = None

    @property
    def var(self) -> Array:
        """The variances (P,)."""
        return self.cov.diag()

    @property
    def sd(self) -> Array:
        """The standard deviations (P,)."""
        return self.cov.sd


@record
class Point(_Parameters):
    """One value of the parameters without uncertainty, which is the belief of gradient learners.

    Attributes:
        mean: the parameters as a vector (P,).
        state: the state of the optimiser.
        buffer: the latest observations, for replay, or None.
        t: how many times `predict` has been called.
        unravel: how the vector becomes the parameter tree.
        anchor: the initial parameters, kept only for dynamics that return to them.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> learner = credo.sgd(credo.Model(lambda w, x: x @ w, credo.Normal(0.1)), 0.1)
        >>> learner.init(jnp.zeros(2)).params
        Array([0., 0.], dtype=float32)
    """

    mean: Array
    state: PyTree
    buffer: PyTree
    t: Array
    unravel: Unravel = static_field()
    anchor: Anchor | None = None


@record
class Ensemble(_Parameters):
    """An ensemble of M equally likely members, which is the belief of `credo.enkf`.

    Attributes:
        mean: the members' mean, as a vector (P,).
        deviations: the members minus their mean (M, P).
        key: the key data from which noise is drawn; step t folds in t.
        t: how many times `predict` has been called.
        unravel: how a vector becomes the parameter tree.
        anchor: the prior, kept only for dynamics that return to it.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> learner = credo.enkf(credo.Model(lambda w, x: x @ w, credo.Normal(0.1)), members=20)
        >>> learner.init(jnp.zeros(3)).members.shape
        (20, 3)
    """

    mean: Array
    deviations: Array = field("deviations")
    key: Array
    t: Array
    unravel: Unravel = static_field()
    anchor: Anchor | None = None

    @property
    def members(self) -> Array:
        """The members as vectors (M, P)."""
        return self.mean[None, :] + self.deviations

    @property
    def cov(self) -> EnsembleCovariance:
        """The sample covariance, which divides by M - 1."""
        return EnsembleCovariance(self.deviations, self.key)

    @property
    def var(self) -> Array:
        """The sample variances (P,)."""
        return self.cov.diag()

    @property
    def sd(self) -> Array:
        """The sample standard deviations (P,)."""
        return self.cov.sd
