"""A learner with its belief, packed for a loop in Python that sees one row at a time."""

from __future__ import annotations

import dataclasses
import functools
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

import jax
import numpy as np

from credo.core.errors import CredoError, require_nonnegative
from credo.core.keys import as_key
from credo.core.names import ForecastName
from credo.core.types import Array, ArrayLike, Key, PyTree
from credo.learners import Info, Learner
from credo.learners.base import Belief, isolate
from credo.likelihoods import Predictive
from credo.streams.words import Parts, WordLayout, WordReader, WordWriter, kind_of, shape_of

__all__ = ["Pack", "mean_and_sd", "pack"]

B = TypeVar("B", bound=Belief)
"""The kind of belief that a learner keeps."""

Answer: TypeAlias = Callable[[Predictive], PyTree]
"""What a forecast is asked for: a function from the predictive to a tree of arrays."""


def mean_and_sd(predictive: Predictive) -> tuple[Array, Array]:
    """The mean and the standard deviation of a forecast; for a classifier, of each class's indicator.

    Arguments:
        predictive: the forecast.

    Returns:
        Both, as scalars for one output and otherwise (C,).

    Example:
        >>> import credo, jax.numpy as jnp
        >>> mean, sd = mean_and_sd(credo.Normal(4.0).plugin(jnp.ones(1)))
        >>> float(mean), float(sd)
        (1.0, 2.0)
    """
    return predictive.mean, predictive.sd


_ONE = 1.0
"""The weight where none is passed, which needs no check."""

_NEVER = 2**62
"""More words than any array has."""

_REPORT = 32
"""The number of words behind those of the belief, where a step writes its info if there is room.

Every array that comes out of a program costs as much as a tenth of a small step.
"""

_Last: TypeAlias = tuple[Array, tuple[Array, ...], tuple[Array, ...]]
"""The belief as words, its large arrays, and the info of the last row where it needs an array of its own."""

_Built: TypeAlias = tuple[Callable[..., Any], WordLayout]
"""A compiled program, and the layout of what it reports."""


class _Program(NamedTuple):
    """A program for rows of one structure, with what turns a row and a report into words and back."""

    compiled: Callable[..., Any]
    write: WordWriter
    read: WordReader


@dataclass(frozen=True)
class _Form:
    """Everything that compiled programs depend on beside numbers and the structure of a row."""

    setting: WordLayout
    state: WordLayout
    key_kind: Any
    answer: Answer
    method: ForecastName | None
    samples: int | None

    def open(self, setting: Parts, state: Parts) -> tuple[Learner[Any], Any, Array | None]:
        """The learner, the belief and the key of the stream."""
        learner, data = self.setting.unpack(setting)
        key = None if data is None else jax.random.wrap_key_data(data, impl=self.key_kind)
        return learner, self.state.unpack(state), key

    def blank(self, row: WordLayout) -> tuple[PyTree, ...]:
        """The shapes of the arguments of a program."""
        state, others = _blank(self.state)
        return _blank(self.setting), state, others, _blank(row)[0]


def _blank(layout: WordLayout) -> Any:
    leaves = zip(layout.shapes, layout.dtypes, layout.places, strict=True)
    others = tuple(jax.ShapeDtypeStruct(shape, dtype) for shape, dtype, place in leaves if place < 0)
    return jax.ShapeDtypeStruct((layout.size,), np.uint32), others


def _with_report(words: Array, report: Array) -> Array:
    """The words of a belief with those of an info behind them."""
    room = jax.numpy.zeros(_REPORT - report.shape[0], words.dtype)
    return jax.numpy.concatenate([words, report, room])


@functools.lru_cache(maxsize=256)
def _packer(layout: WordLayout) -> Callable[[PyTree], Parts]:
    return jax.jit(layout.pack)


@functools.lru_cache(maxsize=256)
def _unpacker(layout: WordLayout) -> Callable[[Parts], Any]:
    return jax.jit(layout.unpack)


