"""Searches in one call, trials that fail, trials of before, and files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from tests.tiers import few

import credo
from credo import bandits
from credo.streams import checkpoint

BOX = [[-5.0, 10.0], [0.0, 15.0]]


def _branin(x: Any) -> float:
    bowl = (x[1] - 5.1 / (4 * np.pi**2) * x[0] ** 2 + 5 / np.pi * x[0] - 6) ** 2
    return float(bowl + 10 * (1 - 1 / (8 * np.pi)) * np.cos(x[0]) + 10)


@pytest.mark.slow
def test_a_search_finds_the_minimum_of_branin_and_goes_on() -> None:
    search = bandits.minimize(_branin, BOX, evaluations=24)
    point, value = search.best
    assert value - 0.397887 < 0.1 and _branin(point) == value
    assert len(search.history) == 24 and search.pending == []
    np.testing.assert_array_equal(search.recommended, point)  # nearly without noise
    again = bandits.minimize(_branin, BOX, evaluations=2, trials=search.history, seed=1)
    assert len(again.history) == 26 and again.best[1] <= value


@pytest.mark.thorough
def test_the_minimum_of_a_smooth_function_is_found_to_five_digits() -> None:
    def bowl(x: Any) -> float:
        return float(100 * (np.exp(x[0]) - 1.5) ** 2 + 30 * (x[1] + 0.2 * x[0]) ** 2)

    for seed in (0, 2):  # with noise of 1e-7 at least, both end above 2e-4
        assert bandits.minimize(bowl, [[-2, 2], [-2, 2]], evaluations=25, seed=seed).best[1] < 3e-5


@pytest.mark.thorough
def test_a_search_keeps_away_from_trials_that_fail(tmp_path: Path) -> None:
    def half(x: Any) -> float | None:
        return None if x[0] + x[1] < 8.0 else _branin(x)  # one of the three minima fails

    search = bandits.minimize(half, BOX, evaluations=26, seed=2)
    failed = [value is None for _, value in search.history]
    assert any(failed) and sum(failed) < 18 and search.best[1] < 5.0
    # nothing is expected at a trial that failed
    points: list[Any] = [point for point, value in search.history if value is None]
    assert len({tuple(np.round(point, 2)) for point in points}) == len(points)
    again = bandits.Optimizer.load(search.save(tmp_path / "half.credo"))
    assert [value for _, value in again.history] == [value for _, value in search.history]
    mine: Any = search.ask()
    theirs: Any = again.ask()
    np.testing.assert_array_equal(mine, theirs)
    np.testing.assert_array_equal(search.pending[0], mine)


def test_trials_that_fail_first_leave_the_design_as_it_is() -> None:
    search = bandits.Optimizer(None, BOX, seed=3)
    for _ in range(6):
        search.tell(search.ask(), None)
    with pytest.raises(credo.CredoError, match="no best point"):
        _ = search.best
    with pytest.raises(credo.CredoError, match="no point can be recommended"):
        _ = search.recommended
    point: Any = search.ask()
    assert np.isfinite(point).all()


def test_a_number_that_is_not_finite_is_a_failure_and_a_text_is_refused() -> None:
    search = bandits.minimize(lambda x: jnp.nan if x[0] > 0 else x[0], [[-1.0, 1.0]], evaluations=3)
    values = [value for _, value in search.history]
    assert None in values and all(value is None or value <= 0.0 for value in values)
    with pytest.raises(credo.CredoError, match="function must give a number or None; it gave 'x'"):
        bandits.minimize(lambda _: "x", [[-1.0, 1.0]], evaluations=1)
    with pytest.raises(credo.CredoError, match="evaluations must be"):
        bandits.minimize(_branin, BOX, evaluations=0)


def test_trials_of_before_are_told_whole_or_not_at_all() -> None:
    search = bandits.Optimizer(None, {"x": (0.0, 1.0)})
    with pytest.raises(credo.CredoError, match="x must be a number from 0 to 1"):
        search.tell_all([({"x": 0.5}, 1.0), ({"x": 2.0}, 1.0)])
    with pytest.raises(credo.CredoError, match="value must be a finite number"):
        search.tell_all([({"x": 0.5}, 1.0), ({"x": 0.2}, float("nan"))])
    assert search.history == []


@pytest.mark.thorough
def test_noise_is_seen_through_by_what_is_recommended() -> None:
    rng = np.random.default_rng(0)
    gaps = []
    for seed in range(3):
        search = bandits.Optimizer(None, [[-1.0, 1.0]], goal="max", seed=seed)
        for _ in range(20):
            point: Any = search.ask()
            search.tell(point, -(float(point[0] - 0.3) ** 2) + 0.1 * rng.normal())
        ours: Any = search.recommended
        seen: Any = search.best[0]
        gaps.append([abs(ours[0] - 0.3), abs(seen[0] - 0.3)])
    mine, plain = np.mean(gaps, axis=0)
    assert mine < 0.3 and mine <= plain + 0.05


@pytest.mark.thorough
def test_a_deterministic_function_is_believed_to_the_last_dent(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    trials: Any = [([x], 3.0 * x**2 + rng.normal()) for x in np.linspace(-1.0, 1.0, 11)]
    widths = []
    for deterministic in (False, True):
        search = bandits.minimize(
            lambda x: 9.0, [[-1.0, 1.0]], 1, trials=trials, deterministic=deterministic, seed=1
        )
        mean, sd = search.expect([point for point, _ in trials])
        widths.append(np.median(sd))
    assert widths[1] < 0.01 < 0.1 < widths[0]
    np.testing.assert_allclose(mean, [value for _, value in trials], atol=0.01)
    for value in (40.0, -40.0):  # of two values of one point a process can only have the mean
        search.tell([0.5], value)
    np.testing.assert_array_equal(search.recommended, [0.5])
    again = bandits.Optimizer.load(search.save(tmp_path / "one.credo"))
    assert again.search.deterministic
    ours: Any = search.ask()
    theirs: Any = again.ask()
    np.testing.assert_array_equal(ours, theirs)


def test_the_default_is_one_in_single_and_double_precision(tmp_path: Path) -> None:
    """The process works in double precision whatever JAX is set to, and its files can be read by both."""
    import jax

    search = bandits.Optimizer(None, BOX, goal="min", seed=5)
    with jax.enable_x64(False):
        single = bandits.Optimizer(None, BOX, goal="min", seed=5)
        for _ in range(6):
            one: Any = search.ask()
            other: Any = single.ask()
            np.testing.assert_array_equal(one, other)
            search.tell(one, _branin(one))
            single.tell(other, _branin(other))
        again = bandits.Optimizer.load(search.save(tmp_path / "double.credo"))
        np.testing.assert_array_equal(again.recommended, single.recommended)


@pytest.mark.slow
@pytest.mark.parametrize("acquisition", few(["kg", "ucb", "thompson"], "thompson"))
def test_other_policies_find_the_top_of_a_hill(acquisition: Any) -> None:
    search = bandits.Optimizer(None, [[-1.0, 1.0]], acquisition=acquisition, seed=0)
    for _ in range(10):
        point: Any = search.ask()
        search.tell(point, -(float(point[0] - 0.3) ** 2))
    best: Any = search.best[0]
    assert abs(best[0] - 0.3) < 0.02


def test_a_knowledge_gradient_needs_a_process() -> None:
    net = credo.models.RandomFeatures.draw(0, inputs=1, features=20, length=0.7)
    learner = credo.extended_kalman(credo.Model(net, credo.Normal(1e-3)))
    with pytest.raises(credo.CredoError, match=r'"kg" needs a credo.GaussianProcess as the learner; got Rec'):
        bandits.Optimizer(learner, [[0.0, 1.0]], prior=learner.init(net.init()), acquisition="kg")


@pytest.mark.slow
def test_files_without_a_word_of_fits_hold_learners_that_are_not_fitted(tmp_path: Path) -> None:
    from credo.bandits.optimize.optimizer import read_notes

    process = credo.GaussianProcess(1, 0.5, size=32)
    search = bandits.Optimizer(process, [[0.0, 1.0]], acquisition="ucb", initial=1)
    search.tell([0.3], 1.0)
    path = search.save(tmp_path / "one.credo")
    meta = json.loads(json.dumps(checkpoint.read(path, None).meta))
    assert meta["optimizer"].pop("fitted") is False and meta["optimizer"].pop("deterministic") is False
    assert read_notes(meta, "one.credo").fitted is False
    assert read_notes(meta, "one.credo").deterministic is False
    again = bandits.Optimizer.load(path)
    assert not again.search.fitted
    mine: Any = search.ask()
    theirs: Any = again.ask()
    np.testing.assert_array_equal(mine, theirs)
