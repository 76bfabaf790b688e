"""Expectations in units of the noise that was seen: against a regression in NumPy, and as learners."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.adapt.setups import INNER, WALKS, XS, YS, P, T, bad_rows_leave, begin, same_bits
from tests.tiers import few

import credo
from credo.adapt import Experts, NoiseScaled, RunLength
from credo.bandits.best import probability_best
from credo.bandits.designs import ArmsDesign, expect_arms
from credo.likelihoods import RescaledExpectation

ASSUMED = 0.2
"""The noise variance of the learners here."""


def ridge(xs: np.ndarray, ys: np.ndarray, noise: float, var: float, x: np.ndarray) -> tuple[float, float]:
    """The mean and the standard deviation of x'w, given rows with this noise, and w ~ N(0, var I)."""
    cov = np.linalg.inv(xs.T @ xs / noise + np.eye(xs.shape[1]) / var)
    return float(x @ cov @ xs.T @ ys / noise), float(np.sqrt(x @ cov @ x))


@pytest.mark.parametrize("forgetting", [1.0, 0.8])
def test_it_expects_what_a_regression_with_the_noise_that_was_seen_does(forgetting: float) -> None:
    """Missing rows and those of weight 0 count for nothing, and weights count as that many rows."""
    learner = NoiseScaled(INNER, ASSUMED, 0.5, 2.0, forgetting)
    xs, ys = np.asarray(XS), 0.1 * np.asarray(YS)
    ys[4] = np.nan
    rows = np.array([1.0, 1.0, 0.5, 1.0, 1.0, 0.0, 1.0, 1.0, 2.0, 1.0])
    total, count, seen = 2.0 * 0.5 * ASSUMED, 2.0, np.zeros(0, int)
    belief, factor = learner.init(jnp.zeros(P), var=1.5), 1.0
    for n in range(T):
        if np.isfinite(ys[n]) and rows[n]:
            scaled = np.sqrt(rows[seen])
            mean, _ = ridge(xs[seen] * scaled[:, None], ys[seen] * scaled, ASSUMED, 1.5, xs[n])
            keep = forgetting ** rows[n]
            total, count = keep * total + rows[n] * (ys[n] - mean) ** 2, keep * count + rows[n]
            seen = np.append(seen, n)
        belief, _ = learner.step(belief, XS[n], ys[n], weight=rows[n])
        factor = min(total / count / ASSUMED, 1.0)
        scaled = np.sqrt(rows[seen])
        noise, var = factor * ASSUMED, factor * 1.5
        mean, sd = ridge(xs[seen] * scaled[:, None], ys[seen] * scaled, noise, var, np.ones(P))
        distribution = learner.expect(belief, jnp.ones(P))
        np.testing.assert_allclose([distribution.mean[0], distribution.sd[0]], [mean, sd], rtol=1e-9)
    assert factor < 0.5


def test_large_errors_leave_the_expectation_as_it_is() -> None:
    learner = NoiseScaled(INNER, 1e-4)
    belief, _ = credo.run(learner, begin(learner), XS, YS)
    inner, _ = credo.run(INNER, begin(INNER), XS, YS)
    assert float(learner.factor(belief)) == 1.0
    distribution, own = learner.expect(belief, XS[0]), INNER.expect(inner, XS[0])
    np.testing.assert_array_equal([distribution.mean, distribution.sd], [own.mean, own.sd])
    forecast, own_forecast = learner.forecast(belief, XS[0]), INNER.forecast(inner, XS[0])
    np.testing.assert_array_equal([forecast.mean, forecast.sd], [own_forecast.mean, own_forecast.sd])


def arms_of(learner: Any) -> Any:
    """What is expected of three arms after some rewards."""
    belief = learner.init(jnp.zeros(P), var=1.5)
    for n, (x, y) in enumerate(zip(XS, 0.1 * YS, strict=True)):
        belief, _ = learner.step(belief, (x, jnp.asarray(n % 3)), y)
    return expect_arms(learner, belief, XS[0]), belief


