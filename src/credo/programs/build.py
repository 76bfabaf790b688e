"""The builder of programs: what happens at a row becomes a program for one row, or for the rows of a chunk.

A learner with its key, its belief and a row are words (`credo.programs.words`). A step is a function of the
learner, the belief, the key or None and the row, which gives the belief after it and a report. A question is
a function of the same, which gives an answer. Both are part of the program: define them once, as a function
of a module or a record of such.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.errors import CredoError
from credo.core.kept_programs import program
from credo.core.types import Array, PyTree
from credo.learners.base import isolate
from credo.programs.form import Form, Opened, blank_words
from credo.programs.loops import each_row, first_rows
from credo.programs.repeats import without_repeats
from credo.programs.words import LARGE, NEVER, Parts, WordLayout

__all__ = [
    "REPORT",
    "Built",
    "More",
    "Question",
    "Step",
    "asking",
    "changing",
    "learning",
    "learning_in_place",
    "require_same",
    "with_report",
]

Step: TypeAlias = Callable[..., tuple[Any, PyTree]]
"""The work at a row: (learner, belief, key, row, *more) to the belief after it, and a report."""

Question: TypeAlias = Callable[..., PyTree]
"""The question at a row: (learner, belief, key, row, *more) to the answer."""

More: TypeAlias = tuple[jax.ShapeDtypeStruct | None, ...]
"""The shapes of further arguments of a program, the same for all its rows."""

REPORT = 32
"""The number of words behind those of the belief, where a step in place writes its report if there is room.