@functools.lru_cache(maxsize=256)
def _stepper(form: _Form, row: WordLayout) -> _Built:
    """The step, which gives the belief back as it got it, beside the info."""

    def learn(setting: Parts, words: Array, others: tuple[Array, ...], values: Array) -> tuple[Any, Info]:
        learner, belief, key = form.open(setting, (words, others))
        x, y, weight, dt = row.unpack((values, ()))
        result: tuple[Any, Info] = learner.step(belief, x, y, weight=weight, dt=dt, key=key)
        return result

    belief, info = jax.eval_shape(learn, *form.blank(row))
    if WordLayout.of(belief) != form.state:
        raise CredoError("belief must keep its structure, shapes and dtypes in a step of the learner.")
    layout = WordLayout.of(info, large=_NEVER)

    def step(setting: Parts, words: Array, others: tuple[Array, ...], values: Array) -> _Last:
        belief, info = learn(setting, words, others, values)
        state, large = form.state.pack(belief)
        report = layout.pack(info)[0]
        if layout.size > _REPORT:
            return _with_report(state, report[:0]), large, (report,)
        return _with_report(state, report), large, ()

    return jax.jit(step, donate_argnums=(2,)), layout


@functools.lru_cache(maxsize=256)
def _forecaster(form: _Form, row: WordLayout) -> _Built:
    """The forecast, by the arithmetic of `predict` and `forecast`, and what it is asked for."""

    def ask(setting: Parts, words: Array, others: tuple[Array, ...], values: Array) -> PyTree:
        learner, belief, key = form.open(setting, (words, others))
        learner, belief, key, (x, dt) = isolate((learner, belief, key, row.unpack((values, ()))))
        predicted = isolate(learner.predict(belief, dt))
        if key is not None:
            key = jax.random.fold_in(jax.random.fold_in(key, predicted.t), 1)
        predictive = learner.forecast(predicted, x, method=form.method, samples=form.samples, key=key)
        with jax.default_matmul_precision("highest"):
            return jax.tree.map(jax.numpy.asarray, form.answer(predictive))

    layout = WordLayout.of(jax.eval_shape(ask, *form.blank(row)), large=_NEVER)
    return jax.jit(lambda *arguments: layout.pack(ask(*arguments))[0]), layout


def pack(
    learner: Learner[B],
    belief: B,
    *,
    key: Key | None = None,
    answer: Answer = mean_and_sd,
    method: ForecastName | None = None,
    samples: int | None = None,
) -> Pack[B]:
    """Pack a learner and its belief for a loop in Python that sees one row at a time.

    Arguments:
        learner: any learner or wrapper.
        belief: the belief to start from, which stays as it is.
        key: a key, for learners and forecasts that draw; step t uses fold_in(key, belief.t), as in `run`.
        answer: what `forecast` gives: a function of the predictive, compiled with it. Compiled code is kept
            per function, so make it only once.
        method, samples: how forecasts are computed; see `Learner.forecast`.

    Returns:
        The `Pack`.

    Raises:
        CredoError: later, with the first row: the learner has no such method, or lacks a key.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> learner = credo.extended_kalman(credo.Model(lambda w, x: x @ w, credo.Normal(0.1)))
        >>> live = pack(learner, learner.init(jnp.zeros(2)), answer=lambda p: p.interval(0.9))
        >>> low, high = live.forecast(jnp.asarray([1.0, 2.0]))
        >>> round(low, 2), round(high, 2)
        (-3.71, 3.71)
    """
    return Pack(learner, belief, key, answer, method, samples)


