"""Metrics against naive references."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from credo.metrics import (
    ClassTable,
    Scores,
    by_class,
    central,
    count_bins,
    coverage_of,
    ece,
    ece_of,
    reliability,
    running,
    summarize,
    windowed,
)

RNG = np.random.default_rng(0)


def classified(count: int = 300, classes: int = 4) -> Scores:
    probs = RNG.dirichlet(np.ones(classes), count)
    y = np.array([RNG.choice(classes, p=p) for p in probs])
    log_prob = np.log(probs[np.arange(count), y])
    return Scores(y, None, None, log_prob, None, probs, {}, log_prob, np.ones(count, bool))


def measured(count: int = 4000) -> Scores:
    mean, sd = RNG.normal(size=count), np.full(count, 0.5)
    y = mean + sd * RNG.normal(size=count)
    from scipy import stats

    log_prob, pit = stats.norm.logpdf(y, mean, sd), stats.norm.cdf(y, mean, sd)
    return Scores(y, mean, sd, log_prob, pit, None, {"plugin": log_prob - 1}, log_prob, np.ones(count, bool))


def test_classification_metrics_equal_naive_loops() -> None:
    s = classified()
    assert s.probs is not None
    result = summarize(s)
    wrong = np.mean([p.argmax() != y for p, y in zip(s.probs, s.y, strict=True)])
    pairs = zip(s.probs, s.y, strict=True)
    brier = np.mean([sum((p[c] - (c == y)) ** 2 for c in range(4)) for p, y in pairs])
    total = 0.0
    confidence = s.probs.max(axis=1)
    for low in np.arange(15) / 15:
        inside = (confidence >= low) & (confidence < low + 1 / 15)
        if inside.any():
            total += inside.mean() * abs(s.correct[inside].mean() - confidence[inside].mean())
    assert result["error"] == pytest.approx(wrong)
    assert result["brier"] == pytest.approx(brier)
    assert result["ece"] == pytest.approx(total)
    assert result["nlpd"] == pytest.approx(-s.log_prob.mean())


def test_metrics_of_each_class_equal_naive_loops_and_scikit_learn() -> None:
    sklearn = pytest.importorskip("sklearn.metrics")
    s = classified()
    assert s.probs is not None
    exact = by_class(s)
    for c, score in enumerate(s.probs.T):
        ours, others = score[s.y == c], score[s.y != c]
        pairs = [(a > b) + 0.5 * (a == b) for a in ours for b in others]
        precision = [np.mean((s.y == c)[score >= a]) for a in ours]
        assert exact.rows[c] == len(ours) and exact.auc[c] == pytest.approx(np.mean(pairs))
        assert exact.average_precision[c] == pytest.approx(np.mean(precision))
        assert exact.auc[c] == pytest.approx(sklearn.roc_auc_score(s.y == c, score), rel=1e-10)
        theirs = sklearn.average_precision_score(s.y == c, score)
        assert exact.average_precision[c] == pytest.approx(theirs, rel=1e-10)
        assert exact.log_loss[c] == pytest.approx(-np.log(ours).mean())
    result = summarize(s)
    assert result["auc"] == pytest.approx(exact.auc.mean())
    assert exact.log_loss @ exact.rows / len(s) == pytest.approx(result["nlpd"])


def test_a_table_of_classes_is_added_up_and_as_good_as_it_says() -> None:
    s = classified()
    assert s.probs is not None
    exact, table = by_class(s), ClassTable(4)
    table.add(s.probs[:100], s.y[:100])
    before = ClassTable(4)
    before.add(s.probs[:100], s.y[:100])
    table.add(s.probs[100:], s.y[100:])
    binned, rest = table.scores(), ClassTable(4)
    rest.add(s.probs[100:], s.y[100:])
    assert (np.abs(binned.auc - exact.auc) <= binned.auc_error).all() and binned.auc_error.max() < 0.04
    np.testing.assert_allclose(binned.average_precision, exact.average_precision, atol=0.03)
    np.testing.assert_allclose(binned.ece, exact.ece)
    np.testing.assert_allclose(table.since(before).ranks, rest.ranks)
    np.testing.assert_allclose(table.since(before).losses, rest.losses)


def test_a_class_without_rows_has_no_score() -> None:
    table = ClassTable(3)
    table.add(np.array([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0]]), np.array([0, 1]), np.log([1.0, 0.5]))
    scores = table.scores()
    assert np.isnan(scores.auc[2]) and np.isnan(scores.log_loss[2]) and scores.mean("auc") == 1.0


def test_the_calibration_error_of_certainty_is_the_error() -> None:
    assert ece(np.ones(10), np.arange(10) < 7) == pytest.approx(0.3)


def test_regression_metrics_of_a_calibrated_forecast() -> None:
    s = measured()
    result = summarize(s)
    assert result["rmse"] == pytest.approx(0.5, abs=4 * 0.5 / np.sqrt(2 * len(s)))
    assert result["coverage_90"] == pytest.approx(0.9, abs=4 * np.sqrt(0.09 / len(s)))
    assert result["nlpd_plugin"] == pytest.approx(result["nlpd"] + 1)
    curve = reliability(s)
    assert np.abs(curve["predicted"] - curve["observed"]).max() < 4 * 0.5 / np.sqrt(len(s))


def test_a_forecast_too_wide_covers_too_much() -> None:
    s = measured()
    from scipy import stats

    assert s.sd is not None
    wide = dataclasses.replace(s, pit=stats.norm.cdf(s.y, s.mean, 3 * s.sd))
    assert summarize(wide)["coverage_90"] > 0.98


def test_running_and_windowed_curves() -> None:
    s = measured(50)
    squares = (s.y - s.mean) ** 2
    np.testing.assert_allclose(running(s, "rmse"), [np.sqrt(squares[: i + 1].mean()) for i in range(50)])
    naive = [np.sqrt(squares[max(0, i - 6) : i + 1].mean()) for i in range(50)]
    np.testing.assert_allclose(windowed(s, "rmse", 7), naive, atol=1e-12)


def test_parts_join_to_the_whole() -> None:
    s = classified()
    again = Scores.concatenate([s.rows(slice(0, 100)), s.rows(slice(100, None))])
    assert summarize(again) == summarize(s)


def test_no_rows_give_no_numbers() -> None:
    s = classified()
    assert np.isnan(summarize(s.rows(slice(0, 0)))["nlpd"])


def test_tables_of_parts_add_up_to_the_metrics_of_the_whole() -> None:
    s, number = classified(), measured(1000)
    assert s.probs is not None and number.pit is not None
    confidence, correct = s.probs.max(axis=1), s.correct
    parts = [count_bins(confidence[rows], correct[rows]) for rows in (slice(0, 70), slice(70, None))]
    assert ece_of(parts[0] + parts[1]) == pytest.approx(summarize(s)["ece"], rel=1e-12)
    inside = central(number.pit)
    halves = [count_bins(inside[rows], np.ones(500), 20) for rows in (slice(0, 500), slice(500, None))]
    assert coverage_of(halves[0] + halves[1]) == summarize(number)["coverage_90"]
    naive = np.mean((number.pit >= 0.05) & (number.pit <= 0.95))
    assert summarize(number)["coverage_90"] == pytest.approx(naive, abs=1e-12)


def test_a_forecast_that_is_not_finite_covers_nothing() -> None:
    s = measured(10)
    assert s.pit is not None
    assert summarize(dataclasses.replace(s, pit=np.full(10, np.nan)))["coverage_90"] == 0
