"""A learner and its belief as words, which compiled programs take and give back."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.forks import require_threads
from credo.core.types import Array, PyTree
from credo.programs.build import More, Question, Step, asking, learning
from credo.programs.form import Form, plain, setting_of
from credo.programs.words import NEVER, Parts, WordLayout, lend_rows

__all__ = ["PackedBelief", "PlainBelief"]


class PlainBelief(NamedTuple):
    """A belief that is not packed yet."""

    tree: Any


class PackedBelief:
    """A belief and its learner as words: a bank has some 190 arrays, and a call with so many costs as much as
    the arithmetic of several rows.
    """

    def __init__(self, learner: Any, form: Form, setting: Parts, state: Parts) -> None:
        self.learner = learner
        self.form = form
        self.setting = setting
        self.state = state

    @staticmethod
    def of(learner: Any, belief: Any, key: Array | None = None) -> PackedBelief:
        """The arrays of a belief of a learner, with the key of its draws, if it draws."""
        given, key_kind = setting_of(learner, key)
        learners, setting = _words(given)
        beliefs, state = _words(plain(belief))
        return PackedBelief(learner, Form.of(learners, beliefs, key_kind), setting, state)

    def after(self, state: Parts) -> PackedBelief:
        """What the learner believes after some rows."""
        return PackedBelief(self.learner, self.form, self.setting, state)

    @functools.cached_property
    def tree(self) -> Any:
        """The belief again, bit by bit."""
        return self.form.state.take(self.state)

    def learn(
        self, name: str, step: Step, rows: PyTree, length: int, *more: Array | np.ndarray | None
    ) -> tuple[PackedBelief, PyTree]:
        """Learn n rows, leaves (n, ...), by a program for `length` rows: the belief, and the reports.

        Arguments:
            name, step: what the program does, and what happens at a row; see `credo.programs.build`.
            rows: the rows, at most `length`.
            length: for how many rows the program is. A row costs a row.
            more: what the step is given beside the row, the same for all.
        """
        require_threads()
        layout = _row_layout(rows)
        built = learning(name, self.form, layout, step, length=length, more=_shapes(more))
        # the memory of the words is lent: the program has ended once its reports are here
        words = lend_rows(layout, rows, length)
        count = _count_of(rows)
        state, told = built.compiled(self.setting, self.state, words, _number(count), *more)
        return self.after(state), built.report.take_rows(np.asarray(told)[:count])

    def ask(
        self,
        name: str,
        question: Question,
        rows: PyTree,
        length: int,
        *more: Array | np.ndarray | None,
        tile: int | None = None,
        before: Question | None = None,
    ) -> PyTree:
        """Answer a question at n rows, leaves (n, ...), by a program for `length` rows. Nothing is learned.

        Arguments:
            name, question: what the program does, and what is asked; see `credo.programs.build`.
            rows, length, more: see `learn`.
            tile, before: how many rows are answered together, and what is done before the first.

        Returns:
            The answers, with a leading axis n.
        """
        require_threads()
        layout = _row_layout(rows)
        shapes = _shapes(more)
        built = asking(
            name, self.form, layout, question, length=length, tile=tile, before=before, more=shapes
        )
        words = lend_rows(layout, rows, length)  # as above
        count = _count_of(rows)
        told = built.compiled(self.setting, self.state, words, _number(count), *more)
        return built.report.take_rows(np.asarray(told)[:count])


def _words(tree: PyTree) -> tuple[WordLayout, Parts]:
    """The layout of a tree and its words."""
    layout = WordLayout.of(tree)
    words, large = layout.give(tree)
    return layout, (words, tuple(map(jnp.asarray, large)))


def _count_of(rows: PyTree) -> int:
    return len(jax.tree.leaves(rows)[0])


@functools.lru_cache(maxsize=1024)
def _number(count: int) -> Array:
    """A number of rows as a program takes it."""
    one: Array = jax.device_put(np.int32(count))
    return one


def _row_layout(rows: PyTree) -> WordLayout:
    """The layout of one of some rows."""
    leaves, structure = jax.tree_util.tree_flatten(rows)
    return _layout_of(structure, *((leaf.shape[1:], leaf.dtype) for leaf in leaves))


@functools.lru_cache(maxsize=256)
def _layout_of(structure: Any, *kinds: tuple[tuple[int, ...], np.dtype]) -> WordLayout:
    """The layout of a row of such a structure, with leaves of such kinds."""
    leaves = [jax.ShapeDtypeStruct(shape, jax.dtypes.canonicalize_dtype(dtype)) for shape, dtype in kinds]
    return WordLayout.of(structure.unflatten(leaves), large=NEVER)


def _shapes(more: tuple[Array | np.ndarray | None, ...]) -> More:
    return tuple(None if one is None else jax.ShapeDtypeStruct(one.shape, one.dtype) for one in more)
