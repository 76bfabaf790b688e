"""Records: frozen pytrees that compare, hash, print, copy and pickle."""

from __future__ import annotations

import dataclasses
import pickle
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import credo
from credo.core.errors import CredoError, require_positive
from credo.core.records import REGISTRY, record, replace, static_field


@record
class Bare:
    """No fields."""


@record
class Empty:
    """No fields either."""


@record
class Spot:
    """A leaf that is checked, and two static fields."""

    x: Any
    size: int = static_field(default=2)
    name: str = static_field(default="spot")

    def __post_init__(self) -> None:
        require_positive("x", self.x)


def test_records_are_equal_when_class_metadata_and_every_leaf_are() -> None:
    assert Spot(1.0) == Spot(1.0)
    assert Spot(jnp.ones(3)) == Spot(jnp.ones(3))
    assert Spot(jnp.ones(3)) == Spot(np.ones(3))
    assert Spot(jnp.ones(3)) != Spot(jnp.ones(2))
    assert Spot(jnp.ones(3)) != Spot(jnp.ones(3).at[1].set(2.0))
    assert Spot(1.0) != Spot(1.0, size=3)
    assert Spot(1.0) != Spot(1.0, name="other")
    other: object = "spot"
    assert Spot(1.0) != other
    assert Spot(jax.random.key(1)) == Spot(jax.random.key(1))
    assert Spot(jax.random.key(1)) != Spot(jax.random.key(2))


def test_records_compare_across_dtypes_without_promotion_errors() -> None:
    assert Spot(jnp.ones(2, jnp.float32)) == Spot(jnp.ones(2, jnp.float64))
    assert Spot(jnp.full(2, 0.1, jnp.float32)) != Spot(jnp.full(2, 0.1, jnp.float64))


def test_equal_records_have_equal_hashes_and_arrays_are_not_hashable() -> None:
    assert hash(Spot(1.0)) == hash(Spot(1.0))
    assert len({credo.RandomWalk(0.1), credo.RandomWalk(0.1), credo.RandomWalk(0.2)}) == 2
    assert hash(credo.LowRank(3)) != hash(credo.LowRank(4))
    with pytest.raises(TypeError):
        hash(Spot(jnp.ones(2)))


def test_repr_shows_shapes_rather_than_contents() -> None:
    assert repr(Spot(0.5)) == "Spot(x=0.5, size=2, name='spot')"
    assert repr(Spot(jnp.ones((2, 3)))) == "Spot(x=float64[2,3], size=2, name='spot')"
    assert repr(Spot(jnp.asarray(0.25))) == "Spot(x=0.25, size=2, name='spot')"
    assert "key<fry>[]" in repr(Spot(jax.random.key(0)))
    assert repr(Bare()) == "Bare()"
    jax.jit(lambda spot: repr(spot) and spot)(Spot(1.0))  # tracers print too


def test_records_are_frozen_and_replace_copies() -> None:
    spot = Spot(1.0)
    with pytest.raises(dataclasses.FrozenInstanceError):
        spot.x = 2.0  # type: ignore[misc]
    assert replace(spot, x=2.0) == Spot(2.0)
    assert replace(spot, size=5).size == 5
    assert spot == Spot(1.0)
    with pytest.raises(CredoError, match=r"x must be finite and above 0; got -1\.0"):
        replace(spot, x=-1.0)


def test_every_kind_of_record_survives_pickle() -> None:
    learner = credo.extended_kalman(
        credo.Model(credo.Linear(2), credo.Normal(0.1)), dynamics=credo.OrnsteinUhlenbeck(0.9)
    )
    belief = learner.init(credo.Linear(2).init(0, (3,)))
    for value in (Spot(1.0), Bare(), learner, belief, credo.InverseGamma(2.0, 3.0), credo.LowRank(4)):
        assert pickle.loads(pickle.dumps(value)) == value


def test_classes_without_fields_have_different_tree_structures() -> None:
    values: list[object] = [Bare(), Empty(), credo.Static()]
    structures: list[object] = [jax.tree.structure(value) for value in values]
    bare, empty, static = structures
    assert bare != empty and static != bare
    traced = []

    @jax.jit
    def which(value: Any) -> jax.Array:
        traced.append(type(value).__name__)
        return jnp.zeros(())

    for value in (Bare(), Empty(), Bare()):
        which(value)
    assert traced == ["Bare", "Empty"]


def test_leaves_are_traced_and_static_fields_are_not() -> None:
    doubled = jax.jit(lambda s: jax.tree.map(lambda v: 2 * v, s))(Spot(jnp.asarray(1.5)))
    assert doubled == Spot(3.0)
    assert jax.tree.leaves(Spot(1.0)) == [1.0]
    [(path, _)] = jax.tree_util.tree_leaves_with_path(Spot(1.0))
    assert jax.tree_util.keystr(path) == ".x"


def test_trees_are_rebuilt_without_checks_so_derivatives_may_be_negative() -> None:
    slope = jax.grad(lambda s: -(s.x**2))(Spot(3.0))
    assert float(slope.x) == -6.0
    axes = jax.tree.map(lambda _: 0, Spot(jnp.ones(2)))
    np.testing.assert_array_equal(jax.vmap(lambda s: s.x, in_axes=(axes,))(Spot(jnp.ones(2))), np.ones(2))
    batch = jax.vmap(lambda x: Spot(x))(jnp.arange(1.0, 4.0))
    assert batch.x.shape == (3,)


def test_likelihoods_with_functions_copy_and_compare() -> None:
    def log_prob(eta: jax.Array, y: jax.Array) -> jax.Array:
        return -((y - eta) ** 2)

    one = credo.Likelihood(log_prob)
    assert replace(one, discrete=True).discrete and one == credo.Likelihood(log_prob)
    assert one != credo.Likelihood(lambda eta, y: y)
    with pytest.raises(CredoError, match="log_prob must be a function"):
        credo.Likelihood(3)  # type: ignore[arg-type]


def test_two_records_of_credo_may_not_have_one_name() -> None:
    # saved files know classes by these names alone
    with pytest.raises(TypeError, match=r"credo\.elsewhere must not call a record Static: credo\.dynamics"):
        record(type("Static", (), {"__module__": "credo.elsewhere", "__annotations__": {}}))
    assert REGISTRY["Static"] is credo.Static
