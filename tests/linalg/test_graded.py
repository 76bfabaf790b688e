"""Rows that are far apart in scale: their leading directions, and the filters that keep them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import credo
from credo.core.names import CurvatureName
from credo.linalg.matrices import leading_axes

SCALES = np.array([3e11, 1.0, 1e12, 1e-2, 5.0, 1e6])


@pytest.mark.parametrize("scales", [np.ones(6), SCALES], ids=["alike", "graded"])
def test_leading_axes_are_those_of_double_precision(scales: np.ndarray) -> None:
    """In single precision each row keeps its length and its direction, however long the others are."""
    rows = np.random.default_rng(0).normal(size=(6, 30)) * scales[:, None]
    _, lengths, directions = np.linalg.svd(rows, full_matrices=False)
    short = jnp.asarray(rows, jnp.float32)
    axes = leading_axes(short @ short.T, jnp.float32(1e-6))
    np.testing.assert_allclose(axes @ axes.T, np.eye(6), atol=1e-5)
    turned = np.asarray(axes @ short, float)
    np.testing.assert_allclose(np.linalg.norm(turned, axis=1), lengths, rtol=1e-4)
    along = np.abs(np.sum(turned * directions, axis=1)) / lengths
    np.testing.assert_allclose(along, 1.0, atol=1e-4)


def test_leading_axes_of_nothing_and_of_one_row() -> None:
    np.testing.assert_array_equal(
        np.abs(leading_axes(jnp.zeros((3, 3)), jnp.asarray(1.0))).sum(0), np.ones(3)
    )
    np.testing.assert_array_equal(leading_axes(jnp.full((1, 1), 4.0), jnp.asarray(1.0)), np.ones((1, 1)))


@pytest.mark.slow
@pytest.mark.parametrize("curvature", ["lin-ef", "lin-hess"])
def test_absurd_inputs_leave_a_low_rank_filter_in_single_precision_where_double_has_it(
    curvature: CurvatureName,
) -> None:
    """Six inputs of 1e6 among 1,500 rows: the Gram matrix of the rows holds 1e12 beside 1."""
    rng = np.random.default_rng(0)
    xs = rng.normal(size=(1500, 17))
    ys = xs @ rng.normal(size=17) + 0.3 * rng.normal(size=1500)
    xs[rng.choice(1500, 6, replace=False), rng.integers(0, 17, 6)] = 1e6
    model = credo.Model(lambda w, x: x @ w, credo.Normal(0.1))
    learner = credo.bong(model, credo.LowRank(5), curvature)
    traces = []
    for dtype in (jnp.float64, jnp.float32):
        prior = learner.init(jnp.zeros(17, dtype))
        belief, trace = credo.run(learner, prior, jnp.asarray(xs, dtype), jnp.asarray(ys, dtype))
        assert bool(jnp.all(trace.ok))
        traces.append((np.asarray(belief.mean, float), np.asarray(trace.log_evidence, float)))
    (mean, evidence), (short_mean, short_evidence) = traces
    np.testing.assert_allclose(short_mean, mean, atol=1e-3)
    apart = np.abs(short_evidence - evidence) > 0.01 * (1 + np.abs(evidence))
    assert np.sum(apart) <= 10


def test_many_learners_at_once_have_the_axes_of_each() -> None:
    """One of two Gram matrices is graded, so that the loop is entered for both."""
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(2, 6, 30))
    rows[1] *= SCALES[:, None]
    grams = jnp.asarray(rows @ rows.transpose(0, 2, 1), jnp.float32)
    level = jnp.float32(1e-6)
    together = jax.vmap(leading_axes, in_axes=(0, None))(grams, level)
    for gram, axes in zip(grams, together, strict=True):
        alone = leading_axes(gram, level)
        np.testing.assert_allclose(np.abs(np.sum(alone * axes, axis=1)), 1.0, atol=1e-4)
