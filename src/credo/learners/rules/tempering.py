"""Natural-gradient steps in the moments (mu, S), which BLR takes on request."""

from __future__ import annotations

from functools import singledispatch

import jax.numpy as jnp

from credo.core.errors import CredoError
from credo.core.types import Array
from credo.covariances import Covariance, DiagonalCovariance, FullCovariance
from credo.learners.rules.ascents import diagonal_bend, with_diagonal
from credo.learners.rules.base import Retraction, grown_root, retract
from credo.linalg.jacobians import Rows
from credo.linalg.matrices import solve

__all__ = ["temper", "temper_root"]


@singledispatch
def temper(
    cov: Covariance,
    factor: Rows,
    diagonal: Array | None,
    prior: Covariance,
    rate: Array,
    retraction: Retraction,
) -> Covariance:
    """A natural-gradient step in the moments: S + a S N S with N = L - L0 - B' B - diag(d).

    Arguments:
        cov: S.
        factor: B (k, P).
        diagonal: d (P,), or None for 0.
        prior: the covariance inv(L0).
        rate: a.
        retraction: how S stays positive definite.

    Raises:
        CredoError: the family takes no such step.
    """
    raise CredoError(
        "parameters='moment' needs a Full or Diagonal family, whose moments can be stepped in; got a "
        f"{type(cov).__name__}."
    )


@temper.register
def _(
    cov: DiagonalCovariance,
    factor: Rows,
    diagonal: Array | None,
    prior: Covariance,
    rate: Array,
    retraction: Retraction,
) -> DiagonalCovariance:
    """v + a v^2 n. Cost: k P."""
    bend = diagonal_bend(cov, factor, diagonal, prior)
    return DiagonalCovariance(cov.var * retract(rate * cov.var * bend, retraction), cov.keep)


@temper.register
def _(
    cov: FullCovariance,
    factor: Rows,
    diagonal: Array | None,
    prior: Covariance,
    rate: Array,
    retraction: Retraction,
) -> FullCovariance:
    """Cost: P^3."""
    assert isinstance(prior, FullCovariance)
    rows = with_diagonal(factor, diagonal)
    return cov.with_root(temper_root(cov.as_root(), rows, prior.as_root(), rate, retraction))


def temper_root(root: Array, factor: Array, prior_root: Array, rate: Array, retraction: Retraction) -> Array:
    """The root of S + a S (L - L0 - B' B) S. Cost: P^3."""
    white = factor @ root
    ratio = solve(prior_root, root)
    eye = jnp.eye(root.shape[0], dtype=root.dtype)
    return grown_root(root, rate * (eye - ratio.T @ ratio - white.T @ white), retraction)
