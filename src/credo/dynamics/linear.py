"""Linear-Gaussian dynamics: random walk, decay, Ornstein-Uhlenbeck, and the general case."""

from __future__ import annotations

import jax.numpy as jnp
import jax.scipy.linalg as jsl
import numpy as np

from credo.beliefs import Anchor
from credo.core.errors import (
    CredoError,
    require_covariance,
    require_finite,
    require_interval,
    require_nonnegative,
)
from credo.core.records import record, static_field
from credo.core.trees import as_like
from credo.core.types import Array, ArrayLike
from credo.covariances import Covariance, RootCovariance
from credo.dynamics.base import Dynamics
from credo.linalg.matrices import symmetric

__all__ = ["Decay", "LinearGaussian", "OrnsteinUhlenbeck", "RandomWalk"]


def duration(dt: ArrayLike | None, like: Array) -> Array:
    """The length of a step, at least 0 and finite, as a number in the dtype of `like`; None means 1."""
    require_nonnegative("dt", dt)
    if dt is None:
        return jnp.ones((), like.dtype)
    return as_like(dt, like)


def accumulated(gamma: Array, step: Array) -> Array:
    """The variance of unit noise that decays: (1 - gamma^2dt) / (1 - gamma^2), or dt where gamma is 1."""
    still = gamma**2 >= 1
    return jnp.where(still, step, (1.0 - gamma ** (2 * step)) / jnp.where(still, 1.0, 1.0 - gamma**2))


@record
class RandomWalk(Dynamics):
    """A random walk, theta_t = theta_{t-1} + N(0, q dt), which is additive covariance inflation.

    Arguments:
        var: q, the variance added in a unit of time, at least 0: a number, or one number a parameter (P,).

    Raises:
        CredoError: the variance is below 0.

    Example:
        >>> import credo
        >>> model = credo.Model(lambda w, x: x @ w, credo.Normal(0.1))
        >>> learner = credo.extended_kalman(model, dynamics=RandomWalk(1.5))
        >>> print(learner.predict(learner.init(jnp.zeros(2)), 2.0).var.round(3))
        [4. 4.]
    """

    var: ArrayLike = 1e-4

    def __post_init__(self) -> None:
        require_nonnegative("var", self.var)

    def move(
        self, mean: Array, cov: Covariance | None, anchor: Anchor | None, t: Array, dt: ArrayLike | None
    ) -> tuple[Array, Covariance | None]:
        """The same mean; cov + q dt I."""
        scale, noise = self.affine(mean, dt)
        return mean, None if cov is None else cov.affine(scale, noise)

    def affine(self, like: Array, dt: ArrayLike | None) -> tuple[Array, Array]:
        """1 and q dt."""
        step = duration(dt, like)
        return jnp.ones((), like.dtype), as_like(self.var, like) * step


@record
class Decay(Dynamics):
    """Decay to zero, theta_t = gamma theta_{t-1} + N(0, q).

    Over a step of length dt the factor is gamma^dt, and the noise accumulates accordingly.

    Arguments:
        forgetting: gamma, the factor for a unit of time, in [0, 1].
        var: q, the variance added in a unit of time, at least 0.

    Raises:
        CredoError: `forgetting` is outside [0, 1], or `var` is below 0.

    Example:
        >>> import credo
        >>> model = credo.Model(lambda w, x: x @ w, credo.Normal(0.1))
        >>> learner = credo.extended_kalman(model, dynamics=Decay(0.5))
        >>> learner.predict(learner.init(jnp.ones(1))).mean
        Array([0.5], dtype=float32)
    """

    forgetting: ArrayLike = 1.0
    var: ArrayLike = 0.0

    def __post_init__(self) -> None:
        require_interval("forgetting", self.forgetting, 0.0, 1.0)
        require_nonnegative("var", self.var)

    def move(
        self, mean: Array, cov: Covariance | None, anchor: Anchor | None, t: Array, dt: ArrayLike | None
    ) -> tuple[Array, Covariance | None]:
        """gamma^dt mean; gamma^2dt cov + q (1 - gamma^2dt) / (1 - gamma^2) I."""
        factor, noise = self.affine(mean, dt)
        return factor * mean, None if cov is None else cov.affine(factor, noise)

    def affine(self, like: Array, dt: ArrayLike | None) -> tuple[Array, Array]:
        """gamma^dt and q (1 - gamma^2dt) / (1 - gamma^2)."""
        step = duration(dt, like)
        gamma = as_like(self.forgetting, like)
        return gamma**step, as_like(self.var, like) * accumulated(gamma, step)


@record
class OrnsteinUhlenbeck(Dynamics):
    """Return to the prior N(mu0, S0): theta_t - mu0 = gamma (theta_{t-1} - mu0) + N(0, (1 - gamma^2) S0).

    The prior is the fixed point.

    For `LowRank` beliefs only the diagonal of S0 is used, which is exact because their prior is diagonal.
    `Full` costs P^3 a step.

    Arguments:
        forgetting: gamma, the factor on the distance from the prior in a unit of time, in [0, 1].
            1 leaves the parameters as they are, and 0 resets to the prior at every step.

    Raises:
        CredoError: `forgetting` is outside [0, 1].

    Example:
        >>> import credo
        >>> model = credo.Model(lambda w, x: x @ w, credo.Normal(0.1))
        >>> learner = credo.extended_kalman(model, dynamics=OrnsteinUhlenbeck(0.5))
        >>> prior = learner.init(jnp.ones(1))
        >>> learner.predict(credo.replace(prior, mean=jnp.zeros(1))).mean
        Array([0.5], dtype=float32)
    """

    forgetting: ArrayLike = 0.99
    anchored = True

    def __post_init__(self) -> None:
        require_interval("forgetting", self.forgetting, 0.0, 1.0)

    def move(
        self, mean: Array, cov: Covariance | None, anchor: Anchor | None, t: Array, dt: ArrayLike | None
    ) -> tuple[Array, Covariance | None]:
        """mu0 + gamma^dt (mean - mu0); gamma^2dt cov + (1 - gamma^2dt) S0."""
        assert anchor is not None
        factor = as_like(self.forgetting, mean) ** duration(dt, mean)
        pulled = anchor.mean + factor * (mean - anchor.mean)
        if cov is None:
            return pulled, None
        assert anchor.cov is not None
        return pulled, cov.mix(factor, anchor.cov, 1.0 - factor**2)


