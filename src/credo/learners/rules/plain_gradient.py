"""Rules that follow plain gradients in the parameters of the family: BOG and BBB.

Source: Jones, Chang & Murphy 2024 (BONG, arXiv 2405.19681), after Blundell et al. 2015 (BBB). The gradients
by mean and covariance come from the curvature (dE / dS is half the expected Hessian); each family turns them
into a step in its own parameters (`credo.learners.rules.ascents`).
"""

from __future__ import annotations

from typing import ClassVar, TypeAlias

import jax
import jax.numpy as jnp

from credo.core.errors import CredoError, require_choice, require_integer
from credo.core.records import record, static_field
from credo.core.types import Array
from credo.covariances import Covariance, inverse_of
from credo.learners.curvatures import Local
from credo.learners.rules.ascents import Ascent, Chart, ascend
from credo.learners.rules.base import RETRACTIONS, Measure, Rate, Retraction, Rule, Step, as_rate, rate_at

__all__ = ["BBBRule", "BOGRule"]

_State: TypeAlias = tuple[Array, Covariance]
"""A mean and a covariance."""


def _check(rule: BBBRule | BOGRule) -> None:
    object.__setattr__(rule, "learning_rate", as_rate("learning_rate", rule.learning_rate))
    if rule.parameters not in (None, "natural", "moment"):
        raise CredoError(f"parameters must be None, 'natural' or 'moment'; got {rule.parameters!r}.")
    require_choice("retraction", rule.retraction, RETRACTIONS)


@record
class BBBRule(Rule):
    """Online Bayes by backprop: I plain gradient steps on the evidence lower bound.

    A step is psi <- psi + a grad_psi ELBO, with the belief before the observation as the prior. The rule is
    not invariant to how the belief is parameterised, and its learning rate must be tuned. It is provided for
    comparison, and because most people use it.

    Arguments:
        learning_rate: a, above 0, or a schedule over the steps of the stream. A scheduled rate below 0
            rejects the update.
        iterations: I, at least 1. With 1 the rule is BOG, since the ELBO's prior has no gradient at itself.
        parameters: psi: None for the family's own (natural parameters; mean, diagonal and factor for
            `LowRank`), "natural" or "moment".
        retraction: "safe" keeps covariances positive definite for any rate; "exact" takes the step unchanged,
            and rejects the update where the result is no covariance.

    Raises:
        CredoError: a number is out of range, or a name is unknown.

    Cost: `Full` P^2 (k + 2) for the first iteration in natural parameters and P^3 for every other (the
    precision's distance from the prior doubles its rank each time); `Diagonal` k P; `LowRank` P (R^2 + R k).

    Example:
        >>> import credo, jax.numpy as jnp
        >>> model = credo.Model(lambda w, x: x @ w, credo.Normal(0.1))
        >>> rule = credo.BBBRule(learning_rate=0.01, iterations=3)
        >>> learner = credo.RecursiveLearner(model, credo.Diagonal(), rule=rule)
        >>> belief, info = learner.step(learner.init(jnp.zeros(2)), jnp.ones(2), 1.0)
        >>> bool(info.ok)
        True
    """

    learning_rate: Rate = 0.01
    iterations: int = static_field(default=10)
    parameters: Chart | None = static_field(default=None)
    retraction: Retraction = static_field(default="safe")

    random_start: ClassVar[float] = 0.1

    def __post_init__(self) -> None:
        require_integer("iterations", self.iterations, 1)
        _check(self)

    def update(self, mean: Array, cov: Covariance, measure: Measure, t: Array) -> Step:
        rate = rate_at(self.learning_rate, t, mean.dtype, jnp.inf)
        first = measure(mean, cov, 0)
        inner = cov.push(first.rows)

        def climb(
            current: Array, here: Covariance, slope: Array, local: Local, prior: Covariance | None
        ) -> _State:
            step = Ascent(slope, local.factor, local.diagonal, prior, rate, self.parameters, self.retraction)
            return ascend(here, current, step)

        def advance(i: Array, state: _State) -> _State:
            current, here = state
            local = measure(current, here, i)
            slope = local.gradient - inverse_of(cov)(current - mean)
            return climb(current, here, slope, local, cov)

        state = climb(mean, cov, first.gradient, first, None)
        if self.iterations > 1:
            state = jax.lax.fori_loop(1, self.iterations, advance, state)
        return Step(state[0], state[1], first, inner)


@record
class BOGRule(Rule):
    """Bayesian online gradient: one plain gradient step on the expected log-likelihood.

    The step is psi <- psi0 + a grad_psi E log p(y | theta).

    Arguments:
        learning_rate, parameters, retraction: as in `BBBRule`.

    Cost: `Full` P^2 (k + 2) in natural parameters (P^3 in moments), `Diagonal` k P, `LowRank` P (R^2 + R k).

    Example:
        >>> import credo, jax.numpy as jnp
        >>> model = credo.Model(lambda w, x: x @ w, credo.Normal(0.1))
        >>> rule = credo.BOGRule(learning_rate=lambda t: 0.1 / (1 + t))
        >>> learner = credo.RecursiveLearner(model, credo.Diagonal(), rule=rule)
        >>> belief, info = learner.step(learner.init(jnp.zeros(2)), jnp.ones(2), 1.0)
        >>> bool(info.ok)
        True
    """

    learning_rate: Rate = 0.01
    parameters: Chart | None = static_field(default=None)
    retraction: Retraction = static_field(default="safe")

    random_start: ClassVar[float] = 0.1

    def __post_init__(self) -> None:
        _check(self)

    def update(self, mean: Array, cov: Covariance, measure: Measure, t: Array) -> Step:
        """One measurement update: the first iteration of BBB."""
        rule = BBBRule(self.learning_rate, 1, self.parameters, self.retraction)
        return rule.update(mean, cov, measure, t)
