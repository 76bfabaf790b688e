"""Reward against memory: how much of the past a neural agent must keep, in five ways of keeping it.

A network of 50 hidden units with an output for each arm learns from the rewards of chosen arms. It keeps a
covariance of some rank, the latest rewards for replay, a belief in a subspace of the weights, a belief about
its last layer with a limited memory, or several copies of itself. Each is played at several sizes.
"""

from __future__ import annotations

import dataclasses
import functools

from credo.bandits import Thompson, load_environment
from credo.bandits.policies import EpsilonGreedy
from credo_papers import baselines
from credo_papers.bandits.bandit_agents import Build, Player, network
from credo_papers.bandits.bandit_contest import Contest, Contestant, Peer, contest
from credo_papers.bandits.bandit_memory_figure import draw
from credo_papers.baselines import Recipe
from credo_papers.engine.cell_folder import Cells
from credo_papers.engine.experiment import Outcome, Size
from credo_papers.engine.portions import Progress

__all__ = ["run"]

# Plan

WORLDS: dict[Size, tuple[str, ...]] = {"quick": ("statlog",), "full": ("statlog", "mnist")}
RUNS: dict[Size, int] = {"quick": 2, "full": 5}
STEPS: dict[Size, int] = {"quick": 500, "full": 5000}
QUICK = (1, 10)
"""The sizes of the quick experiment."""

LOFI = Peer(4719, 96, "LOFI of rank 10, its code rerun")
SUBSPACE = Peer(4579, 324, "subspace EKF of 200 directions, fair warm-up")

# Agents


def _scale(inputs: int) -> bool:
    """Images are not scaled."""
    return inputs < 150


def _player(recipe: Recipe) -> Player:
    return Player(recipe.agent, recipe.params, recipe.var, recipe.options)


def low_rank(rank: int, arms: int, inputs: int) -> Player:
    """A covariance of some rank over all weights, and Thompson sampling."""
    return network(arms, inputs, rank, _scale(inputs))


def replay(memory: int, arms: int, inputs: int) -> Player:
    """Adam on the latest rewards, epsilon-greedy."""
    policy = EpsilonGreedy(0.05)
    return _player(baselines.gradient_agent(arms, inputs, memory=memory, policy=policy, scale=_scale(inputs)))


def subspace(dimension: int, arms: int, inputs: int) -> Player:
    """A full covariance over a random subspace of the weights, and Thompson sampling."""
    return _player(
        baselines.subspace_agent(
            arms, inputs, dimension=dimension, policy=Thompson(draws=64), scale=_scale(inputs)
        )
    )


def neural_linear(memory: int, arms: int, inputs: int) -> Player:
    """A belief about the last layer, with likelihood matching on the latest rewards."""
    return _player(
        baselines.neural_linear_agent(
            arms, inputs, memory=memory, policy=Thompson(draws=64), scale=_scale(inputs)
        )
    )


def bootstrap(members: int, arms: int, inputs: int) -> Player:
    """Networks that learn online on bootstrapped rewards, one of which is asked."""
    return _player(baselines.bootstrap_agent(arms, inputs, members=members, scale=_scale(inputs)))


FAMILIES: dict[str, tuple[functools.partial[Player], ...]] = {
    "rank": tuple(functools.partial(low_rank, size) for size in (1, 3, 10, 30)),
    "replay": tuple(functools.partial(replay, size) for size in (1, 10, 100)),
    "subspace": tuple(functools.partial(subspace, size) for size in (10, 50, 200)),
    "neural-linear": tuple(functools.partial(neural_linear, size) for size in (10, 30)),
    "bootstrap": tuple(functools.partial(bootstrap, size) for size in (3, 10)),
}
"""Ways of keeping the past, each at several sizes, which are the first argument."""

# Run


def run(size: Size, seed: int, progress: Progress, cells: Cells | None = None) -> Outcome:
    """Run every agent; the quick size has too few steps and sizes for a comparison."""
    steps = STEPS[size]
    full = size == "full"
    places: dict[str, list[int]] = {}
    contestants = []
    for family, builds in FAMILIES.items():
        for build in builds:
            amount = int(build.args[0])
            if not full and amount not in QUICK:
                continue
            places.setdefault(family, []).append(amount)
            peer = {"rank 10": LOFI, "subspace 200": SUBSPACE}.get(f"{family} {amount}") if full else None
            player: Build = build
            contestants.append(Contestant(f"{family} {amount}", player, {"statlog": peer} if peer else {}))
    plan = Contest(
        title="What a network keeps of the past",
        worlds={
            name: load_environment(name, limit=5000) if name == "mnist" else load_environment(name)
            for name in WORLDS[size]
        },
        contestants=contestants,
        steps=steps,
        seeds=RUNS[size],
        by_regret=False,
        settings={
            "network": "50 hidden units, an output for each arm",
            "inputs": "standardised by running moments; pixels as they are",
            "published": "other code on three orders of rows",
        },
        peers={},
    )
    outcome = contest(plan, seed, progress, cells)
    figure = functools.partial(draw, list(plan.worlds), places, outcome.arrays, steps)
    return dataclasses.replace(outcome, figure=figure)
