"""One iteration of a rule towards the posterior of a whole data set, with the prior as its anchor.

On a stream the prior of every step is the belief before it. Here it is the belief before all data, and the
iterate q = N(mu, S) is a belief on the way. With L = inv(S), the gradient g and Hessian -B' B - diag(d) of
the whole data set measured at q, and the prior N(mu0, inv(L0)):

    BLR (and BONG, with a = 1)  L <- (1 - a) L + a (L0 + B' B + diag(d)),  mu <- mu + a S (L0 (mu0 - mu) + g)
    BBB (and BOG)               psi <- psi + a grad_psi ELBO

The steps are registered by the class of the rule, so that a rule of your own can have one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import singledispatch

import jax.numpy as jnp

from credo.core.errors import CredoError
from credo.core.types import Array
from credo.covariances import Covariance, FullCovariance, inverse_of
from credo.learners.rules.base import Rate, Retraction, Rule, rate_at
from credo.learners.rules.blr import BLRRule, BONGRule, Gain
from credo.learners.rules.iterates import blend_precisions, temper
from credo.learners.rules.plain_gradient import Ascent, BBBRule, BOGRule, Chart, ascend
from credo.linalg.jacobians import as_rows
from credo.linalg.matrices import cholesky, solve_lower, triangularize

__all__ = ["Batch", "iterate_batch"]


@dataclass(frozen=True)
class Batch:
    """A whole data set measured at an iterate, with the prior.

    Attributes:
        prior_mean, prior: mu0 (P,) and inv(L0).
        mean, cov: mu (P,) and S, the iterate.
        gather: gives the gradient g (P,), the rows B (k, P) and the diagonal d (P,) or None; at most P rows
            stand for all data.
        condition: adds a times the precision of all data to a covariance, row by row, and gives that
            covariance and g; it holds no rows.
        t: the number of the iteration, from 1, for schedules.
    """

    prior_mean: Array
    prior: Covariance
    mean: Array
    cov: Covariance
    gather: Callable[[], tuple[Array, Array, Array | None]]
    condition: Callable[[Covariance, Array], tuple[Covariance, Array]]
    t: Array

    @property
    def pull(self) -> Array:
        """L0 (mu0 - mu) (P,): the gradient of the log density of the prior."""
        return inverse_of(self.prior)(self.prior_mean - self.mean)


@singledispatch
def iterate_batch(rule: Rule, batch: Batch) -> tuple[Array, Covariance]:
    """The mean (P,) and covariance after one iteration over all data; rules of your own `register` here."""
    name = type(rule).__name__
    raise CredoError(
        f"the rule {name} has no iteration over a whole data set: register one with "
        "credo.learners.rules.iterate_batch.register."
    )


@iterate_batch.register
def _(rule: BONGRule, batch: Batch) -> tuple[Array, Covariance]:
    """The natural step of size 1: the posterior of the data as they look from the iterate."""
    return _natural(batch, batch.prior, jnp.ones((), batch.mean.dtype), rule.gain)


@iterate_batch.register
def _(rule: BLRRule, batch: Batch) -> tuple[Array, Covariance]:
    """A natural step of size a."""
    rate = rate_at(rule.learning_rate, batch.t, batch.mean.dtype, 1.0)
    if rule.parameters == "natural":
        return _natural(batch, blend_precisions(batch.cov, batch.prior, rate), rate, rule.gain)
    gradient, rows, diagonal = batch.gather()
    mean = batch.mean + rate * batch.cov.mv(batch.pull + gradient)
    return mean, temper(batch.cov, as_rows(rows), diagonal, batch.prior, rate, rule.retraction)


@iterate_batch.register
def _(rule: BBBRule, batch: Batch) -> tuple[Array, Covariance]:
    """A plain step of size a."""
    return _plain(batch, rule.learning_rate, rule.parameters, rule.retraction)


@iterate_batch.register
def _(rule: BOGRule, batch: Batch) -> tuple[Array, Covariance]:
    """A plain step of size a: with the prior as an anchor, BOG is BBB."""
    return _plain(batch, rule.learning_rate, rule.parameters, rule.retraction)


def _natural(batch: Batch, blend: Covariance, rate: Array, gain: Gain) -> tuple[Array, Covariance]:
    """With the covariance `blend` of precision (1 - a) L + a L0, a natural step of size a."""
    if not blend.forgets or gain == "kept":
        cov, gradient = batch.condition(blend, rate)
        return batch.mean + rate * cov.mv(batch.pull + gradient), cov
    gradient, rows, diagonal = batch.gather()
    base = blend if diagonal is None else blend.add_precision(rate * diagonal)
    factor = jnp.sqrt(rate) * rows
    cross, inner = base.couple(factor)
    slope = rate * (batch.pull + gradient)
    before = base.mv(slope)
    chol = cholesky(jnp.eye(len(rows), dtype=rows.dtype) + inner)
    weights = solve_lower(chol, solve_lower(chol, (factor @ before)[:, None]), transpose=True)[:, 0]
    return batch.mean + before - cross.pull(weights), base.condition(factor)


def _plain(
    batch: Batch, learning_rate: Rate, parameters: Chart | None, retraction: Retraction
) -> tuple[Array, Covariance]:
    rate = rate_at(learning_rate, batch.t, batch.mean.dtype, jnp.inf)
    gradient, rows, diagonal = batch.gather()
    step = Ascent(batch.pull + gradient, as_rows(rows), diagonal, batch.prior, rate, parameters, retraction)
    return ascend(batch.cov, batch.mean, step)


@blend_precisions.register
def _(current: FullCovariance, prior: Covariance, share: Array) -> FullCovariance:
    """Exact, by a QR decomposition of both roots of precision. Cost: P^3."""
    assert isinstance(prior, FullCovariance)
    eye = jnp.eye(current.size, dtype=current.dtype)
    ours, theirs = (jnp.linalg.solve(cov.as_root(), eye).T for cov in (current, prior))
    chol = triangularize(jnp.sqrt(1.0 - share) * ours, jnp.sqrt(share) * theirs)
    return current.with_root(solve_lower(chol, eye).T)