@pytest.mark.thorough
def test_arms_and_members_stay_normal_so_that_the_best_arm_is_found_by_quadrature() -> None:
    bank = Experts([ArmsDesign(walk, 3) for walk in WALKS], 0.01)
    learner = NoiseScaled(bank, ASSUMED, 0.5)
    distribution, belief = arms_of(learner)
    own = expect_arms(bank, belief.belief, XS[0])
    factor = float(learner.factor(belief))
    assert 0.1 < factor < 0.9 and type(distribution) is type(own)
    np.testing.assert_allclose(distribution.mean, own.mean, rtol=1e-12)
    np.testing.assert_allclose(distribution.sd, factor * own.sd, rtol=1e-12)
    reference = RescaledExpectation(own, (1.0 - factor) * own.mean, jnp.asarray(factor))
    np.testing.assert_allclose(
        [distribution.mean, distribution.sd], [reference.mean, reference.sd], rtol=1e-12
    )
    np.testing.assert_allclose(distribution.quantile(0.9), reference.quantile(0.9), rtol=1e-8)
    shares = probability_best(distribution, key=jax.random.key(0))
    np.testing.assert_array_equal(
        shares, probability_best(distribution, key=jax.random.key(1))
    )  # nothing is drawn
    draws = np.asarray(reference.sample(jax.random.key(2), (4000,))).argmax(axis=1)
    drawn = np.bincount(draws, minlength=3) / 4000
    np.testing.assert_allclose(shares, drawn, atol=5 * 0.5 / np.sqrt(4000))


def test_chances_keep_their_distribution_which_is_narrowed_about_its_mean() -> None:
    inner = credo.BetaBernoulli()
    learner = NoiseScaled(inner, 1.0, 0.25)
    belief = learner.init()
    distribution, own = learner.expect(belief, None), inner.expect(belief.belief, None)
    assert isinstance(distribution, RescaledExpectation)
    np.testing.assert_allclose([distribution.mean, distribution.sd], [own.mean, 0.5 * own.sd], rtol=1e-12)
    np.testing.assert_allclose(distribution.quantile(0.9), 0.5 + 0.5 * (own.quantile(0.9) - 0.5), rtol=1e-8)


LEARNERS: dict[str, Any] = {
    "around a bank": NoiseScaled(Experts(WALKS), ASSUMED),
    "in run length": RunLength(NoiseScaled(INNER, ASSUMED), 0.1, 3, overflow="merge"),
    "interacting": Experts([NoiseScaled(walk, ASSUMED) for walk in WALKS], mixing=True),
}


@pytest.mark.optimised
@pytest.mark.parametrize("name", few(LEARNERS, "around a bank", "interacting"))
def test_a_loop_a_scan_and_chunks_give_the_same_bits(name: str, tmp_path: Path) -> None:
    same_bits(LEARNERS[name], tmp_path)


def test_a_bad_row_leaves_the_belief() -> None:
    learner = LEARNERS["around a bank"]
    belief, _ = credo.run(learner, begin(learner), XS, YS)
    bad_rows_leave(learner, learner.predict(belief))


def test_regimes_begin_with_what_is_known_of_the_noise() -> None:
    learner = RunLength(
        NoiseScaled(INNER, ASSUMED), 0.1, 3, credo.RandomWalk(1.0)
    )  # a regime begins with moved parameters, and not with the prior
    belief, _ = credo.run(learner, begin(learner), XS, 0.01 * YS)
    errors = belief.beliefs.errors.mean
    assert np.all(np.asarray(errors)[np.asarray(belief.log_weights) > -np.inf] < ASSUMED)


def test_what_cannot_be_is_refused_in_a_sentence() -> None:
    for name, value in (("noise", 0.0), ("first", -1.0), ("rows", 0.0), ("forgetting", 1.5)):
        with pytest.raises(credo.CredoError, match=name):
            NoiseScaled(INNER, **({"noise": 1.0} | {name: value}))
    classes = NoiseScaled(
        credo.RecursiveLearner(
            credo.Model(lambda w, x: jnp.stack([x @ w, -x @ w]), credo.Categorical(2)), credo.Full("dense")
        ),
        1.0,
    )
    with pytest.raises(credo.CredoError, match="y must have the shape"):
        classes.step(begin(classes), XS[0], 1)
