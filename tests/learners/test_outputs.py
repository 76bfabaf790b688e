"""What is believed of a model's outputs, and how a log-likelihood depends on them."""

from __future__ import annotations

import jax.numpy as jnp
import pytest

import credo
from credo.learners.base import OutputLearner
from credo.learners.curvatures.base import Objective
from credo.likelihoods.scalar import secant_root
from credo.likelihoods.weighted import outlier_log_density
from credo.linalg.jacobians import OuterRows
from credo.linalg.jacobians.outer import columns, join


def test_a_linear_model_has_outputs_of_known_moments() -> None:
    learner = credo.extended_kalman(credo.Model(lambda w, x: x @ w, credo.Normal(0.1)))
    assert isinstance(learner, OutputLearner)
    belief = learner.init(jnp.ones(2), var=2.0)
    eta, cov = learner.output_moments(belief, jnp.ones(2))
    assert eta.tolist() == pytest.approx([2.0])
    assert cov.ravel().tolist() == pytest.approx([4.0])
    function = learner.sample_function(belief, key=0)
    apart = function(jnp.array([1.0, 0.0])) + function(jnp.array([0.0, 1.0]))
    assert function(jnp.array([1.0, 1.0])).tolist() == pytest.approx(apart.tolist())


def test_a_weight_multiplies_the_log_likelihood() -> None:
    objective = Objective(credo.Bernoulli(), jnp.asarray(1.0), jnp.asarray(2.0))
    assert float(objective.log_prob(jnp.zeros(1))) == pytest.approx(2.0 * jnp.log(0.5))


def test_the_chord_is_steeper_than_the_tangent_only_above_one() -> None:
    roots = [float(secant_root(jnp.asarray(ratio))) for ratio in (0.0, 1.0, 100.0)]
    assert roots == pytest.approx([1.0, 1.0, 4.6365], abs=1e-4)  # sqrt(99 / log 100)


def test_an_outlier_has_cauchy_tails() -> None:
    density = -jnp.log(jnp.pi * 10.0 * (1.0 + 100.0**2))
    assert float(outlier_log_density(1000.0)) == pytest.approx(float(density))


def test_columns_of_whole_layers_stay_outer_products() -> None:
    rows = OuterRows((jnp.ones((1, 3)), jnp.ones((1, 2))), (jnp.ones((1, 2, 4)), jnp.ones((1, 2, 1))))
    assert (rows.shape, rows.dense().shape, rows.pull(jnp.ones(2)).shape) == ((2, 14), (2, 14), (14,))
    assert columns(rows, ((12, 14),)).shape == (2, 2)
    assert type(columns(rows, ((0, 3),))).__name__ == "DenseRows"
    whole = join([jnp.asarray([1.0, 4.0]), jnp.asarray([2.0, 3.0])], [((0, 1), (3, 4)), ((1, 3),)])
    assert whole.tolist() == [1.0, 2.0, 3.0, 4.0]
