"""Faults that others reported of naive Bayes, neighbours, Gaussian processes and counts."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import credo

RNG = np.random.default_rng(0)


def learned(learner: Any, belief: Any, xs: np.ndarray, ys: np.ndarray) -> tuple[Any, list[Any]]:
    """The belief after some rows, one at a time, and what was said of each."""
    step, infos = jax.jit(learner.step), []
    for x, y in zip(xs, ys, strict=True):
        belief, info = step(belief, x, y)
        infos.append(info)
    return belief, infos


def test_classes_of_normals_forecast_after_one_row() -> None:
    """scikit-learn/scikit-learn#19837: naive Bayes that learns a row at a time divides by zero."""
    learner = credo.GaussianClasses(2, credo.Categorical(3))
    xs = np.array([[5.0, -1.0], [5.0, -1.0], [-5.0, 3.0]])
    belief, infos = learned(learner, learner.init(), xs, np.array([1, 1, 2]))
    assert all(bool(info.ok) and np.isfinite(info.log_evidence) for info in infos)
    forecast = jax.jit(lambda x: learner.forecast(belief, x).probs)
    for x, best in ((xs[0], 1), (xs[2], 2)):
        probs = np.asarray(forecast(x))
        assert np.isfinite(probs).all() and abs(probs.sum() - 1.0) < 1e-10 and probs.argmax() == best


def test_neighbours_forecast_before_there_are_as_many_as_are_asked() -> None:
    """scikit-multiflow/scikit-multiflow#158: neighbours refuse to forecast from fewer rows than they ask."""
    learner = credo.NearestNeighbours(2, credo.Bernoulli(), size=8, neighbours=(5,))
    forecast = jax.jit(lambda belief, x: learner.forecast(belief, x).probs)
    start = learner.init()
    np.testing.assert_allclose(forecast(start, np.zeros(2)), 0.5)
    belief, _ = learned(learner, start, np.zeros((2, 2)), np.array([1, 1]))
    probs = np.asarray(forecast(belief, np.zeros(2)))
    assert probs[1] > 0.6 and abs(probs.sum() - 1.0) < 1e-10


def test_a_forecast_from_all_rows_is_that_of_most_of_them() -> None:
    """opencv/opencv#12347: with as many neighbours as rows, the first class is the answer at all times."""
    learner = credo.NearestNeighbours(2, credo.Bernoulli(), size=8, neighbours=(5,))
    forecast = jax.jit(lambda belief, x: learner.forecast(belief, x).probs)
    for most in (0, 1):
        ys = np.array([most, 1 - most, most, most, 1 - most])
        belief, _ = learned(learner, learner.init(), RNG.normal(size=(5, 2)), ys)
        probs = np.asarray(forecast(belief, np.zeros(2)))
        assert probs.argmax() == most and probs.min() > 0.05


def test_the_variance_of_a_process_is_never_negative_where_points_are_all_but_equal() -> None:
    """SheffieldML/GPy#253: with observations that are nearly identical, variances are below zero."""
    learner = credo.GaussianProcess(2, size=6)
    xs = 1.0 + 1e-9 * RNG.normal(size=(30, 2))
    belief, infos = learned(learner, learner.init(), xs, RNG.normal(size=30))
    assert all(bool(info.ok) for info in infos)
    distribution = jax.jit(jax.vmap(lambda x: learner.expect(belief, x).sd))
    sd = np.asarray(distribution(np.r_[xs[:5], np.zeros((1, 2))]))
    assert (sd > 0).all() and np.isfinite(sd).all() and sd[-1].item() > sd[0].item()


def test_a_count_whose_rate_overflows_is_not_learned_and_the_rest_is() -> None:
    """dswah/pyGAM#367: the exponential of a link overflows, and the fit goes on with infinite numbers."""
    learner = credo.extended_kalman(credo.Model(lambda w, x: x @ w, credo.Poisson()))
    xs = np.array([[1.0, 0.0], [1e6, 1e6], [1.0, 0.0], [-1e6, 1e6], [1.0, 0.0]])
    belief, infos = learned(learner, learner.init(jnp.zeros(2)), xs, np.array([3, 5, 2, 7, 4]))
    assert np.isfinite(np.asarray(belief.mean)).all() and np.isfinite(np.asarray(belief.var)).all()
    assert all(np.isfinite(info.log_evidence) for info in infos if info.ok)
    assert bool(infos[0].ok) and bool(infos[2].ok) and bool(infos[4].ok)
    assert 1.0 < float(np.asarray(learner.forecast(belief, np.array([1.0, 0.0])).mean)) < 12.0
