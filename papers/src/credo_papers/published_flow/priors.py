"""Priors of tasks: mixtures of normal distributions, among them those that a Dirichlet process generates."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from credo.core.errors import require_integer, require_positive
from credo.core.records import record, static_field
from credo.core.types import Array, ArrayLike
from credo.flows.densities import KernelDensity, SetDensity
from credo.linalg.matrices import cholesky, symmetric
from credo.particles.density import normal_log_density

__all__ = ["DirichletMixtures", "NormalMixture", "SegmentPrior", "normal_prior"]


@record
class NormalMixture(SetDensity):
    """A mixture of K normals, which stays one under a linear model: K Kalman filters with weights.

    Attributes:
        means: the means (K, d).
        covs: the covariances (K, d, d).
        log_weights: the log weights (K,), which sum to one.

    Example:
        >>> prior = normal_prior(jnp.zeros(2), jnp.eye(2))
        >>> posterior, log_evidence = prior.condition(jnp.eye(2), jnp.eye(2), jnp.array([2.0, 0.0]))
        >>> posterior.means.round(3)
        Array([[1., 0.]], dtype=float32)
    """

    means: Array
    covs: Array
    log_weights: Array

    @property
    def dim(self) -> int:
        """The dimension d."""
        return int(self.means.shape[1])

    def draw(self, key: Array, count: int) -> Array:
        """Independent draws (count, d)."""
        keys = jax.random.split(key)
        which = jax.random.categorical(keys[0], self.log_weights, shape=(count,))
        noise = jax.random.normal(keys[1], (count, self.means.shape[1]), self.means.dtype)
        roots = jax.vmap(cholesky)(self.covs)
        return self.means[which] + jnp.einsum("nij,nj->ni", roots[which], noise)

    def log_prob(self, points: Array) -> Array:
        def one(mean: Array, cov: Array) -> Array:
            return normal_log_density(points - mean[None, :], cholesky(cov))

        logs = jax.vmap(one)(self.means, self.covs)
        return jax.nn.logsumexp(self.log_weights[:, None] + logs, axis=0)

    def move(self, transition: Array, noise: Array) -> NormalMixture:
        """The distribution of A x + N(0, Q)."""
        means = self.means @ transition.T
        covs = jax.vmap(lambda cov: symmetric(transition @ cov @ transition.T) + noise)(self.covs)
        return NormalMixture(means, covs, self.log_weights)

    def condition(self, look: Array, blur: Array, y: Array) -> tuple[NormalMixture, Array]:
        """The distribution given y = B x + N(0, R), and log p(y)."""

        def one(mean: Array, cov: Array) -> tuple[Array, Array, Array]:
            spread = look @ cov
            inner = cholesky(symmetric(spread @ look.T) + blur)
            gain = jax.scipy.linalg.cho_solve((inner, True), spread).T
            gap = y - look @ mean
            height = normal_log_density(gap[None, :], inner)[0]
            return mean + gain @ gap, symmetric(cov - gain @ spread), height

        means, covs, heights = jax.vmap(one)(self.means, self.covs)
        logs = self.log_weights + heights
        total = jax.nn.logsumexp(logs)
        return NormalMixture(means, covs, logs - total), total


def normal_prior(mean: Array, cov: Array) -> NormalMixture:
    """The mixture of the one distribution N(mean, cov)."""
    return NormalMixture(mean[None, :], cov[None, :, :], jnp.zeros(1, mean.dtype))


@record
class DirichletMixtures:
    """Generated priors: mixtures of normal distributions drawn from a truncated Dirichlet process.

    By stick breaking (Sethuraman 1994), with K components and the rest of the stick in the last one,

        v_k ~ Beta(1, alpha),   w_k = v_k prod_{j<k} (1 - v_j),
        mean_k ~ N(0, spread^2 I),   var_kj ~ InverseGamma(3, 2 var).

    So that an operator meets priors of many shapes, every task may begin with another one.

    Attributes:
        dim: the dimension d.
        components: the number K at which the process is cut off.
        concentration: alpha; the expected number of components among n draws is about alpha log n.
        spread: the standard deviation of the means.
        var: the mean of the variances within a component.

    Raises:
        CredoError: a setting is out of its range.

    Example:
        >>> prior = DirichletMixtures(dim=2).draw(jax.random.key(0))
        >>> prior.draw(jax.random.key(1), 5).shape, prior.log_prob(jnp.zeros((3, 2))).shape
        ((5, 2), (3,))
    """

    dim: int = static_field()
    components: int = static_field(default=8)
    concentration: ArrayLike = 1.0
    spread: ArrayLike = 1.0
    var: ArrayLike = 0.3

    def __post_init__(self) -> None:
        require_integer("dim", self.dim, 1)
        require_integer("components", self.components, 1)
        for name in ("concentration", "spread", "var"):
            require_positive(name, getattr(self, name))

    def draw(self, key: Array) -> NormalMixture:
        """One prior."""
        keys = jax.random.split(key, 3)
        shape = (self.components, self.dim)
        like = jnp.zeros(())
        alpha, spread, var = (jnp.asarray(v, like.dtype) for v in (self.concentration, self.spread, self.var))
        # v ~ Beta(1, alpha) by its distribution function: 1 - v = uniform^(1 / alpha)
        uniform = jax.random.uniform(keys[0], (self.components,), minval=float(jnp.finfo(like.dtype).tiny))
        log_rest = jnp.log(uniform) / alpha
        log_broken = jnp.log(-jnp.expm1(log_rest)).at[-1].set(0.0)
        before = jnp.concatenate([jnp.zeros(1), jnp.cumsum(log_rest)[:-1]])
        variances = 2 * var / jax.random.gamma(keys[2], jnp.asarray(3.0), shape)
        covs = jax.vmap(jnp.diag)(variances)
        return NormalMixture(spread * jax.random.normal(keys[1], shape), covs, log_broken + before)


@record
class SegmentPrior(SetDensity):
    """The prior of a segment (Eq 19): that of the task for the first, and the kernel density of Eq 18 after.

    Attributes:
        first: the prior of the task.
        kernel: the kernel density estimate of the particles at the start of the segment.
        late: whether this is a later segment.
    """

    first: NormalMixture
    kernel: KernelDensity
    late: Array

    def log_prob(self, points: Array) -> Array:
        return jnp.where(self.late, self.kernel.log_prob(points), self.first.log_prob(points))
