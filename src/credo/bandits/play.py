"""An agent plays in an environment: many seeds and data orders in one compiled scan."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from credo.bandits.agent import Agent, AgentBelief
from credo.bandits.default import DefaultAgent, agent_of
from credo.bandits.environments import Environment
from credo.bandits.play_report import PlayReport
from credo.bandits.units import numbers_of
from credo.core.errors import CredoError, require_integer
from credo.core.keys import as_key
from credo.core.trees import select
from credo.core.types import Array, Key, PyTree
from credo.core.verbs import verb

__all__ = ["play"]

Params: TypeAlias = PyTree | Callable[[Array], PyTree]
"""The prior mean, or a function of a key that draws one for each seed."""

BINS = 20
"""The number of classes of probability in which P(best) is checked."""

_WORLD, _DECISION, _REWARD, _UPDATE, _ADVANCE, _PARAMS = range(6)
"""The purposes of the keys of a seed."""


class _Waiting(NamedTuple):
    """Decisions whose reward has not come, first in, first out (delay, ...)."""

    x: PyTree
    arm: Array
    reward: Array


class _Row(NamedTuple):
    """The record of a step."""

    arm: Array
    reward: Array
    regret: Array
    propensity: Array
    log_evidence: Array
    ok: Array


class _Tally(NamedTuple):
    """Counts of how often arms were the best, by the probability of their choice (BINS,) each."""

    claimed: Array
    best: Array
    seen: Array


_State: TypeAlias = tuple[AgentBelief[Any], Any, _Waiting | None, _Tally]


def play(  # noqa: PLR0913 - settings, each by its name
    agent: Agent | DefaultAgent,
    environment: Environment[Any],
    *,
    steps: int | None = None,
    seeds: int = 10,
    key: Key = 0,
    params: Params = None,
    var: PyTree = None,
    delay: int = 0,
    options: Mapping[str, PyTree] | None = None,
) -> PlayReport:
    """Run an agent in an environment, once for every seed, each time with its own world or order of the data.

    Arguments:
        agent: the agent, or what `default_agent` gives.
        environment: the world.
        steps: how many decisions T; None for all rows of the environment's data.
        seeds: how many runs, which differ in the world, the order of its rows, the rewards and the choices.
        key: the key of everything.
        params: the prior mean; or a function of a key, which gives each seed a prior mean (a network) of its
            own. None takes that of `default_agent`, if it is one.
        var: the prior variance, as for the learner's `init`; None takes that of `default_agent`, or 1.
        delay: after how many further decisions a reward is learned, in the order of the decisions.
        options: further arguments of the agent's `init`.

    Returns:
        A `PlayReport`: the arms, rewards, regrets and propensities of all steps, and their summary.

    Raises:
        CredoError: the number of arms or the design does not fit the environment, or a number is out of
            range.

    Cost: T decisions and updates a seed, in one program. Seeds run side by side (`jax.vmap`), and share data.

    Example:
        >>> import credo
        >>> from credo import bandits
        >>> agent = bandits.Agent(credo.BetaBernoulli(), arms=3, design="arms")
        >>> world = bandits.environments.BernoulliArms(chances=[0.1, 0.5, 0.9])
        >>> report = play(agent, world, steps=200, seeds=4)
        >>> bool(report.totals.mean() > 150), report.rewards.shape
        (True, (4, 200))
    """
    if isinstance(agent, DefaultAgent):
        params = agent.params if params is None else params
        var = agent.var if var is None else var
    agent = agent_of(agent)
    var = 1.0 if var is None else var
    _require_fit(agent, environment)
    length = environment.steps if steps is None else steps
    if length is None:
        raise CredoError("steps is missing: this environment has no end.", field="steps")
    require_integer("steps", length, 1, environment.steps)
    require_integer("seeds", seeds, 1)
    require_integer("delay", delay, 0)
    keys = jax.random.split(as_key(key), seeds)
    draw = params if callable(params) and not _is_tree(params) else None
    start = None if draw is not None else params
    last, rows, tallies = _play(
        agent, environment, keys, start, var, dict(options or {}), steps=length, delay=delay, draw=draw
    )
    constant = environment.best_constant()
    unit = float(np.asarray(environment.unit))
    return PlayReport(
        arms=np.asarray(rows.arm),
        rewards=np.asarray(rows.reward),
        regrets=np.asarray(rows.regret),
        propensities=np.asarray(rows.propensity),
        log_evidence=np.asarray(rows.log_evidence),
        refused=int(np.sum(~np.asarray(rows.ok))),
        calibration=np.stack([np.asarray(part).sum(0) for part in tallies]),
        unit=unit,
        best_constant=None if constant is None else float(constant.reward) * unit,
        beliefs=last,
    )


def _is_tree(value: object) -> bool:
    """Whether JAX sees arrays in it, as in a callable record."""
    leaves = jax.tree.leaves(value)
    return not (len(leaves) == 1 and leaves[0] is value)


def _require_fit(agent: Agent, environment: Environment[Any]) -> None:
    if not isinstance(environment, Environment):
        raise CredoError(
            "environment must be a bandits.environments.Environment, such as "
            f"bandits.load_environment('statlog'); got {environment!r}.",
            field="environment",
        )
    if agent.arms != environment.arms:
        raise CredoError(
            f"arms of the agent must be those of the environment, {environment.arms}; got {agent.arms}.",
            field="arms",
        )
    if (agent.design == "actions") != (environment.design == "actions"):
        raise CredoError(
            f"design must be {'' if environment.design == 'actions' else 'other than '}'actions' in this "
            f"environment; got {agent.design!r}.",
            field="design",
        )


@verb(static=("steps", "delay", "draw"))
def _play(  # noqa: PLR0913 - settings, each by its name
    agent: Agent,
    environment: Environment[Any],
    keys: Array,
    params: PyTree,
    var: PyTree,
    options: dict[str, PyTree],
    *,
    steps: int,
    delay: int,
    draw: Callable[[Array], PyTree] | None,
) -> tuple[AgentBelief[Any], _Row, _Tally]:
    def one(key: Array) -> tuple[AgentBelief[Any], _Row, _Tally]:
        world = environment.start(jax.random.fold_in(key, _WORLD))
        prior = params if draw is None else draw(jax.random.fold_in(key, _PARAMS))
        x = environment.context(world).x
        scaled = {"context": numbers_of(x)} if agent.takes_example else {}
        belief = agent.init(prior, var=var, **scaled, **options)
        blank = jnp.zeros(BINS)
        waiting = None if delay == 0 else _waiting(x, delay)
        state = (belief, world, waiting, _Tally(blank, blank, blank))

        def body(state: _State, t: Array) -> tuple[_State, _Row]:
            return _step(agent, environment, key, state, t, delay)

        (belief, _, _, tally), rows = jax.lax.scan(body, state, jnp.arange(steps))
        return belief, rows, tally

    return jax.vmap(one)(keys)


def _waiting(x: PyTree, delay: int) -> _Waiting:
    blank = jax.tree.map(lambda leaf: jnp.zeros((delay, *jnp.shape(leaf)), jnp.asarray(leaf).dtype), x)
    return _Waiting(blank, jnp.zeros(delay, jnp.int32), jnp.zeros(delay))


def _step(
    agent: Agent, environment: Environment[Any], key: Array, state: _State, t: Array, delay: int
) -> tuple[_State, _Row]:
    belief, world, waiting, tally = state

    def key_of(purpose: int) -> Array:
        return jax.random.fold_in(jax.random.fold_in(key, purpose), t)

    context = environment.context(world)
    choice = agent.decide(belief, context.x, key_of(_DECISION), context.allowed)
    reward = environment.reward(world, choice.arm, key_of(_REWARD))
    tally = _counted(tally, choice.pmf, environment.means(world), context.allowed)
    regret = environment.regret(world, choice.arm)
    x = context.x
    arm = choice.arm
    value = reward
    if waiting is not None:
        slot = t % delay
        x, arm, value = jax.tree.map(lambda leaf: leaf[slot], tuple(waiting))
        newest = (context.x, choice.arm, reward)
        waiting = _Waiting(
            *jax.tree.map(
                lambda leaves, leaf: leaves.at[slot].set(jnp.asarray(leaf, leaves.dtype)),
                tuple(waiting),
                newest,
            )
        )
    learned, info = agent.update(belief, x, arm, value, key=key_of(_UPDATE))
    due = t >= delay
    belief = learned if delay == 0 else select(due, learned, belief)
    row = _Row(
        choice.arm,
        reward * jnp.asarray(environment.unit, reward.dtype),
        regret,
        choice.propensity,
        jnp.where(due, info.log_evidence, 0.0),
        info.ok | ~due,
    )
    world = environment.advance(world, choice.arm, key_of(_ADVANCE))
    return (belief, world, waiting, tally), row


def _counted(tally: _Tally, pmf: Array, means: Array, allowed: Array) -> _Tally:
    """The tally with the probabilities of one decision; ties of the best arms are shared."""
    top = jnp.where(allowed, means, -jnp.inf) >= jnp.max(jnp.where(allowed, means, -jnp.inf))
    kind = tally.seen.dtype
    best = top.astype(kind) / jnp.sum(top.astype(kind))
    where = jnp.clip((pmf * BINS).astype(jnp.int32), 0, BINS - 1)
    one = jax.nn.one_hot(where, BINS, dtype=kind) * allowed.astype(kind)[:, None]
    each = pmf.astype(kind), best
    return _Tally(tally.claimed + each[0] @ one, tally.best + each[1] @ one, tally.seen + jnp.sum(one, 0))
