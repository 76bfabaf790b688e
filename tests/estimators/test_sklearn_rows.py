"""What the estimators of scikit-learn make of rows: order, weights, missing values, frames."""

from __future__ import annotations

import datetime
from typing import Any

import jax
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from tests.needed import needs

import credo
from credo.estimators.sklearn_base import OnlineEstimator

COUNT = 60


def numbers(count: int = COUNT) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(count, 3)) * [1.0, 10.0, 0.1] + [0.0, 50.0, 3.0]
    return x, 7.0 + 2.0 * x[:, 0] - 0.3 * x[:, 1] + 0.5 * rng.normal(size=count)


def regressor(**settings: Any) -> Any:
    return credo.OnlineRegressor("linear", **settings)


def classifier(**settings: Any) -> Any:
    return credo.OnlineClassifier("linear", **settings)


def labels(y: np.ndarray) -> np.ndarray:
    return np.where(y > np.median(y), "up", "down")


def same(one: OnlineEstimator, other: OnlineEstimator) -> None:
    """Two estimators have the same state, bit by bit."""
    trainers = one._trainer, other._trainer
    parts = [
        jax.tree.leaves((t.belief, t.table.state.arrays(), t.scaler.arrays(), t.early.arrays()))
        for t in trainers
    ]
    for mine, theirs in zip(*parts, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert one.n_seen_ == other.n_seen_
    assert one.log_evidence_ == pytest.approx(other.log_evidence_, rel=1e-12)


@pytest.mark.parametrize("cuts", [[5, 9, 10, 11, 40], [1, 2, 3], list(range(1, COUNT))])
def test_any_split_of_rows_into_calls_gives_the_same_bits(cuts: list[int]) -> None:
    x, y = numbers()
    weights = np.where(np.arange(COUNT) % 3 == 0, 2.0, 1.0)
    x[7, 1] = np.nan
    whole, parts = regressor(), regressor()
    whole.partial_fit(x, y, sample_weight=weights)
    for part in np.split(np.arange(COUNT), cuts):
        parts.partial_fit(x[part], y[part], sample_weight=weights[part])
    same(whole, parts)
    one, many = classifier(), classifier()
    one.partial_fit(x, labels(y), classes=["down", "up"])
    for part in np.split(np.arange(COUNT), cuts):
        many.partial_fit(x[part], labels(y)[part], classes=["down", "up"])
    same(one, many)


@pytest.mark.parametrize("online", [False, True])
def test_a_row_of_weight_0_is_left_out_bit_by_bit(online: bool) -> None:
    x, y = numbers()
    weights = np.where(np.arange(COUNT) % 4 == 1, 0.0, 1.5)
    x[weights == 0], y[weights == 0] = np.nan, 1e9
    keep = weights > 0
    verb = "partial_fit" if online else "fit"
    some = getattr(regressor(), verb)(x, y, sample_weight=weights)
    less = getattr(regressor(), verb)(x[keep], y[keep], sample_weight=weights[keep])
    same(some, less)
    # a class that weight 0 leaves out is no class
    three = np.where(keep, labels(y), "never")
    assert classifier().fit(x, three, sample_weight=weights).classes_.tolist() == ["down", "up"]


def test_weights_are_rows_written_out_where_they_stand_in_the_same_order() -> None:
    """The only check of scikit-learn that fails compares rows in another order."""
    x, y = numbers()
    times = np.random.default_rng(1).integers(1, 5, size=COUNT)
    settings: dict[str, Any] = {"noise_var": 0.1, "drift": "none"}
    for verb in ("fit", "partial_fit"):
        heavy = getattr(regressor(**settings), verb)(x, y, sample_weight=times)
        if verb == "partial_fit":  # a row written out is standardised by its copies, too: by none at first
            assert heavy._trainer.scaler.total[0] == times.sum()
            continue
        many = getattr(regressor(**settings), verb)(np.repeat(x, times, axis=0), np.repeat(y, times))
        for mine, theirs in zip(
            heavy.predict(x, return_std=True), many.predict(x, return_std=True), strict=True
        ):
            np.testing.assert_allclose(mine, theirs, rtol=1e-4)
        assert heavy.n_seen_ == COUNT and many.n_seen_ == times.sum()


def test_small_weights_scale_what_is_learned_and_leave_the_units() -> None:
    x, y = numbers()
    light = regressor().fit(x, y, sample_weight=np.full(COUNT, 1 / COUNT))
    plain = regressor().fit(x, y)
    for mine, theirs in zip(light._trainer.location_scale, plain._trainer.location_scale, strict=True):
        assert mine == pytest.approx(theirs, rel=1e-12)
    assert light.predict(x, return_std=True)[1].mean() > plain.predict(x, return_std=True)[1].mean()


def test_fit_goes_on_with_partial_fit_and_passes_narrow_the_posterior() -> None:
    x, y = numbers()
    online = regressor().fit(x[:40], y[:40]).partial_fit(x[40:], y[40:])
    assert online.n_seen_ == COUNT and online.score(x, y) > 0.95
    assert online._trainer.scaler.rows == COUNT
    once, often = regressor(drift="none").fit(x, y), regressor(drift="none", passes=4).fit(x, y)
    assert once.n_seen_ == often.n_seen_ == COUNT and once.log_evidence_ == often.log_evidence_
    assert np.median(often._trainer.belief.var) < 0.5 * np.median(once._trainer.belief.var)
    assert (often._trainer.belief.var <= once._trainer.belief.var).all()


@pytest.mark.parametrize("count", [1, 2, 5])
def test_few_rows_have_units(count: int) -> None:
    x, y = numbers()
    y = 1000.0 + 20.0 * y
    for verb in ("fit", "partial_fit"):
        few = getattr(regressor(), verb)(x[:count], y[:count])
        mean, sd = few.predict(x[:count], return_std=True)
        assert np.abs(mean - y[:count].mean()).max() < 3 * max(float(y[:count].std()), 1.0)
        assert (sd > 0).all() and few.n_seen_ == count
    few.partial_fit(x[count:], y[count:])
    assert few.score(x, y) > 0.9 and np.isfinite(few.log_evidence_)


@pytest.mark.slow
def test_forecasts_are_distributions_in_the_units_of_the_target() -> None:
    x, y = numbers()
    fitted = regressor().fit(x, 1000.0 * y)
    rows = fitted.forecast(x[:5])
    mean, sd = fitted.predict(x[:5], return_std=True)
    np.testing.assert_allclose(rows.mean, mean, rtol=1e-6)
    np.testing.assert_allclose(rows.sd, sd, rtol=1e-6)
    np.testing.assert_allclose(
        rows.log_prob(1000.0 * y[:5]).mean(), fitted.log_score(x[:5], 1000.0 * y[:5]), rtol=1e-6
    )
    interval = fitted.predict_interval(x, coverage=0.9)
    inside = (interval[:, 0] <= 1000.0 * y) & (1000.0 * y <= interval[:, 1])
    assert 0.8 < inside.mean() <= 1.0
    median = fitted.predict_quantiles(x, 0.5)
    assert median.shape == (COUNT,) and fitted.predict_quantiles(x, [0.1, 0.9]).shape == (COUNT, 2)
    classes = classifier().fit(x, labels(y))
    np.testing.assert_allclose(classes.forecast(x[:5]).probs, classes.predict_proba(x[:5]), rtol=1e-6)
    picked = classes.predict_proba(x)[np.arange(COUNT), (labels(y) == "up").astype(int)]
    assert classes.log_score(x, labels(y)) == pytest.approx(np.log(picked).mean(), rel=1e-6)


def test_a_row_is_forecast_alike_alone_and_among_others() -> None:
    """Networks are in single precision, also where JAX allows double."""
    x, y = numbers()
    fitted = credo.OnlineRegressor("mlp:10").fit(x, y)
    assert all(leaf.dtype != np.float64 for leaf in jax.tree.leaves(fitted._trainer.belief))
    alone = np.concatenate([fitted.predict(x[[row]]) for row in range(20)])
    np.testing.assert_array_equal(alone, fitted.predict(x)[:20])
    order = np.random.default_rng(0).permutation(COUNT)
    np.testing.assert_array_equal(fitted.predict(x[order]), fitted.predict(x)[order])


def test_a_sparse_matrix_is_learned_as_the_dense_one() -> None:
    x, y = numbers()
    x[:, 2] = np.where(x[:, 2] > 3.0, x[:, 2], 0.0)
    dense, sparse = regressor().fit(x, y), regressor().fit(sp.csr_array(x), y)
    same(dense, sparse)
    np.testing.assert_array_equal(dense.predict(x), sparse.predict(sp.csc_array(x)))


def table(count: int = COUNT) -> tuple[dict[str, list[object]], np.ndarray]:
    """A number, a category, a date, a flag and a text, each with a hand in the target."""
    rng = np.random.default_rng(2)
    city = rng.choice(["Oslo", "Rome", "Bern"], size=count)
    first = datetime.datetime(2026, 1, 1)
    day = [first + datetime.timedelta(hours=7 * place) for place in range(count)]
    hot = rng.random(count) < 0.5
    number = rng.normal(size=count)
    words = rng.choice(["a small red car", "one large blue house", "the old green boat"], size=count)
    y = number + 3.0 * (city == "Rome") + 2.0 * hot + rng.normal(size=count) * 0.1
    columns: dict[str, list[object]] = {
        "number": [None if place == 3 else float(one) for place, one in enumerate(number)],
        "city": [str(one) for one in city],
        "day": list(day),
        "hot": [bool(one) for one in hot],
        "words": [f"{one} {place}" for place, one in enumerate(words)],
    }
    return columns, y


def test_frames_of_all_kinds_and_dicts_are_encoded_alike() -> None:
    pl = needs("polars")
    columns, y = table()
    frame = pd.DataFrame(columns)
    fitted = regressor(drift="none").fit(frame, y)
    assert fitted.feature_names_in_.tolist() == list(columns) and fitted.n_features_in_ == 5
    assert fitted.score(frame, y) > 0.8
    kinds = [column.kind for column in fitted._trainer.encoder.schema.columns]
    assert kinds == ["numeric", "categorical", "datetime", "boolean", "text"]
    records = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    for rows in (pl.DataFrame(columns), columns, records):
        other = regressor(drift="none").fit(rows, y)
        np.testing.assert_allclose(other.predict(rows), fitted.predict(frame), rtol=1e-6, atol=1e-6)
    new = frame.iloc[:2].assign(city=["Paris", None], day=None)
    assert np.isfinite(fitted.predict(new)).all()
    one = dict(records[0], words=None)
    del one["number"]
    assert fitted.predict([one]).shape == (1,)


def test_frames_of_numbers_are_the_array_with_names() -> None:
    pl = needs("polars")
    x, y = numbers()
    plain = regressor().fit(x, y)
    for frame in (pd.DataFrame(x, columns=list("abc")), pl.DataFrame(x, schema=list("abc"))):
        named = regressor().fit(frame, y)
        same(plain, named)
        assert named.feature_names_in_.tolist() == ["a", "b", "c"]
        row = {"a": x[0, 0], "b": x[0, 1], "c": x[0, 2]}
        np.testing.assert_array_equal(named.predict([row]), named.predict(frame[:1]))
    names = pl.DataFrame({"a": [1, None, 3, 4], "b": [1.5, 2.5, None, 0.0]})
    assert np.isfinite(regressor().fit(names, np.arange(4.0)).predict(names)).all()


def test_changes_that_the_drift_reports_are_rows() -> None:
    x, y = numbers(200)
    y[100:] = -y[100:]
    moved = regressor(drift="run-length").fit(x, y)
    assert len(moved.changes_) and (np.abs(moved.changes_ - 101) < 20).any()
    assert regressor().fit(x, y).changes_.size == 0
