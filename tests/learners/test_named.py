"""Named methods are the spellings that their papers say."""

from __future__ import annotations

from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.learners.reference import arrays, close, linear, regression, ridge, stream

import credo

P, T = 4, 12
SPELLED = {
    "rvga": (credo.rvga(regression(), 4), "BONGRule", "Full", "MonteCarloHessian"),
    "von": (credo.von(regression()), "BLRRule", "Diagonal", "MonteCarloHessian"),
    "vogn": (credo.vogn(regression(), 4), "BLRRule", "Diagonal", "MonteCarloEmpiricalFisher"),
    "slang": (credo.slang(regression(), 2, 4), "BLRRule", "LowRank", "MonteCarloEmpiricalFisher"),
    "ivon": (credo.ivon(regression(), 4), "BLRRule", "Diagonal", "MonteCarloHessian"),
    "lrvga": (credo.lrvga(regression(), 2), "BONGRule", "LowRank", "LinearizedGaussNewton"),
    "lofi-spherical": (credo.lofi_spherical(regression(), 2), "BONGRule", "LowRank", "LinearizedGaussNewton"),
}


@pytest.mark.table
@pytest.mark.parametrize("name", list(SPELLED))
def test_a_named_method_is_its_rule_family_and_curvature_and_learns(name: str) -> None:
    learner, *names = SPELLED[name]
    assert [type(part).__name__ for part in (learner.rule, learner.family, learner.curvature)] == names
    xs, ys = stream(P, 60)
    start = learner.init(jnp.zeros(P))
    belief, trace = credo.run(learner, start, *arrays(xs, ys), key=0)
    mean, _, _ = ridge(np.zeros(P), np.eye(P), xs, ys, 0.09)
    assert bool(trace.ok.all())
    assert np.linalg.norm(belief.mean - mean) < 0.35 * np.linalg.norm(mean)
    assert bool(jnp.all(belief.sd < start.sd))


def test_online_gradient_descent_is_bog_with_only_the_mean() -> None:
    xs, ys = stream(P, 3)
    net = credo.MLP(1, (3,), "tanh")
    params = jax.tree.map(lambda v: v.astype(jnp.float64), net.init(0, (P,)))
    model = credo.Model(net, credo.Normal(0.5))
    point = credo.ogd(model, 0.03)
    belief, _ = credo.run(point, point.init(params), *arrays(xs, ys))
    bog = credo.bog(model, credo.Diagonal(), learning_rate=0.03, parameters="moment")
    same, _ = credo.run(bog, bog.init(params), *arrays(xs, ys))
    close(belief.mean, same.mean)


def test_an_ekf_in_the_whole_space_or_in_a_subspace_is_ridge_regression_there() -> None:
    xs, ys = stream(P, T)
    origin = jnp.linspace(-1.0, 1.0, P)
    basis = credo.random_basis(origin, 2, key=0)
    model = credo.Model(linear, credo.Normal(0.09))
    learner = credo.subspace_ekf(model, origin, basis)
    belief, trace = credo.run(learner, learner.init(var=0.7), *arrays(xs, ys))
    mean, cov, evidence = ridge(
        np.zeros(2), 0.7 * np.eye(2), xs @ np.asarray(basis).T, ys - xs @ np.asarray(origin), 0.09
    )
    close(belief.mean, mean)
    close(belief.cov.dense(), cov)
    close(trace.log_evidence.sum(), evidence)


def test_the_last_layers_filter_is_ridge_regression_on_the_features() -> None:
    xs, ys = stream(P, T)
    net = credo.MLP(1, (3,), "tanh")
    params = jax.tree.map(lambda v: v.astype(jnp.float64), net.init(0, (P,)))
    learner = credo.last_layer_ekf(credo.Model(net, credo.Normal(0.09)), params)
    belief, trace = credo.run(learner, learner.init(), *arrays(xs, ys))
    hidden = np.tanh(xs @ np.asarray(params[0]["w"]) + np.asarray(params[0]["b"]))
    features = np.concatenate([np.ones((T, 1)), hidden], axis=1)  # the bias comes first
    start = np.concatenate([np.asarray(params[1]["b"]), np.asarray(params[1]["w"])[:, 0]])
    mean, cov, evidence = ridge(start, np.eye(4), features, ys, 0.09)
    close(belief.mean, mean)
    close(belief.cov.dense(), cov)
    close(trace.log_evidence.sum(), evidence)
    close(cast(Any, learner.model.apply).full(belief.params)[0]["w"], params[0]["w"])
