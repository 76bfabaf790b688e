"""Agents play in the same worlds: the seeds, the rewards and regrets of every run, and their table."""

from __future__ import annotations

import functools
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from credo.bandits import play
from credo.bandits.environments import AnyEnvironment
from credo_papers.bandits.bandit_agents import Build
from credo_papers.bandits.bandit_contest_figure import draw
from credo_papers.engine.cell_folder import Cells
from credo_papers.engine.experiment import Outcome
from credo_papers.engine.plain_data import Arrays, Json
from credo_papers.engine.portions import Progress
from credo_papers.engine.purposes import SCORED
from credo_papers.engine.quantities import Row, mean_se

if TYPE_CHECKING:
    from credo.core.types import Array

__all__ = ["Contest", "Contestant", "Peer", "contest", "spread"]

# How many points a curve has, how many seeds run side by side, and a number that changes with the agents.
POINTS = 100
BATCH = 5
VERSION = 2


@dataclass(frozen=True)
class Peer:
    """A number of another package or of a publication, for the same number of steps.

    Attributes:
        total: the mean total reward, or the mean regret where the contest counts regret.
        sd: its standard deviation over runs, if it is known.
        name: what it is.
    """

    total: float
    sd: float | None
    name: str

    def __str__(self) -> str:
        return f"{self.name}: {self.total:,.0f}" + ("" if self.sd is None else f" (sd {self.sd:,.0f})")


@dataclass(frozen=True)
class Contestant:
    """An agent that takes part.

    Attributes:
        label: its name.
        build: makes it for a number of arms and inputs.
        peers: what it is compared with, by the name of the world.
    """

    label: str
    build: Build
    peers: Mapping[str, Peer]


@dataclass(frozen=True)
class Contest:
    """Agents, and the worlds in which each of them plays.

    Attributes:
        title: the title of the figure.
        worlds: the worlds by name.
        contestants: the agents.
        steps: how many decisions a run has.
        seeds: how many runs an agent has in each world.
        by_regret: whether the table counts regret instead of reward.
        settings: what else the experiment ran with.
        peers: other agents that the figure shows, by the name of the world.
    """

    title: str
    worlds: Mapping[str, AnyEnvironment]
    contestants: Sequence[Contestant]
    steps: int
    seeds: int
    by_regret: bool
    settings: Mapping[str, Json]
    peers: Mapping[str, Sequence[Peer]]


def contest(plan: Contest, seed: int, progress: Progress, cells: Cells | None) -> Outcome:
    """Run every agent in every world, on seeds of their own order, and compare them.

    Arguments:
        plan: who plays where.
        seed, progress, cells: as in the `Run` of an experiment.
    """
    cells = Cells() if cells is None else cells
    pairs = [(world, player) for world in plan.worlds for player in plan.contestants]
    places = _places(plan.steps)
    series: Arrays = {"step": places + 1}
    arrays: Arrays = {}
    rows = []
    seconds = {}

    def play_all(number: int) -> Arrays:
        world, player = pairs[number]
        progress(number / len(pairs), f"{world}: {player.label}")
        return _runs(plan, world, player, seed, cells)

    for (world, player), runs in zip(pairs, cells.each(play_all, range(len(pairs))), strict=True):
        name = f"{world}: {player.label}"
        totals = runs["regret"][:, -1] if plan.by_regret else runs["total"]
        arrays[f"total {name}"] = runs["total"]
        arrays[f"regret {name}"] = runs["regret"]
        series[name] = runs["regret"].mean(axis=0)
        seconds[name] = round(float(runs["seconds"]), 1)
        peer = player.peers.get(world)
        note = spread(totals, plan.by_regret) + ("" if peer is None else f"; {peer}")
        quantity = f"{'regret' if plan.by_regret else 'reward'}, {name}"
        rows.append(Row(quantity, *mean_se(totals), None if peer is None else peer.total, None, note))
    settings: dict[str, Json] = {
        "steps": plan.steps,
        "runs": plan.seeds,
        "feedback": "the reward of the chosen arm alone, from the first step",
        "seconds": seconds,
        "peers": {world: [str(peer) for peer in peers] for world, peers in plan.peers.items()},
        **plan.settings,
    }
    seeds: dict[str, Json] = {
        "scored": f"keys folded from ({seed}, {SCORED}, i), {BATCH} runs each, with their own order of rows",
        "tuning": "jax.random.key(1000), by hand; not scored",
    }
    figure = functools.partial(
        draw,
        plan.title,
        list(plan.worlds),
        [player.label for player in plan.contestants],
        series,
        arrays,
        _marks(plan),
    )
    return Outcome(tuple(rows), settings, seeds, series, arrays, figure)


def spread(totals: np.ndarray, by_regret: bool = False) -> str:
    """The standard deviation over runs and the worst run, in words.

    Example:
        >>> spread(np.array([4800.0, 4820.0, 4810.0]))
        'sd 10, worst 4,800'
    """
    worst = totals.max() if by_regret else totals.min()
    return f"sd {totals.std(ddof=1):,.0f}, worst {worst:,.0f}"


def _runs(plan: Contest, world: str, player: Contestant, seed: int, cells: Cells) -> Arrays:
    """The totals and regrets of all runs, in cells of a few runs."""

    def play_batch(batch: int) -> Arrays:
        count = min(BATCH, plan.seeds - batch * BATCH)
        settings = {
            "world": world,
            "agent": player.label,
            "steps": plan.steps,
            "runs": count,
            "batch": batch,
            "seed": seed,
            "version": VERSION,
        }
        compute = functools.partial(_batch, plan, world, player, (seed, batch), count)
        return cells.get(f"{world} {player.label} {batch}", settings, compute)

    batches = cells.each(play_batch, range(-(-plan.seeds // BATCH)))
    joined = {name: np.concatenate([one[name] for one in batches]) for name in ("total", "regret")}
    return {**joined, "seconds": np.sum([one["seconds"] for one in batches])}


def _key(seed: int, batch: int) -> Array:
    return jax.random.fold_in(jax.random.fold_in(jax.random.key(seed), SCORED), batch)


def _batch(plan: Contest, world: str, player: Contestant, folds: tuple[int, int], count: int) -> Arrays:
    key = _key(*folds)
    environment = plan.worlds[world]
    inputs = jax.eval_shape(lambda: environment.context(environment.start(0))).x.shape[-1]
    agent, params, var, options = player.build(environment.arms, inputs)
    begin = time.perf_counter()
    report: Any = play(
        agent, environment, steps=plan.steps, seeds=count, key=key, params=params, var=var, options=options
    )
    seconds = time.perf_counter() - begin
    regret = report.regret[:, _places(plan.steps)]
    return {"total": report.totals, "regret": regret, "seconds": np.array(seconds)}


def _places(steps: int) -> np.ndarray:
    """The steps at which curves are kept, evenly spaced on a logarithmic scale, the last one included."""
    places: np.ndarray = np.unique(np.geomspace(1, steps, POINTS).round().astype(int)) - 1
    return places


def _marks(plan: Contest) -> dict[str, list[tuple[str, float]]]:
    """The regrets of the peers by world: where the table counts rewards, the most is 1 a step."""
    return {
        world: [(peer.name, peer.total if plan.by_regret else plan.steps - peer.total) for peer in peers]
        for world, peers in plan.peers.items()
    }
