"""A learner and its belief as words, which compiled programs take and give back at the cost of few arrays."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from credo.learners import Learner
from credo.recipes.assembly import Belief
from credo.streams.programs import packer, unpacker
from credo.streams.words import Parts, WordLayout

__all__ = ["Form", "PackedBelief", "PlainBelief"]


@dataclass(frozen=True, eq=False)
class Form:
    """What programs depend on beside numbers: one for each kind, so that it is known by its identity."""

    setting: WordLayout
    state: WordLayout
    kind: type

    def open(self, setting: Parts, state: Parts) -> tuple[Learner[Any], Belief]:
        """The learner and the belief, in a compiled program."""
        return self.setting.unpack(setting), self.state.unpack(state)


_form = functools.lru_cache(maxsize=256)(Form)


class PlainBelief(NamedTuple):
    """A belief that is not packed yet."""

    tree: Belief


class PackedBelief:
    """A belief and its learner as words: the 150 arrays of a bank cost a call as much as two rows do."""

    def __init__(self, learner: Learner[Any], form: Form, setting: Parts, state: Parts) -> None:
        self.learner, self.form, self.setting, self.state = learner, form, setting, state

    @staticmethod
    def of(learner: Learner[Any], belief: Belief) -> PackedBelief:
        """The words of a belief of a learner."""
        setting, start = jax.tree.map(jnp.asarray, (learner, belief))
        kind: type = type(belief)
        form = _form(WordLayout.of(setting), WordLayout.of(start), kind)
        return PackedBelief(learner, form, packer(form.setting)(setting), packer(form.state)(start))

    @property
    def words(self) -> tuple[Form, Parts, Parts]:
        """The first arguments of every compiled program."""
        return self.form, self.setting, self.state

    def after(self, state: Parts) -> PackedBelief:
        """What the learner believes after some rows."""
        return PackedBelief(self.learner, self.form, self.setting, state)

    @functools.cached_property
    def tree(self) -> Belief:
        """The belief again, bit by bit."""
        belief: Belief = unpacker(self.form.state)(self.state)
        return belief
