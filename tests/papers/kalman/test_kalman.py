"""The background experiments at the quick size: their numbers beside the published ones."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from credo_papers import Result, Row, find
from credo_papers.engine.portions import silent
from credo_papers.engine.purposes import SCORED, TUNING
from credo_papers.kalman import (
    kf_linreg_learner,
    kf_linreg_plan,
    kf_linreg_world,
    kf_tracking_learner,
    kf_tracking_world,
    moons_plan,
    moons_world,
)


def row(result: Result, quantity: str) -> Row:
    return next(row for row in result.rows if row.quantity == quantity)


def agrees(row: Row, published_se: float) -> bool:
    """Whether ours is within three standard errors of the difference from the published number."""
    assert row.se is not None and isinstance(row.published, float)
    return abs(row.ours - row.published) < 3.0 * float(np.hypot(row.se, published_se))


def test_tracking_agrees_with_the_published_errors(results: dict[str, Result]) -> None:
    result = results["kf-tracking"]
    filtered, raw = row(result, "position rms, filtered"), row(result, "position rms, raw observations")
    assert agrees(filtered, filtered.se or 0.0)  # also over 500 tracks, so with the same error
    assert agrees(raw, raw.se or 0.0)
    claimed = row(result, "position rms, claimed by the filter")
    assert filtered.se is not None and abs(filtered.ours - claimed.ours) < 3 * filtered.se
    inside = row(result, "truth inside the 90% ellipse")
    assert inside.se is not None and abs(inside.ours - 0.9) < 3 * inside.se
    assert round(row(result, "sd of a coordinate, first step").ours, 2) == 0.30
    assert round(row(result, "sd of a coordinate, last step").ours, 2) == 0.49


def test_tracking_is_the_textbook_filter() -> None:
    _, observations = kf_tracking_world.simulate(3, 1)
    f, h = kf_tracking_world.TRANSITION.astype(np.float64), kf_tracking_world.OBSERVATION.astype(np.float64)
    mean, cov = kf_tracking_world.START.astype(np.float64), 0.1 * np.eye(4)
    expected = []
    for t, y in enumerate(observations[0]):
        if t:
            mean, cov = f @ mean, f @ cov @ f.T + 1e-3 * np.eye(4)
        gain = cov @ h.T @ np.linalg.inv(h @ cov @ h.T + np.eye(2))
        mean, cov = mean + gain @ (y - h @ mean), cov - gain @ h @ cov
        expected.append(mean)
    learner = kf_tracking_learner.make_learner()
    means, covs = kf_tracking_learner.track(
        learner, learner.init(kf_tracking_world.START, var=0.1), observations
    )
    np.testing.assert_allclose(means[0], expected, atol=2e-5)
    np.testing.assert_allclose(covs[0, -1], cov, atol=1e-5)


def test_linear_regression_meets_ridge_to_rounding(results: dict[str, Result]) -> None:
    result = results["kf-linreg"]
    assert row(result, "|mean - ridge| at T, median").ours < 2e-15
    assert row(result, "|mean - ridge| at any t, largest").ours < 1e-14
    assert row(result, "|log evidence - batch|, largest").ours < 1e-11
    error = row(result, "test RMSE at T")
    assert error.se is not None
    one_set = error.se * np.sqrt(kf_linreg_plan.SETS["quick"])
    assert agrees(error, one_set)


def test_ridge_solves_the_normal_equations() -> None:
    data = kf_linreg_world.simulate(1, 0)
    x, y = data["x"][:30], data["y"][:30]
    np.testing.assert_allclose(
        kf_linreg_learner.ridge(x, y)[-1], np.linalg.solve(x.T @ x + np.eye(2), x.T @ y)
    )


def test_each_row_is_forecast_before_it_is_learned(results: dict[str, Result]) -> None:
    result = results["kf-linreg"]
    ahead, hindsight = (
        row(result, f"prequential RMSE{words}").ours for words in ("", " of ridge on all rows")
    )
    # 500 forecasts cost about 2 (1 + log 500) / 2 squares more than those of the weights that fit them best
    assert 0.005 < ahead - hindsight < 0.03
    honest = row(result, "prequential square / variance said")
    assert honest.se is not None and abs(honest.ours - 1.0) < 3 * honest.se
    data = kf_linreg_world.simulate(0, 0)
    means = kf_linreg_learner.ridge(data["x"], data["y"])
    errors = data["y"] - np.sum(data["x"] * np.concatenate([np.zeros((1, 2)), means[:-1]]), axis=1)
    kept = np.load(result.folder / "data.npz")["prequential_rmse"]
    np.testing.assert_allclose(kept[[0, 7, -1]] ** 2, [np.mean(errors[:n] ** 2) for n in (1, 8, 500)])


def test_linear_regression_leaves_the_global_precision_alone() -> None:
    with jax.enable_x64(False):
        outcome = find("kf-linreg").run("quick", 1, silent)
        assert jnp.ones(1).dtype == jnp.float32
    assert outcome.rows[0].ours < 2e-15


def test_moons_agrees_with_a_correct_filter(results: dict[str, Result]) -> None:
    result = results["moons"]
    accuracy = row(result, "accuracy, before learning")
    assert agrees(accuracy, 0.007)
    tuned = row(result, "NLL in nats, before learning, tuned")
    untuned = row(result, "NLL in nats, before learning")
    assert tuned.se is not None and tuned.ours < untuned.ours + 2 * tuned.se
    assert row(result, "test accuracy at T, tuned").ours > 0.9


def test_the_moons_move(results: dict[str, Result]) -> None:
    from PIL import Image

    path = results["moons"].folder / "moons.gif"
    with Image.open(path) as picture:
        assert getattr(picture, "n_frames", 1) == len(moons_plan.FRAMES) and picture.size[0] >= 600
    assert path.stat().st_size < 1e6


def test_moons_never_scores_what_it_tuned_on() -> None:
    tuning, scored = (moons_world.make_streams(0, purpose, 3) for purpose in (TUNING, SCORED))
    rows = np.concatenate([tuning.x.reshape(-1, 2), scored.x.reshape(-1, 2)])
    assert len(np.unique(rows, axis=0)) == len(rows)


def test_make_moons_has_two_equal_halves_in_random_order() -> None:
    x, y = moons_world.make_moons(np.random.default_rng(0), 101, noise=0.0)
    assert x.shape == (101, 2) and y.sum() == 51
    np.testing.assert_allclose(np.hypot(*x[y == 0].T), 1.0, rtol=1e-6)
    np.testing.assert_allclose(np.hypot(*(x[y == 1] - [1.0, 0.5]).T), 1.0, rtol=1e-6)
    assert 0.2 < y[:50].mean() < 0.8


def test_the_same_seed_gives_the_same_numbers_and_another_gives_others(results: dict[str, Result]) -> None:
    def again(seed: int) -> list[float]:
        return [row.ours for row in find("kf-tracking").run("quick", seed, silent).rows]

    first = [row.ours for row in results["kf-tracking"].rows]
    assert again(0) == first
    assert again(1)[0] != first[0]
