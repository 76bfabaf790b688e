"""Test-then-train: every row is forecast at the belief before it, whatever the chunks and delays."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import credo

RNG = np.random.default_rng(3)
X = RNG.normal(size=(41, 3))
Y = X @ np.array([1.0, -1.0, 0.5]) + 0.3 * RNG.normal(size=41)
LABELS = (Y > 0).astype(np.int32)


def linear(w: Any, x: Any) -> Any:
    return x @ w


REGRESSION = credo.extended_kalman(credo.Model(linear, credo.Normal(0.09)), dynamics=credo.RandomWalk(1e-3))
LOGISTIC = credo.extended_kalman(credo.Model(linear, credo.Bernoulli()))
START = jnp.zeros(3)


@pytest.fixture(scope="module")
def report() -> Any:
    return credo.evaluate(REGRESSION, REGRESSION.init(START), (X, Y), compare=["plugin"])


def test_rows_are_scored_before_they_are_learned(report: Any) -> None:
    belief, log_probs, means = REGRESSION.init(START), [], []
    for x, y in zip(X, Y, strict=True):
        predicted = REGRESSION.predict(belief)
        forecast = REGRESSION.forecast(predicted, x)
        log_probs.append(float(forecast.log_prob(y)))
        means.append(float(forecast.mean))
        belief, _ = REGRESSION.update(predicted, x, y)
    np.testing.assert_allclose(report.scores.log_prob, log_probs, atol=1e-12)
    np.testing.assert_allclose(report.scores.mean, means, atol=1e-12)
    np.testing.assert_allclose(report.metrics["rmse"], np.sqrt(np.mean((Y - means) ** 2)), atol=1e-12)
    assert report.metrics["log_evidence"] == pytest.approx(sum(log_probs), abs=1e-9)
    assert report.metrics["nlpd_plugin"] != report.metrics["nlpd"]


def test_evaluation_learns_what_a_run_learns(report: Any) -> None:
    belief, _ = credo.run(REGRESSION, REGRESSION.init(START), X, Y)
    np.testing.assert_allclose(report.belief.mean, belief.mean, atol=1e-13)


@pytest.mark.parametrize("chunk", [1, 7, 41, 1000])
def test_chunks_do_not_matter(report: Any, chunk: Any) -> None:
    again = credo.evaluate(REGRESSION, REGRESSION.init(START), (X, Y), compare=["plugin"], chunk=chunk)
    assert again.belief == report.belief
    np.testing.assert_array_equal(again.scores.log_prob, report.scores.log_prob)


def test_a_constant_delay_learns_each_label_that_much_later() -> None:
    late = credo.evaluate(REGRESSION, REGRESSION.init(START), (X, Y), delay=2)
    belief, log_probs = REGRESSION.init(START), []
    for i in range(len(Y)):
        belief = REGRESSION.predict(belief)
        log_probs.append(float(REGRESSION.forecast(belief, X[i]).log_prob(Y[i])))
        if i >= 2:
            belief, _ = REGRESSION.update(belief, X[i - 2], Y[i - 2])
    for i in (-2, -1):
        belief, _ = REGRESSION.update(belief, X[i], Y[i])
    np.testing.assert_allclose(late.scores.log_prob, log_probs, atol=1e-12)
    np.testing.assert_allclose(late.belief.mean, belief.mean, atol=1e-12)


def test_a_delay_of_each_row_may_reorder_labels() -> None:
    delays = np.tile([3, 0], 21)[:41]
    static = credo.extended_kalman(credo.Model(linear, credo.Normal(0.09)))
    late = credo.evaluate(static, static.init(START), (X, Y), delay=delays)
    on_time = credo.evaluate(static, static.init(START), (X, Y))
    np.testing.assert_allclose(late.belief.mean, on_time.belief.mean, atol=1e-12)
    assert not np.allclose(late.scores.log_prob, on_time.scores.log_prob)


def test_no_delay_by_events_is_the_plain_stream(report: Any) -> None:
    nearly = np.zeros(41, int)
    nearly[-1] = 5
    late = credo.evaluate(REGRESSION, REGRESSION.init(START), (X, Y), delay=nearly)
    np.testing.assert_allclose(late.scores.log_prob, report.scores.log_prob, atol=1e-12)


def test_missing_labels_are_forecast_but_not_scored() -> None:
    labels = LABELS.astype(float)
    labels[[3, 8]] = np.nan
    report = credo.evaluate(LOGISTIC, LOGISTIC.init(START), (X, labels))
    assert len(report.scores) == 39 and report.skipped == 2
    of_classes = {"error", "brier", "ece", "ece_classwise", "auc", "average_precision"}
    assert set(report.metrics) == {"nlpd", "log_evidence"} | of_classes
    assert report.missing == 2 and not report.refused and "2 rows without a target" in str(report)


def test_refused_rows_are_counted_and_explained() -> None:
    inputs, targets = X.copy(), Y.copy()
    inputs[4], targets[6], targets[9] = np.inf, -np.inf, np.nan
    with pytest.warns(UserWarning, match="2 of 41 rows were refused.*inputs that are not finite"):
        report = credo.evaluate(REGRESSION, REGRESSION.init(START), (inputs, targets))
    assert report.refused == {"inputs": 1, "targets": 1} and (report.missing, report.skipped) == (1, 3)
    assert "2 of 41 rows were refused" in str(report)
    with pytest.warns(UserWarning, match="a label that is none of the classes"):
        report = credo.evaluate(LOGISTIC, LOGISTIC.init(START), (X, np.where(np.arange(41) == 3, 2, LABELS)))
    assert report.refused == {"labels": 1}


def test_a_likelihood_without_a_distribution_function_is_scored_by_what_it_has() -> None:
    laplace = credo.Likelihood(lambda eta, y: -jnp.abs(y - eta) - jnp.log(2.0), mean=lambda eta: eta)
    learner = credo.bong(credo.Model(linear, laplace), credo.Full(), "lin-ef")
    report = credo.evaluate(learner, learner.init(START), (X, Y))
    assert set(report.metrics) == {"nlpd", "rmse", "mae", "log_evidence"}
    with pytest.raises(credo.CredoError, match="'coverage_90' needs a distribution function"):
        credo.evaluate(learner, learner.init(START), (X, Y), metrics=["coverage_90"])


def cost(stock: Any, demand: Any) -> Any:
    return 9.0 * jnp.maximum(demand - stock, 0.0) + jnp.maximum(stock - demand, 0.0)


@pytest.mark.slow
@pytest.mark.parametrize("delay", [0, 2])
def test_decisions_are_taken_before_the_label_and_judged_by_it(delay: int) -> None:
    belief, losses = REGRESSION.init(START), []
    for i in range(len(Y)):
        belief = REGRESSION.predict(belief)
        action = credo.decide(REGRESSION.forecast(belief, X[i]), "pinball", level=0.9)
        losses.append(float(cost(action, Y[i])))
        if i >= delay:
            belief, _ = REGRESSION.update(belief, X[i - delay], Y[i - delay])
    named = credo.Decision("pinball", level=0.9)
    own = credo.Decision(cost, rule=lambda forecast, belief, key: forecast.quantile(0.9))
    for decision, factor in ((named, 10.0), (own, 1.0)):
        report = credo.evaluate(REGRESSION, REGRESSION.init(START), (X, Y), loss=decision, delay=delay)
        assert report.scores.loss is not None
        np.testing.assert_allclose(factor * report.scores.loss, losses, atol=1e-9)
        np.testing.assert_allclose(factor * report.curve("loss")[-1], np.mean(losses), atol=1e-9)
        assert report.metrics["loss"] == pytest.approx(np.mean(losses) / factor)


def test_a_loss_over_classes_takes_the_exact_expectation() -> None:
    report = credo.evaluate(LOGISTIC, LOGISTIC.init(START), (X, LABELS), loss="zero-one")
    assert report.metrics["loss"] == pytest.approx(report.metrics["error"])
    prices = jnp.array([[0.0, 1.0, 0.2], [10.0, 0.0, 0.2]])
    asking = credo.Decision(lambda action, truth: prices[truth, action], actions=jnp.arange(3))
    report = credo.evaluate(LOGISTIC, LOGISTIC.init(START), (X, LABELS), loss=asking)
    assert report.scores.probs is not None and report.scores.action is not None
    assert report.scores.loss is not None
    expected = report.scores.probs @ np.asarray(prices)
    np.testing.assert_array_equal(report.scores.action, expected.argmin(axis=1))
    np.testing.assert_allclose(report.scores.loss, np.asarray(prices)[LABELS, report.scores.action])


def test_negative_whole_numbers_of_a_regression_are_scored() -> None:
    counts = np.arange(-5, 5)
    report = credo.evaluate(REGRESSION, REGRESSION.init(START), (X[:10], counts))
    assert len(report.scores) == 10


def test_a_joint_model_is_scored_row_by_row() -> None:
    joint = credo.extended_kalman(credo.joint(credo.Model(linear, credo.Bernoulli())))
    xs, ys = X[:40].reshape(10, 4, 3), LABELS[:40].reshape(10, 4)
    report = credo.evaluate(joint, joint.init(START), (xs, ys))
    assert len(report.scores) == 40 and 0 <= report.metrics["error"] <= 1
    _, trace = credo.run(joint, joint.init(START), xs, ys)
    assert report.metrics["log_evidence"] == pytest.approx(float(trace.log_evidence.sum()), abs=1e-9)


def test_progress_is_told_after_every_chunk() -> None:
    told = []
    data = (X, Y)
    credo.evaluate(REGRESSION, REGRESSION.init(START), data, chunk=20, progress=lambda *a: told.append(a[:2]))
    assert told == [(20, 41), (40, 41), (41, 41)]


def test_the_report_prints_a_table(report: Any) -> None:
    text = str(report)
    assert "rmse" in text and "41 rows" in text
    assert report.curve("rmse")[-1] == pytest.approx(report.metrics["rmse"])
    assert report.curve("rmse", 5).shape == (41,)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"metrics": ["rmsee"]}, "did you mean 'rmse'"),
        ({"metrics": ["error"]}, "not for regression"),
        ({"delay": -1}, "at least 0"),
        ({"delay": 1.5}, "whole number"),
        ({"chunk": 0}, "chunk"),
        ({"dts": -np.ones(41)}, "dts"),
        ({"method": "magic"}, "linearized"),
    ],
)
def test_what_cannot_be_done_is_refused(change: Any, words: Any) -> None:
    with pytest.raises(credo.CredoError, match=words):
        credo.evaluate(REGRESSION, REGRESSION.init(START), (X, Y), **change)


def test_a_learned_noise_needs_the_linearised_hessian() -> None:
    model = credo.Model(linear, credo.Normal(credo.InverseGamma()))
    with pytest.raises(credo.CredoError, match="lin-hess"):
        credo.bong(model, credo.Full(), "lin-ef").init(START)


def test_monte_carlo_forecasts_draw_anew_at_every_step() -> None:
    key = jax.random.key(0)
    once = credo.evaluate(LOGISTIC, LOGISTIC.init(START), (X, LABELS), method="linearized-mc", key=key)
    twice = credo.evaluate(
        LOGISTIC, LOGISTIC.init(START), (X, LABELS), method="linearized-mc", key=key, chunk=9
    )
    np.testing.assert_array_equal(once.scores.log_prob, twice.scores.log_prob)


def test_a_row_is_learned_by_its_observation_and_scored_by_its_target() -> None:
    learner = credo.extended_kalman(credo.Model(lambda w, x: x @ w, credo.Normal(0.1)))
    belief = learner.init(jnp.zeros(2))
    xs, ys = np.ones((4, 2)), np.ones(4)
    plain, told, _ = credo.streams.score_chunk(learner, belief, xs, ys)
    other, scored, _ = credo.streams.score_chunk(learner, belief, xs, ys, targets=ys + 2.0)
    np.testing.assert_array_equal(plain.mean, other.mean)
    assert told.mean is not None and told.sd is not None
    near = np.asarray((ys - told.mean) / told.sd)
    far = np.asarray((ys + 2.0 - told.mean) / told.sd)
    np.testing.assert_allclose(scored.log_prob - told.log_prob, (near**2 - far**2) / 2, rtol=1e-10)
