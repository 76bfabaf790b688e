"""A learner and its belief as two lists of arrays, which compiled programs take and give back."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp

from credo.core.types import Array, PyTree
from credo.learners import Learner
from credo.recipes.assembly import Belief

__all__ = ["Form", "Leaves", "PackedBelief", "PlainBelief"]

Leaves: TypeAlias = tuple[Array, ...]
"""The arrays of a tree."""


@dataclass(frozen=True, eq=False)
class Form:
    """What programs depend on beside arrays: one for each kind, so that it is known by its identity."""

    setting: Any
    state: Any
    kind: type

    def open(self, setting: Leaves, state: Leaves) -> tuple[Learner[Any], Belief]:
        """The learner and the belief."""
        return jax.tree.unflatten(self.setting, setting), jax.tree.unflatten(self.state, state)

    def close(self, belief: Belief, state: Leaves) -> Leaves:
        """The arrays of a belief that came of another, in a compiled program, with the dtypes of that one."""
        return tuple(
            jnp.asarray(leaf, before.dtype)
            for leaf, before in zip(self.state.flatten_up_to(belief), state, strict=True)
        )


_form = functools.lru_cache(maxsize=256)(Form)


class PlainBelief(NamedTuple):
    """A belief that is not packed yet."""

    tree: Belief


class PackedBelief:
    """A belief and its learner as arrays: to flatten the records of a bank costs a call more than a row."""

    def __init__(self, learner: Learner[Any], form: Form, setting: Leaves, state: Leaves) -> None:
        self.learner, self.form, self.setting, self.state = learner, form, setting, state

    @staticmethod
    def of(learner: Learner[Any], belief: Belief) -> PackedBelief:
        """The arrays of a belief of a learner."""
        kind: type = type(belief)
        (setting, learners), (state, beliefs) = _flat(learner), _flat(belief)
        return PackedBelief(learner, _form(learners, beliefs, kind), setting, state)

    @property
    def arguments(self) -> tuple[Form, Leaves, Leaves]:
        """The first arguments of every compiled program."""
        return self.form, self.setting, self.state

    def after(self, state: Leaves) -> PackedBelief:
        """What the learner believes after some rows."""
        return PackedBelief(self.learner, self.form, self.setting, state)

    @functools.cached_property
    def tree(self) -> Belief:
        """The belief again, bit by bit."""
        belief: Belief = jax.tree.unflatten(self.form.state, self.state)
        return belief


def _flat(tree: PyTree) -> tuple[Leaves, Any]:
    """The arrays of a tree, none of which is weakly typed, and its structure."""
    leaves, structure = jax.tree.flatten(tree)
    arrays = (jnp.asarray(leaf) for leaf in leaves)
    return tuple(jnp.asarray(leaf, leaf.dtype) for leaf in arrays), structure
