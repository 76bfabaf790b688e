"""Noise that is 0, singular, or lost in rounding: updates by reflections, against extended precision."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import credo
from credo.learners.methods.filters import OrthogonalLearner
from credo.likelihoods.normal import RootNormal, RootNormalPredictive

LONG = np.longdouble
SHAPES = [(2, 4), (3, 3), (3, 6)]
ROWS = 300
NOTHING = 1e-24
"""A variance that extended precision leaves of 0."""


def singular(outputs: int) -> np.ndarray:
    """A covariance of rank one less than the outputs, which is not diagonal."""
    root = np.random.default_rng(5).normal(size=(outputs, outputs - 1))
    return root @ root.T


NOISES: dict[str, Any] = {
    "1e-10": lambda outputs: np.full(outputs, 1e-10),
    "0": lambda outputs: np.zeros(outputs),
    "half 0": lambda outputs: np.where(np.arange(outputs) < outputs // 2, 0.0, 0.1),
    "a matrix": singular,
}


def world(states: int, outputs: int, noise: np.ndarray, moving: bool) -> tuple[Any, ...]:
    """F, H, Q, R and the observations, in single precision."""
    rng = np.random.default_rng(0)
    look = rng.normal(size=(outputs, states)).astype(np.float32)
    mixing = 0.9 * np.eye(states) + 0.05 * rng.normal(size=(states, states))
    turn = (mixing if moving else np.eye(states)).astype(np.float32)
    drift = np.float32(0.1 * moving) * np.eye(states, dtype=np.float32)
    dense = noise if noise.ndim == 2 else np.diag(noise)
    values, vectors = np.linalg.eigh(dense)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    state, ys = np.ones(states), []
    for _ in range(ROWS):
        state = turn.astype(float) @ state + np.sqrt(float(drift[0, 0])) * rng.normal(size=states)
        ys.append(look.astype(float) @ state + root @ rng.normal(size=outputs))
    return turn, look, drift, noise.astype(np.float32), np.asarray(ys, np.float32)


def reference(turn: Any, look: Any, drift: Any, noise: Any, ys: Any) -> tuple[np.ndarray, np.ndarray, float]:
    """The mean, the covariance and the log evidence, one output after another in extended precision.

    Outputs are first turned so that their noise is uncorrelated. An output whose variance is 0 is left out.
    """
    dense = np.asarray(noise, float)
    dense = dense if dense.ndim == 2 else np.diag(dense)
    values, vectors = np.linalg.eigh(dense)
    values = np.where(values > 1e-6 * values[-1], values, 0.0) if noise.ndim == 2 else values
    turned, seen = vectors.T.astype(LONG) @ look.astype(LONG), ys.astype(LONG) @ vectors.astype(LONG)
    mean, cov, logs = np.zeros(len(turn), LONG), np.eye(len(turn), dtype=LONG), 0.0
    for row in seen:
        mean = turn.astype(LONG) @ mean
        cov = turn.astype(LONG) @ cov @ turn.T.astype(LONG) + drift.astype(LONG)
        for line, var, y in zip(turned, values, row, strict=True):
            total = line @ cov @ line + LONG(var)
            if total < NOTHING:
                continue
            gain, gap = cov @ line / total, y - line @ mean
            mean = mean + gain * gap
            left = np.eye(len(mean), dtype=LONG) - np.outer(gain, line)
            cov = left @ cov @ left.T + LONG(var) * np.outer(gain, gain)
            logs += float(-0.5 * (gap**2 / total + np.log(2.0 * np.pi * total)))
    return mean.astype(float), cov.astype(float), logs


@pytest.mark.table
@pytest.mark.parametrize("moving", [True, False], ids=["moving", "still"])
@pytest.mark.parametrize("name", NOISES)
@pytest.mark.parametrize(("states", "outputs"), SHAPES)
def test_no_row_is_refused_and_the_belief_is_exact(
    states: int, outputs: int, name: str, moving: bool
) -> None:
    turn, look, drift, noise, ys = world(states, outputs, NOISES[name](outputs), moving)
    learner = credo.kalman(turn, look, drift, noise)
    belief, trace = credo.run(learner, learner.init(jnp.zeros(states, jnp.float32)), None, jnp.asarray(ys))
    mean, cov, logs = reference(turn, look, drift, noise, ys)
    assert bool(jnp.all(trace.ok)) and belief.mean.dtype == jnp.float32
    # the rounding of single precision, of numbers near 1
    np.testing.assert_allclose(belief.mean, mean, atol=5e-6)
    np.testing.assert_allclose(belief.cov.dense(), cov, atol=1e-6)
    if name == "1e-10" and outputs > states:
        # standard deviations of 1e-5 are known to a hundredth, and the squares of gaps with them
        assert float(trace.log_evidence.sum()) == pytest.approx(logs, rel=2e-3)


@pytest.mark.parametrize(
    ("states", "outputs"), [(2, 4), pytest.param(3, 6, marks=pytest.mark.slow), pytest.param(3, 3)]
)
def test_an_extended_filter_loses_no_row_to_noise_that_single_precision_does_not_see(
    states: int, outputs: int
) -> None:
    _, look, drift, noise, ys = world(states, outputs, NOISES["1e-10"](outputs), False)
    model = credo.Model(lambda w, x: x @ w, credo.Normal(noise))
    learner = credo.extended_kalman(model)
    belief, trace = credo.run(
        learner,
        learner.init(jnp.zeros(states, jnp.float32)),
        np.broadcast_to(look, (ROWS, outputs, states)),
        ys,
    )
    mean, cov, logs = reference(np.eye(states, dtype=np.float32), look, drift, noise, ys)
    assert bool(jnp.all(trace.ok)) and belief.mean.dtype == jnp.float32
    # the rounding of single precision, of numbers near 1
    np.testing.assert_allclose(belief.mean, mean, atol=5e-6)
    np.testing.assert_allclose(belief.cov.dense(), cov, atol=1e-6)
    assert float(trace.log_evidence.sum()) == pytest.approx(logs, rel=2e-3)
    assert np.isfinite(float(learner.forecast(belief, look).log_prob(ys[-1])))


def test_an_extended_filter_with_few_outputs_or_ordinary_noise_is_as_it_was() -> None:
    def line(w: Any, x: Any) -> Any:
        return x @ w

    assert not isinstance(credo.extended_kalman(credo.Model(line, credo.Normal(1e-3))), OrthogonalLearner)
    small = credo.extended_kalman(credo.Model(line, credo.Normal(1e-10)))
    usual = credo.bong(small.model, credo.Full())
    x, y = LOOK[:2], np.asarray([0.5, -1.0])
    ours, info = small.step(small.init(jnp.zeros(2)), x, y)
    theirs, same = usual.step(usual.init(jnp.zeros(2)), x, y)
    np.testing.assert_array_equal(ours.mean, theirs.mean)
    assert float(info.log_evidence) == float(same.log_evidence)
    several = credo.joint(credo.Model(line, credo.Normal(1e-10)))
    assert not isinstance(credo.extended_kalman(several), OrthogonalLearner)


def test_ordinary_noise_takes_the_ordinary_way() -> None:
    look = np.random.default_rng(0).normal(size=(4, 2)).astype(np.float32)
    for noise in (1e-3, np.asarray([1e-3, 1.0, 1e6, 1.0]), np.eye(4) + 0.1):
        assert not isinstance(credo.kalman(np.eye(2), look, 0.1, noise), OrthogonalLearner)
    assert not isinstance(credo.kalman(np.eye(4), look.T, 0.1, 1e-10), OrthogonalLearner)
    assert isinstance(credo.kalman(np.eye(2), look, 0.1, 1e-10), OrthogonalLearner)
    assert not isinstance(credo.kalman(np.eye(2), look.astype(float), 0.1, 1e-10), OrthogonalLearner)


LOOK = np.random.default_rng(3).normal(size=(3, 2))
DELICATE = credo.kalman(np.eye(2), LOOK, 0.1, np.asarray([0.0, 0.2, 0.5]))


def test_missing_outputs_and_weights_are_those_of_ordinary_noise() -> None:
    noise = np.asarray([0.1, 0.2, 0.5])
    usual = credo.kalman(np.eye(2), LOOK, 0.1, noise)
    model = credo.replace(usual.model, likelihood=RootNormal(jnp.diag(jnp.sqrt(noise))))
    delicate = OrthogonalLearner(model, dynamics=usual.dynamics)
    start = usual.init(jnp.zeros(2))
    rows = jnp.asarray([[1.0, jnp.nan, 0.5], [0.3, -1.0, 0.5], [0.3, -1.0, 0.5], [jnp.nan] * 3])
    weights = jnp.asarray([1.0, 2.5, 0.0, 1.0])
    left, one = credo.run(usual, start, None, rows, weights=weights)
    right, two = credo.run(delicate, start, None, rows, weights=weights)
    np.testing.assert_allclose(right.mean, left.mean, atol=1e-12)
    np.testing.assert_allclose(right.cov.dense(), left.cov.dense(), atol=1e-12)
    np.testing.assert_allclose(two.log_evidence, one.log_evidence, atol=1e-10)
    np.testing.assert_array_equal(two.ok, one.ok)


@pytest.mark.slow
def test_forecasts_and_draws_are_those_of_the_noise() -> None:
    belief, _ = DELICATE.step(DELICATE.init(jnp.zeros(2)), None, jnp.ones(3))
    ahead = DELICATE.predict(belief)
    distribution = DELICATE.forecast(ahead, None)
    cov = LOOK @ np.asarray(ahead.cov.dense()) @ LOOK.T + np.diag([0.0, 0.2, 0.5])
    np.testing.assert_allclose(distribution.var, np.diag(cov), atol=1e-12)
    _, info = DELICATE.update(ahead, None, jnp.ones(3))
    np.testing.assert_allclose(distribution.log_prob(jnp.ones(3)), info.log_evidence, atol=1e-12)
    draws = distribution.sample(jax.random.key(0), (20_000,))
    # the standard error of a variance is its size times sqrt(2 / 20,000); four of them
    np.testing.assert_allclose(jnp.cov(draws.T), cov, atol=0.04 * float(np.max(cov)))
    expected = DELICATE.expect(ahead, None)
    np.testing.assert_allclose(expected.mean, distribution.mean, atol=1e-12)
    np.testing.assert_allclose(expected.var, np.diag(cov) - [0.0, 0.2, 0.5], atol=1e-12)


def test_a_learner_with_singular_noise_is_saved_and_continues(tmp_path: Path) -> None:
    belief, _ = DELICATE.step(DELICATE.init(jnp.zeros(2)), None, jnp.ones(3))
    learner, again = credo.load(credo.save(tmp_path / "belief.credo", DELICATE, belief))
    after, _ = learner.step(again, None, jnp.ones(3))
    before, _ = DELICATE.step(belief, None, jnp.ones(3))
    np.testing.assert_array_equal(after.mean, before.mean)


def test_what_the_others_determine_is_left_out_of_a_density() -> None:
    root = jnp.asarray([[1.0, 0.0], [1.0, 0.0], [0.0, 2.0]])
    distribution = RootNormalPredictive(jnp.zeros(3), root @ root.T, root)
    wanted = -0.5 * (1.0 + 0.25) - np.log(2.0) - np.log(2.0 * np.pi)
    assert float(distribution.log_prob(jnp.ones(3))) == pytest.approx(wanted, abs=1e-12)
