"""The exact posteriors that the grid is held against, and the experiment at a tiny size."""

from __future__ import annotations

import numpy as np
import pytest

from credo_papers.bong import bong_exact
from credo_papers.bong.bong_exact_plan import PLANS, Cell, ExactPlan
from credo_papers.bong.bong_exact_world import Task
from credo_papers.bong.exact_posteriors import (
    gaussian_divergence,
    laplace,
    logistic_divergence,
    logistic_evidence,
)
from credo_papers.engine.portions import silent

RNG = np.random.default_rng(0)
X = RNG.normal(size=(12, 1))
Y = (RNG.uniform(size=12) < 0.5).astype(float)
GRID = np.linspace(-12, 12, 40_001)


def log_joint(w: np.ndarray) -> np.ndarray:
    signs = 2 * Y - 1
    likelihood = -np.logaddexp(0, -(w[:, None] * X[:, 0]) * signs).sum(axis=1)
    joint: np.ndarray = likelihood - 0.5 * w**2 - 0.5 * np.log(2 * np.pi)
    return joint


def test_the_evidence_of_logistic_regression_is_that_of_quadrature() -> None:
    exact = np.log(np.trapezoid(np.exp(log_joint(GRID)), GRID))
    value, se = logistic_evidence(X, Y, seed=1)
    assert abs(value - exact) < 5 * se and se < 0.01


def test_the_divergence_from_a_logistic_posterior_is_that_of_quadrature() -> None:
    mean, var = np.array([0.3]), np.array([[0.4]])
    log_q = -0.5 * (GRID - 0.3) ** 2 / 0.4 - 0.5 * np.log(2 * np.pi * 0.4)
    evidence = float(np.log(np.trapezoid(np.exp(log_joint(GRID)), GRID)))
    exact = np.trapezoid(np.exp(log_q) * (log_q - log_joint(GRID)), GRID) + evidence
    np.testing.assert_allclose(logistic_divergence(mean, var, X, Y, evidence), exact, rtol=1e-8)


def test_the_mode_has_no_gradient() -> None:
    w, prec = laplace(X, Y)
    p = 1 / (1 + np.exp(-X @ w))
    np.testing.assert_allclose(X.T @ (Y - p) - w, 0, atol=1e-10)
    np.testing.assert_allclose(prec, 1 + (X[:, 0] ** 2 * p * (1 - p)).sum(), rtol=1e-10)


def test_a_gaussian_has_no_divergence_from_itself() -> None:
    root = RNG.normal(size=(3, 3))
    cov = root @ root.T + np.eye(3)
    assert abs(gaussian_divergence(np.ones(3), cov, np.ones(3), np.linalg.inv(cov))) < 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("task", ["linreg", "logreg"])
def test_the_bong_filter_is_exact_or_close(task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    cells: tuple[Cell, ...] = (("full", "lin-hess", "bong"), ("diagonal", "lin-hess", "bog"))
    monkeypatch.setitem(PLANS, "quick", ExactPlan(cells, 100, 3, 2))
    monkeypatch.setattr(bong_exact, "RATES", {"bong": (1.0,), "bog": (1e-3, 1e-2)})
    outcome = bong_exact.run_task(task, "quick", 0, silent)
    ours = {row.quantity: row.ours for row in outcome.rows}
    bong, bog = ours["KL, bong lin-hess full"], ours["KL, bog lin-hess diagonal"]
    assert bong < (1e-10 if task == "linreg" else 5) and bog > 10 * max(bong, 1e-3)
    outcome.figure()
