"""Beliefs about the *expected* observation E[y | theta, x], without the noise of y.

A decision is about expected rewards, so its uncertainty is that of the parameters alone. An `Expectation` is
the joint distribution of K such numbers: the arms of a bandit, the classes of one row, or several rows.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import jax.scipy.special as jss
import jax.scipy.stats as jst
import numpy as np

from credo.beliefs import Beta, Dirichlet, Gamma
from credo.beliefs.conjugate import InverseGamma
from credo.core.errors import CredoError
from credo.core.records import record, static_field
from credo.core.trees import as_like
from credo.core.types import Array, ArrayLike
from credo.core.verbs import verb
from credo.likelihoods.base import LikelihoodBase
from credo.likelihoods.mixture import integration_nodes
from credo.likelihoods.normal import Normal
from credo.likelihoods.quantiles import bisect, student_cdf
from credo.linalg.matrices import precision, safe_sqrt
from credo.linalg.normals import scaled_root

__all__ = ["ConjugateExpectation", "DrawnExpectation", "Expectation", "LatentExpectation"]


class Expectation:
    """The base of the distributions of K expected observations, which `Learner.expect` returns.

    Every answer has a leading axis K, also where K = 1. A quantile is searched on a *latent* scale, where
    the numbers have the distribution function `latent_cdf`; `link`, which grows or falls in each number,
    leads from there to the scale of y. So the arm whose latent number is largest is the best arm wherever
    all arms share a growing link.

    Example:
        >>> import credo
        >>> learner = credo.extended_kalman(credo.Model(lambda w, x: x @ w, credo.Normal(0.25)))
        >>> belief, x = learner.init(jnp.zeros(1)), jnp.ones(1)
        >>> float(learner.expect(belief, x).var[0]), float(learner.forecast(belief, x).var)
        (1.0, 1.25)
    """

    @property
    def size(self) -> int:
        """The number K of expected observations."""
        return self.mean.shape[-1]

    @property
    def mean(self) -> Array:
        """The mean of each number (K,)."""
        raise NotImplementedError

    @property
    def var(self) -> Array:
        """The variance of each number (K,)."""
        raise NotImplementedError

    @property
    def sd(self) -> Array:
        """The standard deviation of each number (K,)."""
        return safe_sqrt(self.var)

    def sample(self, key: Array, shape: tuple[int, ...] = ()) -> Array:
        """Joint draws (*shape, K)."""
        raise NotImplementedError

    def latent_cdf(self, u: Array) -> Array:
        """P(latent number <= u) for each number, u and the result (K,)."""
        raise NotImplementedError

    def latent_scale(self) -> tuple[Array, Array]:
        """The location of the latent numbers: a centre and a spread, (K,) each."""
        raise NotImplementedError

    def link(self, u: Array) -> Array:
        """From the latent scale to that of y, (K,) to (K,)."""
        return u

    @property
    def latent_name(self) -> object:
        """The name that tells latent scales apart: expectations with equal names have the same link."""
        return "y"

    @verb
    def quantile(self, p: ArrayLike) -> Array:
        """The quantile of each number.

        Arguments:
            p: one probability for all numbers, or one for each (K,).

        Returns:
            The quantiles (K,), by bisection.
        """
        centre, spread = self.latent_scale()
        level = jnp.broadcast_to(as_like(p, centre), centre.shape)
        # A link that falls turns the order of the numbers round.
        falls = self.link(centre + spread) < self.link(centre - spread)
        target = jnp.where(falls, 1.0 - level, level)

        def value(u: Array) -> Array:
            return centre + spread * jnp.sinh(u)

        return self.link(value(bisect(lambda u: self.latent_cdf(value(u)), target, -24.0, 24.0)))


@record
class LatentExpectation(Expectation):
    """Expected observations of outputs that are jointly normal, or Student-t where the noise is learned.

    value_k = E[y | eta_k], with eta ~ N(eta, cov), or eta | v ~ N(eta, v cov) where v is inverse-gamma. The
    outputs are exact for linear models, and linearised for networks.

    Attributes:
        likelihood: the likelihood of one row, whose mean leads from outputs to values.
        eta: the outputs' means (K, E): E outputs for each of K rows.
        cov: their joint covariance (K E, K E), in units of the noise variance if that is learned.
        noise: the belief about the noise variance, or None.
        correlated: whether the values are known to be correlated.
        factor: F (K E, P) with cov = F F', if there are more outputs than parameters: variances and draws
            then cost K E P, and need no Cholesky factor of `cov`. None otherwise.

    Example:
        >>> import credo
        >>> half = LatentExpectation(credo.Bernoulli(), jnp.zeros((1, 1)), 4.0 * jnp.eye(1))
        >>> round(float(half.mean[0]), 3), round(float(half.sd[0]), 1), round(float(half.quantile(0.9)[0]), 2)
        (0.5, 0.3, 0.93)
    """

    likelihood: LikelihoodBase
    eta: Array
    cov: Array
    noise: InverseGamma | None = None
    correlated: bool = static_field(default=False)
    factor: Array | None = None

    @property
    def linear(self) -> bool:
        """Whether the values are the outputs themselves."""
        return isinstance(self.likelihood, Normal)

    @property
    def latent_name(self) -> object:
        """The structure of the likelihood, whose mean is the link."""
        if self.linear:
            return "y"
        return jax.tree.structure(self.likelihood)

    @property
    def independent(self) -> bool:
        """Whether the values are known to be independent, as a single one is."""
        return self.eta.size == 1

    @property
    def location(self) -> Array:
        """The means of the outputs in one row (K E,)."""
        return self.eta.reshape(-1)

    @property
    def _squares(self) -> Array:
        """The diagonal of `cov` (K E,)."""
        return jnp.diagonal(self.cov) if self.factor is None else jnp.sum(self.factor**2, axis=1)

    @property
    def unit_sd(self) -> Array:
        """The square roots of the diagonal of `cov` (K E,)."""
        return safe_sqrt(self._squares)

    @property
    def scale(self) -> Array:
        """The scale of each output (K E,): the standard deviation, or the scale of a Student-t."""
        unit = 1.0 if self.noise is None else jnp.asarray(self.noise.scale) / jnp.asarray(self.noise.shape)
        return safe_sqrt(unit * self._squares)

    def root(self) -> Array:
        """F with cov = F F', (K E, K E), or (K E, P) if there are more outputs than parameters."""
        if self.factor is None:
            return scaled_root(self.cov)
        return self.factor

    @property
    def df(self) -> Array | None:
        """The degrees of freedom of the outputs; None if they are normal."""
        if self.noise is None:
            return None
        return 2.0 * jnp.asarray(self.noise.shape)

    @property
    def mean(self) -> Array:
        if self.linear:
            return self.location
        return self._moments()[0]

    @property
    def var(self) -> Array:
        """The variance of each number; infinite for a Student-t with at most 2 degrees of freedom."""
        if not self.linear:
            return self._moments()[1]
        if self.df is None:
            return self.scale**2
        var = self.scale**2
        finite = self.df > 2
        return jnp.where(
            var > 0, var * jnp.where(finite, self.df / jnp.where(finite, self.df - 2, 1), jnp.inf), 0
        )

    def _moments(self) -> tuple[Array, Array]:
        """Mean and variance of each value, by even nodes for one output and quasi-random ones for more."""
        rows, size = self.eta.shape
        nodes, log_weights = integration_nodes(size, self.eta.dtype)
        blocks = self.cov.reshape(rows, size, rows, size)
        factors = None if self.factor is None else self.factor.reshape(rows, size, -1)
        weights = jnp.exp(log_weights)

        def one(row: Array) -> tuple[Array, Array]:
            block = blocks[row, :, row, :] if factors is None else factors[row] @ factors[row].T
            etas = self.eta[row][None, :] + nodes @ scaled_root(block).T
            values = jax.vmap(self.likelihood.mean)(etas)
            mean = weights @ values
            return mean, weights @ (values - mean[None, :]) ** 2

        means, variances = jax.vmap(one)(jnp.arange(rows))
        return means.reshape(-1), variances.reshape(-1)

    def sample(self, key: Array, shape: tuple[int, ...] = ()) -> Array:
        first, second = jax.random.split(key)
        location = self.location
        root = self.root()
        draws = jax.random.normal(first, (*shape, root.shape[1]), location.dtype) @ root.T
        if self.noise is not None:
            gamma = jax.random.gamma(second, self.noise.shape, (*shape, 1), location.dtype)
            draws = draws * jnp.sqrt(self.noise.scale / gamma)
        etas = draws + jnp.broadcast_to(location, draws.shape)
        if self.linear:
            return etas
        values = jax.vmap(self.likelihood.mean)(etas.reshape(-1, self.eta.shape[1]))
        return values.reshape(*shape, -1)

    def _one_output(self) -> None:
        if not self.linear and self.eta.shape[1] != 1:
            raise CredoError(
                "quantiles of an expectation need one output a row; "
                f"{type(self.likelihood).__name__} has {self.eta.shape[1]}: use mean, sd or sample."
            )

    def latent_cdf(self, u: Array) -> Array:
        """The distribution function of the outputs.

        Raises:
            CredoError: a value depends on several outputs.
        """
        self._one_output()
        scale = jnp.maximum(self.scale, precision(self.eta.dtype).tiny)
        z = (u - self.location) / scale
        if self.df is None:
            return jst.norm.cdf(z)
        return student_cdf(z, self.df)

    def latent_scale(self) -> tuple[Array, Array]:
        """The means and scales of the outputs."""
        self._one_output()
        return self.location, self.scale

    def link(self, u: Array) -> Array:
        """E[y | eta]."""
        if self.linear:
            return u
        return jax.vmap(self.likelihood.mean)(u[:, None]).reshape(-1)


