"""A learner with its belief, packed for a loop in Python that sees one row at a time.

A way into a pack for rows of one kind, which are written in place.
"""

from __future__ import annotations

import dataclasses
import struct
import threading
from collections import deque
from collections.abc import Callable
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
from credo.programs.build import REPORT, Built, asking, learning_in_place, with_report
from credo.programs.form import Form, setting_of
from credo.programs.words import NEVER, Parts, WordLayout, WordReader, WordWriter, kind_of, shape_of, unpacked

__all__ = ["Answer", "Forecast", "Pack", "Port", "mean_and_sd", "pack"]

_WORD = struct.Struct("=I")


class Port:
    """Rows that are written where a compiled program reads them, which saves some five microseconds a row.

    `Pack.port` makes one. Rows of a port and other calls of its pack may alternate. It is for one thread, as
    calls share views.

    Arguments:
        lock, last, setting: the pack's own lock, its latest belief, and its learner as words.
        step, ask: the compiled programs of a step and of a forecast, with their writers.
        read: what reads the answer of a forecast.
        ok: the place among the words of a step, or of its info, that says whether the row was taken in.

    Attributes:
        x, y: the row of the next `learn`, NumPy views to be written to.
        asked: the row of the next `forecast`, likewise.
        read: what turns the words of an answer into the answer.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> learner = credo.extended_kalman(credo.Model(lambda w, x: x @ w, credo.Normal(0.1)))
        >>> port = credo.pack(learner, learner.init(jnp.zeros(2))).port(np.zeros(2, np.float32), 0.0)
        >>> port.x[:], port.y[...] = [1.0, 1.0], 1.2
        >>> port.learn()
        True
        >>> port.asked[:] = [1.0, 1.0]
        >>> round(port.forecast()[0], 2)
        1.14
    """

    def __init__(
        self,
        lock: threading.Lock,
        last: deque[Any],
        setting: Parts,
        step: tuple[Callable[..., Any], WordWriter],
        ask: tuple[Callable[..., Any], WordWriter],
        read: WordReader,
        ok: int,
    ) -> None:
        self._lock = lock
        self._last = last
        self._setting = setting
        self.read = read
        self._ok = ok
        self._step, self._row = step
        self._ask, self._question = ask
        self.x, self.y, weight = self._row.views
        weight[...] = 1.0
        self.asked = self._question.views[0]

    def learn(self) -> bool:
        """Take a step of time and learn the row in `x` and `y`, with weight 1.

        Returns:
            Whether it was taken in, as `Info.ok` says.
        """
        last = self._last
        with self._lock:
            words, others, _ = last[0]
            row = self._row.in_place
            try:
                # One call in C: no interrupt comes between giving the old arrays away and keeping the new.
                last.extend(map(self._step, (self._setting,), (words,), (others,), (row,)))
                words, _, reports = last[0]
                ok: int = unpacked(_WORD, reports[0] if reports else words, self._ok)[0]
                return ok != 0
            except BaseException:
                last[0][0].block_until_ready()  # till then, the program may read the row in its place
                raise

    def forecast(self) -> Any:
        """The answer for the row in `asked`, before anything is learned."""
        with self._lock:
            words, others, _ = self._last[0]
            return self.read(self._ask(self._setting, (words, others), self._question.in_place))

    def forecast_floats(self) -> tuple[float, ...]:
        """The numbers of an answer that holds nothing but floats of 32 bits, one after another."""
        with self._lock:
            words, others, _ = self._last[0]
            return self.read.floats(self._ask(self._setting, (words, others), self._question.in_place))

    def forecast_words(self) -> np.ndarray:
        """The answer for the row in `asked` as words, which `read` turns into what `forecast` gives."""
        with self._lock:
            words, others, _ = self._last[0]
            return np.asarray(self._ask(self._setting, (words, others), self._question.in_place))


B = TypeVar("B", bound=Belief)
"""The kind of belief that a learner keeps."""

Answer: TypeAlias = Callable[[Predictive], PyTree]
"""The question to a forecast: a function from the predictive to a tree of arrays."""

Last: TypeAlias = tuple[Array, tuple[Array, ...], tuple[Array, ...]]
"""The belief as words, its large arrays, and the info of the last row where it needs an array of its own."""


class Program(NamedTuple):
    """A program for rows of one structure, with what turns a row and a report into words and back."""

    compiled: Callable[..., Any]
    write: WordWriter
    read: WordReader
    row: WordLayout


def learn_row(learner: Any, belief: Any, key: Any, row: tuple[PyTree, ...]) -> tuple[Any, Info]:
    """Learn a row: inputs, observation, weight, and the length of the time step or None."""
    x, y, weight, dt = row
    result: tuple[Any, Info] = learner.step(belief, x, y, weight=weight, dt=dt, key=key)
    return result


