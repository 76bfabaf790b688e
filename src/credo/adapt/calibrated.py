"""Forecasts whose width is learned: mixtures over scales of a learner's uncertainty, and over tails."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic

import jax
import jax.numpy as jnp
import numpy as np

from credo.adapt.moments import log_sum_few, matched
from credo.adapt.nested import Around, B, floating
from credo.adapt.priors import moved, moved_inside
from credo.adapt.questions import forecast_mixture
from credo.adapt.wrapper import Proposal, Wrapper
from credo.core.errors import CredoError, require_interval, require_nonnegative, require_positive
from credo.core.fields import field
from credo.core.groups import Groups, each, in_order
from credo.core.names import ForecastName
from credo.core.records import record, replace, static_field
from credo.core.trees import as_like
from credo.core.types import Array, ArrayLike, Key, PyTree
from credo.core.verbs import traced_once
from credo.core.weights import fixed_share
from credo.learners.acceptance import clean, scored
from credo.likelihoods import Contaminated, Predictive
from credo.likelihoods.weighted import outlier_log_density, with_outliers

__all__ = ["Calibrated", "Calibration"]

DOUBT = 0.0025
"""The share of the latest observation in the running share of outliers."""

MANY = 0.02
"""The running share from which outliers belong to the world, and are learned."""


@record
class Calibration(Around[B], Generic[B]):
    """The belief of a learner, and how well each width of its forecasts has predicted.

    Attributes:
        belief: the belief of the learner inside.
        log_weights: log P(candidate k forecasts best) (K,), of probabilities that sum to one. The candidates
            are the scales with the tails of the noise, then the scales with each of the `tails`, or of the
            factors of `sharpness`.
        t: how many times `predict` has been called.
        doubt: the running share of the latest observations that were taken for outliers; None if none is.

    Example:
        >>> import credo
        >>> learner = Calibrated(credo.BetaBernoulli(), scales=(0.0, 1.0))
        >>> learner.init().weights.tolist()
        [0.5, 0.5]
    """

    belief: B
    log_weights: Array = field("log weights")
    t: Array
    doubt: Array | None = None

    @property
    def weights(self) -> Array:
        """The probabilities of the candidates (K,)."""
        return jnp.exp(self.log_weights)


@record
class Calibrated(Wrapper[Calibration[B], B], Generic[B]):
    """A learner whose forecasts have the width that past observations ask for.

    If the outputs eta of a model are believed to be N(m, S), the forecast is a mixture over scales s_k of
    that uncertainty, from 0 (the mean of the belief is trusted) to 1 (the belief is), and above:

        p(y | x, past) = sum_k w_k p_k(y),   p_k(y) = integral of p(y | eta) N(eta | m, s_k S) d eta.

    Before an observation a share moves, w_k <- (1 - switching) w_k + switching (1 - w_k) / (K - 1), and after
    it log w_k += weight log p_k(y), normalised. The belief inside learns as it would alone. Classes may
    also be forecast more sharply than the belief says, by outputs a eta in place of eta.

    With `outliers`, a share of the observations are outliers of a distribution q that is far and wide
    (`credo.likelihoods.Contaminated`), and p_k above becomes (1 - outliers) p_k + outliers q. So no
    observation, however absurd, moves the weights far, neither here nor in a bank around. Where o is the
    probability that y is an outlier, the belief inside and the weights learn with the

        weight (1 - caution o (1 - min(d / 0.02, 1)^4)),

    where d is the running share of outliers among the latest four hundred observations or so. One that is
    absurd is passed by; where nine follow one another, or one in fifty is one for long, the world has
    changed, and the belief inside learns after all.

    Arguments:
        learner: any learner. One without a variance of its outputs has one forecast for all scales.
        scales: factors of the variance of the outputs, each at least 0.
        tails: degrees of freedom above 2, for normal and Student-t forecasts of numbers. Each adds one
            candidate a scale, with at most that many degrees of freedom and the mean and variance unchanged.
        switching: the probability that another candidate is right at the next step, in [0, 0.5].
        sharpness: factors a of the outputs, above 0, for forecasts of classes. Each adds one candidate a
            scale. A mean that is still on its way from the prior is too cautious, and 1.3 takes that back.
        outliers: the probability of an outlier, in (0, 0.5], for numbers with a standard deviation near 1;
            None if there are none.
        caution: how far the learner inside passes outliers by, from 0 (it learns them as any other
            observation) to 1.
        plugin: whether the mean of the belief alone is one more candidate, before the scales. Its forecast is
            that of the scale 0 and costs no integral.

    Raises:
        CredoError: there are no scales, a number is outside its range, or (later) the model is joint.

    The weights are exact, and nothing of a forecast is refitted. A row that is missing or refused leaves
    them; a candidate whose density is not finite gets weight 0 at that row. `Info.log_evidence` is the log of
    the mixture, and `extras` are those of the learner inside. A forecast by a named `method`, `expect`,
    `sample` and `sample_function` are those of the learner inside: decisions explore by what is believed.

    Cost: the outputs and their covariance are computed once; a candidate costs an integral over them.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> inner = credo.extended_kalman(credo.Model(lambda w, x: x @ w, credo.Bernoulli()))
        >>> learner = Calibrated(inner, scales=(0.0, 1.0))
        >>> belief, info = learner.step(learner.init(jnp.zeros(2), var=100.0), jnp.ones(2), 1)
        >>> belief.weights.round(2).tolist()
        [0.5, 0.5]
    """

    scales: ArrayLike | Sequence[float] = (0.0, 0.03, 0.1, 0.3, 1.0)
    tails: ArrayLike | Sequence[float] = ()
    switching: ArrayLike = 1e-3
    sharpness: ArrayLike | Sequence[float] = ()
    outliers: ArrayLike | None = None
    caution: ArrayLike = 1.0
    plugin: bool = static_field(default=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        require_nonnegative("scales", self.scales)
        require_interval("tails", self.tails, 2.0, np.inf, closed=False)
        require_interval("switching", self.switching, 0.0, 0.5)
        require_positive("sharpness", self.sharpness)
        if self.outliers is not None:
            require_positive("outliers", self.outliers)
            require_interval("outliers", self.outliers, 0.0, 0.5)
        require_interval("caution", self.caution, 0.0, 1.0)
        for name in ("scales", "tails", "sharpness"):
            value = getattr(self, name)
            if isinstance(value, list | tuple):
                object.__setattr__(self, name, jnp.asarray(value, float))
            if np.ndim(value) == 0 or (name == "scales" and np.size(value) == 0 and not self.plugin):
                raise CredoError(f"{name} must be several numbers; got {value!r}.", field=name)
        if np.size(self.tails) and np.size(self.sharpness):
            raise CredoError("sharpness is for classes, and tails are for numbers.", field="sharpness")

    @property
    def size(self) -> int:
        """The number K of candidates."""
        distributions = 1 + np.shape(self.tails)[0] + np.shape(self.sharpness)[0]
        count: int = (self.plugin + np.shape(self.scales)[0]) * distributions
        return count

    @property
    def variance_factors(self) -> Array:
        """The factors of the variance of the outputs (S,), where the mean alone stands first as 0."""
        scales = jnp.asarray(self.scales, float)
        if self.plugin:
            return jnp.concatenate([jnp.zeros(1), scales])
        return scales

    def wrap(self, prior: B) -> Calibration[B]:
        """The inner learner's first belief, and equal weights."""
        size = self.size
        log_weights = jnp.full(size, -jnp.log(float(size)), floating(prior))
        doubt = None if self.outliers is None else jnp.zeros((), log_weights.dtype)
        return Calibration(prior, log_weights, jnp.zeros((), jnp.int32), doubt)

    def advance(self, belief: Calibration[B], dt: ArrayLike | None) -> Calibration[B]:
        """Advance the learner inside by a step of time, in which another candidate may take over."""
        logs = fixed_share(belief.log_weights, self.switching)
        return replace(belief, belief=self.learner.time_update(belief.belief, dt), log_weights=logs)

    @traced_once
    def _candidates(self, belief: B, x: PyTree) -> Any:
        """The K forecasts, as a stack or as `Groups`."""
        scales = jnp.asarray(self.scales)
        rows = []
        if self.plugin:
            rows.append((1, _one(self.learner.scaled_predictive(belief, x, None))))
        if scales.shape[0]:
            scaled = jax.vmap(lambda scale: self.learner.scaled_predictive(belief, x, scale))(scales)
            rows.append((scales.shape[0], scaled))
        distributions = 1 + np.shape(self.tails)[0] + np.shape(self.sharpness)[0]
        width = sum(count for count, _ in rows)
        begin = 0
        parts = []
        for count, own in rows:
            places = [
                begin + distribution * width + np.arange(count) for distribution in range(distributions)
            ]
            parts += self._distributions(own, places)
            begin += count
        return _joined(parts)

    def _distributions(self, own: Any, places: Sequence[np.ndarray]) -> list[tuple[Any, np.ndarray]]:
        """Forecasts as they are, and with heavier tails or sharper, with their places among all."""
        tails = jnp.asarray(self.tails)
        sharpness = jnp.asarray(self.sharpness)
        other = None
        if tails.shape[0]:
            other = jax.vmap(lambda df: jax.vmap(lambda one: one.heavier(df))(own))(tails)
        if sharpness.shape[0]:
            other = jax.vmap(lambda factor: jax.vmap(lambda one: one.sharper(factor))(own))(sharpness)
        if other is None:
            return [(own, places[0])]
        other = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), other)
        return [(own, places[0]), (other, np.concatenate(places[1:]))]

    def predictive(
        self,
        belief: Calibration[B],
        x: PyTree,
        method: ForecastName | None,
        samples: int | None,
        key: Key | None,
    ) -> Predictive:
        """The mixture over the candidates; where a method is named, the forecast of the learner inside."""
        if method is not None:
            return self.learner.predictive(belief.belief, x, method, samples, key)
        mixture = forecast_mixture(self._candidates(belief.belief, x), belief.log_weights)
        if self.outliers is None:
            return mixture
        return Contaminated(mixture, as_like(self.outliers, belief.log_weights))

    def propose(
        self, belief: Calibration[B], x: PyTree, y: PyTree, weight: ArrayLike, key: Key | None
    ) -> Proposal[Calibration[B]]:
        """Weigh the candidates by how they predicted, and let the learner inside learn."""
        logs = belief.log_weights
        candidates = self._candidates(belief.belief, x if self.takes_missing else clean(x))
        densities: Array = in_order(each(lambda one: one.log_prob(scored(y)), candidates)).astype(logs.dtype)
        if densities.ndim > 1:
            raise CredoError("Calibrated weighs one observation a step: the model inside must not be joint.")
        finite = jnp.isfinite(densities)
        evidence = jnp.where(finite, densities, -jnp.inf)
        log_evidence = log_sum_few(logs + evidence)
        share = weight
        new = belief
        if self.outliers is not None and belief.doubt is not None:
            evidence, total, outlier = self._with_outliers(y, logs, evidence, log_evidence)
            few = 1.0 - jnp.minimum(belief.doubt / MANY, 1.0) ** 4
            passed = as_like(self.caution, logs) * outlier * few
            share = as_like(weight, passed) * (1.0 - passed)
            new = replace(belief, doubt=belief.doubt + DOUBT * (outlier - belief.doubt))
            log_evidence = total
        learned, info = self.learner.measurement_update(belief.belief, x, y, share, key)
        scores = jnp.where(finite, as_like(share, densities) * evidence, -jnp.inf)
        total = log_sum_few(logs + scores)
        log_weights = jnp.where(total > -jnp.inf, logs + scores - total, logs)
        new = replace(new, belief=learned, log_weights=log_weights)
        return Proposal(new, log_evidence, info.ok & jnp.isfinite(log_evidence), info.extras)

    def _with_outliers(
        self, y: PyTree, logs: Array, evidence: Array, log_evidence: Array
    ) -> tuple[Array, Array, Array]:
        """The log densities with outliers, by candidate and in all; and the probability of an outlier."""
        assert self.outliers is not None
        share = as_like(self.outliers, logs)
        other = outlier_log_density(jnp.asarray(scored(y)).astype(logs.dtype).reshape(()))
        total = with_outliers(log_evidence, other, share)
        outlier = jnp.exp(jnp.log(share) + other - total)
        outlier = jnp.where(jnp.isfinite(outlier), outlier, 0.0)
        return jnp.where(evidence > -jnp.inf, with_outliers(evidence, other, share), evidence), total, outlier


