"""Heavy-tailed noise: its limits, its relatives, the bound on its evidence, its forecasts."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats as st
from tests.adapt.robust_reference import (
    KALMAN,
    MATRIX,
    METHODS,
    PRIOR,
    WALK,
    P,
    T,
    data,
    elbo,
)
from tests.learners.reference import close, regression, stream

import credo
from credo.adapt import GammaWeight, InverseWishartNoise, StudentTNoise


def test_the_evidence_of_light_tails_approaches_that_of_the_learner_inside() -> None:
    # log t - log N is of order distance^2 / df
    xs, ys = map(jnp.asarray, stream(P, T))
    _, plain = credo.run(WALK, WALK.init(jnp.zeros(P)), xs, ys)
    for make in (StudentTNoise, InverseWishartNoise):
        learner = make(WALK, 1e6)
        _, trace = credo.run(learner, learner.init(jnp.zeros(P)), xs, ys)
        close(trace.log_evidence, plain.log_evidence, 1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("outputs", [0, 2])
def test_student_noise_is_the_gamma_weight_of_half_its_degrees_of_freedom(outputs: int) -> None:
    xs, ys = map(jnp.asarray, data(outputs))
    left, right = StudentTNoise(KALMAN, 3.0), GammaWeight(KALMAN, 1.5, 1.5)
    ends = [credo.run(learner, learner.init(jnp.zeros(P)), xs, ys) for learner in (left, right)]
    close(ends[0][0].mean, ends[1][0].mean)
    close(ends[0][1].log_evidence, ends[1][1].log_evidence)
    scale = GammaWeight(KALMAN, 1.5, 3.0)
    twice = StudentTNoise(credo.extended_kalman(regression(0.6)), 3.0)
    ends = [credo.run(learner, learner.init(jnp.zeros(P)), xs, ys) for learner in (scale, twice)]
    close(ends[0][0].mean, ends[1][0].mean)
    close(ends[0][1].log_evidence, ends[1][1].log_evidence)


def test_with_one_output_the_inverse_wishart_noise_is_student_noise() -> None:
    xs, ys = map(jnp.asarray, data(0))
    left, right = StudentTNoise(KALMAN, 3.0), InverseWishartNoise(KALMAN, 3.0)
    one, first = credo.run(left, left.init(jnp.zeros(P)), xs, ys)
    two, second = credo.run(right, right.init(jnp.zeros(P)), xs, ys)
    close(one.mean, two.mean)
    close(one.cov.dense(), two.cov.dense())
    close(first.log_evidence, second.log_evidence)
    close(first.extras.weight, second.extras.weight)


def test_many_iterations_end_where_the_weight_agrees_with_the_residual_it_leaves() -> None:
    learner = StudentTNoise(KALMAN, 3.0, iterations=300)
    x, y = jnp.asarray([1.0, -0.5, 2.0]), 4.0
    belief, info = learner.update(learner.init(jnp.zeros(P)), x, y)
    left = (y - x @ belief.mean) ** 2 + x @ belief.cov.dense() @ x
    close(info.extras.weight, 4.0 / (3.0 + left / 0.3))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["student", "wishart"])
def test_the_bound_is_the_evidence_lower_bound_term_by_term(kind: str) -> None:
    make = StudentTNoise if kind == "student" else InverseWishartNoise
    model = regression(jnp.asarray(MATRIX))
    learner = make(credo.extended_kalman(model), 3.5, 2, evidence="bound")
    (x,), (y,) = stream(P, 1, 2)
    start = learner.init(jnp.ones(P), var=PRIOR)
    for far in (0.0, 3.0):
        belief, info = learner.update(start, jnp.asarray(x), jnp.asarray(y + far))
        after, spread = np.asarray(belief.mean), np.asarray(belief.cov.dense())
        close(
            info.log_evidence, elbo(np.ones(P), np.diag(PRIOR), x, y + far, MATRIX, after, spread, 3.5, kind)
        )


def test_the_bound_lies_close_below_the_evidence_and_an_outlier_speaks_for_no_belief() -> None:
    model, one = regression(1.0), jnp.ones(1)
    learner = StudentTNoise(credo.extended_kalman(model), 3.0, 3, evidence="bound")
    logs = np.linspace(-60, 8, 20001)
    density = st.gamma.pdf(np.exp(logs), 1.5, scale=2 / 3) * np.exp(logs)
    for var, allowed in [(1e-12, 1e-6), (0.1, 0.1), (1.0, 0.3), (30.0, 0.8)]:
        for y in (0.0, 1.0, 3.0, 10.0, 100.0, 1e5):
            _, info = learner.update(learner.init(jnp.zeros(1), var=var), one, y)
            each = density * st.norm.pdf(y, 0, np.sqrt(var + np.exp(-logs)))
            exact = np.log(each.sum() * (logs[1] - logs[0]))
            assert exact - allowed < float(info.log_evidence) < exact + 1e-6
    single = jnp.ones(1, jnp.float32)
    tails = [
        float(learner.update(learner.init(jnp.zeros(1, jnp.float32), var=v), single, 1e6)[1].log_evidence)
        for v in (0.1, 10.0)
    ]
    close(tails[0], tails[1], 1e-5)


@pytest.mark.slow
def test_forecasts_match_the_noise() -> None:
    belief = KALMAN.init(jnp.ones(P), var=2.0)
    x, s = jnp.asarray([1.0, 2.0, 0.0]), 10.0
    for name in ("imq", "mahalanobis", "indicator"):
        assert METHODS[name](KALMAN).forecast(belief, x) == KALMAN.forecast(belief, x)
    for learner, df, level in [
        (StudentTNoise(KALMAN, 5.0), 5.0, 1.0),
        (GammaWeight(KALMAN, 2.0, 3.0), 4.0, 1.5),
        (InverseWishartNoise(KALMAN, 5.0), 5.0, 1.0),
    ]:
        forecast: Any = jax.jit(learner.forecast)(belief, x)
        density: Any = st.t(df, 3.0, np.sqrt(s + 0.3 * level))
        close(forecast.log_prob(4.0), density.logpdf(4.0))
        close(forecast.var, density.var())
        _, info = jax.jit(learner.update)(belief, x, 4.0)
        close(info.log_evidence, density.logpdf(4.0))
        close(forecast.quantile(0.9), density.ppf(0.9), 1e-8)
        close(learner.forecast(belief, x, method="plugin").var, st.t(df, 3.0, np.sqrt(0.3 * level)).var())
    # 4000 draws of a mixture of t(5): the standard error of its mean is sqrt((10 + 0.5) / 4000) = 0.05
    drawn = StudentTNoise(KALMAN, 5.0).forecast(
        belief, x, method="linearized-mc", samples=4000, key=jax.random.key(1)
    )
    close(drawn.mean, 3.0, 0.2)
    close(drawn.var, 10.0 + 0.3 * 5 / 3, 1.0)
    wide = InverseWishartNoise(credo.extended_kalman(regression(jnp.asarray(MATRIX))), 5.0)
    rows: Any = wide.forecast(belief, jnp.eye(2, P))
    close(rows.shape, 2.0 * np.eye(2) + MATRIX * 5 / 4)
    assert float(rows.df) == 4.0
    assert learner.sample(belief, jax.random.key(0), (4,)).shape == (4, P)


def test_too_few_degrees_of_freedom_for_the_outputs_take_nothing_in() -> None:
    learner = InverseWishartNoise(KALMAN, 0.5)
    start = learner.init(jnp.zeros(P))
    after, info = learner.update(start, jnp.eye(2, P), jnp.ones(2))
    assert after == start and not bool(info.ok)
