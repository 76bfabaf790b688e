"""A mixture whose members are combined once more: by a small regression on what each of them forecasts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from credo.adapt.calibrated import Calibrated
from credo.adapt.experts import share
from credo.adapt.moments import log_sum, normalized
from credo.adapt.nested import Around, B, Mixture, floating
from credo.adapt.questions import Answer, Question, forecast_of
from credo.adapt.wrapper import Proposal, Wrapper
from credo.beliefs import InverseGamma
from credo.core.errors import CredoError, require_interval, require_nonnegative, require_positive
from credo.core.fields import field
from credo.core.groups import each, in_order
from credo.core.names import ForecastName
from credo.core.records import record, replace, static_field
from credo.core.types import Array, ArrayLike, Key, PyTree
from credo.covariances import Full
from credo.dynamics import RandomWalk
from credo.learners import Learner, RecursiveLearner
from credo.learners.acceptance import clean, scored
from credo.likelihoods import Either, Normal, Predictive, Rescaled, WeightedPredictive
from credo.likelihoods.categorical import ClassLikelihood, class_outputs
from credo.models import Model

__all__ = ["Stacked", "Stacking"]

LEAST = 1e-4
"""The least probability of a class that a member is believed to forecast."""

FAR = 4.0
"""The farthest that the mean of a member may be from that of all, in standard deviations of the mixture; that
of all may be twice as far from 0."""

TAILS = (2.5, 5.0)
"""The degrees of freedom that errors of numbers may have, where none are given."""

NOISE = InverseGamma(10.0, 10.0, 0.998)
"""The first belief about the variance of standardised errors, and how it is forgotten."""


@record
class Stacking(Around[B], Generic[B]):
    """The belief of a mixture, and what is believed of the coefficients of its members.

    Attributes:
        belief: the belief of the mixture inside.
        stack: the belief about the coefficients.
        log_joint: log P(rate r, and the mixture or the regression forecasts best) (R, 2).
        t: how many times `predict` has been called.

    Example:
        >>> import credo
        >>> bank = credo.Experts([credo.BetaBernoulli(a=a) for a in (1.0, 3.0)])
        >>> belief = Stacked(bank, credo.Bernoulli()).init()
        >>> belief.stack.mean.tolist(), round(float(belief.share), 3)
        ([1.0, 0.0, 0.0], 0.1)
    """

    belief: B
    stack: Any
    log_joint: Array = field("log probabilities")
    t: Array

    @property
    def log_shares(self) -> Array:
        """log P(the mixture, or the regression, forecasts best) (2,)."""
        return log_sum(self.log_joint, axis=0)

    @property
    def share(self) -> Array:
        """The probability that the regression forecasts best."""
        return jnp.exp(self.log_shares[1])

    @property
    def weights(self) -> Array:
        """The weights of the members of the mixture (K,)."""
        assert isinstance(self.belief, Mixture)
        return self.belief.weights


class _Row(NamedTuple):
    """A row of the regression: its inputs, and the units of its target, None for classes."""

    inputs: Array
    location: Array | None = None
    scale: Array | None = None


@record
class Stacked(Wrapper[Stacking[B], B], Generic[B]):
    """A mixture beside a regression on the forecasts of its members, weighed by evidence (stacking).

    Weights that sum to one choose a member, or average them; members that err in unlike ways say more
    together (Wolpert 1992; the log-linear pool of Genest & Zidek 1986). With the class probabilities p_k of
    members and p_0 of their mixture, and coefficients b ~ N((1, 0, ..., 0), var I),

        p(c) proportional to exp(sum_k b_k log p_k(c)),

    and for numbers, with means m_k, the mean m_0 and the standard deviation s_0 of the mixture, b ~ N(0, var
    I) and a noise variance that is learned,

        (y - m_0) / s_0 = b_0 m_0 / s_0 + sum_k b_k (m_k - m_0) / s_0 + noise.

    So the regression begins as the mixture itself, and is as wide where that is wide. Coefficients may have
    any sign and walk slowly, and they learn by the recursion of any `RecursiveLearner`. What is forecast is
    the mixture of both distributions; another may take over at several rates, as in `Experts`. The members
    learn as they would alone.

    Arguments:
        learner: a learner whose forecasts are mixtures (`Experts`, `RunLength`), of so many members always.
        likelihood: `Bernoulli`, `Categorical` or `OpenCategorical` for classes; for numbers `Normal`, with
            what is believed of the variance of errors in units of the mixture's.
        var: the prior variance of a coefficient, above 0.
        walk: the variance that each gains at a row, at least 0.
        prior: the first weight of the regression, above 0 and below 1.
        switching: the probability that the other one is right at the next step, or several of them, each in
            [0, 0.5].
        outliers: the probability of an outlier, in (0, 0.5], for standardised numbers; None if there are
            none.
        tails: degrees of freedom above 2 that errors may have, beside those of the noise; 2.5 and 5 for
            numbers, and none for classes.

    Raises:
        CredoError: a number is outside its range, there is no such regression, or (later) the learner inside
            forecasts no mixture.

    The recursion of the coefficients is exact for numbers, but for outliers and tails; for classes it is
    linearised. Probabilities below 1e-4 count as 1e-4, m_k - m_0 counts as 4 s_0 if it is farther, and m_0
    as 8 s_0; a member that forecasts nothing finite counts as the mixture. `Info.log_evidence` is that of the
    mixture of both; `extras`, expectations, draws and forecasts by a named `method` are those of the learner
    inside.

    Cost: what the members forecast, and a regression with K + 1 coefficients: K^2 an output.

    Example:
        Two members, of which each knows one of two inputs:

        >>> import credo, jax, jax.numpy as jnp
        >>> models = [credo.Model(lambda w, x, i=i: x[i] * w[0], credo.Normal(1.0)) for i in range(2)]
        >>> bank = credo.Experts([credo.extended_kalman(model) for model in models])
        >>> learner = Stacked(bank, credo.Normal(credo.InverseGamma(10.0, 10.0, 0.99)), var=1.0)
        >>> xs = jax.random.normal(jax.random.key(0), (400, 2))
        >>> ys = xs @ jnp.ones(2)
        >>> reports = [credo.evaluate(one, one.init(jnp.zeros(1)), (xs, ys)) for one in (bank, learner)]
        >>> alone, both = (report.scores.log_prob[200:].mean() for report in reports)
        >>> bool(both > alone + 1.0)
        True
    """

    likelihood: ClassLikelihood | Normal = Normal(NOISE)
    var: ArrayLike = 0.03
    walk: ArrayLike = 1e-6
    prior: ArrayLike = 0.1
    switching: ArrayLike | Sequence[float] = (1e-4, 1e-3, 1e-2)
    outliers: ArrayLike | None = None
    tails: tuple[float, ...] | None = static_field(default=None)

    def __post_init__(self) -> None:
        super().__post_init__()
        if type(self.likelihood) is not object and not isinstance(self.likelihood, ClassLikelihood | Normal):
            raise CredoError(
                "likelihood must be Bernoulli, Categorical, OpenCategorical or Normal; got "
                f"{type(self.likelihood).__name__}.",
                field="likelihood",
            )
        if isinstance(self.likelihood, ClassLikelihood):
            for name in ("outliers", "tails"):
                if getattr(self, name):
                    raise CredoError(f"{name} is for numbers; the likelihood is of classes.", field=name)
        if self.outliers is not None:
            require_positive("outliers", self.outliers)
            require_interval("outliers", self.outliers, 0.0, 0.5)
        require_interval("tails", () if self.tails is None else self.tails, 2.0, np.inf, closed=False)
        require_positive("var", self.var)
        require_nonnegative("walk", self.walk)
        require_interval("prior", self.prior, 0.0, 1.0, closed=False)
        require_interval("switching", self.switching, 0.0, 0.5)
        if isinstance(self.switching, list | tuple):
            object.__setattr__(self, "switching", jnp.asarray(self.switching, float))
        if np.size(self.switching) == 0:
            raise CredoError("switching must hold at least one rate; got none.", field="switching")

    @property
    def numbers(self) -> bool:
        """Whether numbers are forecast, and not classes."""
        return isinstance(self.likelihood, Normal)

    @property
    def regression(self) -> Learner[Any]:
        """The learner of the coefficients, whose rows are what the members forecast."""
        model = Model(_product, self.likelihood)
        walk = RandomWalk(self.walk)
        if not self.numbers:
            return RecursiveLearner(model, Full("dense"), dynamics=walk, forecasting="plugin")
        inner = RecursiveLearner(model, Full("dense"), dynamics=walk)
        tails = TAILS if self.tails is None else self.tails
        return Calibrated(inner, (1.0,), tails, outliers=self.outliers)

    def wrap(self, prior: B) -> Stacking[B]:
        """The inner learner's first belief, and coefficients that leave the mixture as it is."""
        kind = floating(prior)
        start = jnp.zeros(_members(prior) + 1, kind).at[0].set(0.0 if self.numbers else 1.0)
        stack = self.regression.init(start, var=self.var)
        first = jnp.asarray(self.prior, kind)
        rates = jnp.atleast_1d(jnp.asarray(self.switching)).shape[0]
        both = jnp.log(jnp.stack([1.0 - first, first])) - jnp.log(jnp.asarray(rates, kind))
        return Stacking(prior, stack, jnp.tile(both, (rates, 1)), jnp.zeros((), jnp.int32))

    def advance(self, belief: Stacking[B], dt: ArrayLike | None) -> Stacking[B]:
        """Advance members and coefficients by a step of time, in which the other forecast may take over."""
        rates = jnp.atleast_1d(jnp.asarray(self.switching)).astype(belief.log_joint.dtype)
        return replace(
            belief,
            belief=self.learner.time_update(belief.belief, dt),
            stack=self.regression.time_update(belief.stack, dt),
            log_joint=share(rates, belief.log_joint),
        )

    def _row(self, distribution: Predictive) -> _Row:
        """The forecasts of the members of a mixture, as a row of the regression."""
        if not isinstance(distribution, WeightedPredictive):
            raise CredoError(
                "Stacked is for learners whose forecasts are mixtures; this one is a "
                f"{type(distribution).__name__}."
            )
        likelihood = self.likelihood
        if isinstance(likelihood, Normal):
            location, scale = _units(distribution)
            means = in_order(each(lambda part: part.mean, distribution.parts))
            gaps = jnp.clip((means - location) / scale, -FAR, FAR)
            level = jnp.clip(location / scale, -2.0 * FAR, 2.0 * FAR)
            inputs = jnp.append(level, jnp.where(jnp.isfinite(gaps), gaps, 0.0))
            return _Row(inputs, location, scale)
        whole: Array = distribution.probs[None]
        own: Array = in_order(each(lambda part: part.probs, distribution.parts))
        own = jnp.where(jnp.all(jnp.isfinite(own), axis=1, keepdims=True), own, whole)
        logs = jnp.log(jnp.maximum(jnp.concatenate([whole, own]), LEAST))
        outputs = jax.vmap(lambda one: class_outputs(likelihood, one))(logs)
        return _Row(outputs.T)

    def _distribution(self, stack: Any, row: _Row) -> Predictive:
        """The forecast of the regression."""
        distribution = forecast_of(self.regression, stack, row.inputs)
        if row.location is None or row.scale is None:
            return distribution
        return Rescaled(distribution, row.location, row.scale)

    def ask(self, belief: Stacking[B], x: PyTree, question: Question) -> Answer:
        answer = question(self.learner, belief.belief, x)
        if not isinstance(answer, Predictive):
            return answer
        return Either(answer, self._distribution(belief.stack, self._row(answer)), belief.log_shares)

    def predictive(
        self,
        belief: Stacking[B],
        x: PyTree,
        method: ForecastName | None,
        samples: int | None,
        key: Key | None,
    ) -> Predictive:
        """The mixture of both; where a method is named, the forecast of the learner inside."""
        if method is None:
            return super().predictive(belief, x, method, samples, key)
        return forecast_of(self.learner, belief.belief, x, method, samples, key)

    def propose(
        self, belief: Stacking[B], x: PyTree, y: PyTree, weight: ArrayLike, key: Key | None
    ) -> Proposal[Stacking[B]]:
        """Weigh both by how they predicted, and let members and coefficients learn."""
        seen = x if self.takes_missing else clean(x)
        row = self._row(forecast_of(self.learner, belief.belief, seen, None, None, key))
        target: Any = scored(y)
        if row.location is not None and row.scale is not None:
            target = (jnp.asarray(target, row.scale.dtype) - row.location) / row.scale
        log_prob = self._distribution(belief.stack, row).log_prob(scored(y))
        learned, info = self.learner.measurement_update(belief.belief, x, y, weight, key)
        stack, _ = self.regression.measurement_update(belief.stack, row.inputs, target, weight, key)
        evidence = jnp.stack([info.log_evidence, log_prob]).astype(belief.log_joint.dtype)
        evidence = jnp.where(jnp.isfinite(evidence), evidence, -jnp.inf)
        log_evidence = log_sum(belief.log_shares + evidence)
        scores = jnp.where(evidence > -jnp.inf, jnp.asarray(weight, evidence.dtype) * evidence, -jnp.inf)
        joint, total = normalized(belief.log_joint + scores[None, :])
        joint = jnp.where(total > -jnp.inf, joint, belief.log_joint)
        new = replace(belief, belief=learned, stack=stack, log_joint=joint)
        return Proposal(new, log_evidence, info.ok & jnp.isfinite(log_evidence), info.extras)


