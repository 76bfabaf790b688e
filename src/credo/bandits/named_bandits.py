"""A bandit in service that starts from the name of an agent and from what its contexts are."""

from __future__ import annotations

import inspect
import os
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from credo.bandits.named_agents import BanditProblem, policy_of, prepare
from credo.bandits.service import Bandit
from credo.bandits.service.engine import OnMissing
from credo.bandits.service.window import Clock

__all__ = ["SLOTS", "start_bandit"]

SLOTS = 32
"""The places for contexts by name, where no number is given."""


def start_bandit(  # noqa: PLR0913 - settings, each by its name
    arms: Sequence[str],
    inputs: int | None,
    *,
    named: bool = False,
    agent: str | None = None,
    policy: str | None = None,
    window: int | None = None,
    timeout: float | None = None,
    on_missing: OnMissing | None = None,
    seed: int = 0,
    log: str | os.PathLike[str] | None = None,
    clock: Clock | None = None,
    brought: int | None = None,
    arm_features: int = 16,
) -> tuple[Bandit, str]:
    """A new bandit, and its agent in words. `inputs` are the length of contexts, None for none; if they come
    by name (`named`), they are the places for them. None elsewhere leaves a choice to the bandit. With
    `brought` each decision brings its arms, at most so many, with so many places for their features.
    """
    # contexts by name are standardised by their encoder
    problem = BanditProblem(len(arms), inputs, binary=True, scale=not named, units="online")
    if brought is not None:
        inputs = inputs or SLOTS
        width = inputs + arm_features
        problem = problem._replace(arms=brought, inputs=width, binary=False, design="actions", scale=False)
    ready = prepare(agent or "default", problem, policy_of(policy))
    params: Any = ready.params
    if inspect.isfunction(params):
        params = params(jax.random.key(seed))
    example = ready.agent.takes_example and brought is None
    options = {"context": jnp.zeros(inputs or 0)} if example else None
    bandit = Bandit(
        ready.agent,
        arms=list(arms) if brought is None else {},
        params=params,
        var=ready.var,
        options=options,
        features=(inputs or SLOTS) if named else SLOTS,
        arm_features=None if brought is None else arm_features,
        window=10_000 if window is None else window,
        timeout=timeout,
        on_missing="drop" if on_missing is None else on_missing,
        seed=seed,
        log=log,
        clock=clock,
    )
    return bandit, f"{ready.description}; policy: {type(ready.agent.policy).__name__}"
