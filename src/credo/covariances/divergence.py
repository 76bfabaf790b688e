"""The density of a Gaussian, and the Kullback-Leibler divergence between two of one family."""

from __future__ import annotations

import math
from functools import singledispatch

import jax
import jax.numpy as jnp

from credo.core.types import Array
from credo.covariances.block_covariance import BlockCovariance
from credo.covariances.diagonal import DiagonalCovariance
from credo.covariances.full import FullCovariance
from credo.covariances.low_rank import LowRankCovariance
from credo.covariances.roles import Covariance, Readable, inverse_of
from credo.covariances.unit_covariance import UnitCovariance
from credo.linalg.matrices import cholesky, solve_lower

__all__ = ["divergence", "log_normal", "precision_trace"]


def log_normal(gap: Array, cov: Readable) -> Array:
    """log N(gap | 0, cov) for a gap (P,). Cost: P where the covariance is diagonal, P^3 otherwise."""
    constant = gap.shape[0] * math.log(2 * math.pi)
    if isinstance(cov, DiagonalCovariance):
        var = cov.diag()
        return -0.5 * (jnp.sum(gap**2 / var + jnp.log(var)) + constant)
    chol = cholesky(cov.dense())
    white = solve_lower(chol, gap)
    return -0.5 * (white @ white + constant) - jnp.sum(jnp.log(jnp.diagonal(chol)))


@singledispatch
def precision_trace(prior: Covariance, cov: Covariance) -> Array:
    """tr(inv(S0) S) for a prior covariance S0 and a covariance S of the same family.

    This form needs P products with the precision of the prior; a family of your own may register a cheaper
    one: `precision_trace.register(MyCovariance, function)`.

    Arguments:
        prior: S0, which must be `Invertible`.
        cov: S.

    Raises:
        CredoError: the prior cannot multiply by its inverse.

    Example:
        >>> from credo.covariances import Full
        >>> one = Full().init(jnp.asarray([1.0, 4.0]))
        >>> float(precision_trace(one, one))
        2.0
    """
    directions = cov.color(jnp.eye(cov.deviates, dtype=cov.dtype))
    return jnp.sum(directions * jax.vmap(inverse_of(prior))(directions))


@precision_trace.register
def _(prior: FullCovariance, cov: Covariance) -> Array:
    """The squares of inv(W0) W. Cost: P^3."""
    assert isinstance(cov, FullCovariance)
    return jnp.sum(jnp.linalg.solve(prior.as_root(), cov.as_root()) ** 2)


@precision_trace.register
def _(prior: DiagonalCovariance, cov: Covariance) -> Array:
    """Cost: P."""
    return jnp.sum(cov.diag() / prior.var)


@precision_trace.register
def _(prior: LowRankCovariance, cov: Covariance) -> Array:
    """y0' diag(S) + tr(W0 S W0'). Cost: P R^2."""
    return prior.base @ cov.diag() + jnp.trace(cov.push(prior.factor))


@precision_trace.register
def _(prior: BlockCovariance, cov: Covariance) -> Array:
    """The sum over blocks."""
    assert isinstance(cov, BlockCovariance)
    pairs = zip(prior.parts, cov.parts, strict=True)
    return jnp.sum(jnp.stack([precision_trace(before, part) for before, part in pairs]))


@precision_trace.register
def _(prior: UnitCovariance, cov: Covariance) -> Array:
    """The sum over units. Cost: m n^3 a layer."""
    assert isinstance(cov, UnitCovariance)
    pairs = zip(prior.parts, cov.parts, strict=True)
    return jnp.sum(jnp.stack([jnp.sum(jax.vmap(precision_trace)(before, part)) for before, part in pairs]))


def divergence(mean: Array, cov: Covariance, prior_mean: Array, prior: Covariance) -> Array:
    """The Kullback-Leibler divergence of N(mean, S) from N(mean0, S0), exactly.

        KL = (tr(inv(S0) S) - P + (mean - mean0)' inv(S0) (mean - mean0) + log det S0 - log det S) / 2

    Arguments:
        mean, cov: the mean (P,) and covariance S.
        prior_mean, prior: mean0 (P,) and S0, of the same family, which must be `Invertible`.

    Returns:
        The divergence in nats, a scalar.

    Raises:
        CredoError: the prior cannot multiply by its inverse.

    Cost: P^3 for `Full`, P for `Diagonal`, P R^2 for `LowRank`.

    Example:
        >>> from credo.covariances import Diagonal
        >>> one = Diagonal().init(jnp.ones(2))
        >>> float(divergence(jnp.ones(2), one, jnp.zeros(2), one))
        1.0
    """
    gap = mean - prior_mean
    distance = gap @ inverse_of(prior)(gap)
    volume = prior.logdet() - cov.logdet()
    return 0.5 * (precision_trace(prior, cov) - cov.size + distance + volume)