@record
class DrawnExpectation(Expectation):
    """Expected observations known by draws, such as the members of an ensemble or particles.

    Attributes:
        values: the draws (M, K).
        log_weights: log weights (M,), which sum to one.

    Example:
        >>> drawn = DrawnExpectation(jnp.array([[0.0, 1.0], [2.0, 1.0]]), jnp.log(jnp.full(2, 0.5)))
        >>> drawn.mean.tolist(), drawn.sd.tolist()
        ([1.0, 1.0], [1.0, 0.0])
    """

    values: Array
    log_weights: Array

    @property
    def mean(self) -> Array:
        """The weighted mean."""
        return jnp.exp(self.log_weights) @ self.values

    @property
    def var(self) -> Array:
        """The weighted variance."""
        return jnp.exp(self.log_weights) @ (self.values - self.mean[None, :]) ** 2

    def sample(self, key: Array, shape: tuple[int, ...] = ()) -> Array:
        """Some of the draws, with replacement."""
        which = jax.random.categorical(key, self.log_weights, shape=(int(np.prod(shape)),))
        return self.values[which].reshape(*shape, -1)

    def latent_cdf(self, u: Array) -> Array:
        """The weighted share of draws at or below u."""
        return jnp.exp(self.log_weights) @ (self.values <= u[None, :]).astype(self.values.dtype)

    def latent_scale(self) -> tuple[Array, Array]:
        """The mean and the standard deviation."""
        return self.mean, self.sd


