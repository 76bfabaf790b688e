"""Electricity prices: what is compared, and a short run from one end to the other."""

from __future__ import annotations

import os

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import credo
from credo_papers.bone import bone_prices
from credo_papers.bone.bone_plan import BoneProgram
from credo_papers.bone.bone_prices_learner import make_learner, probabilities
from credo_papers.engine.portions import silent


def test_a_method_is_a_loop_of_forecast_and_update() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(6, 2)), rng.integers(0, 2, 6)
    program: BoneProgram = {"method": "ou"}
    got = probabilities(program, {"gamma": 0.9}, jnp.asarray(x), jnp.asarray(y))
    learner = make_learner(program, {"gamma": 0.9})
    belief = learner.init(jnp.zeros(2))
    for t in range(6):
        belief = learner.predict(belief)
        np.testing.assert_allclose(got[t], learner.forecast(belief, x[t]).mean, rtol=1e-12)
        belief, _ = learner.update(belief, x[t], y[t])


def test_a_log_score_has_a_limit() -> None:
    scores = bone_prices.log_scores(np.array([0.0, 1.0, 0.25]), np.array([1, 1, 0]))
    np.testing.assert_allclose(scores, -np.log([1e-3, 1 - 1e-3, 0.75]))


@pytest.mark.slow
def test_a_short_run_has_the_table_and_forgets_better_than_it_stands_still() -> None:
    if "CREDO_DATA_DIR" not in os.environ:
        pytest.skip("CREDO_DATA_DIR is not set, and these data are shipped with no package")
    with jax.enable_x64(False):
        outcome = bone_prices.run("quick", 0, silent)
    ours = {row.quantity: row.ours for row in outcome.rows}
    assert ours["NLPD in nats, C-ACI"] < ours["NLPD in nats, C-Static"]
    chosen = outcome.settings["chosen"]
    assert isinstance(chosen, dict) and set(chosen) == {"the last label", "C-Static", "C-ACI"}
    assert len(outcome.series["t"]) == 1200 == len(outcome.series["C-ACI"])
    assert isinstance(credo.datasets.load("electricity", split="all").x, np.ndarray)
