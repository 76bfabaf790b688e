"""Running scores are those of all rows together, whatever the chunks, and a curve is of bounded length."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.special import ndtr

from credo.metrics import Scores, normal_crps
from credo.sessions.tally import BLOCKS, RECENT, Tally

ROWS = 5 * BLOCKS + 7
"""Enough for blocks to be merged when there is one row in each, and when there are two."""


def regression(count: int) -> Scores:
    """Scores of forecasts that drift, beside wider ones of the same rows."""
    rng = np.random.default_rng(0)
    mean, sd = np.cumsum(rng.normal(size=count)), rng.uniform(0.5, 2.0, size=count)
    y = mean + sd * rng.normal(size=count)
    log_prob = -0.5 * ((y - mean) / sd) ** 2 - np.log(sd)
    wide = np.stack([mean + 0.5, 2.0 * sd], axis=1)
    others, compared = {"linearized": log_prob - 0.3}, {"linearized": wide}
    pit, ok = ndtr((y - mean) / sd), np.ones(count, bool)
    return Scores(y, mean, sd, log_prob, pit, None, others, log_prob, ok, None, None, compared)


def tallied(scores: Scores, cuts: list[int]) -> Tally:
    tally = Tally("regression")
    for part in np.split(np.arange(len(scores)), cuts):
        tally.add(scores.rows(part), -part / 1000.0, np.full(len(part), 4.0), part / 500.0)
    return tally


def test_scores_are_those_of_all_rows_together() -> None:
    scores = regression(ROWS)
    tally = tallied(scores, [1, 50, 50, 2000])
    y, mean, sd = (np.asarray(column, float) for column in (scores.y, scores.mean, scores.sd))
    metrics = tally.metrics()
    np.testing.assert_allclose(metrics["nlpd"], -scores.log_prob.mean(), rtol=1e-12)
    np.testing.assert_allclose(metrics["rmse"], np.sqrt(((y - mean) ** 2).mean()), rtol=1e-12)
    np.testing.assert_allclose(metrics["mae"], np.abs(y - mean).mean(), rtol=1e-12)
    np.testing.assert_allclose(metrics["nlpd_unscaled"], 0.3 - scores.log_prob.mean(), rtol=1e-12)
    np.testing.assert_allclose(tally.metrics(uncertain=True)["nlpd_plugin"], metrics["nlpd_unscaled"])
    # the bins hold each row once: the central interval of 90% ends where a bin ends
    assert metrics["coverage_90"] == np.mean(np.abs(2 * ndtr((y - mean) / sd) - 1) < 0.9)
    wide = (y - mean - 0.5) / (2 * sd)
    assert metrics["coverage_90_unscaled"] == np.mean(np.abs(2 * ndtr(wide) - 1) < 0.9)
    for counts, z in zip(tally.pits, ((y - mean) / sd, wide), strict=True):
        assert counts.tolist() == np.histogram(ndtr(z), 20, (0.0, 1.0))[0].tolist()
    half = (ROWS - 1) / 2000.0
    assert tally.baseline() == {"nlpd": pytest.approx(half), "rmse": 2.0, "crps": pytest.approx(2 * half)}
    np.testing.assert_allclose(metrics["width_90"], 2 * 1.6448536269514722 * sd.mean(), rtol=1e-12)
    np.testing.assert_allclose(metrics["crps"], normal_crps(y, mean, sd).mean(), rtol=1e-12)
    assert metrics["r2"] == pytest.approx(1 - np.mean((y - mean) ** 2) / 4, rel=1e-12)
    # the last value as a forecast, and for the first row our own
    steps = np.concatenate([[y[0] - mean[0]], np.diff(y)])
    np.testing.assert_allclose(tally.latest("last_loss"), np.sqrt((steps**2).mean()), rtol=1e-12)
    numbers = np.arange(ROWS - RECENT + 1.0, ROWS + 1.0)
    recent = np.stack([numbers, y[-RECENT:], mean[-RECENT:], sd[-RECENT:]], axis=1)
    np.testing.assert_array_equal(tally.recent, recent)


def test_blocks_are_merged_and_chunks_do_not_matter() -> None:
    scores = regression(ROWS)
    whole = tallied(scores, [])
    for cuts in ([900, 901, 2500], range(3, ROWS, 7), range(100, ROWS, 100), range(1, ROWS)):
        tally = tallied(scores, list(cuts))
        for name, array in whole.arrays().items():
            np.testing.assert_array_equal(tally.arrays()[name], array, err_msg=name)
    tally = whole
    assert tally.size == 4 and len(tally.sums) == -(-ROWS // 4)
    rows, nlpd = tally.curve("nlpd")
    assert rows.tolist() == [*range(4, ROWS, 4), ROWS]
    np.testing.assert_allclose(
        nlpd, -(np.cumsum(scores.log_prob) / np.arange(1, ROWS + 1))[[*range(3, ROWS - 1, 4), -1]]
    )
    # over a window the mean is of so many rows, and of all where there are fewer
    _, latest = tally.curve("loss", window=20)
    assert scores.mean is not None
    squares = (scores.y - scores.mean) ** 2
    np.testing.assert_allclose(latest[[2, 49]], np.sqrt([squares[:12].mean(), squares[180:200].mean()]))


def test_sums_of_classes_do_not_depend_on_chunks() -> None:
    rng = np.random.default_rng(1)
    count = 999
    probs = rng.dirichlet(np.ones(3), size=count)
    y = rng.integers(3, size=count)
    log_prob = np.log(probs[np.arange(count), y])
    others, compared = {"linearized": log_prob - 0.3}, {"linearized": rng.dirichlet(np.ones(3), size=count)}
    ok = np.ones(count, bool)
    scores = Scores(y, None, None, log_prob, None, probs, others, log_prob, ok, None, None, compared)

    def tallied(cuts: list[int]) -> Tally:
        tally = Tally("classification", 3)
        for part in np.split(np.arange(count), cuts):
            tally.add(scores.rows(part), *tally.class_baseline(y[part]))
        return tally

    whole = tallied([])
    for cuts in ([100, 101, 500], range(1, count)):
        for name, array in tallied(list(cuts)).arrays().items():
            np.testing.assert_array_equal(array, whole.arrays()[name], err_msg=name)


def test_notes_of_the_weights_are_due_at_rows_that_do_not_depend_on_calls() -> None:
    at, rows = [], 0
    while rows < 100_000:
        rows = Tally.next_mark(rows)
        at.append(rows)
    assert at[:3] == [32, 64, 96] and len(at) < 300
    for low in (1024, 4096, 32_768):
        assert 16 <= sum(low < one <= 2 * low for one in at) <= 32
    assert all(Tally.next_mark(one - 1) == one for one in at)


def test_before_any_row_there_are_no_scores_and_no_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        metrics = Tally("regression").metrics() | Tally("regression").baseline()
    assert set(metrics) == {"nlpd", "rmse", "mae"} and all(np.isnan(list(metrics.values())))


def test_class_frequencies_predict_each_label_from_those_before_it() -> None:
    tally = Tally("classification", 3)
    for labels in (np.array([2, 2, 0]), np.array([], int), np.array([2, 1])):
        before = tally.counts.copy()
        log_prob, wrong = tally.class_baseline(labels)
        counts = before
        for label, one, miss in zip(labels, log_prob, wrong, strict=True):
            np.testing.assert_allclose(np.exp(one), (counts[label] + 1) / (counts.sum() + 3))
            assert miss == (np.argmax(counts) != label)
            counts = counts + (np.arange(3) == label)
        assert tally.counts.tolist() == counts.tolist()
