"""What a bandit compiles: deciding and learning, with an agent and its belief as words.

Every program is `Agent.decide` or `Agent.update`, whose last digits may differ by the processor; bandits of
alike agents share them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from credo.bandits.agent import Agent, AgentBelief
from credo.bandits.one_arm import STAYS, WHOLE, arm_axes, has_arms, learn_one_arm, put_arm
from credo.bandits.policies import Guarded
from credo.core.errors import CredoError
from credo.core.kept import program
from credo.core.keys import fold_in
from credo.core.records import replace
from credo.core.types import Array
from credo.learners.acceptance import call_fenced
from credo.programs.build import Built, asking, learning
from credo.programs.form import Form
from credo.programs.words import NEVER, Parts, WordLayout

__all__ = ["ArmProgram", "arm_updater", "decider", "updater"]

Arrays: TypeAlias = tuple[Array, ...]
"""Some of the large arrays."""

_DECISION, _UPDATE = 0, 1
"""What the keys of a bandit are for."""


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
    """One update that gives words, the arm's parts of large arrays, others as a whole, and a report; the
    layout of the report; which of the large arrays have a part of each arm, and along which axes; and which
    come as a whole, since time moves all arms in them.
    """

    learn: Callable[..., Any]
    report: WordLayout
    places: tuple[int, ...]
    axes: tuple[int, ...]
    timed: tuple[int, ...]


@functools.lru_cache(maxsize=256)
def arm_updater(form: Form, row: WordLayout) -> ArmProgram | None:
    """The update of one arm; None if no large array has a part of each arm that stays until its reward, as
    where time moves the beliefs about all arms, or an update changes another large array.
    """
    agent, _ = form.setting.blank
    belief = form.state.blank
    if not has_arms(agent.rewards.design):
        return None
    axes = arm_axes(belief)
    large = [
        (at, axis)
        for at, (place, axis) in enumerate(zip(form.state.places, jax.tree.leaves(axes), strict=True))
        if place < 0
    ]
    if any(axis == WHOLE for _, axis in large):
        return None
    later = jax.make_jaxpr(lambda agent, belief: agent.rewards.time_update(belief, None))(agent, belief).jaxpr
    before = later.invars[-len(later.outvars) :]
    timed = frozenset(place for place, (at, _) in enumerate(large) if before[at] is not later.outvars[at])
    apart = [(place, axis) for place, (_, axis) in enumerate(large) if axis != STAYS and place not in timed]
    if not apart:
        return None
    build = functools.partial(_update_arm, form, row, axes, timed)
    shapes = (*form.blank, jax.ShapeDtypeStruct((row.size,), np.uint32))
    learn, report = program("reward_arm", (form, row), build, shapes)
    places, along = zip(*apart, strict=True)
    return ArmProgram(learn, report, places, along, tuple(sorted(timed)))


def _update_arm(form: Form, row: WordLayout, axes: Any, timed: frozenset[int]) -> Built:
    """The update of one arm before it is compiled."""
    learn = functools.partial(_learn_arm, form, axes, timed)
    layout = WordLayout.of(jax.eval_shape(learn, *form.blank, row.blank)[3], large=NEVER)

    def one(setting: Parts, state: Parts, words: Array) -> tuple[Array, Arrays, Arrays, Array]:
        words, parts, moved, report = learn(setting, state, row.unpack((words, ())))
        return words, parts, moved, layout.pack(report)[0]

    return Built(one, layout)


def _learn_arm(
    form: Form, axes: Any, timed: frozenset[int], setting: Parts, state: Parts, row: tuple[Array, ...]
) -> Any:
    """What a reward changes: the words, the arm's parts of the large arrays, the large arrays that time
    moves, and what the update reports, with whether more than this changed. `axes` are those of the arms,
    and `timed` which of the large arrays time moves.
    """
    agent, belief, key = form.open(setting, state)
    x, arm, reward, weight, number = row
    own = fold_in(fold_in(key, _UPDATE), number)

    def learn(agent: Agent, belief: AgentBelief[Any], *row: Any) -> Any:
        with jax.default_matmul_precision("highest"):
            step = learn_one_arm(agent.rewards, belief, row[:2], *row[2:])
        put = functools.partial(put_arm, arm=row[1])
        words, whole = form.state.pack(jax.tree.map(put, axes, step.before, step.after))
        leaves = zip(form.state.places, jax.tree.leaves(axes), jax.tree.leaves(step.after), strict=True)
        large = enumerate((axis, leaf) for place, axis, leaf in leaves if place < 0)
        parts = tuple(leaf for at, (axis, leaf) in large if axis != STAYS and at not in timed)
        moved = tuple(whole[at] for at in sorted(timed))
        report = (jnp.asarray(step.info.ok), jnp.asarray(step.info.log_evidence), step.more)
        return words, parts, moved, report

    return call_fenced(learn, (agent, belief, x, arm, reward, weight, own))
