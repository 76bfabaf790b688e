"""Polynomials about where a segment began: translation, and what carries over a change."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import credo
from credo.adapt import Continuous, LocalPolynomial, Piece, RunLength
from credo.adapt.changepoints.position import about
from credo.core.errors import CredoError

FORMS = ["root", "dense"]


def inner(form: Any = "dense") -> credo.RecursiveLearner:
    model = credo.Model(lambda w, x: x @ w, credo.Normal(0.04))
    return credo.RecursiveLearner(model, credo.Full(form))


def curve(count: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    x = np.sort(rng.uniform(-2.0, 2.0, count))
    return x, 1.0 + 2.0 * x - x**2 + 0.2 * rng.normal(size=count)


@pytest.mark.parametrize("form", FORMS)
def test_alone_it_is_the_filter_on_powers_of_the_distance_to_the_first_input(form: str) -> None:
    x, y = curve(12)
    learner, plain = LocalPolynomial(inner(form), 2), inner(form)
    local, trace = credo.run(learner, learner.init(jnp.zeros(3), var=3.0), x, y)
    features = (x - x[0])[:, None] ** np.arange(3.0)
    belief, expected = credo.run(plain, plain.init(jnp.zeros(3), var=3.0), features, y)
    np.testing.assert_allclose(local.mean, belief.mean, atol=1e-10)
    np.testing.assert_allclose(local.belief.cov.dense(), belief.cov.dense(), atol=1e-10)
    np.testing.assert_allclose(trace.log_evidence, expected.log_evidence, atol=1e-10)


def test_a_curve_is_the_same_about_any_origin() -> None:
    x, y = curve(12)
    learner = LocalPolynomial(inner(), 2)
    belief, _ = credo.run(learner, learner.init(jnp.zeros(3)), x, y)
    shifted = about(belief, jnp.asarray(0.7))
    for place in (-1.0, 0.3, 2.0):
        one, other = learner.forecast(belief, place), learner.forecast(shifted, place)
        np.testing.assert_allclose(one.mean, other.mean, atol=1e-10)
        np.testing.assert_allclose(one.var, other.var, atol=1e-10)


@pytest.mark.slow
def test_a_continuous_segment_begins_at_the_moments_of_the_curve() -> None:
    x, y = curve(12)
    learner = RunLength(LocalPolynomial(inner(), 2), 0.1, 4, Continuous(0.5))
    belief, _ = credo.run(learner, learner.init(jnp.zeros(3), var=3.0), x, y)
    predicted = learner.predict(belief)
    new = np.asarray(predicted.segments.run_length) == 0
    assert new.sum() == 1
    place = x[-1] + 0.4

    def curve_at(one: Piece) -> tuple[jax.Array, jax.Array]:
        forecast = learner.learner.predictive(one, place, None, None, None)
        return forecast.mean, forecast.var - 0.04

    means, variances = (np.asarray(leaf) for leaf in jax.jit(jax.vmap(curve_at))(predicted.beliefs))
    weights = np.where(new, 0.0, predicted.weights) / np.sum(np.where(new, 0.0, predicted.weights))
    mean = weights @ means
    var = weights @ (variances + (means - mean) ** 2)
    np.testing.assert_allclose(means[new][0], mean, atol=1e-9)
    np.testing.assert_allclose(variances[new][0], var + 0.5, atol=1e-9)
    # What it learns there says nothing of slope and curvature, which are those of the prior.
    learned, _ = jax.jit(learner.update)(predicted, place, 0.0)
    segment = jax.tree.map(lambda leaf: leaf[int(np.argmax(new))], learned.beliefs)
    assert float(segment.origin) == place
    np.testing.assert_allclose(segment.mean[1:], 0.0, atol=1e-10)
    np.testing.assert_allclose(segment.var[1:], 3.0, atol=1e-10)


def test_it_refuses_another_number_of_parameters_and_another_belief() -> None:
    with pytest.raises(CredoError, match="params must be degree"):
        LocalPolynomial(inner(), 2).init(jnp.zeros(2))
    continuous: Any = Continuous()
    learner = RunLength(inner(), 0.1, 2, continuous)
    with pytest.raises(CredoError, match="LocalPolynomial"):
        learner.predict(learner.init(jnp.zeros(3)))


def test_a_missing_observation_does_not_begin_the_segment() -> None:
    learner = LocalPolynomial(inner(), 2)
    belief = learner.init(jnp.zeros(3))
    missed, info = learner.step(belief, 5.0, jnp.nan)
    assert not bool(info.ok)
    belief, _ = learner.step(missed, 1.0, 2.0)
    assert float(belief.origin) == 1.0
