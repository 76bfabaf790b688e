"""A learner and its belief as words, which compiled programs take and give back."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.types import PyTree
from credo.learners import Learner
from credo.recipes.assembly import Belief
from credo.streams.words import Parts, WordLayout

__all__ = ["Form", "PackedBelief", "PlainBelief"]


@dataclass(frozen=True, eq=False)
class Form:
    """What programs depend on beside arrays: one for each kind, so that it is known by its identity."""

    setting: WordLayout
    state: WordLayout
    kind: type

    def open(self, setting: Parts, state: Parts) -> tuple[Learner[Any], Belief]:
        """The learner and the belief, in a compiled program."""
        return self.setting.unpack(setting), self.state.unpack(state)

    def close(self, belief: Belief) -> Parts:
        """The words of a belief that came of another, in a compiled program, with the dtypes of that one."""
        leaves = zip(self.state.treedef.flatten_up_to(belief), self.state.dtypes, strict=True)
        return self.state.pack([jnp.asarray(leaf, dtype) for leaf, dtype in leaves])


_form = functools.lru_cache(maxsize=256)(Form)


class PlainBelief(NamedTuple):
    """A belief that is not packed yet."""

    tree: Belief


class PackedBelief:
    """A belief and its learner as words: a bank has some 190 arrays, and a call with so many costs as much as
    the arithmetic of several rows.
    """

    def __init__(self, learner: Learner[Any], form: Form, setting: Parts, state: Parts) -> None:
        self.learner, self.form, self.setting, self.state = learner, form, setting, state

    @staticmethod
    def of(learner: Learner[Any], belief: Belief) -> PackedBelief:
        """The arrays of a belief of a learner."""
        kind: type = type(belief)
        (learners, setting), (beliefs, state) = _words(learner), _words(belief)
        return PackedBelief(learner, _form(learners, beliefs, kind), setting, state)

    @property
    def arguments(self) -> tuple[Form, Parts, Parts]:
        """The first arguments of every compiled program."""
        return self.form, self.setting, self.state

    def after(self, state: Parts) -> PackedBelief:
        """What the learner believes after some rows."""
        return PackedBelief(self.learner, self.form, self.setting, state)

    @functools.cached_property
    def tree(self) -> Belief:
        """The belief again, bit by bit."""
        belief: Belief = self.form.state.take(self.state)
        return belief


def _words(tree: PyTree) -> tuple[WordLayout, Parts]:
    """The layout of a tree and its words, none of which is of an array that is weakly typed."""
    leaves, structure = jax.tree.flatten(tree)
    plain = [
        leaf if isinstance(leaf, jax.Array) else np.asarray(leaf, jnp.result_type(leaf)) for leaf in leaves
    ]
    layout = WordLayout.of(jax.tree.unflatten(structure, plain))
    words, large = layout.give(plain)
    return layout, (words, tuple(map(jnp.asarray, large)))