def _one(thing: Any) -> Any:
    """A stack of one."""
    return jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], thing)


def _joined(parts: Sequence[tuple[Any, np.ndarray]]) -> Any:
    """Stacks with their places as one stack where all are of a kind, else as `Groups` of one stack a kind."""
    kinds: dict[Any, list[tuple[Any, np.ndarray]]] = {}
    for stack, places in parts:
        leaves, structure = jax.tree.flatten(stack)
        # Integrals at the mean and around it may have unlike numbers of nodes.
        kind = structure, tuple((leaf.shape[1:], leaf.dtype) for leaf in leaves)
        kinds.setdefault(kind, []).append((stack, places))
    stacks = [
        jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *(stack for stack, _ in alike))
        for alike in kinds.values()
    ]
    order = tuple(tuple(int(k) for _, own in alike for k in own) for alike in kinds.values())
    if order == (tuple(range(len(order[0]))),):
        return stacks[0]
    return Groups(tuple(stacks), order)


@matched.register
def _(beliefs: Calibration, weights: Array) -> Calibration[Any]:  # type: ignore[type-arg]
    shares = jnp.log(weights @ jnp.exp(beliefs.log_weights))
    doubt = None if beliefs.doubt is None else weights @ beliefs.doubt
    return Calibration(matched(beliefs.belief, weights), shares, beliefs.t[0], doubt)


moved.register(Calibration)(moved_inside)
