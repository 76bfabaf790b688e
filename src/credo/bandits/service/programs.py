"""What a bandit asks its agent, by compiled programs: a belief as words, NumPy in and NumPy out."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from credo.bandits.agent import Agent, AgentBelief
from credo.bandits.designs import ArmBeliefs
from credo.bandits.service.arms import Limits
from credo.bandits.service.compiled import arm_updater, decider, updater
from credo.bandits.service.copies import Copies, Held
from credo.core.errors import CredoError
from credo.core.records import replace
from credo.core.types import Array
from credo.programs.form import Form, setting_of
from credo.programs.words import NEVER, WordLayout, WordReader, WordWriter

__all__ = ["Answer", "Learned", "Programs", "Row", "with_prior_arm"]

Row: TypeAlias = tuple[np.ndarray | None, int, float, float, int]
"""What an update needs: the context, the slot of the arm, the reward, its weight, and the update's number."""

_LENGTHS = (16, 256)
"""How many decisions or updates one call of a program may hold."""

T = TypeVar("T")

_NUMBER = jax.ShapeDtypeStruct((), np.uint32)


class Answer(NamedTuple):
    """A decision: the slot of the chosen arm; and pmf, mean, sd and whether allowed, of all slots (4, K)."""

    slot: int
    numbers: np.ndarray


class Learned(NamedTuple):
    """The belief after some updates; of each reward whether it was taken in, and its log evidence."""

    belief: Held
    ok: list[bool]
    log_evidence: list[float]


class Programs:
    """What a bandit asks its agent, for contexts of one shape. Decision n draws by fold_in(fold_in(key, 0),
    n), and update n by fold_in(fold_in(key, 1), n), with the key of the seed.
    """

    def __init__(self, agent: Agent, belief: AgentBelief[Any], seed: int) -> None:
        setting, key_kind = setting_of(agent, jax.random.key(seed))
        start = jax.tree.map(jnp.asarray, belief)
        self._form = Form.of(WordLayout.of(setting), WordLayout.of(start), key_kind)
        self._setting = self._form.setting.give(setting)
        self._float = np.dtype(jnp.result_type(float))
        self._arms = agent.arms
        self._ask: dict[tuple[int | None, bool], _Asking] = {}
        self._whole: dict[int | None, _Learning] = {}
        self._tell: _Telling | None = None

    def pack(self, belief: AgentBelief[Any]) -> Held:
        """A belief as words; a CredoError if it is not one of this agent."""
        arrays = jax.tree.map(jnp.asarray, belief)
        if WordLayout.of(arrays) != self._form.state:
            raise CredoError("belief must have the structure, shapes and dtypes of the bandit's own.")
        return Held(self._form.state.give(arrays))

    def unpack(self, held: Held) -> AgentBelief[Any]:
        """The belief again, bit by bit, in arrays of its own."""
        words, others = held.parts
        belief: AgentBelief[Any] = self._form.state.take((words, tuple(other.copy() for other in others)))
        return belief

    def require_fit(self, x: np.ndarray | None, bounded: bool, rows: int | None = None) -> None:
        """Refuse contexts that the agent cannot take, before one decision, or several at once."""
        self._asking(x, bounded, None if rows is None else _length(rows))

    def answer_dtype(self, x: np.ndarray | None, bounded: bool) -> np.dtype:
        """The dtype of the numbers of an answer."""
        dtype: np.dtype = self._asking(x, bounded).layout.dtypes[1]
        return dtype

    def decide(self, held: Held, x: np.ndarray | None, limits: Limits, number: int) -> Answer:
        """The choice of decision `number`."""
        ask = self._asking(x, limits.bounds is not None)
        words = ask.write.lend(_leaves(x, limits, number))
        slot, numbers = ask.read(ask.program(self._setting, held.parts, words))
        return Answer(slot, numbers.copy())

    def decide_many(
        self, held: Held, xs: Sequence[np.ndarray | None], limits: Limits, first: int
    ) -> list[Answer]:
        """The choices of the decisions from number `first` on, all by one belief."""
        choices: list[Answer] = []
        for block in _blocks(xs):
            ask = self._asking(xs[0], limits.bounds is not None, _length(len(block)))
            start = first + len(choices)
            words = [ask.write(_leaves(x, limits, start + place)) for place, x in enumerate(block)]
            answers = np.asarray(ask.program(self._setting, held.parts, *_padded(words)))
            choices += [Answer(*ask.read(answer)) for answer in answers[: len(words)]]
        return choices

    def learn(self, held: Held, rows: Sequence[Row]) -> Learned:
        """The belief after some rewards, one after the other."""
        tell = self._telling(rows[0][0])
        if tell.arm is not None:
            return self._learn_arms(tell, held, rows)
        state, reports = held.parts, []
        for block in _blocks(rows):
            if len(block) == 1:
                one, word = self._learning(tell.layout), tell.write.lend(_known(*block[0]))
                state, report = one.program(self._setting, state, word)
                reports.append(one.read(report))
            else:
                words = [tell.write(_known(*row)) for row in block]
                many = self._learning(tell.layout, _length(len(words)))
                state, report = many.program(self._setting, state, *_padded(words))
                reports += map(many.read, np.asarray(report)[: len(words)])
        return _learned(Held(state), reports)

    def _learn_arms(self, tell: _Telling, held: Held, rows: Sequence[Row]) -> Learned:
        """The same for learners that each arm has apart, where a reward changes the part of one arm."""
        assert tell.arm is not None
        learn, read, copies = tell.arm
        reports, private = [], False  # whether nobody else has seen the belief
        for row in rows:
            words = tell.write.lend(_known(*row))
            own, parts, moved, report = learn(self._setting, held.parts, words)
            *said, more = read(report)
            if more:  # other arms have changed, too
                one = self._learning(tell.layout)
                state, report = one.program(self._setting, held.parts, words)
                held, said = Held(state, copies), one.read(report)
            else:
                patch = np.int32(row[1]), parts
                held = copies.with_arm(held, own, patch, moved, private=private)
            reports.append(said)
            private = True
        return _learned(held, reports)

    def _asking(self, x: np.ndarray | None, bounded: bool, length: int | None = None) -> _Asking:
        """How one decision, or several, are taken."""
        found = self._ask.get((length, bounded))
        if found is None:
            allowed = jax.ShapeDtypeStruct((self._arms,), bool)
            bounds = jax.ShapeDtypeStruct((2, self._arms), self._float) if bounded else None
            row = _spec(x, self._float), allowed, _NUMBER, bounds
            layout = WordLayout.of(row, large=NEVER)
            program, answer = decider(self._form, layout, length)
            found = self._ask[length, bounded] = _Asking(program, _Writer(layout), WordReader(answer), answer)
        return found

    def _telling(self, x: np.ndarray | None) -> _Telling:
        """How rewards are learned."""
        if self._tell is None:
            real = jax.ShapeDtypeStruct((), self._float)
            row = (_spec(x, self._float), jax.ShapeDtypeStruct((), np.int32), real, real, _NUMBER)
            layout = WordLayout.of(row, large=NEVER)
            arm = arm_updater(self._form, layout)
            way = (
                None
                if arm is None
                else (arm.learn, WordReader(arm.report), Copies(arm.places, arm.axes, arm.timed))
            )
            self._tell = _Telling(_Writer(layout), layout, way)
        return self._tell

    def _learning(self, row: WordLayout, length: int | None = None) -> _Learning:
        """How one reward, or several, are learned by an update of the whole belief."""
        found = self._whole.get(length)
        if found is None:
            program, report = updater(self._form, row, length)
            found = self._whole[length] = _Learning(program, WordReader(report))
        return found


