"""The experiments of PFBR: worlds whose truth is exact, and tables and figures at a very small size."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import credo
from credo.datasets import linear_system
from credo.flows import Operator
from credo.plots import figures
from credo_papers import Outcome
from credo_papers.engine.cell_folder import Cells
from credo_papers.engine.particle_scores import gaussian_entropy
from credo_papers.engine.portions import silent
from credo_papers.engine.printing import matrix
from credo_papers.engine.quantities import Row
from credo_papers.pfbr import (
    pfbr_lds,
    pfbr_lds_plan,
    pfbr_logistic_meta,
    pfbr_logistic_vi,
    pfbr_lorenz,
    pfbr_mixture,
)
from credo_papers.pfbr.pfbr_gaussian_world import (
    gaussian_problem,
    later_tasks,
    mean_posteriors,
    simulate_means,
)
from credo_papers.pfbr.pfbr_lds_world import exact_posteriors, simulate_systems
from credo_papers.pfbr.pfbr_logistic_oracle import refits
from credo_papers.pfbr.pfbr_logistic_training import DigitTasks
from credo_papers.pfbr.pfbr_logistic_world import (
    FEATURES,
    Digits,
    Tasks,
    logistic_problem,
    make_tasks,
)
from credo_papers.pfbr.pfbr_lorenz_world import exact_volatility_scores, simulate_volatility
from credo_papers.pfbr.pfbr_mixture_world import grid_posteriors, log_mixture, simulate_mixtures


def drawn(outcome: Outcome) -> None:
    with figures.style():
        assert figures.png(outcome.figure()).startswith(b"\x89PNG")


def test_the_linear_systems_are_those_of_the_publication() -> None:
    transition, observation = linear_system(10)
    assert abs(np.linalg.eigvals(transition)).max() == pytest.approx(0.9887, abs=1e-4)
    singular = np.linalg.svd(observation, compute_uv=False)
    assert singular[[0, -1]] == pytest.approx([1.20, 0.017], abs=5e-3)
    with pytest.raises(credo.CredoError, match="dim must be 2 or 10; got 3"):
        linear_system(3)


def test_the_posterior_of_a_linear_system_is_set_back_and_the_published_one_is_not() -> None:
    truth = exact_posteriors(2, simulate_systems(2, 0, 3).observations)
    np.testing.assert_array_equal(truth.mean[0], truth.old_mean[0])
    assert float(jnp.abs(truth.mean[1, 0] - truth.old_mean[1, 0]).max()) > 1e-3
    # the covariances need no data, so that the mean entropy is a constant of the benchmark
    entropy = jax.vmap(gaussian_entropy)(truth.cov[0])
    assert float(entropy.mean()) == pytest.approx(2.7136, abs=2e-4)


def test_the_posterior_of_a_mean_is_that_of_the_conjugate_filter() -> None:
    observations = simulate_means(2, 0, 1, length=7)
    truth, problem = mean_posteriors(observations), gaussian_problem(2)
    learner = credo.extended_kalman(problem.model)
    belief, _ = credo.run(learner, learner.init(jnp.zeros(2)), None, jnp.asarray(observations[0], float))
    np.testing.assert_allclose(truth.mean[0, -1], belief.mean, atol=1e-6)
    np.testing.assert_allclose(truth.cov[0, -1], belief.cov.dense(), atol=1e-6)


def test_segments_begin_from_the_posterior_after_some_observations() -> None:
    tasks = later_tasks(2, 8)
    variances = jax.vmap(tasks.begin)(jax.random.split(jax.random.key(0), 200)).cov[:, 0, 0]
    # after 0 to 90 observations of variance 9
    assert 9 / 99 <= float(variances.min()) < 0.11 and 0.8 < float(variances.max()) <= 1.0


def test_the_mixture_on_a_grid_is_normalised_and_has_the_entropy_of_its_draws() -> None:
    # without data the grid holds the prior, whose entropy is known
    truth = grid_posteriors(simulate_mixtures(0, 1, unseen=False)[:, :2], 0, 4000, 10)
    assert truth.draws.shape == (1, 2, 4000, 2) and truth.exact.shape == (1, 2, 10, 2)
    np.testing.assert_allclose(truth.surprise, truth.entropy, atol=0.05)
    assert float(log_mixture(jnp.zeros(2), jnp.zeros(()))) == pytest.approx(-0.5 * np.log(2 * np.pi))


def test_the_score_of_a_volatility_is_exact() -> None:
    observations = simulate_volatility(0, 2, 3)
    fine, coarse = (exact_volatility_scores(observations, nodes) for nodes in (800, 200))
    np.testing.assert_allclose(fine, coarse, atol=1e-6)


METHODS = ("bootstrap", "PFBR, shipped")
SMALL = pfbr_lds_plan.LinearPlan((2,), 2, 32, (32,), 100, METHODS, METHODS[:1], {})
"""Few observations of one linear system, with times of its programs."""


@pytest.mark.slow
def test_tables_of_a_linear_system_put_the_exact_truth_beside_the_published_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pfbr_lds, "PLANS", {"quick": dataclasses.replace(SMALL, brief=True)})
    first = pfbr_lds.run("quick", 0, silent, Cells(tmp_path))
    cells = Cells(tmp_path)
    again = pfbr_lds.run("quick", 0, silent, cells)
    assert cells.computed == 0 and first.rows == again.rows
    rows = {row.quantity: row for row in first.rows}
    assert rows["d=2 entropy"].ours == pytest.approx(2.7136, abs=2e-4)
    # trained for this system, and better than draws of the exact posterior (14 particles a number)
    assert rows["d=2 Gaussian, PFBR, shipped"].ours < rows["d=2 entropy"].ours + 0.05
    table = matrix(first.rows)
    assert table is not None and [column.header for column in table.columns[1:]] == [
        "bootstrap",
        "PFBR,\nshipped",
    ]
    assert "d=2 KDE" in list(table.columns[0].cells)
    drawn(first)
    assert not any(quantity.startswith("d=2 ms") for quantity in rows)
    assert pfbr_lds_plan.PLANS["quick"].brief and not pfbr_lds_plan.PLANS["full"].brief


@pytest.mark.thorough
def test_the_quick_size_has_no_times_of_hasty_programs_and_the_same_numbers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = []
    for plan in (SMALL, dataclasses.replace(SMALL, brief=True)):
        monkeypatch.setattr(pfbr_lds, "PLANS", {"quick": plan})
        found.append({row.quantity: row.ours for row in pfbr_lds.run("quick", 0, silent).rows})
    rows, hasty = found
    assert rows["d=2 ms, bootstrap"] > 0
    assert set(rows) - set(hasty) == {f"d=2 ms, {name}" for name in METHODS}
    for score in ("KDE", "un-reset KDE", "sliced W2"):
        quantity = f"d=2 {score}, PFBR, shipped"
        assert hasty[quantity] == pytest.approx(rows[quantity], abs=1e-3)


def test_numbers_of_methods_stand_beside_each_other_and_the_published_ones_in_brackets() -> None:
    rows = [
        Row("KDE, a", 1.0, 0.1, 2.5, method="a"),
        Row("KDE, b, c", 3.0, method="b, c"),
        Row("ms, a", 4.0, method="a"),
        Row("entropy", 0.5),
    ]
    table = matrix(rows)
    assert table is not None
    cells = [list(column.cells) for column in table.columns]
    assert cells == [["KDE", "ms"], ["1.00 ± 0.10 (2.5)", "4"], ["3", "\N{EN DASH}"]]
    assert matrix(rows[3:]) is None
    assert matrix([Row(f"KDE, {k}", 1.0, method=str(k)) for k in range(7)]) is None


@pytest.mark.thorough
def test_forecasts_of_lorenz_and_a_volatility(monkeypatch: pytest.MonkeyPatch) -> None:
    small = pfbr_lorenz.LorenzPlan(2, 3, (("bootstrap, systematic", 32),), (2, 4, (32,)), {})
    monkeypatch.setattr(pfbr_lorenz, "PLANS", {"quick": small})
    outcome = pfbr_lorenz.run("quick", 0, silent)
    assert all(np.isfinite(row.ours) for row in outcome.rows)
    drawn(outcome)


@pytest.mark.thorough
def test_a_mixture_has_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    mixture = pfbr_mixture.MixturePlan(2, 32, 50, ("one-pass SMC",), {})
    monkeypatch.setattr(pfbr_mixture, "PLANS", {"quick": mixture})
    outcome = pfbr_mixture.run("quick", 0, silent)
    words = {row.quantity: row.ours for row in outcome.rows}
    assert 0.0 < words["published latent: KL at t=30, exact draws"] < 2.0
    drawn(outcome)


def features(seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, 200)
    return rng.normal(size=(200, FEATURES)) + 2.0 * (y[:, None] - 0.5), y.astype(np.float32)


@pytest.mark.slow
def test_the_classifier_that_is_fitted_again_learns_and_missing_labels_do_not_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    digits = Digits(*features(0), *features(1))
    tasks = make_tasks(digits, "flipped", 0, 2, limit=90)
    assert tasks.x.shape == (2, 3, 32, FEATURES) and np.isnan(tasks.y[:, -1]).sum() == 2 * 6
    right = refits(tasks).right
    assert right[:, -1].min() > 0.9
    gap = Tasks(tasks.x, np.where(np.arange(3)[:, None] == 1, np.nan, tasks.y))
    assert np.isnan(refits(gap).right[:, 1]).all() and np.allclose(refits(gap).right[:, 0], right[:, 0])
    monkeypatch.setattr(pfbr_logistic_meta, "digits", lambda copies: digits)
    meta = pfbr_logistic_meta.PLANS["quick"]
    case = pfbr_logistic_meta.Case("turned", empirical=True)
    small = dataclasses.replace(meta, rows=64, particles=16, copies=1, cases=(case,), methods=("EKF",))
    monkeypatch.setattr(pfbr_logistic_meta, "PLANS", {"quick": small})
    rows = {row.quantity: row.ours for row in pfbr_logistic_meta.run("quick", 0, silent).rows}
    assert 0.4 < rows["turned by up to 180 degrees, fitted prior: accuracy, EKF"] <= 1.0


@pytest.mark.thorough
def test_a_training_task_turns_real_digits_and_keeps_their_labels() -> None:
    x, y = (jnp.asarray(part, float) for part in features(0))
    problem = logistic_problem()
    learner = credo.pfbr(problem.model, Operator(dim=FEATURES, width=2, hidden=4).begin(), 64)
    tasks = DigitTasks(learner, problem.begin(learner, jax.random.key(0)), x, y, batch=8, length=2)
    task, stage = tasks.observe(tasks.begin(jax.random.key(1)), jax.random.key(2))
    rows = jnp.argmin(jnp.abs(stage.x[:, 2:3] - x[None, :, 2]), axis=1)
    np.testing.assert_array_equal(stage.y, y[rows])
    np.testing.assert_allclose(jnp.linalg.norm(stage.x, axis=1), jnp.linalg.norm(x[rows], axis=1), rtol=1e-5)
    assert float(jnp.abs(stage.x[:, :2] - x[rows, :2]).max()) > 0.1
    after = tasks.advance(task, stage, stage.values + 1.0, jax.random.key(3))
    np.testing.assert_array_equal(after.belief.values, stage.values + 1.0)
    last = tasks.advance(*tasks.observe(after, jax.random.key(4)), stage.values, jax.random.key(5))
    assert int(last.belief.t) == 0 and float(last.angle) != float(task.angle)


@pytest.mark.thorough
def test_errors_of_a_classifier_fall(monkeypatch: pytest.MonkeyPatch) -> None:
    digits = Digits(*features(0), *features(1))
    monkeypatch.setattr(pfbr_logistic_vi, "digits", lambda copies: digits)
    variational = dataclasses.replace(
        pfbr_logistic_vi.PLANS["quick"], batches=2, particles=16, methods=("EKF",)
    )
    monkeypatch.setattr(pfbr_logistic_vi, "PLANS", {"quick": variational})
    outcome = pfbr_logistic_vi.run("quick", 0, silent)
    assert outcome.rows[1].ours < 0.3
    drawn(outcome)
