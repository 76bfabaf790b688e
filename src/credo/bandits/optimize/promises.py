"""What a point promises under a belief, by each acquisition, as a function of its row that can be climbed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import jax
import jax.numpy as jnp
import jax.scipy.special as jss

from credo.bandits.optimize.acquisition import log_expected_improvement, log_knowledge_gradient
from credo.core.groups import each, in_order
from credo.core.types import Array, ArrayLike
from credo.learners import GaussianProcess, Learner
from credo.learners.process_belief import ProcessBelief
from credo.likelihoods import Expectation, WeightedExpectation
from credo.linalg.matrices import precision

__all__ = [
    "AcquisitionName",
    "Promise",
    "drawn",
    "feasible_log_prob",
    "improvement",
    "knowledge",
    "upper_bound",
]

AcquisitionName: TypeAlias = Literal["ei", "kg", "thompson", "ucb"]
"""How the next point is chosen."""

Promise: TypeAlias = Callable[[Array], Array]
"""From a row (D,) to a number, which is large where a trial promises much."""


def _log_improvement(law: Expectation, best: Array, sign: float) -> Array:
    """log EI of the one number of an expectation; of a mixture, that of its parts, averaged."""
    if isinstance(law, WeightedExpectation):
        logs: Array = in_order(each(lambda part: _log_improvement(part, best, sign), law.parts))
        return jss.logsumexp(law.log_weights + logs)
    mean, sd = sign * law.mean[..., 0], law.sd[..., 0]
    return log_expected_improvement(mean, jnp.maximum(sd, precision(sd.dtype).tiny), best)


def improvement(learner: Learner[Any], belief: Any, best: Array, sign: float) -> Promise:
    """The logarithm of the expected improvement over the best expected value of a trial."""

    def promise(row: Array) -> Array:
        return _log_improvement(learner.expect(belief, learner.inputs_of(row)), best, sign)

    return promise


def knowledge(learner: GaussianProcess, belief: ProcessBelief, rows: Array, sign: float) -> Promise:
    """The logarithm of what a trial adds to the best expected value of some rows (A, D) and its own."""

    def promise(row: Array) -> Array:
        means, cov = learner.joint(belief, jnp.concatenate([row[None, :], rows]))
        var = jnp.maximum(cov[0, 0], precision(cov.dtype).eps * belief.signal_var)
        slopes = cov[0].at[0].set(var) / jnp.sqrt(var + belief.noise_var)
        return log_knowledge_gradient(sign * means, sign * slopes)

    return promise


def upper_bound(learner: Learner[Any], belief: Any, width: ArrayLike, sign: float) -> Promise:
    """The expected value, and `width` standard deviations."""

    def promise(row: Array) -> Array:
        law = learner.expect(belief, learner.inputs_of(row))
        return sign * law.mean[0] + width * law.sd[0]

    return promise


def drawn(learner: Learner[Any], belief: Any, key: Array, sign: float) -> Promise:
    """One function that is drawn from the belief."""
    function = learner.sample_function(belief, key)

    def promise(row: Array) -> Array:
        return sign * jnp.reshape(function(learner.inputs_of(row)), ())

    return promise


def feasible_log_prob(learner: GaussianProcess, belief: ProcessBelief, row: Array) -> Array:
    """log P(a trial at a row does not fail), of a process that was told 1 for success and -1 for failure.

    log Phi(mean / sqrt(var + noise)): the sign of a normal number ("label regression": Rasmussen & Williams
    2006, section 6.5).
    """
    law = learner.forecast(belief, row)
    return jax.scipy.special.log_ndtr(jnp.reshape(law.mean / jnp.sqrt(law.var), ()))