class _Asking(NamedTuple):
    """How decisions are taken: the program, what writes rows and reads answers, and the layout of those."""

    program: Callable[..., Any]
    write: _Writer
    read: WordReader
    layout: WordLayout


class _Learning(NamedTuple):
    """A program of updates of the whole belief, and what reads its reports."""

    program: Callable[..., Any]
    read: WordReader


class _Telling(NamedTuple):
    """How rewards are learned: what writes rows, their layout, and the update of one arm with the reader of
    its reports and the copies that it writes into, if there is one.
    """

    write: _Writer
    layout: WordLayout
    arm: tuple[Callable[..., Any], WordReader, Copies] | None


def _learned(held: Held, reports: Sequence[Any]) -> Learned:
    return Learned(held, [ok for ok, _ in reports], [evidence for _, evidence in reports])


class _Writer:
    """Writes rows as words; threads may share it, as every call has a writer of its own thread."""

    def __init__(self, layout: WordLayout) -> None:
        self._layout, self._local = layout, threading.local()

    def __call__(self, leaves: Sequence[Any]) -> np.ndarray:
        """The words of a row, in an array of their own."""
        return self._own(leaves)

    def lend(self, leaves: Sequence[Any]) -> Array | np.ndarray:
        """The words for a program whose answer is read before this thread writes again."""
        return self._own.lend(leaves)

    @property
    def _own(self) -> WordWriter:
        """The writer of this thread."""
        writer: WordWriter | None = getattr(self._local, "writer", None)
        if writer is None:
            writer = self._local.writer = WordWriter(self._layout)
        return writer


def _known(*leaves: Any) -> list[Any]:
    """The leaves of a row that are there."""
    return [leaf for leaf in leaves if leaf is not None]


def _leaves(x: np.ndarray | None, limits: Limits, number: int) -> list[Any]:
    return _known(x, limits.allowed, number, limits.bounds)


def _spec(x: np.ndarray | None, kind: np.dtype) -> Any:
    return None if x is None else jax.ShapeDtypeStruct(x.shape, kind)


def _blocks(rows: Sequence[T]) -> Iterator[Sequence[T]]:
    """The rows in blocks for which there is a program."""
    for start in range(0, len(rows), _LENGTHS[-1]):
        yield rows[start : start + _LENGTHS[-1]]


def _length(count: int) -> int:
    """For how many rows the program is that takes so many."""
    return next((length for length in _LENGTHS if length >= count), _LENGTHS[-1])


def _padded(words: Sequence[np.ndarray]) -> tuple[np.ndarray, np.int32]:
    """Rows of words, filled up with zeros to one of few lengths, each of which is compiled once; their
    number.
    """
    rows = np.zeros((_length(len(words)), words[0].size), np.uint32)
    rows[: len(words)] = words
    return rows, np.int32(len(words))


def with_prior_arm(belief: AgentBelief[Any], prior: AgentBelief[Any], slot: int) -> AgentBelief[Any]:
    """The belief of agents with one learner an arm, with the arm of a slot as it was before any reward."""
    inner, first = belief.belief, prior.belief
    assert isinstance(inner, ArmBeliefs) and isinstance(first, ArmBeliefs)
    reset = jax.tree.map(lambda now, then: now.at[slot].set(then[slot]), inner.beliefs, first.beliefs)
    units = belief.units
    if units is not None:
        units = replace(units, first=units.first.without(slot))
    return replace(belief, belief=replace(inner, beliefs=reset), units=units)
