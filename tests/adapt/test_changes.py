"""Changes: calibrated probabilities, alarms that do not repeat, long streams, hazards and irregular time."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.adapt.setups import INNER, XS, YS, P, begin, linear

import credo
from credo.adapt import LearnedHazard, RunLength, alarms, segmentation
from credo.adapt.moments import collapse

LEVEL = credo.RecursiveLearner(credo.Model(linear, credo.Normal(1.0)), credo.Full("dense"))


def levels(key: jax.Array, steps: int, hazard: float, var: float) -> tuple[jax.Array, jax.Array]:
    """Observations N(level, 1) whose level is drawn anew from N(0, var) by the hazard, and where it was."""
    first, second, third = jax.random.split(key, 3)
    changed = (jax.random.uniform(first, (steps,)) < hazard).at[0].set(True)
    draws = jnp.sqrt(var) * jax.random.normal(second, (steps,))
    level = draws[jax.lax.cummax(jnp.where(changed, jnp.arange(steps), 0))]
    return level + jax.random.normal(third, (steps,)), changed


@pytest.mark.slow
def test_probabilities_of_a_change_are_calibrated_where_the_model_is_right() -> None:
    hazard, var, count, steps = 0.05, 9.0, 200, 60
    learner = RunLength(LEVEL, hazard, steps)
    start = learner.init(jnp.zeros(1), var=var)
    ys, changed = jax.vmap(lambda key: levels(key, steps, hazard, var))(
        jax.random.split(jax.random.key(1), count)
    )
    trace = jax.jit(jax.vmap(lambda y: credo.run(learner, start, jnp.ones((steps, 1)), y)[1]))(ys)
    chance, true = np.asarray(trace.extras.change[:, 1:]).ravel(), np.asarray(changed[:, 1:]).ravel()
    for low, high in ((0.0, 0.02), (0.02, 0.1), (0.1, 0.5), (0.5, 0.9), (0.9, 1.0)):
        inside = (chance >= low) & (chance < high)
        error = np.sqrt((chance[inside] * (1 - chance[inside])).sum()) / inside.sum()
        assert inside.sum() > 30
        assert abs(chance[inside].mean() - true[inside].mean()) < 4 * error


def test_a_change_is_reported_once_and_placed_where_it_was() -> None:
    rng = np.random.default_rng(0)
    truth = np.repeat([0.0, 6.0, -2.0, 5.0], 40)
    ys = jnp.asarray(truth + rng.normal(size=160))
    learner = RunLength(LEVEL, 0.02, 10)
    _, trace = credo.run(learner, learner.init(jnp.zeros(1), var=25.0), jnp.ones((160, 1)), ys)
    reported = alarms(trace)
    assert len(reported) == 3 and all(0 <= r - c <= 3 for r, c in zip(reported, (40, 80, 120), strict=True))
    assert segmentation(trace) == segmentation(trace.extras) == [0, 40, 80, 120]
    assert segmentation(trace, upto=60) == [0, 40]
    assert segmentation(trace, upto=1) == [0]


@pytest.mark.slow
def test_a_stream_that_does_not_change_gives_no_more_alarms_than_the_hazard() -> None:
    steps, hazard = 100_000, 1e-3
    ys = jax.random.normal(jax.random.key(3), (steps,))
    learner = RunLength(LEVEL, hazard, 10)
    belief, trace = credo.run(learner, learner.init(jnp.zeros(1), var=4.0), jnp.ones((steps, 1)), ys)
    assert int(trace.extras.alarm.sum()) <= hazard * steps
    assert abs(float(belief.mean[0])) < 0.2


@pytest.mark.optimised
def test_a_million_steps_in_single_precision_keep_their_weights() -> None:
    steps = 1_000_000
    ys = jax.random.bernoulli(jax.random.key(0), jnp.where(jnp.arange(steps) % 2000 < 1000, 0.2, 0.7))
    beliefs = {}
    for kind in (jnp.float32, jnp.float64):
        learner = RunLength(credo.BetaBernoulli(), 1e-3, 4)
        start = jax.tree.map(
            lambda a, kind=kind: a.astype(kind) if a.dtype == jnp.float64 else a, learner.init()
        )
        belief, trace = credo.run(learner, start, None, ys.astype(jnp.int32))
        assert belief.log_weights.dtype == kind
        assert bool(jnp.all(jnp.isfinite(trace.log_evidence))) and bool(trace.ok.all())
        beliefs[kind] = belief
    small, large = beliefs[jnp.float32], beliefs[jnp.float64]
    np.testing.assert_allclose(small.run_length_probs(3000), large.run_length_probs(3000), atol=1e-4)
    np.testing.assert_allclose(jnp.exp(jax.nn.logsumexp(small.log_weights)), 1.0, atol=1e-5)


def test_time_that_passes_makes_a_change_likelier() -> None:
    learner = RunLength(INNER, 0.1, 3)
    belief = learner.step(begin(learner), XS[0], YS[0])[0]
    for dt in (0.5, 1.0, 3.0):
        chances = learner.predict(belief, dt).change_probability
        np.testing.assert_allclose(chances, 1 - 0.9**dt, atol=1e-12)


@pytest.mark.slow
def test_a_missing_observation_lets_time_pass() -> None:
    learner = RunLength(INNER, 0.1, 20)
    belief = learner.step(begin(learner), XS[0], YS[0])[0]
    belief, info = learner.step(belief, XS[1], jnp.asarray(jnp.nan))
    assert not bool(info.ok)
    pmf = learner.predict(belief).run_length_probs(4)
    np.testing.assert_allclose(pmf, [0.1, 0.09, 0.81, 0.0], atol=1e-12)


def test_one_sick_hypothesis_loses_its_weight_and_no_more() -> None:
    learner = RunLength(INNER, 0.1, 3)
    belief, _ = credo.run(learner, begin(learner), XS[:4], YS[:4])
    worst = int(jnp.argmax(belief.log_weights))
    sick = credo.replace(
        belief, beliefs=credo.replace(belief.beliefs, mean=belief.beliefs.mean.at[worst, 0].set(jnp.nan))
    )
    after, info = learner.step(sick, XS[4], YS[4])
    assert bool(info.ok) and float(after.weights[worst]) == 0
    np.testing.assert_allclose(after.weights.sum(), 1, atol=1e-12)


@pytest.mark.slow
def test_a_learned_hazard_follows_the_changes_it_sees() -> None:
    chances = {}
    for hazard in (0.01, 0.2):
        ys, _ = levels(jax.random.key(5), 400, hazard, 100.0)
        learner = RunLength(LEVEL, LearnedHazard(1.0, 10.0), 12)
        belief, _ = credo.run(learner, learner.init(jnp.zeros(1), var=100.0), jnp.ones((400, 1)), ys)
        chances[hazard] = float(learner.predict(belief).change_probability)
    assert chances[0.01] < 0.04 and 0.12 < chances[0.2] < 0.3


@pytest.mark.table
@pytest.mark.parametrize("family", [credo.Full(), credo.Full("dense"), credo.Diagonal(), credo.LowRank(2)])
def test_mixtures_are_matched_in_their_moments(family: Any) -> None:
    learner = credo.RecursiveLearner(credo.Model(linear, credo.Normal(0.2)), family)
    start = learner.init(jnp.zeros(P), var=1.5)
    parts = [credo.run(learner, start, XS[:n], YS[:n])[0] for n in (1, 4)]
    both = jax.tree.map(lambda *leaves: jnp.stack(leaves), *parts)
    weights = np.array([0.3, 0.7])
    mixture = collapse(jnp.log(jnp.asarray(weights)), both)
    means = np.array([part.mean for part in parts])
    centre = weights @ means
    cov = sum(
        w * (np.asarray(part.cov.dense()) + np.outer(m - centre, m - centre))
        for w, m, part in zip(weights, means, parts, strict=True)
    )
    np.testing.assert_allclose(mixture.mean, centre, atol=1e-12)
    np.testing.assert_allclose(mixture.var, np.diag(cov), atol=1e-10)
    if isinstance(family, credo.Full):
        np.testing.assert_allclose(mixture.cov.dense(), cov, atol=1e-10)


@pytest.mark.slow
def test_run_lengths_learn_the_noise_too_and_say_variances_in_one_unit() -> None:
    model = credo.Model(linear, credo.Normal(credo.InverseGamma(2.0, 1.0)))
    learner = RunLength(credo.RecursiveLearner(model, credo.Full("dense")), 0.1, 4)
    belief, trace = credo.run(learner, begin(learner), XS, YS)
    assert bool(trace.ok.all())
    merged: Any = belief.collapse()
    np.testing.assert_allclose(belief.var, merged.var, rtol=1e-12)
    each: Any = belief.beliefs
    units = each.noise.scale / each.noise.shape
    absolute = belief.weights @ (
        jax.vmap(lambda b: b.var)(each) * units[:, None] + (each.mean - merged.mean[None, :]) ** 2
    )
    np.testing.assert_allclose(merged.var * merged.noise.scale / merged.noise.shape, absolute, rtol=1e-10)
