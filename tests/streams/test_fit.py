"""Batch fits against exact posteriors, their evidence, and the recursive learner."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import credo
from credo.covariances import divergence, precision_trace
from credo.covariances.roles import Family

RNG = np.random.default_rng(5)
X = RNG.normal(size=(70, 4)) @ RNG.normal(size=(4, 4))
Y = X @ np.array([1.0, -1.0, 0.5, 2.0]) + 0.5 * RNG.normal(size=70)
LABELS = (Y > 0).astype(float)
PRIOR, NOISE = 2.0, 0.25


def linear(w: Any, x: Any) -> Any:
    return x @ w


REGRESSION = credo.Model(linear, credo.Normal(NOISE))
COV = np.linalg.inv(np.eye(4) / PRIOR + X.T @ X / NOISE)
MEAN = COV @ X.T @ Y / NOISE


def evidence() -> float:
    learner = credo.extended_kalman(REGRESSION)
    _, trace = credo.run(learner, learner.init(jnp.zeros(4), var=PRIOR), X, Y)
    return float(trace.log_evidence.sum())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("learner", "iterations"),
    [
        (credo.bong(REGRESSION, credo.Full()), 2),
        (credo.bong(REGRESSION, credo.LowRank(4)), 2),
    ],
)
def test_a_linear_regression_is_fitted_exactly_and_its_elbo_is_the_evidence(
    learner: Any, iterations: int
) -> None:
    result = credo.fit(learner, learner.init(jnp.zeros(4), var=PRIOR), (X, Y), iterations=iterations)
    np.testing.assert_allclose(result.belief.mean, MEAN, atol=1e-10)
    np.testing.assert_allclose(result.belief.cov.dense(), COV, atol=1e-10)
    assert float(result.elbo[-1]) == pytest.approx(evidence(), abs=1e-10 * len(Y))
    assert result.method == "linearized" and result.ok.all() and not result.standard_error.any()
    assert (result.elbo <= evidence() + 1e-9).all() and result.belief.t == 0


def test_steps_of_the_learning_rule_reach_the_posterior_and_a_wild_one_is_refused() -> None:
    learner = credo.blr(REGRESSION, credo.Full(), learning_rate=lambda t: jnp.where(t == 1, 2.0, 0.5))
    result = credo.fit(learner, learner.init(jnp.zeros(4), var=PRIOR), (X, Y), iterations=60)
    assert not result.ok[1] and int(result.ok.sum()) == 59 and result.elbo[1] == result.elbo[2]
    np.testing.assert_allclose(result.belief.mean, MEAN, atol=1e-10)
    np.testing.assert_allclose(result.belief.cov.dense(), COV, atol=1e-10)


def test_a_batch_fit_by_bog_is_one_by_bbb() -> None:
    fits = []
    for rule in (credo.BOGRule(1e-4, parameters="moment"), credo.BBBRule(1e-4, parameters="moment")):
        learner = credo.RecursiveLearner(REGRESSION, credo.Diagonal(), rule=rule)
        fits.append(credo.fit(learner, learner.init(jnp.zeros(4), var=PRIOR), (X, Y), iterations=3))
    np.testing.assert_allclose(fits[0].belief.mean, fits[1].belief.mean, atol=1e-12)
    np.testing.assert_allclose(fits[0].belief.var, fits[1].belief.var, atol=1e-12)
    assert fits[0].ok.all() and fits[0].elbo[-1] > fits[0].elbo[0]


def test_missing_and_weighted_rows_are_those_of_the_recursive_learner() -> None:
    learner = credo.extended_kalman(REGRESSION)
    prior = learner.init(jnp.zeros(4), var=PRIOR)
    targets, weights = np.where(np.arange(70) % 9 == 2, np.nan, Y), 0.5 + RNG.random(70)
    result = credo.fit(learner, prior, (X, targets), iterations=2, weights=weights)
    belief, _ = credo.run(learner, prior, X, targets, weights=weights)
    np.testing.assert_allclose(result.belief.mean, belief.mean, atol=1e-10)
    np.testing.assert_allclose(result.belief.cov.dense(), belief.cov.dense(), atol=1e-10)


def test_a_diagonal_belief_is_the_mean_field_optimum() -> None:
    learner = credo.bong(REGRESSION, credo.Diagonal())
    result = credo.fit(learner, learner.init(jnp.zeros(4), var=PRIOR), (X, Y), iterations=2)
    np.testing.assert_allclose(result.belief.mean, MEAN, atol=1e-9)
    np.testing.assert_allclose(result.belief.var, 1.0 / np.diag(np.linalg.inv(COV)), atol=1e-10)
    assert float(result.elbo[-1]) < evidence()


@pytest.mark.slow
def test_the_elbo_of_a_classifier_rises_to_a_bound_on_the_evidence() -> None:
    model = credo.Model(linear, credo.Bernoulli())
    plain = credo.RecursiveLearner(model, credo.Diagonal(), rule=credo.BBBRule(3e-3, parameters="moment"))
    natural = credo.blr(model, credo.Full(), learning_rate=0.5)
    for learner in (plain, natural):
        prior = learner.init(jnp.zeros(4))
        result = credo.fit(learner, prior, (X, LABELS), iterations=60, method="mc", key=0)
        assert result.ok.all() and result.elbo[-1] > result.elbo[0] + 10
    draws = RNG.normal(size=(200_000, 4))
    logits = X @ draws.T * (2 * LABELS - 1)[:, None]
    values = -np.logaddexp(0, -logits).sum(axis=0)
    bound = np.log(np.mean(np.exp(values - values.max()))) + values.max()
    assert result.method == "mc" and result.standard_error[-1] > 0
    assert float(result.elbo[-1]) < bound + 4 * float(result.standard_error[-1]) + 0.2
    assert float(result.elbo[-1]) > bound - 2.0


@pytest.mark.slow
@pytest.mark.parametrize("family", [credo.Full(), credo.Diagonal(), credo.LowRank(2)])
def test_the_divergence_is_that_of_dense_matrices(family: Family) -> None:
    var = jnp.asarray([0.5, 1.0, 2.0, 3.0])
    prior = family.init(var).condition(jnp.asarray(X[:1]))
    cov = prior.condition(jnp.asarray(X[1:4]))
    mean = jnp.asarray([1.0, 0.0, -1.0, 2.0])
    first, second = np.asarray(cov.dense()), np.asarray(prior.dense())
    trace = np.trace(np.linalg.solve(second, first))
    gap = mean @ np.linalg.solve(second, mean)
    volume = np.linalg.slogdet(second)[1] - np.linalg.slogdet(first)[1]
    generic = precision_trace.dispatch(object)
    np.testing.assert_allclose(divergence(mean, cov, jnp.zeros(4), prior), 0.5 * (trace - 4 + gap + volume))
    np.testing.assert_allclose(generic(prior, cov), trace)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"iterations": 0}, "iterations"),
        ({"method": "magic"}, "linearized"),
        ({"method": "mc"}, "key"),
        ({"weights": -np.ones(70)}, "weights"),
        ({"learner": credo.sgd(REGRESSION, 0.1)}, "RecursiveLearner"),
    ],
)
def test_what_cannot_be_fitted_is_refused(change: Any, words: str) -> None:
    learner = credo.extended_kalman(REGRESSION)
    arguments = {"learner": learner, "belief": learner.init(jnp.zeros(4)), "data": (X, Y)} | change
    with pytest.raises(credo.CredoError, match=words):
        credo.fit(**arguments)