@record
class ConjugateExpectation(Expectation):
    """The exact distribution of a probability, a rate or class probabilities under a conjugate belief.

    Attributes:
        belief: a `Beta`, `Gamma` or `Dirichlet` belief.

    Example:
        >>> import credo
        >>> distribution = credo.BetaBernoulli().expect(credo.BetaBernoulli().init(), None)
        >>> float(distribution.mean[0]), round(float(distribution.quantile(0.25)[0]), 4)
        (0.5, 0.25)
    """

    belief: Beta | Gamma | Dirichlet

    @property
    def mean(self) -> Array:
        return jnp.atleast_1d(self.belief.mean)

    @property
    def var(self) -> Array:
        return jnp.atleast_1d(self.belief.var)

    def sample(self, key: Array, shape: tuple[int, ...] = ()) -> Array:
        return self.belief.sample(key, shape).reshape(*shape, -1)

    def latent_cdf(self, u: Array) -> Array:
        """The distribution function, by incomplete beta and gamma functions."""
        if isinstance(self.belief, Gamma):
            return jnp.atleast_1d(jss.gammainc(self.belief.shape, self.belief.per * jnp.maximum(u, 0.0)))
        a, b = self._counts()
        cdf: Array = jss.betainc(a, b, jnp.clip(u, 0.0, 1.0))
        return jnp.atleast_1d(cdf)

    def _counts(self) -> tuple[Array, Array]:
        """The pseudo-counts for and against each number."""
        if isinstance(self.belief, Dirichlet):
            return self.belief.counts, jnp.sum(self.belief.counts) - self.belief.counts
        assert isinstance(self.belief, Beta)
        return jnp.atleast_1d(self.belief.a), jnp.atleast_1d(self.belief.b)

    def latent_scale(self) -> tuple[Array, Array]:
        """The mean and the standard deviation."""
        return self.mean, self.sd
