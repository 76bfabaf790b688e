"""MNIST in one pass, at a tiny size: what is scored, how it is tuned, and what must not depend on what."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import credo
from credo.metrics import ece
from credo_papers import Outcome
from credo_papers.bong import bong_mnist
from credo_papers.bong.bong_grid import CELLS, FAMILIES, GridCell, make_curvature, make_learner
from credo_papers.bong.bong_mnist_learner import begin, build, network
from credo_papers.bong.bong_mnist_plan import FAMILY_PLANS, PLANS, Plan
from credo_papers.bong.bong_mnist_published import PUBLISHED_ECE, PUBLISHED_ERROR, PUBLISHED_SECONDS
from credo_papers.bong.bong_mnist_table import numbers
from credo_papers.bong.bong_mnist_world import Digits, load_digits, make_streams
from credo_papers.engine.cell_folder import Cells
from credo_papers.engine.plain_data import Arrays, Values
from credo_papers.engine.portions import silent
from credo_papers.engine.purposes import SCORED, TUNING
from credo_papers.engine.sweep import Setting, sweep

BONG, BOG = GridCell("bong", "lin-hess"), GridCell("bog", "lin-hess")
PLAN = Plan(
    {"kind": "mlp", "outputs": 10, "hidden": [4], "activation": "relu"},
    (BONG, BOG),
    steps=20,
    every=10,
    marks=(10, 20),
    seeds=2,
    tuning_steps=20,
    tuning_seeds=2,
    test_rows=32,
    validation_rows=32,
    rank=3,
    draws=0,
    pool=4,
    chunk=2,
    timed=False,
    weights=(1.0, 30.0),
    reaches={"bong": (0.1,), "bog": (0.1,)},
    rates={"bong": (1.0,), "bog": (0.01, 1e4)},
)


@pytest.fixture(scope="module")
def digits() -> Digits:
    rng = np.random.default_rng(0)
    labels = np.arange(200) % 10
    images = rng.uniform(size=(200, 7, 7)).astype(np.float32)
    images[np.arange(200), labels % 7, labels // 7] += 3.0
    parts = {"stream": slice(0, 136), "validation": slice(136, 168), "test": slice(168, 200)}
    return {name: (images[rows], labels[rows].astype(np.int32)) for name, rows in parts.items()}


@pytest.fixture(scope="module")
def outcome(digits: Digits) -> Outcome:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bong_mnist, "load_digits", lambda *plan: (digits, "made up"))
        return bong_mnist.run_plan(PLAN, 0, silent)


def scored(digits: Digits, cell: GridCell, values: Values) -> Arrays:
    streams = make_streams(digits, 0, SCORED, 2, 20)
    setting = Setting("one", bong_mnist.make_program(PLAN, cell, PLAN.marks, 0), values)
    return sweep("test", [setting], build, streams, digits["test"], context={})["one"]


@pytest.mark.slow
def test_scores_are_those_of_a_plain_run(digits: Digits) -> None:
    values = {"reach": 0.1, "weight": 3.0, "learning_rate": 1.0}
    made = scored(digits, BONG, values)
    stream = jax.tree.map(lambda leaf: leaf[1], make_streams(digits, 0, SCORED, 2, 20))
    program = bong_mnist.make_program(PLAN, BONG, PLAN.marks, 0)
    first = jax.random.split(stream["key"], 3)[0]
    learner, belief = begin(program, {k: jnp.float32(v) for k, v in values.items()}, first, (7, 7))
    assert learner.rule == credo.BONGRule()
    x, y = stream["x"][:10], stream["y"][:10]
    belief, _ = credo.run(learner, belief, x, y, weights=np.full(10, 3.0))
    test_x, test_y = digits["test"]
    for method in ("plugin", "linearized"):
        rows = learner.forecast_rows(belief, test_x, method=method)
        np.testing.assert_allclose(made[f"{method} log_prob"][1, 0], rows.log_prob(test_y), rtol=1e-2)
        np.testing.assert_allclose(made[f"{method} confidence"][1, 0], rows.probs.max(axis=1), rtol=1e-2)
        error = np.mean(np.asarray(rows.probs).argmax(axis=1) != test_y)
        assert numbers(made, method)["error"][1, 0] == pytest.approx(float(error))


@pytest.mark.slow
@pytest.mark.parametrize("cell", [BONG, BOG], ids=["bong", "bog"])
def test_the_weight_narrows_the_belief_and_leaves_the_mean(digits: Digits, cell: GridCell) -> None:
    once, often = (
        scored(digits, cell, {"reach": 0.1, "weight": weight, "learning_rate": 0.01})
        for weight in (1.0, 30.0)
    )
    np.testing.assert_allclose(once["plugin log_prob"], often["plugin log_prob"], rtol=2e-3)
    gaps = [np.abs(made["linearized log_prob"] - made["plugin log_prob"]).mean() for made in (once, often)]
    assert gaps[1] < 0.2 * gaps[0]


def test_settings_are_tuned_on_validation_digits_alone(
    outcome: Outcome, digits: Digits, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings: Any = outcome.settings
    chosen = settings["chosen"]
    assert chosen["bog lin-hess"]["learning_rate"] == 0.01  # the other one diverges
    tried = [each for each in settings["tuning"] if each["cell"] == "bong lin-hess"]
    widths = {each["weight"]: each["nlpd_linearized"] for each in tried if each["stage"] == "width"}
    assert chosen["bong lin-hess"]["weight"] == min(widths, key=lambda weight: widths[weight])
    x, y = digits["test"]
    other = {**digits, "test": (x, (y + 1) % 10)}
    monkeypatch.setattr(bong_mnist, "load_digits", lambda *plan: (other, "made up, other test labels"))
    again = bong_mnist.run_plan(replace(PLAN, cells=(BONG,)), 0, silent)
    others: Any = again.settings["chosen"]
    assert others["bong lin-hess"] == chosen["bong lin-hess"]
    assert again.rows[0].ours > outcome.rows[0].ours


def test_the_table_has_every_cell_beside_what_was_published(outcome: Outcome) -> None:
    named = {row.quantity: row for row in outcome.rows}
    assert named["error at 20, bong lin-hess"].published is None  # published from 200 digits on
    assert named["NLPD in nats at 20, bog lin-hess, plugin"].se is not None
    gap = named["NLPD more than bong lin-hess, bog lin-hess"]
    pair = [outcome.arrays[f"{name} linearized nlpd"][:, -1] for name in ("bog lin-hess", "bong lin-hess")]
    assert gap.ours == pytest.approx(float(np.mean(pair[0] - pair[1])))
    np.testing.assert_array_equal(outcome.series["t"], [10, 20])
    assert {cell.name for cell in CELLS} == set(PUBLISHED_ERROR) == set(PUBLISHED_SECONDS)
    assert set(PUBLISHED_ECE) < set(PUBLISHED_ERROR) and len(CELLS) == 12


def test_the_figure_can_be_drawn(outcome: Outcome) -> None:
    assert len(outcome.figure().axes) == 6


def test_calibration_is_drawn_at_every_number_of_digits(outcome: Outcome) -> None:
    panels = outcome.figures["ece"]().axes
    assert [axes.get_title() for axes in panels] == ["after 10 digits", "after 20 digits"]
    for place, axes in enumerate(panels):
        seeds = [line for line in axes.lines if line.get_marker() == "o" and np.size(line.get_xdata())]
        expected = outcome.arrays["bog lin-hess linearized ece"][:, place]
        np.testing.assert_array_equal(seeds[1].get_xdata(), expected)


@pytest.mark.thorough
def test_families_stand_beside_each_other(digits: Digits, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bong_mnist, "load_digits", lambda *plan: (digits, "made up"))
    cells = tuple(replace(BONG, family=family) for family in FAMILIES)
    assert [cell.name for cell in cells] == ["bong lin-hess, full", "bong lin-hess, diagonal", BONG.name]
    made = bong_mnist.run_plan(replace(PLAN, cells=cells, weights=(1.0,), rank=200), 0, silent)
    ends = {cell.name: made.arrays[f"{cell.name} linearized nlpd"][:, -1] for cell in cells}
    # with as many directions as parameters nothing is lost, and with a diagonal much is
    np.testing.assert_allclose(ends[BONG.name], ends["bong lin-hess, full"], rtol=1e-2)
    assert np.abs(ends["bong lin-hess, diagonal"] - ends["bong lin-hess, full"]).min() > 0.02
    assert len(made.figure().axes) == 6
    rows = {row.quantity for row in made.rows}
    assert "NLPD more than bong lin-hess, bong lin-hess, full" in rows
    # BBB with a full covariance is left out
    assert len(FAMILY_PLANS["full"].cells) == 3 * len(CELLS) - 3


def test_streams_are_drawn_without_repeats_and_anew(digits: Digits) -> None:
    first = make_streams(digits, 0, SCORED, 2, 100)
    again = make_streams(digits, 0, SCORED, 1, 50)
    np.testing.assert_array_equal(first["x"][0, :50], again["x"][0])
    assert len(np.unique(first["x"][0].reshape(100, -1), axis=0)) == 100
    tuning = make_streams(digits, 0, TUNING, 1, 50)
    assert not np.array_equal(tuning["y"], again["y"])


@pytest.mark.slow
def test_loaded_digits_are_apart() -> None:
    digits, note = load_digits(PLANS["quick"].pool, 60, 50)
    assert "MNIST" in note or "as published" in note
    assert digits["validation"][0].shape == (60, 14, 14) and digits["test"][0].shape == (50, 14, 14)
    assert digits["stream"][0].max() <= 2.0
    rows = np.concatenate([digits["stream"][0][:2000], digits["validation"][0]]).reshape(-1, 196)
    assert len(np.unique(rows, axis=0)) == len(rows)


def test_numbers_of_forecasts_that_are_not_finite() -> None:
    confidence = np.array([[[0.9, 0.6, np.nan]]])
    made = {
        "plugin log_prob": np.array([[[-0.1, -0.5, np.nan]]]),
        "plugin confidence": confidence,
        "plugin correct": np.array([[[True, False, False]]]),
        "plugin brier": np.array([[0.1]]),
    }
    found = numbers(made, "plugin")
    assert found["nlpd"][0, 0] == np.inf and found["error"][0, 0] == pytest.approx(2 / 3)
    assert found["ece"][0, 0] == pytest.approx(ece(np.array([0.9, 0.6, 0.0]), np.array([1, 0, 0])))


def test_cells_and_learners() -> None:
    model = credo.Model(lambda w, x: x @ w, credo.Normal(1.0))
    made = {
        cell.name: make_learner(
            cell.rule,
            model,
            credo.Full(),
            make_curvature(cell.curvature, 7),
            learning_rate=0.1,
            iterations=4,
        )
        for cell in CELLS
    }
    assert made["blr mc-ef"].curvature == credo.MonteCarloEmpiricalFisher(7)
    assert made["bbb lin-ef"].rule == credo.BBBRule(0.1, 4) and made["bog lin-ef"].rule == credo.BOGRule(0.1)
    assert made["bong lin-hess"].rule == credo.BONGRule()
    assert GridCell("bbb", "lin-hess", "zero").name == "bbb lin-hess, W = 0"


def test_the_network_of_the_full_size_has_the_published_size() -> None:
    net = network(PLANS["full"].network)
    shapes = jax.eval_shape(lambda: net.init(jax.random.key(0), (28, 28)))
    assert sum(leaf.size for leaf in jax.tree.leaves(shapes)) == 57_722


def test_finished_cells_are_read_back(tmp_path: Any, digits: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bong_mnist, "load_digits", lambda *plan: (digits, "made up"))
    plan = replace(PLAN, cells=(BONG,), weights=(30.0,))
    first = bong_mnist.run_plan(plan, 0, silent, Cells(tmp_path))
    cells = Cells(tmp_path)
    again = bong_mnist.run_plan(plan, 0, silent, cells)
    assert cells.computed == 0 and [r.ours for r in again.rows] == [r.ours for r in first.rows]
