"""Expectations as uncertain as the errors so far say: covariances in units of the noise."""

from __future__ import annotations

from typing import Any, Generic

import jax.numpy as jnp

from credo.adapt.loss_rates import LossRate, LossSums
from credo.adapt.moments import matched
from credo.adapt.nested import Around, B, floating
from credo.adapt.priors import moved, moved_inside
from credo.adapt.questions import Answer, Question, forecast_of
from credo.adapt.wrapper import Proposal, Wrapper
from credo.core.errors import CredoError, require_interval, require_positive
from credo.core.records import record, replace
from credo.core.trees import as_like
from credo.core.types import Array, ArrayLike, Key, PyTree
from credo.learners.acceptance import clean, scored
from credo.likelihoods import Predictive
from credo.likelihoods.rescaled import rescaled
from credo.linalg.matrices import safe_sqrt

__all__ = ["NoiseScale", "NoiseScaled"]


@record
class NoiseScale(Around[B], Generic[B]):
    """The belief of a learner, and how large the squared errors of its forecasts have been.

    Attributes:
        belief: the belief of the learner inside.
        errors: discounted sums of squared errors.
        t: how many times `predict` has been called.

    Example:
        >>> import credo
        >>> inner = credo.extended_kalman(credo.Model(lambda w, x: x @ w, credo.Normal(0.1)))
        >>> round(float(NoiseScaled(inner, 0.1).init(jnp.zeros(1)).errors.mean), 6)
        0.1
    """

    belief: B
    errors: LossSums
    t: Array


@record
class NoiseScaled(Wrapper[NoiseScale[B], B], Generic[B]):
    """A learner of numbers whose expectations are less uncertain where its errors are smaller than assumed.

    The posterior mean of a linear model with the noise variance r and the prior variance v depends on v / r
    alone, and its covariance is in proportion to r. So if the noise is m, and v was meant in units of r, a
    belief that was computed with r has the right mean, and m / r times its covariance is the right one. Here
    m is the mean squared error so far,

        m_t = (rows first r + sum_s e_s^2) / (rows + t),    Var E[y] <- min(m_t / r, 1) Var E[y],

    whose past is forgotten by a factor a row. It is the dispersion of quasi-likelihood (McCullagh & Nelder
    1989, section 9.2), and the plug-in form of a variance that is learned (`InverseGamma`), for any learner.
    Agents that explore by how uncertain rewards are, such as `UCB`, then explore less where rewards have
    little noise.

    Arguments:
        learner: any learner of numbers; a bank, too, whose members disagree less in the same proportion.
        noise: the noise variance r for which the expectations of the learner inside are right, above 0.
        first: the mean squared error before any row, in units of `noise`, above 0.
        rows: how many rows `first` counts as, above 0.
        forgetting: by which factor the past is multiplied at each row, above 0 and at most 1.

    Raises:
        CredoError: a number is outside its range, or (later) y has another shape than the mean of a forecast.

    Exact for a linear model whose noise is m and whose prior variance is in proportion; an approximation
    where parameters move, or where there is an error beside the noise. An expectation is never wider than
    that of the learner inside. Only `expect` changes: the belief inside learns as it would alone, and
    forecasts, whose width `Stretched` corrects, and draws are those of the learner inside. A row that is
    missing or refused leaves the errors.

    Cost: one more mean of a forecast a row.

    Example:
        Noise of 0.001, where 0.1 was assumed:

        >>> import credo, jax
        >>> inner = credo.extended_kalman(credo.Model(lambda w, x: x @ w, credo.Normal(0.1)))
        >>> learner = NoiseScaled(inner, 0.1)
        >>> ys = 1.0 + 0.001**0.5 * jax.random.normal(jax.random.key(0), (400,))
        >>> belief, trace = credo.run(learner, learner.init(jnp.zeros(1)), jnp.ones((400, 1)), ys)
        >>> scaled = learner.expect(belief, jnp.ones(1))
        >>> plain = inner.expect(belief.belief, jnp.ones(1))
        >>> bool(0.1 < scaled.sd[0] / plain.sd[0] < 0.2), bool(jnp.allclose(scaled.mean, plain.mean))
        (True, True)
    """

    noise: ArrayLike
    first: ArrayLike = 1.0
    rows: ArrayLike = 10.0
    forgetting: ArrayLike = 0.995

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("noise", "first", "rows", "forgetting"):
            require_positive(name, getattr(self, name))
        require_interval("forgetting", self.forgetting, 0.0, 1.0)

    @property
    def _mean(self) -> LossRate:
        """The running mean of squared errors."""
        first = jnp.asarray(self.first) * jnp.asarray(self.noise)
        return LossRate(first=first, rows=self.rows, forgetting=self.forgetting)

    def wrap(self, prior: B) -> NoiseScale[B]:
        """The inner learner's first belief, and no errors."""
        return NoiseScale(prior, self._mean.begin(floating(prior)), jnp.zeros((), jnp.int32))

    def factor(self, belief: NoiseScale[Any]) -> Array:
        """The factor of the standard deviations of the next expectation, at most 1."""
        mean = belief.errors.mean
        return safe_sqrt(jnp.minimum(mean / as_like(self.noise, mean), 1.0))

    def ask(self, belief: NoiseScale[B], x: PyTree, question: Question) -> Answer:
        answer = question(self.learner, belief.belief, x)
        if isinstance(answer, Predictive):
            return answer
        mean = answer.mean
        factor = as_like(self.factor(belief), mean)
        return rescaled(answer, (1.0 - factor) * mean, factor)

    def propose(
        self, belief: NoiseScale[B], x: PyTree, y: PyTree, weight: ArrayLike, key: Key | None
    ) -> Proposal[NoiseScale[B]]:
        """Learn inside, and count the squared error of the forecast before."""
        seen = x if self.takes_missing else clean(x)
        mean = forecast_of(self.learner, belief.belief, seen, None, None, key).mean
        target = as_like(scored(y), mean)
        if target.shape != mean.shape:
            raise CredoError(
                f"y must have the shape {mean.shape} of the mean of a forecast; got {target.shape}.",
                field="y",
            )
        kind = belief.errors.total.dtype
        counts = as_like(weight, belief.errors.total) if jnp.ndim(weight) == 0 else jnp.ones((), kind)
        errors = self._mean.after(belief.errors, jnp.sum((mean - target) ** 2).astype(kind), counts)
        learned, info = self.learner.measurement_update(belief.belief, x, y, weight, key)
        new = replace(belief, belief=learned, errors=errors)
        return Proposal(new, info.log_evidence, info.ok, info.extras)


@matched.register
def _(beliefs: NoiseScale, weights: Array) -> NoiseScale[Any]:  # type: ignore[type-arg]
    errors = LossSums(weights @ beliefs.errors.total, weights @ beliefs.errors.count)
    return NoiseScale(matched(beliefs.belief, weights), errors, beliefs.t[0])


moved.register(NoiseScale)(moved_inside)
