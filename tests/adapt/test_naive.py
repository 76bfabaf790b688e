"""Single terms of the wrappers, against the arithmetic written out by hand on a coin or on one number."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.adapt.setups import linear

import credo
from credo.adapt import ChangeProbability, Experts, RunLength, SoftReset, WeightedPast
from credo.adapt.changepoints.slots import thin

COIN = credo.BetaBernoulli(2.0, 3.0)
LEVEL = credo.RecursiveLearner(credo.Model(linear, credo.Normal(1.0)), credo.Full("dense"))
VAR = 4.0


def log_normal(y: float, mean: float, var: float) -> float:
    return float(-0.5 * (np.log(2 * np.pi * var) + (y - mean) ** 2 / var))


def test_a_weighted_observation_counts_for_the_hypotheses_as_for_the_coins() -> None:
    hazard, weights, ys = 0.2, (0.5, 3.0, 0.25), (1.0, 1.0, 0.0)
    learner = RunLength(COIN, hazard, 5)
    belief, trace = credo.run(learner, learner.init(), None, jnp.asarray(ys), weights=jnp.asarray(weights))
    coins: list[tuple[float, float, float]] = [(1.0, 2.0, 3.0)]  # the probability, a and b, the newest first
    evidence = []
    for t, (y, weight) in enumerate(zip(ys, weights, strict=True)):
        if t:
            coins = [(hazard, 2.0, 3.0), *((p * (1 - hazard), a, b) for p, a, b in coins)]
        scored = [(p * ((a if y else b) / (a + b)) ** weight, a, b) for p, a, b in coins]
        total = sum(p for p, _, _ in scored)
        evidence.append(np.log(total))
        coins = [(p / total, a + weight * y, b + weight * (1 - y)) for p, a, b in scored]
    np.testing.assert_allclose(trace.log_evidence, evidence, atol=1e-12)
    np.testing.assert_allclose(belief.run_length_probs(3), [p for p, _, _ in coins], atol=1e-12)
    np.testing.assert_allclose(belief.mean, sum(p * a / (a + b) for p, a, b in coins), atol=1e-12)


@pytest.mark.parametrize("full", [True, False])
def test_the_lightest_hypothesis_is_folded_into_the_one_of_the_nearest_run_length(full: bool) -> None:
    weights, lengths = np.array([0.5, 0.3, 0.15, 0.05]), jnp.asarray([20, 3, 9, 7])
    weights = weights if full else np.array([0.5, 0.3, 0.2, 0.0])
    a, b = np.array([1.0, 2.0, 3.0, 8.0]), np.array([4.0, 3.0, 2.0, 1.0])
    beliefs = credo.Beta(jnp.asarray(a), jnp.asarray(b), jnp.zeros(4, jnp.int32))
    none = jnp.zeros(4, bool)
    with np.errstate(divide="ignore"):
        logs = jnp.asarray(np.log(weights))
    survivors, merged, pruned = thin("merge", logs, beliefs, lengths, none, 3, None)
    # the last is the lightest, and the run length of the third, 9, is the nearest to its 7
    pair = weights[[2, 3]] / weights[[2, 3]].sum()
    means, total = a / (a + b), a + b
    mean = pair @ means[[2, 3]]
    var = pair @ (means * (1 - means) / (total + 1) + (means - mean) ** 2)[[2, 3]]
    size = mean * (1 - mean) / var - 1
    expected = weights + np.array([0.0, 0.0, weights[3], -weights[3]])
    np.testing.assert_allclose(np.exp(survivors), expected, atol=1e-12)
    np.testing.assert_allclose(merged.a[:3], [1.0, 2.0, mean * size], rtol=1e-12)
    np.testing.assert_allclose(merged.b[:3], [4.0, 3.0, (1 - mean) * size], rtol=1e-12)
    assert float(pruned) == 0.0


def test_an_expert_that_fails_starts_afresh_and_the_others_go_on() -> None:
    learner = Experts([credo.BetaBernoulli(a) for a in (1.0, 6.0)], switching=0.1)
    belief, _ = credo.run(learner, learner.init(), None, jnp.asarray([1.0, 0.0, 1.0]))
    sick = credo.replace(belief, beliefs=credo.replace(belief.beliefs, a=belief.beliefs.a.at[1].set(jnp.nan)))
    after, info = learner.step(sick, None, jnp.asarray(1.0))
    assert bool(info.ok) and after.weights.tolist() == [1.0, 0.0]
    np.testing.assert_allclose(after.beliefs.a, [1.0 + 3, 6.0], atol=1e-12)
    np.testing.assert_allclose(after.beliefs.b, [1.0 + 1, 1.0], atol=1e-12)
    assert after.beliefs.t.tolist() == [4, 4]
    # an expert may switch to the one that failed, which then learns from its prior
    again, _ = learner.step(after, None, jnp.asarray(1.0))
    scores = np.array([0.9 * 4 / 6, 0.1 * 6 / 7])
    np.testing.assert_allclose(again.weights, scores / scores.sum(), atol=1e-12)
    np.testing.assert_allclose(again.beliefs.a, [5.0, 7.0], atol=1e-12)


def test_nothing_can_have_changed_before_the_first_observation() -> None:
    learner = SoftReset(COIN, 0.3)
    predicted = learner.predict(learner.init())
    assert float(predicted.change) == 0.0
    belief, info = learner.update(predicted, None, jnp.asarray(1.0))
    np.testing.assert_allclose(info.log_evidence, np.log(2 / 5), atol=1e-12)
    assert (float(belief.belief.a), float(belief.belief.b)) == (3.0, 3.0)
    assert (int(belief.run_length), float(belief.retention), float(belief.change)) == (0, 1.0, 0.0)
    later = learner.predict(belief)
    np.testing.assert_allclose(later.change, 0.3, atol=1e-12)
    # the hazard may grow with the run length, which is 0 for the second observation
    growing = SoftReset(COIN, credo.adapt.HazardFunction(lambda r: 0.1 + 0.2 * r))
    second, _ = credo.run(growing, growing.init(), None, jnp.asarray([1.0, 0.0]))
    np.testing.assert_allclose(growing.predict(second).change, 0.1 + 0.2 * 1, atol=1e-12)


def test_forgetting_waits_for_an_observation_and_then_counts_all_the_time_that_passed() -> None:
    level, ys, dts = 0.9, (2.0, np.nan, np.nan, 1.0), (1.0, 2.0, 1.0, 0.5)
    learner = ChangeProbability(LEVEL, (level,))
    start = learner.init(jnp.zeros(1), var=VAR)
    belief, trace = credo.run(learner, start, jnp.ones((4, 1)), jnp.asarray(ys), dts=jnp.asarray(dts))
    var = 1 / (1 / VAR + 1)
    mean = var * ys[0]
    np.testing.assert_allclose(trace.log_evidence[0], log_normal(ys[0], 0.0, VAR + 1), atol=1e-12)
    keep = level ** (2.0 + 1.0 + 0.5)
    mean, var = keep * mean, keep**2 * var + (1 - keep**2) * VAR
    np.testing.assert_allclose(trace.log_evidence[3], log_normal(ys[3], mean, var + 1), atol=1e-12)
    gain = var / (var + 1)
    np.testing.assert_allclose(belief.mean, [mean + gain * (ys[3] - mean)], atol=1e-12)
    np.testing.assert_allclose(belief.var, [(1 - gain) * var], atol=1e-12)
    assert float(belief.pending) == 0.0


@pytest.mark.parametrize("kind", ["ou", "inflation"])
def test_the_gradient_moves_the_level_by_its_rate_in_the_place_where_it_climbs(kind: Any) -> None:
    first, second, rate, start = 0.2, 6.0, 0.05, 0.8
    learner = ChangeProbability(LEVEL, start, kind=kind, method="gradient", learning_rate=rate, iterations=1)
    belief, info = learner.step(learner.init(jnp.zeros(1), var=VAR), jnp.ones(1), jnp.asarray(first))
    np.testing.assert_allclose(info.log_evidence, log_normal(first, 0.0, VAR + 1))  # it meets the prior
    var = 1 / (1 / VAR + 1)
    mean = var * first

    def score(place: float) -> float:
        if kind == "inflation":
            return log_normal(second, mean, var + place + 1)
        keep = np.exp(-0.5 * place)
        return log_normal(second, keep * mean, keep**2 * var + (1 - keep**2) * VAR + 1)

    place = -2 * np.log(start) if kind == "ou" else start
    slope = (score(place + 1e-6) - score(place - 1e-6)) / 2e-6
    climbed = place + rate * slope
    after, _ = learner.step(belief, jnp.ones(1), jnp.asarray(second))
    assert climbed > place  # a surprise: more is forgotten
    np.testing.assert_allclose(after.level, np.exp(-0.5 * climbed) if kind == "ou" else climbed, atol=1e-8)


def test_doubting_an_observation_costs_its_penalty() -> None:
    entry, penalty, rate = 0.7, 0.4, 0.5
    learner = WeightedPast(COIN, 2, learning_rate=rate, iterations=1, entry=entry, penalty=penalty)
    start = learner.init(example=(None, jnp.zeros(())))
    once, _ = learner.step(start, None, jnp.asarray(1.0))
    twice, _ = learner.step(once, None, jnp.asarray(0.0))

    def score(logit: float) -> float:
        weight = 1 / (1 + np.exp(-logit))
        return float(np.log(3.0 / (5.0 + weight)) - penalty * (1 - weight))

    logit = np.log(entry / (1 - entry))
    slope = (score(logit + 1e-6) - score(logit - 1e-6)) / 2e-6
    np.testing.assert_allclose(twice.logits, [logit + rate * slope, logit], atol=1e-8)
    weights = jax.nn.sigmoid(twice.logits)
    inner: Any = twice.belief
    np.testing.assert_allclose([inner.a, inner.b], [2.0 + weights[0], 3.0 + weights[1]], rtol=1e-12)
