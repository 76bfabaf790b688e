"""One posterior over devices: the numbers of one, and no more exchanged than sums over the parameters."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.learners.over_devices import CLASSES, RANK
from tests.tiers import few

import credo
from credo.core.errors import CredoError
from credo.core.trees import ravel
from credo.learners.sharding import Layout

MODEL = credo.Model(lambda w, x: x @ w, credo.Normal(0.1))


@pytest.mark.slow
def test_four_devices_have_the_numbers_of_one_and_exchange_a_gram_matrix() -> None:
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=4"
    script = Path(__file__).parent / "over_devices.py"
    done = subprocess.run(
        [sys.executable, script], env={**os.environ, "XLA_FLAGS": flags}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    found = {one.pop("name"): one for one in json.loads(done.stdout)}
    for one in found.values():
        assert one["moved"] > 1e-2 and max(one["gaps"]) < 1e-11, one
    assert found["low-rank"]["exchanged"] == (RANK + CLASSES) ** 2
    assert found["low-rank rows"]["exchanged"] == (RANK + 2 * CLASSES) ** 2
    assert found["diagonal"]["exchanged"] <= max(CLASSES**2, 4)  # the output biases, padded to 4


@pytest.mark.parametrize("parts", few([1, 3, 4], 3))
def test_each_number_lies_in_one_place_and_comes_back(parts: int) -> None:
    params = {"a": jnp.zeros((5, 2, 3)), "b": jnp.zeros(4), "c": jnp.zeros(()), "d": jnp.zeros((3, 7))}
    tree = jax.tree.map(lambda leaf: jax.random.normal(jax.random.key(leaf.size), leaf.shape), params)
    vector, unravel = ravel(tree)
    layout = Layout.of(unravel, parts)
    places = layout.places()
    assert sorted(places[places >= 0].tolist()) == list(range(vector.size))
    assert places.size == parts * layout.width < vector.size + parts * 60
    matrix = jnp.asarray(np.where(places >= 0, np.asarray(vector)[places], np.nan).reshape(parts, -1))
    for leaf, other in zip(jax.tree.leaves(layout.tree(matrix)), jax.tree.leaves(tree), strict=True):
        np.testing.assert_array_equal(leaf, other)


def test_layers_are_cut_by_turns_along_outputs_and_inputs() -> None:
    net = credo.MLP(3, (8, 6, 5))
    belief = credo.vd_ekf(credo.Model(net, credo.Categorical(3))).init(net.init(0, (4,)))
    cuts = [(cut.shape, cut.axis, cut.apart) for cut in Layout.of(belief.unravel, 2).cuts]
    assert cuts == [
        *(((8,), 0, True), ((4, 8), 1, True), ((6,), 0, False), ((8, 6), 0, True)),
        *(((5,), 0, True), ((6, 5), 1, True), ((3,), 0, False), ((5, 3), 0, True)),
    ]


def _learner(family: Any = None, **changes: Any) -> Any:
    return credo.bong(MODEL, credo.LowRank(1) if family is None else family, **changes)


@pytest.mark.parametrize(
    ("learner", "words"),
    [
        (credo.extended_kalman(MODEL), "cov must be LowRankCovariance .* got RootCovariance"),
        (_learner(family=credo.LowRank(1, base="spherical")), "got a spherical LowRankCovariance"),
        (credo.WoLF(_learner(), 3.0), "learner must be a RecursiveLearner without wrappers; got WoLF"),
        (credo.sgd(MODEL, 0.1), "without wrappers; got GradientLearner with a belief of the kind Point"),
        (credo.bog(MODEL, credo.LowRank(1)), "must have BONGRule .* got BOGRule"),
        (_learner(curvature=credo.MonteCarloHessian(2)), "draws nothing; got BONGRule and MonteCarloHessian"),
        (_learner(dynamics=credo.RandomWalk(jnp.ones(3))), "dynamics must have single numbers"),
    ],
)
def test_refusals(learner: Any, words: str) -> None:
    mesh = jax.make_mesh((1,), ("p",))
    with pytest.raises(CredoError, match=words):
        credo.shard(learner, learner.init(jnp.zeros(3)), mesh)


def test_a_learner_is_laid_out_once_and_brought_back_once() -> None:
    mesh, learner = jax.make_mesh((1,), ("p",)), _learner()
    placed, over = credo.shard(learner, learner.init(jnp.arange(3.0)), mesh)
    with pytest.raises(CredoError, match="lies over devices already"):
        credo.shard(placed, over, mesh)
    with pytest.raises(CredoError, match="must be one that `shard` gave"):
        credo.unshard(learner, over)
    alone, back = credo.unshard(placed, over)
    np.testing.assert_array_equal(back.mean, jnp.arange(3.0))
    assert str(jax.tree.structure(alone)) == str(jax.tree.structure(learner))