@record
class LinearGaussian(Dynamics):
    """The general case: theta_t = F theta_{t-1} + b + N(0, Q), in discrete or in continuous time.

    In continuous time it is d theta = (F theta + b) dt + N(0, Q dt).

    `Full` is exact, `Diagonal` keeps the marginal variances, and `LowRank` projects the dense result (cost
    P^3).

    Arguments:
        transition: F, (P, P).
        offset: b, (P,) or a number.
        cov: Q, (P, P) positive semi-definite, or (P,) or a number for a diagonal one.
        continuous: whether F, b and Q are the rates of a stochastic differential equation. The step over any
            `dt` is then exact (Van Loan 1978). In discrete time `dt` has no meaning and is refused.

    Raises:
        CredoError: F is not square, F, b or Q does not fit the parameters, a number is not finite, Q is no
            covariance, or a `dt` is given in discrete time.

    Example:
        >>> import credo
        >>> walk = LinearGaussian(jnp.array([[1.0, 1.0], [0.0, 1.0]]), cov=0.1)
        >>> model = credo.Model(lambda z, x: z[0], credo.Normal(0.1))
        >>> learner = credo.extended_kalman(model, dynamics=walk)
        >>> learner.predict(learner.init(jnp.array([0.0, 2.0]))).mean
        Array([2., 2.], dtype=float32)
    """

    transition: ArrayLike
    offset: ArrayLike = 0.0
    cov: ArrayLike = 0.0
    continuous: bool = static_field(default=False)

    @property
    def timeless(self) -> bool:  # type: ignore[override]
        """Whether a step has no length."""
        return not self.continuous

    def certainty(self, value: Array, anchor: Anchor | None) -> Covariance:
        """A covariance of zero that can take correlated noise."""
        return RootCovariance(jnp.zeros((value.shape[0], value.shape[0]), value.dtype))

    def __post_init__(self) -> None:
        require_finite("transition", self.transition)
        require_finite("offset", self.offset)
        require_covariance("cov", self.cov, singular=True)
        if hasattr(self.transition, "shape") and np.ndim(self.transition) >= 2:
            shape = np.shape(self.transition)[-2:]
            if shape[0] != shape[1]:
                raise CredoError(f"transition must be a square matrix (P, P); got shape {shape}.")

    def move(
        self, mean: Array, cov: Covariance | None, anchor: Anchor | None, t: Array, dt: ArrayLike | None
    ) -> tuple[Array, Covariance | None]:
        """F mean + b; F cov F' + Q.

        Raises:
            CredoError: F, b or Q does not fit the parameters, or a `dt` is given in discrete time.
        """
        size = mean.shape[0]
        transition = as_like(self.transition, mean)
        if transition.shape != (size, size):
            raise CredoError(f"transition must be (P, P) = ({size}, {size}); got shape {transition.shape}.")
        offset = as_like(self.offset, mean)
        noise = as_like(self.cov, mean)
        if offset.shape not in ((), (1,), (size,)):
            raise CredoError(f"offset must be a number or (P,) = ({size},); got shape {offset.shape}.")
        if noise.shape not in ((), (1,), (size,), (size, size)):
            raise CredoError(
                f"cov must be a number, (P,) or (P, P) = ({size}, {size}); got shape {noise.shape}."
            )
        offset = jnp.broadcast_to(offset, (size,))
        noise = noise if noise.ndim == 2 else jnp.broadcast_to(noise, (size,))
        if self.continuous:
            noise = noise if noise.ndim == 2 else jnp.diag(noise)
            transition, offset, noise = _discretize(transition, offset, noise, duration(dt, mean))
        elif dt is not None:
            raise CredoError(
                "dt needs LinearGaussian(..., continuous=True): in discrete time a step has no length."
            )
        shifted = transition @ mean + offset
        if cov is None:
            return shifted, None
        linear = cov.linear if noise.ndim == 2 else cov.linear_diagonal
        return shifted, linear(transition, noise)


def _discretize(drift: Array, offset: Array, diffusion: Array, dt: Array) -> tuple[Array, Array, Array]:
    """exp(A dt), its integral times b, and the accumulated noise, from two block exponentials (Van Loan
    1978).
    """
    size = drift.shape[0]
    zero = jnp.zeros_like(drift)
    block = jsl.expm(jnp.block([[-drift, diffusion], [zero, drift.T]]) * dt)
    transition = block[size:, size:].T
    noise = symmetric(transition @ block[:size, size:])
    column = jnp.block([[drift, offset[:, None]], [jnp.zeros((1, size + 1), drift.dtype)]])
    return transition, jsl.expm(column * dt)[:size, size], noise
