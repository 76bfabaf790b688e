"""Stacked mixtures: against references beside the test, in their limits, and as learners of the library."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats as st
from tests.adapt.setups import INNER, WALKS, XS, YS, P, T, bad_rows_leave, begin, same_bits
from tests.streams.setups import bitwise
from tests.tiers import few

import credo
from credo.adapt import Calibrated, Experts, RunLength, Stacked, Standardized, Stretched
from credo.adapt.nested import within
from credo.core.groups import each, in_order
from credo.likelihoods import Either, OpenCategorical, WeightedPredictive
from credo.streams.scoring import score_chunk

BANK = Experts([*WALKS, credo.RecursiveLearner(WALKS[0].model, credo.Diagonal())])
RATES, FIRST, VAR, NOISE = (0.0, 0.1), 0.2, 0.3, 0.7


def shared(joint: np.ndarray) -> np.ndarray:
    """The joint weights (R, 2) after a step of each rate's fixed share."""
    rates = np.array(RATES)[:, None]
    return np.asarray((1 - rates) * joint + rates * joint[:, ::-1])


def members(belief: Any, x: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The weights, means and variances of the members of the bank."""
    distribution: Any = BANK.predictive(belief, x, None, None, None)
    moments = [in_order(each(ask, distribution.parts)) for ask in (_mean, _var)]
    return np.asarray(np.exp(distribution.log_weights)), np.asarray(moments[0]), np.asarray(moments[1])


def _mean(distribution: Any) -> Any:
    return distribution.mean


def _var(distribution: Any) -> Any:
    return distribution.var


@pytest.mark.slow
def test_numbers_are_a_kalman_filter_on_standardised_means_beside_the_mixture() -> None:
    learner = Stacked(BANK, credo.Normal(NOISE), VAR, 0.01, FIRST, RATES, tails=())
    inner = begin(BANK)
    joint = np.tile([1 - FIRST, FIRST], (2, 1)) / 2
    b, cov = np.zeros(4), VAR * np.eye(4)
    ys = np.array(YS)
    ys[4] = np.nan
    rows = np.array([1.0, 1.0, 0.5, 1.0, 1.0, 0.0, 1.0, 1.0, 2.0, 1.0])
    logs, scores, cdfs = [], [], []
    for x, y, row in zip(XS, ys, rows, strict=True):
        joint, cov = shared(joint), cov + 0.01 * np.eye(4)
        predicted = BANK.predict(inner)
        w, means, variances = members(predicted, x)
        m0 = w @ means
        s0 = np.sqrt(w @ (variances + (means - m0) ** 2))
        f = np.concatenate([[m0 / s0], (means - m0) / s0])
        assert np.abs(f).max() < 4  # nothing is clipped
        gain, spread = f @ b, f @ cov @ f + NOISE
        distribution: Any = st.norm(m0 + s0 * gain, s0 * np.sqrt(spread))
        pool = w @ st.norm.pdf(y, means, np.sqrt(variances))
        both = joint.sum(axis=0) @ [pool, distribution.pdf(y)]
        logs.append(np.log(both) if np.isfinite(y) and row else 0.0)
        if np.isfinite(y):
            scores.append(np.log(both))
            below = w @ st.norm.cdf(y, means, np.sqrt(variances))
            cdfs.append(joint.sum(axis=0) @ [below, distribution.cdf(y)])
            joint = joint * np.array([pool, distribution.pdf(y)]) ** row
            joint = joint / joint.sum()
            if row:
                k = cov @ f / (f @ cov @ f + NOISE / row)
                b, cov = b + k * ((y - m0) / s0 - gain), cov - np.outer(k, f @ cov)
        inner, _ = BANK.update(predicted, x, y, weight=row)
    last, outcome, info = score_chunk(learner, begin(learner), XS, ys, weights=jnp.asarray(rows))
    seen = ~np.isnan(ys)
    np.testing.assert_allclose(info.log_evidence, logs, atol=1e-10)
    np.testing.assert_allclose(outcome.log_prob[seen], scores, atol=1e-10)
    np.testing.assert_allclose(np.asarray(outcome.pit)[seen], cdfs, atol=1e-10)
    np.testing.assert_allclose(last.stack.mean, b, atol=1e-10)
    np.testing.assert_allclose(np.exp(last.log_joint), joint, atol=1e-10)
    np.testing.assert_allclose(last.share, joint.sum(axis=0)[1], atol=1e-10)
    np.testing.assert_allclose(last.weights, inner.weights, atol=1e-10)


OPEN = OpenCategorical(5, 3)
CLASSES: dict[str, tuple[Any, int]] = {
    "two": (credo.Bernoulli(), 2),
    "three": (credo.Categorical(3), 3),
    "room for five": (OPEN, 3),
    "against the first": (OpenCategorical(5, 3, reference=True), 3),
}


def class_bank(likelihood: Any) -> tuple[Any, Any]:
    """A bank of linear classifiers, and its first belief."""
    outputs = {credo.Bernoulli: 1, credo.Categorical: 3}.get(type(likelihood), 5 - (likelihood is not OPEN))
    net = credo.Linear(outputs)
    params = jax.tree.map(lambda leaf: leaf.astype(float), net.init(0, (P,)))
    model = credo.Model(net, likelihood)
    walks = [credo.RandomWalk(q) for q in (0.0, 0.3)]
    bank = Experts([credo.bong(model, credo.Full("dense"), dynamics=walk) for walk in walks])
    return bank, params


@pytest.mark.slow
@pytest.mark.parametrize("name", few(CLASSES, "room for five"))
def test_classes_are_a_regression_on_log_probabilities_beside_the_mixture(name: str) -> None:
    likelihood, count = CLASSES[name]
    bank, params = class_bank(likelihood)
    learner = Stacked(bank, likelihood, VAR, 0.01, FIRST, 0.1)
    labels = jnp.asarray(np.random.default_rng(2).integers(0, count, T))
    model = credo.Model(lambda b, x: x @ b, likelihood)
    alone = credo.RecursiveLearner(
        model, credo.Full("dense"), dynamics=credo.RandomWalk(0.01), forecasting="plugin"
    )
    inner, stack = bank.init(params), alone.init(jnp.eye(1, 3)[0], var=VAR)
    predict, update, learn = jax.jit(bank.predict), jax.jit(bank.update), jax.jit(alone.update)

    @jax.jit
    def seen(inner: Any, x: Any) -> Any:
        distribution: Any = bank.predictive(inner, x, None, None, None)
        return distribution.log_weights, jax.vmap(lambda part: part.probs)(distribution.parts)

    @jax.jit
    def second_probs(stack: Any, inputs: Any) -> Any:
        return alone.forecast(stack, inputs).probs

    weights, logs, probs = np.array([1 - FIRST, FIRST]), [], []
    for x, y in zip(XS, labels, strict=True):
        weights = 0.9 * weights + 0.1 * weights[::-1]
        inner, stack = predict(inner), alone.predict(stack)
        log_weights, own = map(np.asarray, seen(inner, x))
        rows = np.log(np.maximum(np.vstack([np.exp(log_weights) @ own, own]), 1e-4))
        reference = name in ("two", "against the first")
        inputs = rows[:, 1:] - rows[:, :1] if reference else rows - rows.max(axis=1, keepdims=True)
        second = np.asarray(second_probs(stack, inputs.T))
        both = weights @ np.stack([np.exp(log_weights) @ own, second])
        probs.append(both)
        logs.append(np.log(both[y]))
        weights = weights * np.array([np.exp(log_weights) @ own[:, y], second[y]])
        weights = weights / weights.sum()
        inner, _ = update(inner, x, y)
        stack, _ = learn(stack, inputs.T, y)
    last, outcome, info = score_chunk(learner, learner.init(params), XS, labels)
    np.testing.assert_allclose(info.log_evidence, logs, atol=1e-10)
    np.testing.assert_allclose(np.asarray(outcome.probs), probs, atol=1e-10)
    np.testing.assert_allclose(last.stack.mean, stack.mean, atol=1e-10)
    np.testing.assert_allclose(np.exp(last.log_shares), weights, atol=1e-10)


@pytest.mark.slow
def test_at_first_the_regression_is_the_mixture() -> None:
    bank, params = class_bank(credo.Categorical(3))
    learner = Stacked(bank, credo.Categorical(3), var=1e-9)
    belief, inner = learner.init(params, var=0.5), bank.init(params, var=0.5)
    distribution: Any = learner.forecast(belief, XS[0])
    np.testing.assert_allclose(distribution.second.probs, bank.forecast(inner, XS[0]).probs, atol=1e-12)
    numbers = Stacked(BANK, credo.Normal(1.0), var=1e-12, tails=())
    first, mixed = numbers.forecast(begin(numbers), XS[0]), BANK.forecast(begin(BANK), XS[0])
    np.testing.assert_allclose([first.mean, first.sd], [mixed.mean, mixed.sd], atol=1e-9)


def test_far_means_and_small_probabilities_are_bounded() -> None:
    far = credo.likelihoods.NormalPredictive(jnp.array([[0.0], [1e3]]), jnp.full((2, 1, 1), 1e-4))
    distribution = WeightedPredictive(far, jnp.log(jnp.array([1.0 - 1e-9, 1e-9])))
    row = Stacked(BANK)._row(distribution)
    np.testing.assert_allclose(row.inputs[1:], [0.0, 4.0], atol=0.1)
    high = WeightedPredictive(credo.replace(far, loc=far.loc + 50.0), distribution.log_weights)
    assert float(Stacked(BANK)._row(high).inputs[0]) == 8.0
    sure = credo.Bernoulli().plugin(jnp.full(1, -40.0))
    stack = WeightedPredictive(
        jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), sure), jnp.log(jnp.full(2, 0.5))
    )
    outputs = Stacked(BANK, credo.Bernoulli())._row(stack).inputs
    np.testing.assert_allclose(outputs, np.full((1, 3), np.log(1e-4)), atol=1e-9)


@pytest.mark.thorough
def test_members_that_know_one_input_each_say_more_together() -> None:
    def model(place: int) -> credo.Model:
        return credo.Model(lambda w, x: x[place] * w[0], credo.Normal(1.0))

    bank = Experts([credo.RecursiveLearner(model(place), credo.Full("dense")) for place in range(2)])
    rng = np.random.default_rng(3)
    xs = jnp.asarray(rng.normal(size=(400, 2)))
    ys = xs @ jnp.ones(2) + 0.1 * rng.normal(size=400)
    learner = Stacked(bank, credo.Normal(credo.InverseGamma(10.0, 10.0, 0.99)), var=1.0)
    pair: list[Any] = [bank, learner]
    reports: list[Any] = [credo.evaluate(one, one.init(jnp.zeros(1)), (xs, ys)) for one in pair]
    alone, both = (report.scores.log_prob[200:].mean() for report in reports)
    assert both > alone + 0.8 and float(reports[1].belief.share) > 0.99
    sd = float(learner.forecast(reports[1].belief, xs[0]).sd)
    assert 0.08 < sd < 0.25


LEARNERS: dict[str, Any] = {
    "numbers": Stacked(BANK),
    "with outliers": Stacked(BANK, outliers=0.01, switching=0.1),
    "run length": Stacked(RunLength(INNER, 0.1, 3)),
    "stretched": Stretched(Stacked(Experts(WALKS))),
    "in run length": RunLength(Stacked(Experts(WALKS)), 0.1, 2),
}


@pytest.mark.optimised
@pytest.mark.parametrize("name", few(LEARNERS, "with outliers", "in run length"))
def test_a_loop_a_scan_and_chunks_give_the_same_bits(name: str, tmp_path: Path) -> None:
    same_bits(LEARNERS[name], tmp_path)


@pytest.mark.slow
def test_a_bad_row_leaves_the_belief_and_a_broken_member_counts_as_the_mixture() -> None:
    learner = LEARNERS["with outliers"]
    belief, _ = credo.run(learner, begin(learner), XS, YS)
    predicted = learner.predict(belief)
    bad_rows_leave(learner, predicted)
    inner = predicted.belief
    diagonal = credo.replace(inner.beliefs.parts[1], mean=jnp.full((1, P), jnp.nan))
    parts = credo.replace(inner.beliefs, parts=(inner.beliefs.parts[0], diagonal))
    broken = credo.replace(predicted, belief=credo.replace(inner, beliefs=parts))
    distribution = jax.jit(learner.forecast)(broken, XS[0])
    assert bool(jnp.isfinite(distribution.mean)) and bool(jnp.isfinite(distribution.log_prob(1.0)))
    after, info = jax.jit(learner.update)(broken, XS[0], YS[0])
    assert bool(info.ok) and bool(jnp.all(jnp.isfinite(after.stack.mean)))


@pytest.mark.slow
def test_an_outlier_hardly_moves_coefficients_where_outliers_are_foreseen() -> None:
    moved = []
    for outliers in (0.01, None):
        learner = Stacked(BANK, outliers=outliers)
        belief, _ = credo.run(learner, begin(learner), XS, YS)
        after, _ = learner.step(belief, XS[0], 50.0)
        moved.append(float(jnp.abs(after.stack.mean - belief.stack.mean).max()))
    assert moved[0] < 0.1 * moved[1]


def test_a_broken_classifier_counts_as_the_mixture() -> None:
    likelihood = credo.Categorical(3)
    bank, params = class_bank(likelihood)
    learner = Stacked(bank, likelihood)
    parts = bank.predictive(bank.init(params), XS[0], None, None, None).parts

    def spoilt(leaf: Any) -> Any:
        return leaf.at[1].set(jnp.nan) if jnp.issubdtype(leaf.dtype, jnp.floating) else leaf

    broken = jax.tree.map(spoilt, parts)
    distribution = WeightedPredictive(broken, jnp.array([0.0, -jnp.inf]))
    inputs = np.asarray(learner._row(distribution).inputs)
    assert np.isfinite(inputs).all()
    np.testing.assert_array_equal(inputs[:, 2], inputs[:, 0])


def test_what_has_no_members_or_no_regression_is_refused_in_a_sentence() -> None:
    with pytest.raises(credo.CredoError, match="Stacked is for learners whose beliefs are mixtures"):
        begin(Stacked(INNER))
    with pytest.raises(credo.CredoError, match=r"likelihood must be Bernoulli, .* got Poisson"):
        Stacked(BANK, credo.Poisson())  # type: ignore[arg-type]
    options: tuple[dict[str, Any], ...] = ({"outliers": 0.01}, {"tails": (4.0,)})
    for option in options:
        with pytest.raises(credo.CredoError, match="is for numbers; the likelihood is of classes"):
            Stacked(BANK, credo.Bernoulli(), **option)
    bank, params = class_bank(credo.Bernoulli())
    learner = Stacked(bank)
    with pytest.raises(credo.CredoError, match="likelihood is Normal, for forecasts of one number"):
        learner.forecast(learner.init(params), XS[0])
    with pytest.raises(credo.CredoError, match="beliefs are mixtures; this one is a Calibration"):
        begin(Stacked(Calibrated(BANK, (0.0, 1.0))))
    cases = (
        ("outliers", 0.6),
        ("tails", (1.0,)),
        ("var", 0.0),
        ("walk", -1.0),
        ("prior", 1.0),
        ("switching", 0.6),
        ("switching", ()),
    )
    for name, value in cases:
        with pytest.raises(credo.CredoError, match=name):
            Stacked(BANK, **{name: value})  # type: ignore[arg-type]


@pytest.mark.slow
def test_a_wrapper_leaves_the_prior_variances_to_the_learner_inside() -> None:
    bank = credo.auto(2)
    inside: Any = within(bank, Experts)
    own = inside.init()
    wrapped: Any = within(Standardized(bank, targets=True).init(size=2), credo.adapt.Bank)
    bitwise(own.priors, wrapped.priors)
    assert within(own, credo.Gaussian) is None
    learner = Standardized(INNER)
    found = within(learner.init(jnp.zeros(P), size=P), credo.Gaussian)
    assert found is not None and np.allclose(found.var, 1.0)


def test_either_of_two_distributions_is_their_mixture() -> None:
    distributions = [credo.Normal(var).plugin(jnp.full(1, mean)) for mean, var in ((-1.0, 1.0), (2.0, 0.3))]
    weights = jnp.log(jnp.array([0.3, 0.7]))
    both = Either(distributions[0], distributions[1], weights)
    stack = WeightedPredictive(jax.tree.map(lambda *leaves: jnp.stack(leaves), *distributions), weights)
    asks: list[Any] = [
        _mean,
        _var,
        lambda distribution: distribution.log_prob(0.3),
        lambda distribution: distribution.cdf(0.3),
        lambda distribution: distribution.quantile(jnp.array([0.05, 0.5])),
        lambda distribution: distribution.heavier(jnp.asarray(4.0)).log_prob(5.0),
    ]
    for ask in asks:
        np.testing.assert_allclose(np.asarray(ask(both)), np.asarray(ask(stack)), atol=1e-10)
    draws = np.asarray(both.sample(jax.random.key(1), (4000,)))
    error = float(both.sd) / np.sqrt(4000)
    assert abs(draws.mean() - float(both.mean)) < 5 * error
    np.testing.assert_allclose(draws.var(), float(both.var), rtol=0.1)
    gone = Either(
        distributions[0], credo.Normal(1.0).plugin(jnp.full(1, jnp.nan)), jnp.array([0.0, -jnp.inf])
    )
    np.testing.assert_allclose(
        [float(gone.mean), float(gone.log_prob(0.0))],
        [-1.0, float(distributions[0].log_prob(0.0))],
        atol=1e-12,
    )
    chances = [credo.Bernoulli().plugin(jnp.full(1, logit)) for logit in (-1.0, 2.0)]
    classes = Either(chances[0], chances[1], weights)
    np.testing.assert_allclose(classes.probs, 0.3 * chances[0].probs + 0.7 * chances[1].probs, atol=1e-12)
    assert classes.discrete and not both.discrete
