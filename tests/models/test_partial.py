"""Models over a part of the parameters: frozen leaves, the last layer, a linear subspace."""

from __future__ import annotations

from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.learners.reference import alike

import credo
from credo.core.errors import CredoError
from credo.core.trees import ravel

NET = credo.MLP(2, (4,), "tanh")
PARAMS = jax.tree.map(lambda v: v.astype(jnp.float64), NET.init(0, (3,)))
MODEL = credo.Model(NET, credo.Normal(0.1))
X = jnp.asarray([0.3, -1.0, 0.7])
TREE = {"enc": {"dense": {"w": jnp.ones((3, 2)), "b": jnp.ones(2)}}, "head": jnp.ones(2)}


def tree_model() -> credo.Model:
    def apply(p: Any, x: Any) -> jax.Array:
        result: jax.Array = jnp.tanh(x @ p["enc"]["dense"]["w"] + p["enc"]["dense"]["b"]) @ p["head"]
        return result

    return credo.Model(apply, credo.Normal(0.1))


@pytest.mark.parametrize(
    ("trainable", "sizes"),
    [
        ("head", [2]),
        ("enc", [2, 6]),
        ("enc.dense.w", [6]),
        ("*.b", [2]),
        (["head", "*.w"], [6, 2]),
        (lambda path, leaf: leaf.ndim == 1, [2, 2]),
        ("*", [2, 6, 2]),
    ],
)
def test_named_leaves_are_learned_and_the_others_stay(trainable: Any, sizes: list[int]) -> None:
    model = credo.freeze(tree_model(), TREE, trainable)
    apply: Any = model.apply
    part = apply.start
    assert [leaf.size for leaf in jax.tree.leaves(part)] == sizes
    assert jax.tree.all(jax.tree.map(lambda a, b: bool(jnp.all(a == b)), apply.full(part), TREE))
    doubled = apply.full(jax.tree.map(lambda v: 2 * v, part))
    both = zip(jax.tree.leaves(doubled), jax.tree.leaves(TREE), strict=True)
    assert sum(int(jnp.any(a != b)) for a, b in both) == len(sizes)


def test_the_last_layer_has_the_whole_networks_jacobian_for_its_columns() -> None:
    model = credo.last_layer(MODEL, PARAMS)
    apply: Any = model.apply
    vector, unravel = ravel(apply.start)
    eta, rows = model.jacobian(vector, unravel, X)
    whole, columns = MODEL.jacobian(*ravel(PARAMS), X)
    np.testing.assert_allclose(eta, whole, atol=1e-12)
    np.testing.assert_allclose(rows, columns[:, -vector.size :], atol=1e-12)
    named = credo.last_layer(tree_model(), TREE, "head")
    head, joint = cast(Any, named.apply), cast(Any, credo.joint(model).apply)
    assert [leaf.shape for leaf in jax.tree.leaves(head.start)] == [(2,)]
    assert joint.start == apply.start


def test_a_subspace_has_the_whole_networks_jacobian_along_its_directions() -> None:
    basis = credo.random_basis(PARAMS, 5, key=1)
    np.testing.assert_allclose(basis @ basis.T, np.eye(5), atol=1e-12)
    model = credo.subspace(MODEL, PARAMS, basis)
    vector, unravel = ravel(PARAMS)
    z, lay = ravel(jnp.arange(1.0, 6.0) / 10)
    np.testing.assert_allclose(ravel(cast(Any, model.apply).full(z))[0], vector + z @ basis, atol=1e-12)
    eta, rows = model.jacobian(z, lay, X)
    whole, columns = MODEL.jacobian(vector + z @ basis, unravel, X)
    np.testing.assert_allclose(eta, whole, atol=1e-12)
    np.testing.assert_allclose(rows, columns @ basis.T, atol=1e-12)


def test_principal_directions_span_what_the_iterates_moved_in() -> None:
    vector, unravel = ravel(PARAMS)
    rng = np.random.default_rng(0)
    directions = np.linalg.qr(rng.normal(size=(vector.size, 2)))[0].T
    walks = rng.normal(size=(9, 2)) * np.asarray([3.0, 1.0])[None, :]
    walk = vector[None, :] + jnp.asarray(walks @ directions)
    basis = credo.svd_basis(jax.vmap(unravel)(walk), 2)
    np.testing.assert_allclose(basis @ basis.T, np.eye(2), atol=1e-12)
    np.testing.assert_allclose(basis.T @ basis, directions.T @ directions, atol=1e-10)
    np.testing.assert_allclose(credo.svd_basis(walk, 2), basis, atol=1e-12)


def test_parts_start_where_they_were_given_and_are_saved_whole(tmp_path: Any) -> None:
    for learner in (
        credo.last_layer_ekf(MODEL, PARAMS),
        credo.subspace_ekf(MODEL, PARAMS, credo.random_basis(PARAMS, 3, 0)),
    ):
        belief = learner.init(var=0.1)
        after, info = learner.step(belief, X, jnp.ones(2))
        assert bool(info.ok)
        found: Any
        found, loaded = credo.load(credo.save(tmp_path / "part.credo", learner, after))
        again, _ = found.step(loaded, X, jnp.ones(2))
        assert again == learner.step(after, X, jnp.ones(2))[0]
        full = found.model.apply.full(again.params)
        assert alike(full, PARAMS)
        np.testing.assert_allclose(full[0]["w"], PARAMS[0]["w"], atol=2.0)
    assert credo.sgd(credo.last_layer(MODEL, PARAMS)).init().size == 10


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: credo.freeze(tree_model(), TREE, "hea"),
            r"must name leaves of params, which are enc\.dense\.b, .*got 'hea' .did you mean 'head'",
        ),
        (lambda: credo.freeze(tree_model(), TREE, lambda path, leaf: False), "at least one leaf to learn"),
        (lambda: credo.last_layer(tree_model(), TREE), "layer must name the last layer .* head"),
        (
            lambda: credo.last_layer(MODEL, PARAMS).apply(PARAMS, X),
            "params must have the structure of the learned leaves",
        ),
        (lambda: credo.subspace(MODEL, PARAMS, jnp.ones((26, 3))), r"basis must be \(D, P\) with P = 26"),
        (lambda: credo.random_basis(PARAMS, 27, 0), r"dimension must be a whole number in 1\.\.26; got 27"),
        (lambda: credo.svd_basis(jnp.ones((3, 9)), 3), r"dimension must be a whole number in 1\.\.2; got 3"),
        (
            lambda: credo.svd_basis({"a": jnp.ones((3, 2)), "b": jnp.ones((4, 2))}, 1),
            "leaves share a leading axis T",
        ),
    ],
)
def test_impossible_parts_are_refused(make: Any, message: str) -> None:
    with pytest.raises(CredoError, match=message):
        make()