def _product(coefficients: Array, inputs: Array) -> Array:
    """The outputs of a regression whose coefficients all outputs share."""
    return inputs @ coefficients


def _members(belief: object) -> int:
    """The number K of members of the mixture inside a belief."""
    if not isinstance(belief, Mixture):
        raise CredoError(
            f"Stacked is for learners whose beliefs are mixtures; this one is a {type(belief).__name__}."
        )
    return belief.log_weights.shape[0]


def _units(distribution: WeightedPredictive) -> tuple[Array, Array]:
    """The mean and the standard deviation of a mixture, without members that have none."""
    means: Array = in_order(each(lambda part: part.mean, distribution.parts))
    variances: Array = in_order(each(lambda part: part.var, distribution.parts))
    if means.ndim > 1 or distribution.discrete:
        raise CredoError(
            "likelihood is Normal, for forecasts of one number; this one is of a class, a count or several.",
            field="likelihood",
        )
    there = jnp.isfinite(means) & jnp.isfinite(variances) & (distribution.log_weights > -jnp.inf)
    weights = jnp.where(there, jnp.exp(distribution.log_weights), 0.0)
    total = jnp.sum(weights)
    weights = weights / jnp.where(total > 0, total, 1.0)
    mean = jnp.sum(weights * jnp.where(there, means, 0.0))
    var = jnp.sum(weights * jnp.where(there, variances + (means - mean) ** 2, 0.0))
    return mean, jnp.sqrt(jnp.where(var > 0, var, 1.0))
