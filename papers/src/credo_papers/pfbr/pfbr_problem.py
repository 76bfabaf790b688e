"""A filtering problem as a learner sees it, and a method: a name, and how its learner is built."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import jax
import jax.numpy as jnp

import credo
from credo.core.types import Array, ArrayLike, PyTree
from credo.dynamics import Dynamics, Static
from credo.learners import RecursiveLearner
from credo_papers.engine.any_learner import AnyBelief, AnyLearner
from credo_papers.engine.plain_data import Json

__all__ = ["Build", "Method", "Problem", "SampledRows", "in_default_precision"]


def in_default_precision(tree: PyTree) -> PyTree:
    """Return a tree whose numbers have the precision that JAX is set to; other arrays stay as they are."""

    def convert(leaf: ArrayLike) -> Array:
        array = jnp.asarray(leaf)
        if jnp.issubdtype(array.dtype, jnp.floating):
            return array.astype(float)
        return array

    return jax.tree.map(convert, tree)


Build: TypeAlias = "Callable[[Problem, int], AnyLearner]"
"""`build(problem, particles)` makes a learner."""


@dataclass(frozen=True)
class Problem:
    """The facts about a problem that a learner is told.

    Arguments:
        model: p(y | z), or p(y | z, x).
        size: the number d of unknowns.
        dynamics: how they move between observations.
        mean: the prior mean: a number, or (d,).
        var: the prior variance: a number, or (d,).
        trained: learners with something that was trained for the problem, by the name of the method.
        training: the settings of that training, as JSON values.
        shipped: the operator of credo that was trained for the problem, if there is one.
    """

    model: credo.Model
    size: int
    dynamics: Dynamics = Static()
    mean: Array | float = 0.0
    var: Array | float = 1.0
    trained: Mapping[str, Build] = field(default_factory=dict)
    training: Mapping[str, Json] = field(default_factory=dict)
    shipped: str | None = None

    def begin(self, learner: AnyLearner, key: Array, start: Array | None = None) -> AnyBelief:
        """Return the prior belief of a learner; those that draw take the key.

        Arguments:
            learner: any learner.
            key: the key of its draws.
            start: the prior mean (d,), if it is not that of the problem.
        """
        mean = jnp.zeros(self.size) + (self.mean if start is None else start)
        var = jnp.zeros(self.size) + self.var
        if isinstance(learner, RecursiveLearner):
            return learner.init(mean, var=var)
        return learner.init(mean, var=var, key=key)  # type: ignore[call-arg]


@credo.record
class SampledRows(credo.likelihoods.Rows):
    """Independent rows with one output each, which can be sampled, so that tasks can be simulated.

    Arguments:
        each: the likelihood of one row.
    """

    def sample(self, eta: Array, key: Array) -> Array:
        """One draw of y, a number for each row (B,)."""
        keys = jax.random.split(key, eta.shape[0])
        draws: Array = jax.vmap(self.each.sample)(eta[:, None], keys)
        return draws.reshape(-1).astype(eta.dtype)


@dataclass(frozen=True)
class Method:
    """A method of the table.

    Arguments:
        name: as the table shows it.
        build: see `Build`.
        particles: the number of particles, if it is not that of the experiment.
        note: what a reader must know.
    """

    name: str
    build: Build
    particles: int | None = None
    note: str = ""
