"""The start of a bandit: its checks, and its first parts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credo.bandits.agent import Agent, AgentBelief
from credo.bandits.default import DefaultAgent, agent_of
from credo.bandits.service.arms import Arms, Share
from credo.bandits.service.content import RewardRange, require_range, require_within
from credo.bandits.service.engine import Engine, OnMissing, Service, State
from credo.bandits.service.features import Features
from credo.bandits.service.inputs import FeatureEncoder, Inputs, as_features
from credo.bandits.service.programs import Programs
from credo.bandits.service.window import Clock, Time, Window
from credo.core.errors import CredoError, require_integer, require_positive, require_representable
from credo.core.records import replace
from credo.core.types import PyTree
from credo.models.model import LAYERED, Model

__all__ = ["require_options", "start"]


def require_options(
    agent: Agent,
    window: int,
    timeout: float | None,
    on_missing: OnMissing,
    reward_range: RewardRange | None = None,
) -> None:
    """Refuse options of a bandit that cannot be, by a CredoError that names the option."""
    agent_of(agent)
    require_integer("window", window, 1)
    if timeout is not None:
        require_positive("timeout", timeout)
    require_representable("on_missing", on_missing)
    number = isinstance(on_missing, int | float | np.number) and not isinstance(on_missing, bool)
    if on_missing != "drop" and not (number and np.isfinite(on_missing)):
        raise CredoError(
            f"on_missing must be 'drop' or the reward that is learned instead; got {on_missing!r}.",
            field="on_missing",
        )
    reward_range = require_range(reward_range)
    if on_missing != "drop":
        require_within(float(on_missing), reward_range, "on_missing")


def start(
    given: Agent | DefaultAgent,
    arms: Iterable[str] | Mapping[str, Mapping[str, object]] | None,
    first: tuple[AgentBelief[Any] | None, PyTree, PyTree, Mapping[str, PyTree] | None],
    encoders: tuple[int | Features | None, int | Features | None, bool],
    shares: Mapping[str, Share] | None,
    window: tuple[int, float | None, OnMissing, RewardRange | None],
    seed: int,
    clock: Clock | None,
) -> Service:
    """The parts of a new bandit, by the arguments of `Bandit`; what says where it begins comes first."""
    belief, params, var, options = first
    agent = agent_of(given)
    require_options(agent, *window)
    require_integer("seed", seed, 0)
    own: FeatureEncoder | None = None
    if isinstance(arms, Mapping):
        if agent.design != "actions":
            raise CredoError(
                f"arms must be names, as the design is {agent.design!r}; features of arms need 'actions'.",
                field="arms",
            )
        settings = as_features("arm_features", 16 if encoders[1] is None else encoders[1])
        own = FeatureEncoder(replace(settings, standardise=False), "features")
    names = Arms.of(arms, agent.arms).with_shares(shares or {})
    places = encoders[0]
    if places is None and isinstance(given, DefaultAgent) and agent.design != "actions":
        places = max(given.inputs, 2)
    inputs = Inputs(agent.design, FeatureEncoder(as_features("features", places)), own, encoders[2])
    rows = None
    if own is not None and isinstance(arms, Mapping):
        rows = inputs.table(arms, agent.arms) if arms else np.zeros((agent.arms, own.size))
    prior = None
    if params is None and isinstance(given, DefaultAgent):
        prior = given.init(seed)
    elif belief is None or params is not None:
        prior = _first_belief(agent, params, var, options, inputs.size, seed)
    begun = prior if belief is None else belief
    assert begun is not None
    programs = Programs(agent, begun, seed)
    state = State(programs.pack(begun), 0, names, rows)
    size, timeout, on_missing, reward_range = window
    remembered = Window(int(size), None if timeout is None else float(timeout), agent.arms)
    default: OnMissing = "drop" if on_missing == "drop" else float(on_missing)
    bounds = require_range(reward_range)
    engine = Engine(agent, programs, state, inputs, remembered, default, int(seed), Time(clock), bounds)
    return Service(engine, prior)


def _first_belief(
    agent: Agent, params: PyTree, var: PyTree, options: Mapping[str, PyTree] | None, size: int, seed: int
) -> AgentBelief[Any]:
    """The belief before any reward. Without params, a network of credo starts from parameters of its own, for
    inputs of length `size` where contexts come by name.
    """
    if params is None:
        models = _models(agent.learner)
        if len(models) == 1 and isinstance(models[0].apply, LAYERED):
            params = models[0].apply.init(jax.random.key(seed), (size,))
    more = dict(options or {})
    if agent.takes_example and "context" not in more:
        kinds = [
            jnp.asarray(leaf).dtype for leaf in jax.tree.leaves(params)
        ]  # a file has one for all numbers
        kind = next((one for one in kinds if jnp.issubdtype(one, jnp.floating)), jnp.result_type(float))
        more["context"] = jnp.zeros((agent.arms, size) if agent.design == "actions" else size, kind)
    return agent.init(params, var=var, **more)


def _models(learner: Any) -> list[Model]:
    """All models in a learner."""
    nodes = jax.tree.leaves(learner, is_leaf=lambda node: isinstance(node, Model))
    return [node for node in nodes if isinstance(node, Model)]
