"""Plain gradient steps of a belief in the parameters of its family, from gradients by mean and covariance.

The objective E has dE / d mean = u and dE / dS = N / 2 with N = -B' B - diag(d), to which an ELBO adds L -
L0. Sources: Jones, Chang & Murphy 2024 (BOG, BBB), rederived and checked against automatic differentiation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import singledispatch
from typing import Literal, TypeAlias

import jax.numpy as jnp

from credo.core.errors import CredoError
from credo.core.types import Array
from credo.covariances import (
    BlockCovariance,
    Covariance,
    DiagonalCovariance,
    FullCovariance,
    LowRankCovariance,
)
from credo.learners.rules.full_ascent import ascend_moments, ascend_naturals
from credo.learners.rules.low_rank_ascent import ascend_factors
from credo.learners.rules.retraction import Retraction, retract
from credo.linalg.jacobians import Rows
from credo.linalg.jacobians.columns import columns, cut, join
from credo.linalg.matrices import safe_sqrt

__all__ = ["Ascent", "Chart", "ascend", "diagonal_bend", "with_diagonal"]

Chart: TypeAlias = Literal["natural", "moment"]
"""The parameters of a Gaussian in which a step is taken: (L mu, -L / 2) or (mu, S)."""


@dataclass(frozen=True)
class Ascent:
    """One step of plain gradient ascent, with slope u (P,), factor B (k, P) and diagonal d (P,).

    Attributes:
        prior: the covariance inv(L0) of the ELBO's prior, or None where E has no such term.
        parameters: "natural" (L mu, -L / 2), "moment" (mu, S), or None for the family's own: natural, or
            (mu, y, W) for a low-rank precision, which has no other.
        retraction: "safe" stays positive definite for any rate; "exact" takes the step unchanged, and gives
            NaN where it leaves the positive definite matrices.
    """

    slope: Array
    factor: Rows
    diagonal: Array | None
    prior: Covariance | None
    rate: Array
    parameters: Chart | None
    retraction: Retraction


@singledispatch
def ascend(cov: Covariance, mean: Array, step: Ascent) -> tuple[Array, Covariance]:
    """The mean (P,) and covariance after one step of plain gradient ascent from N(mean, cov).

    A family of your own registers its step: `ascend.register(MyCovariance, function)`.

    Raises:
        CredoError: the family has no such step.
    """
    raise CredoError(
        f"the rules 'bog' and 'bbb' have no plain gradient step for a {type(cov).__name__}: register one "
        "with credo.learners.rules.ascend.register."
    )


@ascend.register
def _(cov: FullCovariance, mean: Array, step: Ascent) -> tuple[Array, FullCovariance]:
    """Cost in natural parameters P^2 (k + 2) without a prior, P^3 with one; in the moments P^3."""
    take = ascend_moments if step.parameters == "moment" else ascend_naturals
    prior_root = None
    if step.prior is not None:
        assert isinstance(step.prior, FullCovariance)
        prior_root = step.prior.as_root()
    rows = with_diagonal(step.factor, step.diagonal)
    new_mean, root = take(cov.as_root(), mean, step.slope, rows, prior_root, step.rate, step.retraction)
    return new_mean, cov.with_root(root)


@ascend.register
def _(cov: DiagonalCovariance, mean: Array, step: Ascent) -> tuple[Array, DiagonalCovariance]:
    """With n = diag(N), elementwise: lam - 4 a v u mu - 2 a v^2 n, v (lam mu + a v u); or v + a n / 2, mu
    + a u. Cost: k P.
    """
    bend = diagonal_bend(cov, step.factor, step.diagonal, step.prior)
    slope, rate = step.slope, step.rate
    if step.parameters == "moment":
        var = cov.var * retract(0.5 * rate * bend / cov.var, step.retraction)
        return mean + rate * slope, DiagonalCovariance(var, cov.keep)
    change = -2.0 * rate * cov.var**2 * (2.0 * slope * mean + cov.var * bend)
    var = cov.var / retract(change, step.retraction)
    return var * (mean / cov.var + rate * cov.var * slope), DiagonalCovariance(var, cov.keep)


@ascend.register
def _(cov: LowRankCovariance, mean: Array, step: Ascent) -> tuple[Array, LowRankCovariance]:
    """In (mu, y, W), the only parameters of this family. Cost: P (R^2 + R k)."""
    if step.parameters is not None:
        raise CredoError(
            "parameters must be None for a low-rank family (its own are mean, y and W); "
            f"got {step.parameters!r}."
        )
    prior = None
    if step.prior is not None:
        assert isinstance(step.prior, LowRankCovariance)
        prior = (step.prior.base, step.prior.factor)
    base, rows = ascend_factors(
        cov.base,
        cov.factor,
        step.factor.dense(),
        step.diagonal,
        prior,
        step.rate,
        step.retraction,
        tied=cov.spherical,
    )
    return mean + step.rate * step.slope, LowRankCovariance(base, rows, cov.family)


@ascend.register
def _(cov: BlockCovariance, mean: Array, step: Ascent) -> tuple[Array, BlockCovariance]:
    """Block by block: the gradient by the parameters of a block depends on its own u, B and d alone."""
    priors: Sequence[Covariance | None] = [None] * len(cov.parts)
    if step.prior is not None:
        assert isinstance(step.prior, BlockCovariance)
        priors = step.prior.parts
    means, parts = [], []
    for part, ranges, prior in zip(cov.parts, cov.places, priors, strict=True):
        own = replace(
            step,
            slope=cut(step.slope, ranges),
            factor=columns(step.factor, ranges),
            diagonal=None if step.diagonal is None else cut(step.diagonal, ranges),
            prior=prior,
        )
        block_mean, block = ascend(part, cut(mean, ranges), own)
        means.append(block_mean)
        parts.append(block)
    return join(means, cov.places), BlockCovariance(tuple(parts), cov.places, cov.keep)


def with_diagonal(factor: Rows, diagonal: Array | None) -> Array:
    """An array of rows that represent B' B + diag(d)."""
    if diagonal is None:
        return factor.dense()
    return jnp.concatenate([factor.dense(), jnp.diag(safe_sqrt(diagonal))], axis=0)


def diagonal_bend(
    cov: DiagonalCovariance, factor: Rows, diagonal: Array | None, prior: Covariance | None
) -> Array:
    """The diagonal n of N (P,)."""
    bend = -factor.squares()
    if diagonal is not None:
        bend = bend - diagonal
    if prior is None:
        return bend
    assert isinstance(prior, DiagonalCovariance)
    return bend + 1.0 / cov.var - 1.0 / prior.var
