"""Layouts of a learner and of its belief, on which compiled programs depend beside numbers and rows."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.types import Array, PyTree
from credo.programs.words import Parts, WordLayout

__all__ = ["Form", "Opened", "blank_words", "plain", "setting_of"]


class Opened(NamedTuple):
    """A learner or an agent, its belief, and the key of its draws, None if there is none."""

    learner: Any
    belief: Any
    key: Any


@dataclass(frozen=True)
class Form:
    """The layouts of a learner with the data of its key, and of its belief, and the kind of the key."""

    setting: WordLayout
    state: WordLayout
    key_kind: Any = None

    @staticmethod
    def of(setting: WordLayout, state: WordLayout, key_kind: Any = None) -> Form:
        """The form of these layouts: the same object for equal ones, so that it is quickly compared."""
        return _known(setting, state, key_kind)

    @functools.cached_property
    def kind(self) -> type:
        """The class of the belief."""
        return type(self.state.blank)

    @property
    def blank(self) -> tuple[Parts, Parts]:
        """The shapes of the learner and of the belief as words."""
        return blank_words(self.setting), blank_words(self.state)

    def open(self, setting: Parts, state: Parts) -> Opened:
        """The learner, the belief and the key, in a compiled program."""
        learner, key = self.open_setting(setting)
        return Opened(learner, self.state.unpack(state), key)

    def open_setting(self, setting: Parts) -> tuple[Any, Any]:
        """The learner and the key, None if there is none."""
        learner, data = self.setting.unpack(setting)
        key = None if data is None else jax.random.wrap_key_data(data, impl=self.key_kind)
        return learner, key

    def close(self, belief: PyTree) -> Parts:
        """The words of a belief that came of another, in a compiled program, with the dtypes of that one."""
        leaves = zip(self.state.treedef.flatten_up_to(belief), self.state.dtypes, strict=True)
        return self.state.pack([jnp.asarray(leaf, dtype) for leaf, dtype in leaves])


_known = functools.lru_cache(maxsize=256)(Form)


def setting_of(learner: PyTree, key: Array | None) -> tuple[PyTree, Any]:
    """A learner with the data of its key, none of whose arrays is weakly typed, and the kind of the key."""
    if key is None:
        return plain((learner, None)), None
    return plain((learner, jax.random.key_data(key))), jax.random.key_impl(key)


def plain(tree: PyTree) -> PyTree:
    """A tree of arrays, none of which is weakly typed."""
    return jax.tree.map(
        lambda leaf: leaf if isinstance(leaf, jax.Array) else np.asarray(leaf, jnp.result_type(leaf)), tree
    )


def blank_words(layout: WordLayout, more: int = 0) -> Parts:
    """The shapes of a tree as words, with more words behind them."""
    leaves = zip(jax.tree.leaves(layout.blank), layout.places, strict=True)
    others = tuple(leaf for leaf, place in leaves if place < 0)
    words: Any = jax.ShapeDtypeStruct((layout.size + more,), np.uint32)
    return words, others
