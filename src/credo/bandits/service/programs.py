"""The compiled programs of a bandit: an agent and its belief as words, NumPy in and NumPy out.

Every program is `Agent.decide` or `Agent.update`, with their bits; bandits of alike agents share them.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from credo.bandits.agent import Agent, AgentBelief
from credo.bandits.designs import ArmBeliefs
from credo.core.errors import CredoError
from credo.core.records import replace
from credo.core.types import Array
from credo.streams.first_rows import each_row, first_rows
from credo.streams.programs import NEVER, Opening, blank_words, packer, unpacker
from credo.streams.words import Parts, WordLayout, WordReader, WordWriter

__all__ = ["Answer", "Learned", "Programs", "Row", "with_prior_arm"]

Row: TypeAlias = tuple[np.ndarray | None, int, float, float, int]
"""What an update needs: the context, the slot of the arm, the reward, its weight, and the update's number."""

_LENGTHS = (16, 256)
"""How many decisions or updates one call of a program may hold."""

T = TypeVar("T")

_DECISION, _UPDATE = 0, 1
"""What the keys of a bandit are for."""

_NUMBER = jax.ShapeDtypeStruct((), np.uint32)


class Answer(NamedTuple):
    """A decision: the slot of the chosen arm; and pmf, mean, sd and whether allowed, of all slots (4, K)."""

    slot: int
    numbers: np.ndarray


class Learned(NamedTuple):
    """The belief after an update as words; of each reward whether it was taken in, and its log evidence."""

    belief: Parts
    ok: list[bool]
    log_evidence: list[float]


@dataclass(frozen=True)
class _Form(Opening):
    """Everything that the programs depend on beside numbers."""

    def choice(
        self, setting: Parts, state: Parts, question: tuple[Array, Array, Array]
    ) -> tuple[Array, Array]:
        """The choice at a context among the allowed arms, by the key of the decision's number."""
        agent, belief, key = self.open(setting, state)
        x, allowed, number = question
        own = jax.random.fold_in(jax.random.fold_in(key, _DECISION), number)
        choice = agent.decide(belief, x, own, allowed)
        rows = (choice.pmf, choice.mean, choice.sd, allowed)
        return choice.arm, jnp.stack([row.astype(choice.pmf.dtype) for row in rows])

    def learn(self, setting: Parts, state: Parts, row: tuple[Array, ...]) -> tuple[AgentBelief[Any], Any]:
        """The belief after a reward, and what the update reports."""
        agent, belief, key = self.open(setting, state)
        x, arm, reward, weight, number = row
        own = jax.random.fold_in(jax.random.fold_in(key, _UPDATE), number)
        belief, info = agent.update(belief, x, arm, reward, weight=weight, key=own)
        return belief, (jnp.asarray(info.ok), jnp.asarray(info.log_evidence))

    def blank(self) -> tuple[Parts, Parts]:
        """The shapes of an agent and of its belief as words."""
        return blank_words(self.setting), blank_words(self.state)


def _blank_tree(layout: WordLayout) -> Any:
    leaves = [jax.ShapeDtypeStruct(*leaf) for leaf in zip(layout.shapes, layout.dtypes, strict=True)]
    return jax.tree.unflatten(layout.treedef, leaves)


@functools.lru_cache(maxsize=256)
def _decider(form: _Form, row: WordLayout) -> tuple[Callable[..., Any], Callable[..., Any], WordLayout]:
    """One decision, the first n of several decisions by one belief, and the layout of a choice."""
    try:
        choice = jax.eval_shape(form.choice, *form.blank(), _blank_tree(row))
    except (TypeError, ValueError, IndexError) as error:
        if isinstance(error, CredoError):
            raise
        raise CredoError(
            f"context must fit the model of the agent, which failed at the shape {row.shapes[:-2]}: "
            f"{str(error).splitlines()[0].rstrip('.')}.",
            field="context",
        ) from error
    layout = WordLayout.of(choice, large=NEVER)

    def one(setting: Parts, state: Parts, words: Array) -> Array:
        return layout.pack(form.choice(setting, state, row.unpack((words, ()))))[0]

    def many(setting: Parts, state: Parts, rows: Array, count: Array) -> Array:
        return each_row(lambda place: one(setting, state, rows[place]), rows.shape[0], count)

    return jax.jit(one), jax.jit(many), layout


