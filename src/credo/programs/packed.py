"""A learner and its belief as words, which compiled programs take and give back."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from credo.core import forks
from credo.core.kept_programs import always_hasty
from credo.core.types import Array, PyTree
from credo.programs.build import Built, Question, Step, asking, learning
from credo.programs.form import Form, plain, setting_of
from credo.programs.words import NEVER, Parts, WordLayout, lend_rows

__all__ = ["PackedBelief", "PlainBelief"]


class PlainBelief(NamedTuple):
    """A belief that is not packed yet."""

    tree: Any


class PackedBelief:
    """A belief and its learner as words: a bank has some 190 arrays, and a call with so many costs as much as
    the arithmetic of several rows. `PackedBelief.of` makes one.

    Example:
        >>> import credo
        >>> learner = credo.extended_kalman(credo.Model(lambda w, x: x @ w, credo.Normal(0.1)))
        >>> def step(learner, belief, key, row):
        ...     return learner.step(belief, *row)
        >>> packed = PackedBelief.of(learner, learner.init(jnp.zeros(2)))
        >>> rows = np.ones((3, 2), np.float32), np.array([1.0, 1.2, 1.1], np.float32)
        >>> after, infos = packed.learn("example", step, rows, 4)
        >>> infos.ok.tolist(), int(after.tree.t), int(packed.tree.t)
        ([True, True, True], 3, 0)
    """

    def __init__(
        self, learner: Any, form: Form, setting: Parts, state: Parts, calls: dict[object, _Call]
    ) -> None:
        self.learner = learner
        self.form = form
        self.setting = setting
        self.state = state
        self._calls = calls  # those of the beliefs before and after this one, too

    @staticmethod
    def of(learner: Any, belief: Any, key: Array | None = None) -> PackedBelief:
        """The arrays of a belief of a learner, with the key of its draws, if it draws."""
        given, key_kind = setting_of(learner, key)
        learners, setting = _words(given)
        beliefs, state = _words(plain(belief))
        return PackedBelief(learner, Form.of(learners, beliefs, key_kind), setting, state, {})

    @functools.cached_property
    def tree(self) -> Any:
        """The belief again, bit by bit."""
        return self.form.state.take(self.state)

    def learn(
        self,
        name: str,
        step: Step,
        rows: PyTree,
        length: int,
        *more: Array | np.ndarray | None,
        hasty: bool = False,
    ) -> tuple[PackedBelief, PyTree]:
        """Learn n rows, leaves (n, ...), by a program for `length` rows: the belief, and the reports.

        Arguments:
            name, step: what the program does, and what happens at a row; see `credo.programs.build`.
            rows: the rows, at most `length`.
            length: for how many rows the program is. A row costs a row.
            more: what the step is given beside the row, the same for all.
            hasty: whether the program is one that was compiled in haste.
        """
        hasty = hasty and not always_hasty()  # or both would be one program, built twice
        leaves, kind = _kind((name, step, length, hasty), rows, more)
        call = self._calls.get(kind)
        if call is None:
            build = functools.partial(learning, name, self.form, step=step, length=length, hasty=hasty)
            call = self._calls[kind] = _built(rows, more, build)
        count = len(leaves[0])
        # lent until the program has ended, as it has once what it says is in NumPy
        words = lend_rows(call.row, leaves, length)
        state, told = call.compiled(self.setting, self.state, words, _number(count), *more)
        report = call.report.take_rows(np.asarray(told)[:count])
        return PackedBelief(self.learner, self.form, self.setting, state, self._calls), report

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
        leaves, kind = _kind((name, question, length, tile, before), rows, more)
        call = self._calls.get(kind)
        if call is None:
            options = {"question": question, "length": length, "tile": tile, "before": before}
            build = functools.partial(asking, name, self.form, **options)
            call = self._calls[kind] = _built(rows, more, build)
        count = len(leaves[0])
        words = lend_rows(call.row, leaves, length)
        told = call.compiled(self.setting, self.state, words, _number(count), *more)
        return call.report.take_rows(np.asarray(told)[:count])


class _Call(NamedTuple):
    """A program of many rows: the layout of a row, the program, and the layout of what it says of a row."""

    row: WordLayout
    compiled: Callable[..., Any]
    report: WordLayout


def _built(rows: PyTree, more: tuple[Any, ...], build: Callable[..., Built]) -> _Call:
    """A call of a program that is built for such rows."""
    layout = _layout_of(rows)
    shapes = tuple([None if one is None else jax.ShapeDtypeStruct(one.shape, one.dtype) for one in more])
    built = build(row=layout, more=shapes)
    return _Call(layout, built.compiled, built.report)


def _kind(
    purpose: tuple[object, ...], rows: PyTree, more: tuple[Any, ...]
) -> tuple[list[Any], tuple[object, ...]]:
    """The leaves of rows, and all that a program for a purpose depends on: the structure, shapes and dtypes
    of rows and of what they are given, but not the number of rows.
    """
    if forks.forked:
        forks.require_threads()
    leaves, structure = jax.tree_util.tree_flatten(rows)
    kind: list[object] = [*purpose, structure]
    for leaf in leaves:
        kind += (leaf.shape[1:], leaf.dtype)
    for one in more:
        kind.append(None if one is None else (one.shape, one.dtype))
    return leaves, tuple(kind)


def _layout_of(rows: PyTree) -> WordLayout:
    """The layout of one of some rows."""

    def one(leaf: Any) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(leaf.shape[1:], jax.dtypes.canonicalize_dtype(leaf.dtype))

    return WordLayout.of(jax.tree.map(one, rows), large=NEVER)


def _words(tree: PyTree) -> tuple[WordLayout, Parts]:
    """The layout of a tree and its words."""
    layout = WordLayout.of(tree)
    words, large = layout.give(tree)
    return layout, (words, tuple(map(jnp.asarray, large)))


@functools.lru_cache(maxsize=1024)
def _number(count: int) -> Array:
    """A number of rows as a program takes it."""
    one: Array = jax.device_put(np.int32(count))
    return one
