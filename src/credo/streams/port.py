"""A way into a pack for rows of one kind, which are written in place."""

from __future__ import annotations

import struct
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from credo.programs.words import Parts, WordReader, WordWriter, unpacked

__all__ = ["Port"]

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