class Pack(Generic[B]):
    """A learner and its belief, for a loop in Python: NumPy goes in, and plain numbers come out.

    The belief lies in one vector, which a compiled program takes and gives back, so a row costs a few
    microseconds beside the arithmetic. `pack` makes one. The bits are those of a loop of `learner.step`, of
    `run`, and of any mix of them.

    A pack changes, unlike all else in credo. Threads may share it: their calls take turns. A call that is
    refused or interrupted leaves it as it was before or after that row, never between.

    Calls with rows of a new structure, shape or dtype, or the first `dt`, compile a program. Packs of
    learners of the same structure share it.

    Example:
        >>> import credo, jax.numpy as jnp, numpy as np
        >>> learner = credo.extended_kalman(credo.Model(lambda w, x: x @ w, credo.Normal(0.1)))
        >>> live = credo.pack(learner, learner.init(jnp.zeros(2)))
        >>> for x, y in [(np.ones(2), 1.0), (np.ones(2), 1.2)]:
        ...     mean, sd = live.forecast(x)
        ...     info = live.step(x, y)
        >>> round(mean, 3), round(sd, 3), info.ok, int(live.belief.t)
        (0.952, 0.442, True, 2)
    """

    def __init__(
        self,
        learner: Learner[B],
        belief: B,
        key: Key | None,
        answer: Answer,
        method: ForecastName | None,
        samples: int | None,
    ) -> None:
        typed = None if key is None else as_key(key)
        data = None if typed is None else jax.random.key_data(typed)
        kind = None if typed is None else jax.random.key_impl(typed)
        setting, start = jax.tree.map(jax.numpy.asarray, ((learner, data), belief))
        self._learner = learner
        self._form = _Form(WordLayout.of(setting), WordLayout.of(start), kind, answer, method, samples)
        self._setting = _packer(self._form.setting)(setting)
        words, others = _packer(self._form.state)(start)
        # A step gives its arrays away, so these are the pack's own. With them lies the last row's info.
        own = tuple(other.copy() for other in others)
        self._last: deque[_Last] = deque([(_with_report(words, words[:0]), own, ())], maxlen=1)
        self._lock = threading.Lock()
        self._programs: dict[object, _Program] = {}

    @property
    def learner(self) -> Learner[B]:
        """The learner."""
        return self._learner

    @property
    def belief(self) -> B:
        """The belief after the latest row, to be saved, looked at, or handed to any verb."""
        with self._lock:
            words, others, _ = self._last[0]
            own = tuple(other.copy() for other in others)
        belief: B = _unpacker(self._form.state)((words, own))
        return belief

    def forecast(self, x: PyTree, *, dt: float | None = None, answer: Answer | None = None) -> Any:
        """Forecast the observation at x, before it is learned. Nothing changes.

        Arguments:
            x: one row of inputs: numbers, NumPy arrays, or a tree of them.
            dt: the time since the latest row; None means 1.
            answer: what is asked instead of the pack's own `answer`, for this row.

        Returns:
            What `answer` gives for the predictive, with numbers for scalars and NumPy arrays for others.

        Raises:
            CredoError: x holds no numbers, or dt is below 0.
        """
        leaves, program = self._program((x, dt), _forecaster, answer)
        with self._lock:
            words, others, _ = self._last[0]
            report = np.asarray(program.compiled(self._setting, words, others, program.write(leaves)))
        return program.read(report)

    def step(self, x: PyTree, y: PyTree, *, weight: ArrayLike = _ONE, dt: float | None = None) -> Info:
        """Let time pass and learn a row, as `learner.step` does.

        Arguments:
            x, y: one row of inputs and its observation: numbers, NumPy arrays, or trees of them.
            weight, dt: see `Learner.step`.

        Returns:
            The `Info`, with plain numbers for scalars and NumPy arrays for others.

        Raises:
            CredoError: x or y hold no numbers, or the weight or dt is below 0.
        """
        if weight is not _ONE:
            require_nonnegative("weight", weight)
        leaves, program = self._program((x, y, weight, dt), _stepper)
        with self._lock:
            self._take(program, leaves)
            words, _, reports = self._last[0]
            report = np.asarray(reports[0]) if reports else np.asarray(words)[-_REPORT:]
        info: Info = program.read(report)
        return info

    def learn(self, x: PyTree, y: PyTree, *, weight: ArrayLike = _ONE, dt: float | None = None) -> None:
        """`step` without its `Info`, which costs about 4 microseconds of the time of a row.

        Arguments:
            x, y, weight, dt: see `step`.

        Raises:
            CredoError: x or y hold no numbers, or the weight or dt is below 0.
        """
        if weight is not _ONE:
            require_nonnegative("weight", weight)
        leaves, program = self._program((x, y, weight, dt), _stepper)
        with self._lock:
            self._take(program, leaves)

    def _take(self, program: _Program, leaves: list[ArrayLike]) -> None:
        words, others, _ = self._last[0]
        row = program.write(leaves)
        # One call in C: no interrupt comes between giving the old arrays away and keeping the new ones.
        self._last.extend(map(program.compiled, [self._setting], [words], [others], [row]))

    def _program(
        self,
        row: tuple[PyTree, ...],
        build: Callable[[_Form, WordLayout], _Built],
        answer: Answer | None = None,
    ) -> tuple[list[ArrayLike], _Program]:
        """The leaves of a row, and the program for rows like it."""
        leaves, treedef = jax.tree_util.tree_flatten(row)
        kinds = [kind_of(leaf) for leaf in leaves]
        program = self._programs.get((answer, treedef, *kinds))
        if row[-1] is not None:
            require_nonnegative("dt", row[-1])
        if program is None:
            shapes = jax.tree.unflatten(treedef, [shape_of(leaf) for leaf in leaves])
            layout = WordLayout.of(shapes, large=_NEVER)
            form = self._form if answer is None else dataclasses.replace(self._form, answer=answer)
            compiled, report = build(form, layout)
            program = _Program(compiled, WordWriter(layout), WordReader(report))
            self._programs[answer, treedef, *kinds] = program
        return leaves, program