@functools.lru_cache(maxsize=256)
def _updater(form: _Form, row: WordLayout) -> tuple[Callable[..., Any], Callable[..., Any], WordLayout]:
    """One update, the first n of several updates, and the layout of what an update reports."""
    belief, report = jax.eval_shape(form.learn, *form.blank(), _blank_tree(row))
    if WordLayout.of(belief) != form.state:
        raise CredoError("belief must keep its structure, shapes and dtypes in an update of the agent.")
    layout = WordLayout.of(report, large=NEVER)

    def one(setting: Parts, state: Parts, words: Array) -> tuple[Parts, Array]:
        belief, report = form.learn(setting, state, row.unpack((words, ())))
        return form.state.pack(belief), layout.pack(report)[0]

    def many(setting: Parts, state: Parts, rows: Array, count: Array) -> tuple[Parts, Array]:
        return first_rows(lambda state, place: one(setting, state, rows[place]), state, rows.shape[0], count)

    return jax.jit(one), jax.jit(many), layout


class Programs:
    """What a bandit asks its agent, for contexts of one shape. Decision n draws by fold_in(fold_in(key, 0),
    n), and update n by fold_in(fold_in(key, 1), n), with the key of the seed.
    """

    def __init__(self, agent: Agent, belief: AgentBelief[Any], seed: int) -> None:
        key = jax.random.key(seed)
        setting, start = jax.tree.map(jnp.asarray, ((agent, jax.random.key_data(key)), belief))
        self._form = _Form(WordLayout.of(setting), WordLayout.of(start), jax.random.key_impl(key))
        self._setting = packer(self._form.setting)(setting)
        self._float = np.dtype(jnp.result_type(float))
        self._arms = agent.arms
        self._ask: Any = None
        self._tell: Any = None

    def pack(self, belief: AgentBelief[Any]) -> Parts:
        """A belief as words; a CredoError where it is not one of this agent."""
        arrays = jax.tree.map(jnp.asarray, belief)
        if WordLayout.of(arrays) != self._form.state:
            raise CredoError("belief must have the structure, shapes and dtypes of the bandit's own.")
        words: Parts = packer(self._form.state)(arrays)
        return words

    def unpack(self, state: Parts) -> AgentBelief[Any]:
        """The belief again, bit by bit."""
        belief: AgentBelief[Any] = unpacker(self._form.state)(state)
        return belief

    def require_fit(self, x: np.ndarray | None) -> None:
        """Refuse contexts that the agent cannot take, by one abstract decision."""
        self._asking(x)

    def answer_dtype(self, x: np.ndarray | None) -> np.dtype:
        """The dtype of the numbers of an answer."""
        dtype: np.dtype = self._asking(x)[4].dtypes[1]
        return dtype

    def decide(self, state: Parts, x: np.ndarray | None, allowed: np.ndarray, number: int) -> Answer:
        """The choice of decision `number`."""
        one, _, write, read, _ = self._asking(x)
        slot, numbers = read(np.asarray(one(self._setting, state, write(_leaves(x, allowed, number)))))
        return Answer(slot, numbers.copy())

    def decide_many(
        self, state: Parts, xs: Sequence[np.ndarray | None], allowed: np.ndarray, first: int
    ) -> list[Answer]:
        """The choices of the decisions from number `first` on, all by one belief."""
        _, many, write, read, _ = self._asking(xs[0])
        choices: list[Answer] = []
        for block in _blocks(xs):
            start = first + len(choices)
            words = [write(_leaves(x, allowed, start + place)) for place, x in enumerate(block)]
            answers = np.asarray(many(self._setting, state, _padded(words), np.int32(len(words))))
            choices += [Answer(*read(answer)) for answer in answers[: len(words)]]
        return choices

    def learn(self, state: Parts, rows: Sequence[Row]) -> Learned:
        """The belief after some rewards, one after the other."""
        one, many, write, read = self._telling(rows[0][0])
        ok: list[bool] = []
        log_evidence: list[float] = []
        for block in _blocks(rows):
            words = [write(_leaves(*row)) for row in block]
            if len(words) == 1:
                state, report = one(self._setting, state, words[0])
                reports = np.asarray(report)[None]
            else:
                state, report = many(self._setting, state, _padded(words), np.int32(len(words)))
                reports = np.asarray(report)[: len(words)]
            for values in map(read, reports):
                ok.append(values[0])
                log_evidence.append(values[1])
        return Learned(state, ok, log_evidence)

    def _asking(self, x: np.ndarray | None) -> Any:
        if self._ask is None:
            row = (_spec(x, self._float), jax.ShapeDtypeStruct((self._arms,), bool), _NUMBER)
            layout = WordLayout.of(row, large=NEVER)
            one, many, answer = _decider(self._form, layout)
            self._ask = one, many, _Writer(layout), WordReader(answer), answer
        return self._ask

    def _telling(self, x: np.ndarray | None) -> Any:
        if self._tell is None:
            real = jax.ShapeDtypeStruct((), self._float)
            row = (_spec(x, self._float), jax.ShapeDtypeStruct((), np.int32), real, real, _NUMBER)
            layout = WordLayout.of(row, large=NEVER)
            one, many, answer = _updater(self._form, layout)
            self._tell = one, many, _Writer(layout), WordReader(answer)
        return self._tell


