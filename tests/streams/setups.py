"""Learners and streams that the tests of this folder share."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import credo

T, X = 12, 3
FAMILIES = {
    "root": credo.Full(),
    "dense": credo.Full("dense"),
    "diagonal": credo.Diagonal(),
    "low-rank": credo.LowRank(2),
}
DYNAMICS = {
    "static": credo.Static(),
    "walk": credo.RandomWalk(1e-3),
    "ou": credo.OrnsteinUhlenbeck(0.95),
    "inflation": credo.Inflation(1e-2),
    "perturb": credo.ShrinkPerturb(0.99, 1e-2),
}
NETWORKS = {"normal": credo.MLP(1, (4,), "tanh"), "classes": credo.MLP(3, (4,), "tanh")}
LIKELIHOODS = {"normal": credo.Normal(0.1), "classes": credo.Categorical(3)}


def make(kind: str, family: str, curvature: str, dynamics: str) -> Any:
    """A learner of a small network."""
    model = credo.Model(NETWORKS[kind], LIKELIHOODS[kind])
    return credo.bong(model, FAMILIES[family], curvature, dynamics=DYNAMICS[dynamics])


def begin(learner: Any, kind: str, dtype: Any = jnp.float64) -> Any:
    """Its first belief."""
    params = jax.tree.map(lambda v: v.astype(dtype), NETWORKS[kind].init(0, (X,)))
    return learner.init(params, var=0.3)


def data(kind: str, dtype: Any = jnp.float64, steps: int = T) -> tuple[jax.Array, jax.Array]:
    """A stream for it."""
    rng = np.random.default_rng(0)
    xs = rng.normal(size=(steps, X))
    if kind == "normal":
        return jnp.asarray(xs, dtype), jnp.asarray(np.sin(xs.sum(1)), dtype)
    return jnp.asarray(xs, dtype), jnp.asarray(rng.integers(0, 3, steps))


def bitwise(left: Any, right: Any) -> None:
    """The same structure, and the same bits in every leaf."""
    structure: object = jax.tree.structure(left)
    assert structure == jax.tree.structure(right)
    for a, b in zip(jax.tree.leaves(left), jax.tree.leaves(right), strict=True):
        a, b = np.asarray(a), np.asarray(b)
        assert a.dtype == b.dtype and a.tobytes() == b.tobytes(), (a, b)
