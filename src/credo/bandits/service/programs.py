"""Compiled programs by which a bandit asks its agent: a belief as words, NumPy in and NumPy out.

Every program is `Agent.decide` or `Agent.update`, whose last digits may differ by the processor; bandits of
alike agents share them.
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
from credo.bandits.one_arm import STAYS, WHOLE, arm_axes, has_arms, learn_one_arm, put_arm
from credo.bandits.policies import Guarded
from credo.bandits.service.arms import Limits
from credo.bandits.service.belief_words import Copies, Held
from credo.core.errors import CredoError
from credo.core.keys import fold_in
from credo.core.records import replace
from credo.core.types import Array
from credo.learners.acceptance import call_fenced
from credo.programs.build import Built, asking, changing, learning
from credo.programs.form import Form, setting_of
from credo.programs.words import NEVER, WordLayout, WordReader, WordWriter

__all__ = ["Answer", "Learned", "Programs", "Row", "with_prior_arm"]


# What the keys of a bandit are for.
_DECISION = 0
_UPDATE = 1


def choose(agent: Agent, belief: AgentBelief[Any], key: Any, row: tuple[Any, ...]) -> tuple[Array, Array]:
    """The choice at a context among the allowed arms, by the key of the decision's number, with the least and
    the largest probability of each arm (2, K) if they are bounded: the arm; and pmf, mean, sd and whether
    allowed, of all slots (4, K).

    Raises:
        CredoError: the agent cannot take such a context.
    """
    x, allowed, number, bounds = row
    if bounds is not None:
        agent = replace(agent, policy=Guarded(agent.policy, floors=bounds[0], caps=bounds[1]))
    own = fold_in(fold_in(key, _DECISION), number)
    try:
        choice = agent.decide(belief, x, own, allowed)
    except (TypeError, ValueError, IndexError) as error:
        if isinstance(error, CredoError):
            raise
        raise CredoError(
            f"context must fit the model of the agent, which failed at the shape {jnp.shape(x)}: "
            f"{str(error).splitlines()[0].rstrip('.')}.",
            field="context",
        ) from error
    rows = (choice.pmf, choice.mean, choice.sd, allowed)
    return choice.arm, jnp.stack([row.astype(choice.pmf.dtype) for row in rows])


def learn_reward(
    agent: Agent, belief: AgentBelief[Any], key: Any, row: tuple[Any, ...]
) -> tuple[AgentBelief[Any], tuple[Array, Array]]:
    """The belief after a reward, and whether it was taken in, with its log evidence."""
    x, arm, reward, weight, number = row
    own = fold_in(fold_in(key, _UPDATE), number)
    belief, info = agent.update(belief, x, arm, reward, weight=weight, key=own)
    return belief, (jnp.asarray(info.ok), jnp.asarray(info.log_evidence))


def decider(form: Form, row: WordLayout, length: int | None = None) -> Built:
    """One decision, or the first n of `length` decisions by one belief; and the layout of a choice."""
    name = "decide" if length is None else "decide_rows"
    return asking(name, form, row, choose, length=length)


def updater(form: Form, row: WordLayout, length: int | None = None) -> Built:
    """One update, or the first n of `length` updates; and the layout of what an update reports."""
    name = "reward" if length is None else "reward_rows"
    return learning(name, form, row, learn_reward, length=length)


class ArmProgram(NamedTuple):
    """One update that gives words, the arm's parts of large arrays and others as a whole, and a report; which
    of the large arrays have a part of each arm, and along which axes; and which come as a whole, since time
    moves all arms in them.
    """

    built: Built
    places: tuple[int, ...]
    axes: tuple[int, ...]
    timed: tuple[int, ...]


@functools.lru_cache(maxsize=256)
def arm_updater(form: Form, row: WordLayout) -> ArmProgram | None:
    """The update of one arm; None if no large array has a part of each arm that stays until its reward, as
    where time moves the beliefs about all arms, or an update changes another large array.
    """
    agent, _ = form.setting.blank
    if not has_arms(agent.rewards.design):
        return None
    large = large_axes(form)
    if WHOLE in large:
        return None
    timed = moved_by_time(form)
    apart = [(place, axis) for place, axis in enumerate(large) if axis != STAYS and place not in timed]
    if not apart:
        return None
    places, along = zip(*apart, strict=True)
    return ArmProgram(changing("reward_arm", form, row, ArmUpdate(form)), places, along, timed)


def large_axes(form: Form) -> list[int]:
    """The axis of the arms of each large array of a belief, `WHOLE` or `STAYS`."""
    axes = jax.tree.leaves(arm_axes(form.state.blank))
    return [axis for place, axis in zip(form.state.places, axes, strict=True) if place < 0]


@functools.lru_cache(maxsize=256)
def moved_by_time(form: Form) -> tuple[int, ...]:
    """Which of the large arrays time moves."""
    agent, _ = form.setting.blank
    belief = form.state.blank
    later = jax.make_jaxpr(lambda agent, belief: agent.rewards.time_update(belief, None))(agent, belief).jaxpr
    before = later.invars[-len(later.outvars) :]
    large = [at for at, place in enumerate(form.state.places) if place < 0]
    return tuple(place for place, at in enumerate(large) if before[at] is not later.outvars[at])


@dataclass(frozen=True)
class ArmUpdate:
    """The step of one arm: the words, the arm's parts of the large arrays and the large arrays that time
    moves; and what the update reports, with whether more than this changed.
    """

    form: Form

    def __call__(self, agent: Agent, belief: AgentBelief[Any], key: Any, row: tuple[Any, ...]) -> Any:
        x, arm, reward, weight, number = row
        own = fold_in(fold_in(key, _UPDATE), number)
        return call_fenced(self._learn, (agent, belief, x, arm, reward, weight, own))

    def _learn(self, agent: Agent, belief: AgentBelief[Any], *row: Any) -> Any:
        with jax.default_matmul_precision("highest"):
            step = learn_one_arm(agent.rewards, belief, row[:2], *row[2:])
        state = self.form.state
        axes = arm_axes(state.blank)
        put = functools.partial(put_arm, arm=row[1])
        words, whole = state.pack(jax.tree.map(put, axes, step.before, step.after))
        timed = moved_by_time(self.form)
        after = zip(state.places, jax.tree.leaves(step.after), strict=True)
        large = zip(large_axes(self.form), (leaf for place, leaf in after if place < 0), strict=True)
        parts = [leaf for at, (axis, leaf) in enumerate(large) if axis != STAYS and at not in timed]
        moved = tuple(whole[at] for at in timed)
        report = (jnp.asarray(step.info.ok), jnp.asarray(step.info.log_evidence), step.more)
        return (words, tuple(parts), moved), report


Row: TypeAlias = tuple[np.ndarray | None, int, float, float, int]
"""Inputs of an update: the context, the slot of the arm, the reward, its weight, and the update's number."""