@dataclasses.dataclass(frozen=True)
class Forecast:
    """The question of a pack: what a forecast is asked for, by the arithmetic of `predict` and `forecast`."""

    answer: Answer
    method: ForecastName | None = None
    samples: int | None = None

    def __call__(self, learner: Any, belief: Any, key: Any, row: tuple[PyTree, ...]) -> PyTree:
        """The answer at inputs, after a time step or None."""
        learner, belief, key, (x, dt) = isolate((learner, belief, key, row))
        predicted = isolate(learner.predict(belief, dt))
        if key is not None:
            key = jax.random.fold_in(jax.random.fold_in(key, predicted.t), 1)
        predictive = learner.forecast(predicted, x, method=self.method, samples=self.samples, key=key)
        return self.answer(predictive)


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
        answer: what `forecast` gives, by a function of the predictive. It is compiled, so make it only once.
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
        setting, key_kind = setting_of(learner, None if key is None else as_key(key))
        start = jax.tree.map(jax.numpy.asarray, belief)
        self._learner = learner
        self._question = Forecast(answer, method, samples)
        self._form = Form.of(WordLayout.of(setting), WordLayout.of(start), key_kind)
        self._setting = self._form.setting.give(setting)
        self._last: deque[Last] = deque([_begun(self._form, start)], maxlen=1)
        # a step uses up the arrays of the belief before it, so nobody may read them meanwhile
        self._lock = threading.Lock()
        self._programs: dict[object, Program] = {}

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
        belief: B = self._form.state.take((words, own))
        return belief

    def adopt(self, belief: B) -> None:
        """Go on from another belief of the same structure, such as that of a `run` over many rows.

        Arguments:
            belief: the belief, which stays as it is.

        Raises:
            CredoError: it has another structure, or arrays of another shape or dtype.
        """
        start = jax.tree.map(lambda leaf: leaf if hasattr(leaf, "at") else jax.numpy.asarray(leaf), belief)
        if WordLayout.of(start) != self._form.state:
            raise CredoError(
                "belief must have the structure, shapes and dtypes of the pack's own.", field="belief"
            )
        begun = _begun(self._form, start)
        with self._lock:
            self._last.append(begun)

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
        leaves, program = self._asking((x, dt), answer)
        with self._lock:
            words, others, _ = self._last[0]
            row = program.write.lend(leaves)
            return program.read(program.compiled(self._setting, (words, others), row))

    def step(self, x: PyTree, y: PyTree, *, weight: ArrayLike = _ONE, dt: float | None = None) -> Info:
        """Take a step of time and learn a row, as `learner.step` does.

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
        leaves, program = self._learning((x, y, weight, dt))
        with self._lock:
            try:
                self._take(program, program.write.lend(leaves))
                words, _, reports = self._last[0]
                info: Info = program.read(*((reports[0], 0) if reports else (words, self._form.state.size)))
            except BaseException:
                self._last[0][0].block_until_ready()  # till then, the program may read the row in its place
                raise
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
        leaves, program = self._learning((x, y, weight, dt))
        with self._lock:
            self._take(program, program.write(leaves))

    def port(self, x: PyTree, y: PyTree, *, answer: Answer | None = None) -> Port:
        """A way in for rows of one kind, whose numbers are written in place.

        Arguments:
            x, y: a row like those that will come: one array of at least 32 bits, and a number.
            answer: what its forecasts are asked for instead of the pack's own `answer`.

        Raises:
            CredoError: they are no numbers.
        """
        _, step = self._learning((x, y, _ONE, None))
        _, ask = self._asking((x, None), answer)
        report = step.read.places[1]
        ok = report if step.read.size > REPORT else self._form.state.size + report
        ways = ((step.compiled, WordWriter(step.row)), (ask.compiled, WordWriter(ask.row)))
        return Port(self._lock, self._last, self._setting, *ways, ask.read, ok)

    def _take(self, program: Program, row: Array | np.ndarray) -> None:
        words, others, _ = self._last[0]
        # One call in C: no interrupt comes between giving the old arrays away and keeping the new ones.
        self._last.extend(map(program.compiled, [self._setting], [words], [others], [row]))

    def _learning(self, row: tuple[PyTree, ...]) -> tuple[list[ArrayLike], Program]:
        """The leaves of a row that is to be learned, and the program for rows like it."""
        return self._program(
            "step", row, lambda layout: learning_in_place("step", self._form, layout, learn_row)
        )

    def _asking(self, row: tuple[PyTree, ...], answer: Answer | None) -> tuple[list[ArrayLike], Program]:
        """The leaves of a row that is to be forecast, and the program for rows like it."""

        def build(layout: WordLayout) -> Built:
            asked = self._question if answer is None else dataclasses.replace(self._question, answer=answer)
            return asking("forecast", self._form, layout, asked, behind=REPORT)

        return self._program(answer, row, build)

    def _program(
        self, purpose: object, row: tuple[PyTree, ...], build: Callable[[WordLayout], Built]
    ) -> tuple[list[ArrayLike], Program]:
        """The leaves of a row, and the program for a purpose and rows like it."""
        leaves, treedef = jax.tree_util.tree_flatten(row)
        kinds = [kind_of(leaf) for leaf in leaves]
        program = self._programs.get((purpose, treedef, *kinds))
        if row[-1] is not None:
            require_nonnegative("dt", row[-1])
        if program is None:
            shapes = jax.tree.unflatten(treedef, [shape_of(leaf) for leaf in leaves])
            layout = WordLayout.of(shapes, large=NEVER)
            compiled, report = build(layout)
            program = Program(compiled, WordWriter(layout), WordReader(report), layout)
            self._programs[purpose, treedef, *kinds] = program
        return leaves, program


def _begun(form: Form, belief: PyTree) -> Last:
    """A belief as words. A step gives its arrays away, so they are copied; with them lies the last info."""
    words, others = form.state.give(belief)
    return with_report(words, words[:0]), tuple(other.copy() for other in others), ()