Every array that comes out of a program costs as much as a tenth of a small step.
"""


class Built(NamedTuple):
    """A program, and the layout of what it reports or answers for a row."""

    compiled: Callable[..., Any]
    report: WordLayout


@functools.lru_cache(maxsize=1024)
def learning(
    name: str,
    form: Form,
    row: WordLayout,
    step: Step,
    *,
    length: int | None = None,
    more: More = (),
    hasty: bool = False,
) -> Built:
    """The program of a step.

    Arguments:
        name: what the program does, one word, for its file.
        form, row: the layouts of the learner, of its belief and of a row.
        step: what happens at a row.
        length: None for one row; or the program goes through the first rows of so many.
        more: the shapes of further arguments, which `step` is given behind the row.
        hasty: whether it is compiled in haste, for a few rows; see `credo.core.kept_programs.program`.

    Returns:
        The program (setting, state, words, *more) to the state and the words of the report; with a length
        (setting, state, words (length, size), count, *more) to the state and those of all rows (length,
        size).

    Raises:
        CredoError: the step gives another kind of belief.
    """
    build = functools.partial(_learning, form, row, step, length, more)
    return Built(*program(name, (form, row, step), build, _shapes(form, row, length, more), hasty=hasty))


def _learning(form: Form, row: WordLayout, step: Step, length: int | None, more: More) -> Built:
    """The step before it is compiled."""

    def at(opened: Opened, words: Array, more: tuple[Any, ...]) -> tuple[Any, PyTree]:
        with jax.default_matmul_precision("highest"):
            return step(*opened, row.unpack((words, ())), *more)

    def first(setting: Parts, state: Parts, words: Array, *more: Any) -> tuple[Any, PyTree]:
        return at(form.open(setting, state), words, more)

    after, report = jax.eval_shape(first, *_shapes(form, row, None, more))
    require_same(form, after)
    layout = WordLayout.of(report, large=NEVER)

    def one(setting: Parts, state: Parts, words: Array, *more: Any) -> tuple[Parts, Array]:
        after, report = without_repeats(first)(setting, state, words, *more)
        return form.close(after), layout.pack(report)[0]

    def many(setting: Parts, state: Parts, rows: Array, count: Array, *more: Any) -> tuple[Parts, Array]:
        # A bank is read at each row, behind a fence: XLA would move each of its numbers out of the loop, a
        # kernel for each, while where it is needed it costs nothing. A small learner is read once.
        opened = None if form.setting.many else form.open_setting(setting)

        def learn(carry: Any, place: Array) -> tuple[Any, Array]:
            # words are read and written row by row, since mostly one row of a chunk is real
            belief, words = carry
            if opened is None:
                words = isolate(words)
            learner, key = opened or form.open_setting(words)
            after, report = isolate(at(Opened(learner, belief, key), rows[place], more))
            return (after, words), layout.pack(report)[0]

        start = (form.state.unpack(state), setting if opened is None else None)
        (end, _), reports = first_rows(learn, start, len(rows), count)
        return form.close(end), reports

    return Built(one if length is None else many, layout)


@functools.lru_cache(maxsize=1024)
def learning_in_place(name: str, form: Form, row: WordLayout, step: Step) -> Built:
    """The program of a step at one row, which gives the belief back as it got it, for a loop in Python.

    Returns:
        The program (setting, words, others, row) to the words of the belief with those of the report behind
        them, its large arrays, and the report as an array of its own where it is longer than `REPORT`.

    Raises:
        CredoError: the step gives another kind of belief.
    """
    build = functools.partial(_learning_in_place, form, row, step)
    setting, _ = form.blank
    words, others = blank_words(form.state, REPORT)
    shapes = (setting, words, others, jax.ShapeDtypeStruct((row.size,), np.uint32))
    return Built(*program(name, (form, row, step), build, shapes, donate=(2,)))


def _learning_in_place(form: Form, row: WordLayout, step: Step) -> Built:
    """The step before it is compiled."""
    learn, layout = _learning(form, row, step, None, ())

    def in_place(setting: Parts, words: Array, others: tuple[Array, ...], values: Array) -> tuple[Any, ...]:
        (state, large), report = learn(setting, (words, others), values)
        if layout.size > REPORT:
            return with_report(state, report[:0]), large, (report,)
        return with_report(state, report), large, ()

    return Built(in_place, layout)


@functools.lru_cache(maxsize=1024)
def changing(name: str, form: Form, row: WordLayout, step: Step) -> Built:
    """The program of a step at one row that gives what changes in a belief in place of all of it.

    Arguments:
        name, form, row: see `learning`.
        step: what happens at a row: (learner, belief, key, row) to the changes, arrays in any tree, and a
            report.

    Returns:
        The program (setting, state, words) to the changes and the words of the report.
    """
    build = functools.partial(_changing, form, row, step)
    return Built(*program(name, (form, row, step), build, _shapes(form, row, None, ())))


def _changing(form: Form, row: WordLayout, step: Step) -> Built:
    """The step before it is compiled."""

    def at(setting: Parts, state: Parts, words: Array) -> tuple[PyTree, PyTree]:
        with jax.default_matmul_precision("highest"):
            return step(*form.open(setting, state), row.unpack((words, ())))

    layout = WordLayout.of(jax.eval_shape(at, *_shapes(form, row, None, ()))[1], large=NEVER)

    def one(setting: Parts, state: Parts, words: Array) -> tuple[PyTree, Array]:
        changes, report = without_repeats(at)(setting, state, words)
        return changes, layout.pack(report)[0]

    return Built(one, layout)


def with_report(words: Array, report: Array) -> Array:
    """The words of a belief with those of a report behind them."""
    room = jnp.zeros(REPORT - report.shape[0], words.dtype)
    return jnp.concatenate([words, report, room])


def require_same(form: Form, after: PyTree) -> None:
    """Refuse a step that gives another kind of belief than it got."""
    large = LARGE if -1 in form.state.places else NEVER
    if WordLayout.of(after, large) != form.state:
        raise CredoError("belief must keep its structure, shapes and dtypes in a step of the learner.")


@functools.lru_cache(maxsize=1024)
def asking(  # noqa: PLR0913 - settings, each by its name
    name: str,
    form: Form,
    row: WordLayout,
    question: Question,
    *,
    length: int | None = None,
    tile: int | None = None,
    before: Question | None = None,
    more: More = (),
    behind: int = 0,
) -> Built:
    """The program of a question. Nothing is learned.

    Arguments:
        name, form, row, more: see `learning`.
        question: what is asked at a row.
        length: None for one row; or the program answers the first rows of so many, where a row costs a row.
        tile: how many rows are answered together, of which `length` is a multiple: the last bits of a row in
            single precision depend on how many these are.
        before: what is done once before the first row: (learner, belief, key) to the belief that is asked.
        behind: how many words there are behind those of the belief.

    Returns:
        The program (setting, state, words, *more) to the words of the answer; or with a length (setting,
        state, words (length, size), count, *more) to those of all rows (length, size).
    """
    build = functools.partial(_asking, form, row, question, length, tile, before, more)
    parts = (form, row, question, tile, before)
    return Built(*program(name, parts, build, _shapes(form, row, length, more, behind)))


def _asking(
    form: Form,
    row: WordLayout,
    question: Question,
    length: int | None,
    tile: int | None,
    before: Question | None,
    more: More,
) -> Built:
    """The question before it is compiled."""

    def opened_once(setting: Parts, state: Parts) -> Opened:
        opened = form.open(setting, state)
        if before is None:
            return opened
        with jax.default_matmul_precision("highest"):
            return opened._replace(belief=before(*opened))

    def at(opened: Opened, words: Array, more: tuple[Any, ...]) -> PyTree:
        with jax.default_matmul_precision("highest"):
            return jax.tree.map(jnp.asarray, question(*opened, row.unpack((words, ())), *more))

    def first(setting: Parts, state: Parts, words: Array, *more: Any) -> PyTree:
        return at(opened_once(setting, state), words, more)

    layout = WordLayout.of(jax.eval_shape(first, *_shapes(form, row, None, more)), large=NEVER)

    def one(setting: Parts, state: Parts, words: Array, *more: Any) -> Array:
        return layout.pack(without_repeats(first)(setting, state, words, *more))[0]

    def many(setting: Parts, state: Parts, rows: Array, count: Array, *more: Any) -> Array:
        opened = opened_once(setting, state)
        return each_row(lambda place: layout.pack(at(opened, rows[place], more))[0], len(rows), count)

    def tiled(setting: Parts, state: Parts, rows: Array, count: Array, *more: Any) -> Array:
        assert tile is not None
        opened = opened_once(setting, state)
        tiles = rows.reshape(-1, tile, row.size)

        def answers(place: Array) -> Array:
            return jax.vmap(lambda words: layout.pack(at(opened, words, more))[0])(tiles[place])

        needed = (jnp.asarray(count, jnp.int32) + (tile - 1)) // tile
        return each_row(answers, len(tiles), needed).reshape(len(rows), layout.size)

    if length is None:
        return Built(one, layout)
    return Built(many if tile is None else tiled, layout)


def _shapes(
    form: Form, row: WordLayout, length: int | None, more: More, behind: int = 0
) -> tuple[PyTree, ...]:
    """The shapes of the arguments of a program for one row, or for the first of `length` rows."""
    learner = blank_words(form.setting)
    state = blank_words(form.state, behind)
    if length is None:
        return learner, state, jax.ShapeDtypeStruct((row.size,), np.uint32), *more
    rows = jax.ShapeDtypeStruct((length, row.size), np.uint32)
    return learner, state, rows, jax.ShapeDtypeStruct((), np.int32), *more
