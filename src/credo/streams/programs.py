"""The compiled programs of a pack: a step and a forecast, on a belief that is one vector of words."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import jax
import numpy as np

from credo.core.errors import CredoError
from credo.core.kept import program
from credo.core.names import ForecastName
from credo.core.types import Array, PyTree
from credo.learners import Info
from credo.learners.base import isolate
from credo.likelihoods import Predictive
from credo.streams.words import Parts, WordLayout, WordReader, WordWriter

__all__ = [
    "NEVER",
    "REPORT",
    "Answer",
    "Built",
    "Form",
    "Last",
    "Opening",
    "Program",
    "blank_words",
    "forecaster",
    "stepper",
    "with_report",
]

Answer: TypeAlias = Callable[[Predictive], PyTree]
"""What a forecast is asked for: a function from the predictive to a tree of arrays."""

NEVER = 2**62
"""More words than any array has."""

REPORT = 32
"""The number of words behind those of the belief, where a step writes its info if there is room.

Every array that comes out of a program costs as much as a tenth of a small step.
"""

Last: TypeAlias = tuple[Array, tuple[Array, ...], tuple[Array, ...]]
"""The belief as words, its large arrays, and the info of the last row where it needs an array of its own."""

Built: TypeAlias = tuple[Callable[..., Any], WordLayout]
"""A program, and the layout of what it reports."""


class Program(NamedTuple):
    """A program for rows of one structure, with what turns a row and a report into words and back."""

    compiled: Callable[..., Any]
    write: WordWriter
    read: WordReader
    row: WordLayout


@dataclass(frozen=True)
class Opening:
    """The layouts of a learner with the data of its key, and of its belief, and the kind of the key."""

    setting: WordLayout
    state: WordLayout
    key_kind: Any

    def open(self, setting: Parts, state: Parts) -> tuple[Any, Any, Any]:
        """The learner, the belief and the key, None if there is none."""
        learner, key = self.open_setting(setting)
        return learner, self.state.unpack(state), key

    def open_setting(self, setting: Parts) -> tuple[Any, Any]:
        """The learner and the key, None if there is none."""
        learner, data = self.setting.unpack(setting)
        return learner, None if data is None else jax.random.wrap_key_data(data, impl=self.key_kind)


@dataclass(frozen=True)
class Form(Opening):
    """Everything that compiled programs depend on beside numbers and the structure of a row."""

    answer: Answer
    method: ForecastName | None
    samples: int | None

    def blank(self, row: WordLayout) -> tuple[PyTree, ...]:
        """The shapes of the arguments of a program."""
        state, others = blank_words(self.state, REPORT)
        return blank_words(self.setting), state, others, blank_words(row)[0]


def blank_words(layout: WordLayout, more: int = 0) -> Any:
    """The shapes of a tree as words, with more words behind them."""
    leaves = zip(jax.tree.leaves(layout.blank), layout.places, strict=True)
    others = tuple(leaf for leaf, place in leaves if place < 0)
    return jax.ShapeDtypeStruct((layout.size + more,), np.uint32), others


def with_report(words: Array, report: Array) -> Array:
    """The words of a belief with those of an info behind them."""
    room = jax.numpy.zeros(REPORT - report.shape[0], words.dtype)
    return jax.numpy.concatenate([words, report, room])


@functools.lru_cache(maxsize=256)
def stepper(form: Form, row: WordLayout) -> Built:
    """The step, which gives the belief back as it got it, beside the info."""
    build = functools.partial(_step, form, row)
    return program("step", (form, row), build, form.blank(row), donate=(2,))


def _step(form: Form, row: WordLayout) -> Built:
    """The step before it is compiled."""

    def learn(setting: Parts, words: Array, others: tuple[Array, ...], values: Array) -> tuple[Any, Info]:
        learner, belief, key = form.open(setting, (words, others))
        x, y, weight, dt = row.unpack((values, ()))
        result: tuple[Any, Info] = learner.step(belief, x, y, weight=weight, dt=dt, key=key)
        return result

    belief, info = jax.eval_shape(learn, *form.blank(row))
    if WordLayout.of(belief) != form.state:
        raise CredoError("belief must keep its structure, shapes and dtypes in a step of the learner.")
    layout = WordLayout.of(info, large=NEVER)

    def step(setting: Parts, words: Array, others: tuple[Array, ...], values: Array) -> Last:
        belief, info = learn(setting, words, others, values)
        state, large = form.state.pack(belief)
        report = layout.pack(info)[0]
        if layout.size > REPORT:
            return with_report(state, report[:0]), large, (report,)
        return with_report(state, report), large, ()

    return step, layout


@functools.lru_cache(maxsize=256)
def forecaster(form: Form, row: WordLayout) -> Built:
    """The forecast, by the arithmetic of `predict` and `forecast`, and what it is asked for."""
    build = functools.partial(_forecast, form, row)
    return program("forecast", (form, row), build, form.blank(row))


def _forecast(form: Form, row: WordLayout) -> Built:
    """The forecast before it is compiled."""

    def ask(setting: Parts, words: Array, others: tuple[Array, ...], values: Array) -> PyTree:
        learner, belief, key = form.open(setting, (words, others))
        learner, belief, key, (x, dt) = isolate((learner, belief, key, row.unpack((values, ()))))
        predicted = isolate(learner.predict(belief, dt))
        if key is not None:
            key = jax.random.fold_in(jax.random.fold_in(key, predicted.t), 1)
        predictive = learner.forecast(predicted, x, method=form.method, samples=form.samples, key=key)
        with jax.default_matmul_precision("highest"):
            return jax.tree.map(jax.numpy.asarray, form.answer(predictive))

    layout = WordLayout.of(jax.eval_shape(ask, *form.blank(row)), large=NEVER)
    return lambda *arguments: layout.pack(ask(*arguments))[0], layout
