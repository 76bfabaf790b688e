"""Forecasts: the four methods agree where they must; decisions are those of brute force."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from tests.learners.reference import arrays, classes, close, linear, regression, stream

import credo
from credo.core.errors import CredoError
from credo.likelihoods import NormalPredictive, PredictiveRows

st: Any = scipy.stats  # its annotations are those of another distribution in places

UNTYPED: Any = credo
"""For calls that a type checker would refuse, too."""

P = 3


@pytest.fixture(scope="module")
def learned() -> tuple[Any, Any]:
    learner = credo.extended_kalman(regression(0.3))
    belief, _ = credo.run(learner, learner.init(jnp.zeros(P)), *arrays(*stream(P, 6)))
    return learner, belief


def test_the_linearized_forecast_of_a_linear_model_is_exact(learned: tuple[Any, ...]) -> None:
    learner, belief = learned
    x = jnp.asarray([1.0, -2.0, 0.5])
    frozen = st.norm(x @ belief.mean, np.sqrt(x @ belief.cov.dense() @ x + 0.3))
    forecast = learner.forecast(belief, x)
    close(
        [forecast.mean, forecast.sd, forecast.log_prob(0.7)],
        [frozen.mean(), frozen.std(), frozen.logpdf(0.7)],
    )
    close(learner.update(belief, x, 0.7)[1].log_evidence, frozen.logpdf(0.7))
    plugin = learner.forecast(belief, x, method="plugin")
    close([plugin.mean, plugin.var], [frozen.mean(), 0.3])


@pytest.mark.slow
@pytest.mark.table
@pytest.mark.parametrize("method", ["mc", "linearized-mc"])
@pytest.mark.parametrize("known", [True, False])
def test_monte_carlo_forecasts_of_a_linear_model_agree_within_standard_errors(
    method: Any, known: bool
) -> None:
    learner = credo.extended_kalman(regression(0.3 if known else credo.InverseGamma(6.0, 2.0)))
    belief, _ = credo.run(learner, learner.init(jnp.zeros(P)), *arrays(*stream(P, 6)))
    x, n = jnp.asarray([1.0, -2.0, 0.5]), 20_000
    exact = learner.forecast(belief, x)
    drawn: Any = learner.forecast(belief, x, method=method, samples=n, key=0)
    spread = exact.var - learner.forecast(belief, x, method="plugin").var
    assert abs(drawn.mean - exact.mean) < 4.5 * np.sqrt(spread / n)
    assert abs(drawn.var - exact.var) < 4.5 * spread * np.sqrt(4 / n)
    again = learner.forecast(belief, x, method=method, samples=n, key=jax.random.key(0))
    assert again == drawn and drawn.etas.shape == (n, 1)


def test_rows_and_joint_models_forecast_each_row(learned: tuple[Any, ...]) -> None:
    learner, belief = learned
    xs = jnp.asarray(stream(P, 21)[0])
    each = [learner.forecast(belief, x) for x in xs[:3]]
    rows = learner.forecast_rows(belief, xs)
    joint = credo.extended_kalman(credo.joint(regression(0.3))).forecast(belief, xs)
    for many in (rows, joint):
        close(many.mean[:3], [e.mean for e in each])
        close(many.var[:3], [e.var for e in each])
        assert many.mean.shape == (21,)


def test_the_default_method_can_be_chosen_and_names_are_checked(learned: tuple[Any, ...]) -> None:
    learner, belief = learned
    x = jnp.ones(P)
    assert credo.replace(learner, forecasting="plugin").forecast(belief, x) == learner.forecast(
        belief, x, method="plugin"
    )
    with pytest.raises(
        CredoError, match=r"method must be one of linearized, plugin, mc, linearized-mc; got 'lin'"
    ):
        learner.forecast(belief, x, method="lin")
    with pytest.raises(CredoError, match=r"forecasting must be one of .*did you mean 'plugin'"):
        credo.replace(learner, forecasting="plugins")
    for method in ("mc", "linearized-mc"):
        with pytest.raises(CredoError, match=r"draws random numbers: pass key="):
            learner.forecast(belief, x, method=method)
    with pytest.raises(CredoError, match="samples must be a whole number at least 1; got 0"):
        learner.forecast(belief, x, method="mc", samples=0, key=0)


@pytest.mark.slow
def test_posterior_draws_are_parameter_trees_with_the_beliefs_moments() -> None:
    learner = credo.lofi(credo.Model(credo.Linear(2), credo.Categorical(2)), 2)
    belief = learner.init(credo.Linear(2).init(0, (2,)), var=0.5)
    xs, ys = arrays(*classes(2, 8, 2))
    belief, _ = credo.run(learner, belief, xs, ys)
    draws, n = learner.sample(belief, 1, (20_000,)), 20_000
    assert draws[0]["w"].shape == (n, 2, 2) and draws[0]["b"].shape == (n, 2)
    flat = np.concatenate([draws[0]["b"], draws[0]["w"].reshape(n, -1)], axis=1)
    mean, var = np.asarray(belief.mean), np.asarray(belief.var)
    assert np.all(np.abs(flat.mean(0) - mean) < 4.5 * np.sqrt(var / n))
    assert np.all(np.abs(flat.var(0) - var) < 4.5 * var * np.sqrt(2 / n))


@pytest.mark.slow
def test_a_users_poisson_learns_like_the_built_in() -> None:
    rng = np.random.default_rng(0)
    xs = rng.normal(size=(20, 2))
    ys = rng.poisson(np.exp(xs @ np.array([0.5, -0.3]))).astype(float)
    user = credo.Likelihood(lambda eta, y: y * eta - jnp.exp(eta) - jax.scipy.special.gammaln(y + 1))
    made = []
    for likelihood in (credo.Poisson(), user):
        learner = credo.lofi(credo.Model(linear, likelihood), 2, dynamics=credo.RandomWalk(1e-3))
        made.append(credo.run(learner, learner.init(jnp.zeros(2)), *arrays(xs, ys)))
    (one, first), (two, second) = made
    close(one.mean, two.mean)
    close(one.cov.dense(), two.cov.dense())
    close(first.log_evidence, second.log_evidence)


NORMAL = NormalPredictive(jnp.asarray([0.3]), jnp.asarray([[0.7]]))
COUNT = credo.Poisson().linearized(jnp.asarray([1.2]), jnp.asarray([[0.2]]))


@pytest.mark.slow
def test_decisions_minimise_their_expected_loss() -> None:
    grid = np.linspace(-2.0, 3.0, 2001)
    ys = np.asarray(NORMAL.quantile(jnp.linspace(0.5, 3999.5, 4000) / 4000))
    losses = {
        "squared": (grid[:, None] - ys) ** 2,
        "absolute": np.abs(grid[:, None] - ys),
        "pinball": np.maximum(0.8 * (ys - grid[:, None]), -0.2 * (ys - grid[:, None])),
    }
    for name, table in losses.items():
        best = grid[table.mean(1).argmin()]
        assert abs(float(UNTYPED.decide(NORMAL, name, level=0.8)) - best) < 5e-3, name
    counts = np.arange(80)
    weights = np.exp(jax.jit(jax.vmap(COUNT.log_prob))(counts.astype(float)))
    costs = np.abs(counts[:, None] - counts) @ weights
    assert float(credo.decide(COUNT, "absolute")) == counts[costs.argmin()]


@pytest.mark.slow
def test_a_users_loss_over_classes_is_minimised_exactly_and_over_numbers_by_draws() -> None:
    forecast = credo.Categorical(3).linearized(jnp.asarray([0.2, 0.5, 0.1]), 0.3 * jnp.eye(3))
    costs = np.array([[0.0, 1.0, 5.0], [2.0, 0.0, 1.0], [1.0, 4.0, 0.0], [0.5, 0.5, 0.5]])
    table = jnp.asarray(costs)
    chosen = credo.decide(forecast, lambda action, y: table[action, y], actions=jnp.arange(4))
    assert int(chosen) == (costs @ np.asarray(forecast.probs)).argmin()
    assert int(credo.decide(forecast, "zero-one")) == int(np.argmax(forecast.probs))
    actions = jnp.linspace(-1.0, 2.0, 31)
    got = credo.decide(NORMAL, lambda a, y: (a - y) ** 2, actions=actions, samples=20_000, key=0)
    assert abs(float(got) - 0.3) < 0.11
    rows = PredictiveRows(jax.vmap(credo.Categorical(3).plugin)(20 * jnp.eye(3)))
    np.testing.assert_array_equal(credo.decide(rows, "zero-one"), [0, 1, 2])
    np.testing.assert_array_equal(credo.decide(rows, lambda a, y: (a - y) ** 2), [0, 1, 2])


def test_decisions_that_cannot_be_made_are_refused() -> None:
    for call, message in [
        (lambda: UNTYPED.decide(NORMAL, "square"), r"loss must be one of squared.*did you mean 'squared'"),
        (lambda: credo.decide(NORMAL, "pinball", level=1.0), r"level must be in \(0, 1\)"),
        (lambda: credo.decide(NORMAL, "zero-one"), "probs is for classifiers"),
        (lambda: credo.decide(NORMAL, lambda a, y: a, key=0), "actions is missing"),
        (lambda: credo.decide(NORMAL, lambda a, y: a, actions=jnp.ones(2)), "pass key="),
    ]:
        with pytest.raises(CredoError, match=message):
            call()  # type: ignore[no-untyped-call]
