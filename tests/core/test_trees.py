"""Parameter trees as vectors, and numbers spread over them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from credo.core.errors import CredoError
from credo.core.trees import all_finite, ravel, select, spread
from credo.core.types import PyTree

TREE: PyTree = {"a": jnp.arange(2.0), "b": [jnp.arange(6.0).reshape(2, 3), jnp.asarray(7.0)]}


def test_unravel_inverts_ravel_with_shapes_and_dtypes() -> None:
    mixed = {"a": jnp.arange(2.0), "b": jnp.arange(3.0, dtype=jnp.float32)}
    trees: list[PyTree] = [TREE, mixed, jnp.ones((2, 2)), 1.5]
    for tree in trees:
        vector, unravel = ravel(tree)
        assert vector.ndim == 1 and vector.shape == (unravel.size,)
        back = unravel(vector)
        structure: object = jax.tree.structure(back)
        assert structure == jax.tree.structure(tree)
        for got, want in zip(jax.tree.leaves(back), jax.tree.leaves(tree), strict=True):
            assert got.dtype == jnp.asarray(want).dtype
            np.testing.assert_array_equal(got, want)
    assert ravel(mixed)[0].dtype == jnp.float64


def test_unravel_keeps_leading_axes_and_is_comparable() -> None:
    vector, unravel = ravel(TREE)
    many = unravel(jnp.stack([vector, 2 * vector]))
    assert many["b"][0].shape == (2, 2, 3)
    np.testing.assert_array_equal(many["b"][0][1], 2 * TREE["b"][0])
    assert unravel == ravel(jax.tree.map(lambda v: v + 1, TREE))[1]
    assert hash(unravel) == hash(ravel(TREE)[1])


@pytest.mark.parametrize(
    "bad", [{"w": jnp.arange(3)}, [jnp.ones(2), jnp.ones(2, bool)], jnp.ones(2, complex)]
)
def test_params_that_are_not_floating_are_refused_by_name(bad: object) -> None:
    with pytest.raises(CredoError, match=r"params must be floating-point arrays; .* has dtype"):
        ravel(bad)


def test_an_empty_tree_is_refused() -> None:
    with pytest.raises(CredoError, match="params must hold at least one array"):
        ravel({})


def test_spread_takes_a_number_a_vector_or_a_tree() -> None:
    _, unravel = ravel(TREE)
    np.testing.assert_array_equal(spread(2.0, unravel, jnp.float64, field="var"), np.full(9, 2.0))
    np.testing.assert_array_equal(spread(np.arange(9), unravel, jnp.float64, field="var"), np.arange(9))
    tree = {"a": 1.0, "b": [jnp.asarray([1.0, 2.0, 3.0]), 5.0]}
    expected = [1, 1, 1, 2, 3, 1, 2, 3, 5]
    np.testing.assert_array_equal(spread(tree, unravel, jnp.float64, field="var"), expected)


@pytest.mark.parametrize(
    "bad", [jnp.ones(8), jnp.ones((3, 3)), {"a": 1.0}, {"a": jnp.ones(3), "b": [1.0, 1.0]}, [1.0, 2.0]]
)
def test_spread_refuses_what_does_not_fit_and_names_the_field(bad: object) -> None:
    with pytest.raises(CredoError, match="var must"):
        spread(bad, ravel(TREE)[1], jnp.float64, field="var")


def test_all_finite_and_select_see_every_leaf() -> None:
    bad = {"a": jnp.ones(2), "b": jnp.asarray([1.0, jnp.inf]), "n": jnp.arange(2)}
    assert bool(all_finite(TREE)) and not bool(all_finite(bad)) and bool(all_finite(()))
    old = {"a": jnp.zeros(2), "b": jnp.asarray([0.1, 0.2]), "n": jnp.asarray([5, 6])}
    kept = select(jnp.asarray(False), bad, old)
    for got, want in zip(jax.tree.leaves(kept), jax.tree.leaves(old), strict=True):
        np.testing.assert_array_equal(got, want)