class _Writer:
    """Writes rows as words; threads may share it, as every call has a writer of its own thread."""

    def __init__(self, layout: WordLayout) -> None:
        self._layout, self._local = layout, threading.local()

    def __call__(self, leaves: Sequence[Any]) -> np.ndarray:
        writer: WordWriter | None = getattr(self._local, "writer", None)
        if writer is None:
            writer = self._local.writer = WordWriter(self._layout)
        return writer(leaves)


def _leaves(x: np.ndarray | None, *others: Any) -> list[Any]:
    return [*others] if x is None else [x, *others]


def _spec(x: np.ndarray | None, kind: np.dtype) -> Any:
    return None if x is None else jax.ShapeDtypeStruct(x.shape, kind)


def _blocks(rows: Sequence[T]) -> Iterator[Sequence[T]]:
    """The rows in blocks for which there is a program."""
    for start in range(0, len(rows), _LENGTHS[-1]):
        yield rows[start : start + _LENGTHS[-1]]


def _padded(words: Sequence[np.ndarray]) -> np.ndarray:
    """Rows of words, filled up with zeros to one of few lengths, each of which is compiled once."""
    length = next(length for length in _LENGTHS if length >= len(words))
    rows = np.zeros((length, words[0].size), np.uint32)
    rows[: len(words)] = words
    return rows


def with_prior_arm(belief: AgentBelief[Any], prior: AgentBelief[Any], slot: int) -> AgentBelief[Any]:
    """The belief of agents with one learner an arm, with the arm of a slot as it was before any reward."""
    inner, first = belief.belief, prior.belief
    assert isinstance(inner, ArmBeliefs) and isinstance(first, ArmBeliefs)
    reset = jax.tree.map(lambda now, then: now.at[slot].set(then[slot]), inner.beliefs, first.beliefs)
    units = belief.units
    if units is not None:
        units = replace(units, first=units.first.without(slot))
    return replace(belief, belief=replace(inner, beliefs=reset), units=units)
