"""The BONE experiments: the worlds are as claimed, tuning never sees what is scored, and one runs whole."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

import credo
from credo.likelihoods import LatentExpectation
from credo.plots import figures
from credo_papers import reproduce
from credo_papers.bone import (
    bone_bandit,
    bone_drift_jump,
    bone_electricity,
    bone_heavy_tails,
    bone_moons,
    bone_moons_long,
    bone_moons_plan,
    bone_polynomial,
    bone_rotating,
    bone_sde,
    bone_segmentation,
)
from credo_papers.bone.bone_bandit_learner import NarrowThompson
from credo_papers.bone.bone_bandit_world import make_worlds
from credo_papers.bone.bone_electricity_world import standardized
from credo_papers.bone.bone_figure import smooth
from credo_papers.bone.bone_moons_learner import inner
from credo_papers.bone.bone_moons_pictures import draw_stream, sides_of
from credo_papers.bone.bone_moons_run import run_moons
from credo_papers.bone.bone_moons_world import rotating_moons
from credo_papers.bone.bone_peers import NEIGHBOURS
from credo_papers.bone.bone_plan import Method, Plan, grid
from credo_papers.bone.bone_tuning import measures
from credo_papers.bone.bone_world import Draw, Streams, make_streams
from credo_papers.engine.portions import silent
from credo_papers.engine.purposes import SCORED, TUNING

PLANS = [
    bone_segmentation.PLAN,
    bone_drift_jump.PLAN,
    bone_rotating.PLAN,
    bone_heavy_tails.PLAN,
    bone_polynomial.PLAN,
    bone_moons.PLAN,
    bone_moons_long.PLAN,
    bone_sde.PLAN,
]


def many(draw: Draw, count: int = 100) -> Streams:
    return make_streams(draw, 7, SCORED, count)


def test_segments_have_the_hazard_and_the_noise_that_are_claimed() -> None:
    streams = many(bone_segmentation.piecewise_linear)
    assert streams.x.shape == (100, 300, 3)
    assert abs(streams.change[:, 1:].mean() - 0.009) < 4 * np.sqrt(0.009 / (100 * 299))
    assert not streams.change[:, 0].any()
    noise = streams.y - streams.truth
    assert abs(noise.std() - 1.0) < 4 / np.sqrt(2 * noise.size)
    # Within a segment the truth is one quadratic.
    regime = np.cumsum(streams.change[0])
    for number in np.unique(regime):
        rows = regime == number
        left = np.linalg.lstsq(streams.x[0][rows], streams.truth[0][rows], rcond=None)[0]
        np.testing.assert_allclose(streams.x[0][rows] @ left, streams.truth[0][rows], atol=1e-3)


def test_heavy_tails_are_heavy_and_begin_at_one() -> None:
    streams = many(bone_heavy_tails.heavy_tails)
    gaps = np.abs(streams.y - streams.truth)
    # t(2.01): the median of |t| is .816, and 1% exceed 9.9.
    assert abs(np.median(gaps) - 0.816) < 0.03 and 0.006 < np.mean(gaps > 9.9) < 0.014
    np.testing.assert_allclose(streams.truth[:, 0], streams.x[:, 0].sum(axis=1), rtol=1e-5)


def test_pieces_of_the_curve_are_joined() -> None:
    streams = many(bone_polynomial.piecewise_polynomial, 20)
    x, truth = streams.x[..., 0], streams.truth
    assert (np.diff(x, axis=1) >= 0).all() and streams.change.any()
    # A slope is at most 3 + 2 * 3 * 6, wherever a piece begins.
    assert (np.abs(np.diff(truth, axis=1)) <= 40 * np.diff(x, axis=1) + 1e-4).all()
    assert abs((streams.y - truth).std() - 0.2) < 0.01


def test_labels_follow_weights_that_turn_or_jump() -> None:
    turning = many(bone_rotating.rotating, 20)
    quarter = 1 / (1 + np.exp(-10 * turning.x[:, 18, 0]))  # after 18 steps of 5 degrees
    np.testing.assert_allclose(turning.truth[:, 18], quarter, atol=1e-5)
    known = np.mean((turning.truth > 0.5) == (turning.y > 0.5))
    assert abs(known - 0.974) < 0.01
    jumping = many(bone_drift_jump.drifting_and_jumping)
    known = np.mean((jumping.truth > 0.5) == (jumping.y > 0.5))
    assert abs(known - 0.817) < 0.015
    assert abs(jumping.change.mean() - 0.01) < 0.002


def test_moons_are_turned_about_the_origin() -> None:
    angles = (0.0, 180.0)
    streams = rotating_moons(np.random.default_rng(0), angles, 400)
    assert streams.x.shape == (800, 2) and np.flatnonzero(streams.change).tolist() == [400]
    first, second = (
        streams.x[rows][streams.y[rows] == 0].mean(axis=0) for rows in np.split(np.arange(800), 2)
    )
    np.testing.assert_allclose(first, -second, atol=0.1)


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.name)
def test_tuning_never_sees_what_is_scored(plan: Plan) -> None:
    tuning, scored = (make_streams(plan.draw, 0, purpose, 3) for purpose in (TUNING, SCORED))
    both = [np.concatenate([streams.x, streams.y[..., None]], axis=2) for streams in (tuning, scored)]
    rows = np.concatenate([part.reshape(-1, part.shape[-1]) for part in both])
    assert len(np.unique(rows, axis=0)) == len(rows)
    again = make_streams(plan.draw, 0, SCORED, 2)
    np.testing.assert_array_equal(again.y, scored.y[:2])


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.name)
def test_every_plan_has_labels_of_its_own_grids_and_a_quick_part(plan: Plan) -> None:
    labels = [method.label for method in plan.methods]
    assert len(set(labels)) == len(labels) and all(method.grid for method in plan.methods)
    assert any(method.quick for method in plan.methods)
    assert plan.seeds["full"][0] >= 20 and plan.seeds["full"][1] >= 20
    # So that tuning and scoring are one compiled program.
    assert all(scored % tuned == 0 for tuned, scored in plan.seeds.values())


def test_neighbours_see_only_the_past() -> None:
    streams = many(bone_rotating.rotating, 2)
    values = {"window": 20, "k": 1}
    before = NEIGHBOURS.predict(streams, values, True)
    changed = streams._replace(y=np.concatenate([streams.y[:, :100], 1 - streams.y[:, 100:]], axis=1))
    after = NEIGHBOURS.predict(changed, values, True)
    np.testing.assert_array_equal(before[:, :101], after[:, :101])
    assert (before[:, 0] == 0.5).all() and (before[:, 101:] != after[:, 101:]).any()


def test_measures_and_helpers() -> None:
    assert grid(a=(1, 2), b=3) == [{"a": 1.0, "b": 3.0}, {"a": 2.0, "b": 3.0}]
    assert smooth(np.array([0.0, 2.0, 4.0]), 2).tolist() == [0.0, 1.0, 3.0]
    streams = many(bone_segmentation.piecewise_linear, 3)
    made = measures(bone_segmentation.PLAN, {"mean": streams.truth + 2.0}, streams)
    np.testing.assert_allclose(made["RMSE"], 2.0, rtol=1e-5)
    assert list(made) == ["RMSE"]


def test_arms_walk_between_0_and_1_and_tuning_worlds_are_others() -> None:
    scored, tuning = (make_worlds(0, purpose, 3, 500) for purpose in (SCORED, TUNING))
    chance = scored.chance
    assert chance.min() >= 0 and chance.max() <= 1 and (chance == 0).any() and (chance == 1).any()
    inside = (chance[:, :-1] > 0.2) & (chance[:, :-1] < 0.8)
    steps = np.diff(chance, axis=1)[inside]
    assert abs(steps.var() / 0.003 - 1) < 0.1
    assert abs(np.mean(scored.reward - chance)) < 0.02
    assert not np.isin(scored.chance[:, 0], tuning.chance[:, 0]).any()


@pytest.mark.slow
def test_all_agents_of_the_restless_bandit_play_in_the_same_worlds(monkeypatch: pytest.MonkeyPatch) -> None:
    point = grid(gamma=0.97, var=2.0, width=1.0)
    monkeypatch.setattr(bone_bandit, "SIZES", {"quick": (2, 2, 100)})
    monkeypatch.setattr(bone_bandit, "METHODS", [Method("C-OU, UCB", {"method": "ou"}, point, quick=True)])
    outcome = bone_bandit.run("quick", 0, silent)
    pseudo, realised = (outcome.arrays[f"{kind} C-OU, UCB"] for kind in ("pseudo", "realised"))
    rows = {row.quantity: row.ours for row in outcome.rows}
    assert pseudo.min() > 0 and pseudo.mean() < rows["pseudo-regret, an arm at random"]
    assert np.all(realised == np.round(realised))  # rewards are 0 or 1
    assert np.all(outcome.series["C-OU, UCB"][1:] >= outcome.series["C-OU, UCB"][:-1])
    distribution = LatentExpectation(credo.Normal(1.0), jnp.array([[0.0], [0.5]]), jnp.eye(2))
    half = NarrowThompson(0.5).pmf(distribution)
    np.testing.assert_allclose(half[1], scipy.stats.norm.cdf(0.5 / (0.5 * np.sqrt(2))), atol=1e-4)


def test_demand_is_standardized_by_the_past_alone() -> None:
    values = np.random.default_rng(0).normal(size=(60, 2)) * np.array([1.0, 50.0]) + 7.0
    made = standardized(values)
    changed = values.copy()
    changed[40:] += 100.0
    np.testing.assert_array_equal(standardized(changed)[:40], made[:40])
    np.testing.assert_allclose(standardized(values * 3.0 + 2.0), made, atol=1e-5)


@pytest.mark.slow
def test_an_experiment_runs_whole_and_adapts(tmp_path: Path) -> None:
    result = reproduce("bone-rotating", out=tmp_path, progress=False)
    rows = {row.quantity: row.ours for row in result.rows}
    # A static belief has .50; the neighbours in a window are far behind forgetting toward the prior.
    assert rows["accuracy, C-OU"] > 0.84
    assert rows["accuracy, C-OU"] > rows["accuracy, kNN in a window"]
    stored = json.loads((tmp_path / "bone-rotating" / "results.json").read_text())
    chosen, tried = stored["settings"]["chosen"]["C-OU"]["NLL"], stored["settings"]["tuning"]["C-OU"]
    best = min(tried, key=lambda entry: entry["nll"])
    assert {name: best[name] for name in chosen} == chosen
    assert "default_rng([0, 0, i])" in stored["seeds"]["scored"]
    assert "default_rng([0, 1, i])" in stored["seeds"]["tuning"]


def test_the_errors_of_the_electricity_table_stand_beside_the_rows_after_the_tuning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    length, early = 400, 150
    x = np.arange(6.0 * length).reshape(length, 6)
    y = x[:, 0] + np.arange(length)
    monkeypatch.setattr(bone_electricity, "make_rows", lambda: (x, y, y))
    monkeypatch.setattr(bone_electricity, "SIZES", {"quick": (1, 1, early, length)})
    monkeypatch.setattr(bone_electricity, "METHODS", [])
    series = bone_electricity.run("quick", 0, lambda share, word: None).series
    np.testing.assert_array_equal(series["t"], np.arange(early, length))
    np.testing.assert_array_equal(series["the present value"], series["t"])


def test_the_regimes_of_a_stream_are_drawn_one_by_one_and_whole() -> None:
    streams = rotating_moons(np.random.default_rng(0), (0.0, 180.0), 20)
    sides = sides_of(streams.x)
    assert sides.first[0] == -sides.first[-1] and np.abs(streams.x).max() < sides.first[-1]
    arrays = {"x": streams.x, "y": streams.y, "surface_x": sides.first, "surface_y": sides.second}
    panels = draw_stream(arrays, [0.0, 180.0]).axes
    drawn = [np.concatenate([marks.get_offsets() for marks in axes.collections]) for axes in panels]
    for points, rows in zip(drawn, (slice(0, 20), slice(20, 40), slice(0, 40)), strict=True):
        np.testing.assert_allclose(np.sort(points[:, 0]), np.sort(streams.x[rows, 0]))


@pytest.mark.slow
def test_what_is_believed_of_moons_that_are_turned_is_drawn() -> None:
    plan = bone_moons_plan.make_plan("tiny", "Moons", (0.0, 180.0), 20, {}, {}, "")
    static = dataclasses.replace(plan.methods[0], grid=grid(var=1.0, scale=2.0), adaptive=True)
    outcome = run_moons(
        dataclasses.replace(plan, methods=[static], peers=[], seeds={"quick": (2, 2)}), "quick", 0, silent
    )
    surfaces = outcome.arrays["surface C-Static"]
    assert surfaces.shape == (4, 60, 60) and 0.0 < surfaces.min() < surfaces.max() < 1.0
    assert set(outcome.figures) == {"stream", "surfaces"} and outcome.animation is not None
    # the stream that is drawn is the one that was scored
    stream = jax.tree.map(lambda leaf: leaf[0], make_streams(plan.draw, 0, SCORED, 2))
    np.testing.assert_array_equal(outcome.arrays["x"], stream.x)
    learner = inner({}, {})
    start = jax.tree.map(lambda leaf: 2.0 * jnp.asarray(leaf), stream.start)
    belief, _ = credo.run(learner, learner.init(start, var=1.0), stream.x[:20], stream.y[:20])
    corner = np.array([outcome.arrays["surface_x"][7], outcome.arrays["surface_y"][3]], np.float32)
    expected = learner.forecast(learner.predict(belief), corner).mean
    np.testing.assert_allclose(surfaces[1, 3, 7], np.ravel(expected)[0], atol=1e-4)
    with figures.style():
        assert len(outcome.figures["stream"]().axes) == 3
        assert len(outcome.figures["surfaces"]().axes) == 3  # two regimes and the colours
        assert outcome.animation().startswith(b"GIF89a")
