"""BONG: one natural-gradient step on the expected log-likelihood."""

from __future__ import annotations

from typing import Literal, TypeAlias

import jax.numpy as jnp

from credo.core.errors import require_choice, require_integer
from credo.core.records import record, static_field
from credo.core.types import Array
from credo.covariances import Covariance, inverse_of
from credo.learners.rules.base import Measure, Rule, Step
from credo.linalg.matrices import rounded

__all__ = ["GAINS", "BONGRule", "Gain"]

Gain: TypeAlias = Literal["joint", "kept"]
"""The covariance that moves the mean: the exact posterior of the local model, or the kept one."""

GAINS: tuple[Gain, ...] = ("joint", "kept")
"""All gains."""


@record
class BONGRule(Rule):
    """Bayesian online natural gradient: one step psi = psi0 + natural gradient of E log p(y | theta).

    There is no learning rate.

    With a Gaussian and the local model (J, e, A), the precision becomes L = L0 + J' A A' J, and the mean mu0
    + inv(L) J' e. On linear-Gaussian models this is Bayes' rule itself (the Kalman filter).

    Arguments:
        gain: which covariance moves the mean. "joint" (the default) uses the exact posterior of the local
            model, before the family forgets: S0 J' inv(I + A A' J S0 J') e, the Kalman gain. "kept" uses the
            kept covariance (mu0 + S g). For diagonal beliefs it costs k P instead of k^2 P for k rows, but it
            diverges on networks.
        iterations: how often to linearise at the latest mean (the iterated EKF). The observation counts only
            once.

    Raises:
        CredoError: there is fewer than 1 iteration, or `gain` has another value.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> model = credo.Model(lambda w, x: x @ w, credo.Normal(0.1))
        >>> learner = credo.RecursiveLearner(model, credo.Diagonal(), rule=credo.BONGRule(iterations=2))
        >>> belief, info = learner.step(learner.init(jnp.zeros(2)), jnp.ones(2), 1.0)
        >>> bool(info.ok)
        True
    """

    gain: Gain = static_field(default="joint")
    iterations: int = static_field(default=1)

    def __post_init__(self) -> None:
        require_choice("gain", self.gain, GAINS)
        require_integer("iterations", self.iterations, 1)

    def update(self, mean: Array, cov: Covariance, measure: Measure, t: Array) -> Step:
        first = local = measure(mean, cov, 0)
        by_kept = self.gain == "kept" and cov.forgets
        if self.iterations == 1 and local.diagonal is None and not by_kept:
            move, new_cov, inner = cov.assimilate(local.rows, local.residual, local.root)
            return Step(
                mean + rounded(_part(move, local.share(inner)), t), new_cov, first, inner, cov.vouches
            )
        inner, shift = cov.push(first.rows), jnp.zeros_like(mean)
        new_cov = cov
        for i in range(self.iterations):
            if i:
                local = measure(mean + shift, cov, i)
            share = None if i else local.share(inner)
            base = cov if local.diagonal is None else cov.add_precision(local.diagonal)
            if by_kept:
                slope = local.gradient - inverse_of(cov)(shift) if i else local.gradient
                new_cov = base.condition(local.factor)
                shift = shift + new_cov.mv(slope)
                continue
            residual = local.residual + local.bend(local.rows.push(shift)) if i else local.residual
            move, new_cov = base.absorb(local.rows, residual, local.root)
            if i and local.diagonal is not None:
                move = move + new_cov.mv(local.diagonal * shift)
            shift = _part(move, share)
        return Step(mean + shift, new_cov, first, inner, cov.vouches and not by_kept)


def _part(move: Array, share: Array | None) -> Array:
    """The share of a move; None for all of it."""
    return move if share is None else share * move