_LENGTHS = (16, 256)
"""The numbers of decisions or updates that one call of a program may hold."""

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
    """The programs by which a bandit asks its agent, for contexts of one shape. Decision n draws by
    fold_in(fold_in(key, 0), n), and update n by fold_in(fold_in(key, 1), n), with the key of the seed.
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
        bounded = limits.bounds is not None
        ask = self._ask.get((None, bounded)) or self._asking(x, bounded)
        words = ask.write.own.lend(_leaves(x, limits, number))
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
            words = [ask.write.own(_leaves(x, limits, start + place)) for place, x in enumerate(block)]
            answers = np.asarray(ask.program(self._setting, held.parts, *_padded(words)))
            choices += [Answer(*ask.read(answer)) for answer in answers[: len(words)]]
        return choices

    def learn(self, held: Held, rows: Sequence[Row]) -> Learned:
        """The belief after some rewards, one after the other."""
        tell = self._telling(rows[0][0])
        if tell.arm is not None:
            return self._learn_arms(tell, held, rows)
        state = held.parts
        reports = []
        for block in _blocks(rows):
            if len(block) == 1:
                one = self._learning(tell.layout)
                word = tell.write.own.lend(_known(block[0]))
                state, report = one.program(self._setting, state, word)
                reports.append(one.read(report))
            else:
                words = [tell.write.own(_known(row)) for row in block]
                many = self._learning(tell.layout, _length(len(words)))
                state, report = many.program(self._setting, state, *_padded(words))
                reports += map(many.read, np.asarray(report)[: len(words)])
        return _learned(Held(state), reports)

    def _learn_arms(self, tell: _Telling, held: Held, rows: Sequence[Row]) -> Learned:
        """The same for learners that each arm has apart, where a reward changes the part of one arm."""
        assert tell.arm is not None
        learn, read, copies = tell.arm
        # whether nobody else has seen the belief
        reports = []
        private = False
        for row in rows:
            words = tell.write.own.lend(_known(row))
            (own, parts, moved), report = learn(self._setting, held.parts, words)
            *said, more = read(report)
            if more:  # other arms have changed, too
                one = self._learning(tell.layout)
                state, report = one.program(self._setting, held.parts, words)
                held = Held(state, copies)
                said = one.read(report)
            else:
                patch = np.int32(row[1]), parts
                held = copies.with_arm(held, own, patch, moved, private=private)
            reports.append(said)
            private = True
        return _learned(held, reports)

    def _asking(self, x: np.ndarray | None, bounded: bool, length: int | None = None) -> _Asking:
        """The tools for one decision, or for several."""
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
        """The tools for rewards."""
        if self._tell is None:
            real = jax.ShapeDtypeStruct((), self._float)
            row = (_spec(x, self._float), jax.ShapeDtypeStruct((), np.int32), real, real, _NUMBER)
            layout = WordLayout.of(row, large=NEVER)
            arm = arm_updater(self._form, layout)
            way = None
            if arm is not None:
                copies = Copies(arm.places, arm.axes, arm.timed)
                way = arm.built.compiled, WordReader(arm.built.report), copies
            self._tell = _Telling(_Writer(layout), layout, way)
        return self._tell

    def _learning(self, row: WordLayout, length: int | None = None) -> _Learning:
        """The tools for one reward, or for several, that are learned by an update of the whole belief."""
        found = self._whole.get(length)
        if found is None:
            program, report = updater(self._form, row, length)
            found = self._whole[length] = _Learning(program, WordReader(report))
        return found


class _Asking(NamedTuple):
    """The tools for decisions: the program, the writer of rows, their layout, and the reader of answers."""

    program: Callable[..., Any]
    write: _Writer
    read: WordReader
    layout: WordLayout


class _Learning(NamedTuple):
    """A program of updates of the whole belief, and what reads its reports."""

    program: Callable[..., Any]
    read: WordReader


class _Telling(NamedTuple):
    """The tools for rewards: the writer of rows, their layout, and the update of one arm with the reader of
    its reports and the copies that it writes into, if there is one.
    """

    write: _Writer
    layout: WordLayout
    arm: tuple[Callable[..., Any], WordReader, Copies] | None


def _learned(held: Held, reports: Sequence[Any]) -> Learned:
    ok, log_evidence = zip(*reports, strict=True)
    return Learned(held, list(ok), list(log_evidence))


class _Writer(threading.local):
    """Writes rows as words; threads may share it, as each has a writer of its `own`."""

    def __init__(self, layout: WordLayout) -> None:
        self.own = WordWriter(layout)


def _known(row: Sequence[Any]) -> Sequence[Any]:
    """The leaves of a row of rewards: the first, its inputs, may be missing."""
    return row if row[0] is not None else row[1:]


def _leaves(x: np.ndarray | None, limits: Limits, number: int) -> list[Any]:
    """The leaves of a row of decisions that are there."""
    leaves: list[Any] = [limits.allowed, number]
    if x is not None:
        leaves.insert(0, x)
    if limits.bounds is not None:
        leaves.append(limits.bounds)
    return leaves


def _spec(x: np.ndarray | None, kind: np.dtype) -> Any:
    if x is None:
        return None
    return jax.ShapeDtypeStruct(x.shape, kind)


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
    inner = belief.belief
    first = prior.belief
    assert isinstance(inner, ArmBeliefs) and isinstance(first, ArmBeliefs)
    reset = jax.tree.map(lambda now, then: now.at[slot].set(then[slot]), inner.beliefs, first.beliefs)
    units = belief.units
    if units is not None:
        units = replace(units, first=units.first.without(slot))
    return replace(belief, belief=replace(inner, beliefs=reset), units=units)
