"""Processor time of a decision and its update: credo beside the bandit packages, in one process, in turn.

Ours is a compiled scan over rows that lie ready, as theirs is a loop over the same rows; and a `Bandit` in
service, one call after the other. All run once before they are timed. `bandit_peers.py --times`
prints the tables.
"""

from __future__ import annotations

import functools
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from bandit_peer_agents import version
from bandit_peer_settings import Settings, build_peer
from bandit_service import bandit
from timing import machine

import credo
from credo import bandits
from credo.bandits.rewards import Scaler
from credo.covariances import LowRank

__all__ = ["VW", "call_times", "callers", "linear_agents", "peer_entries", "print_times", "rows_of"]


class Rows(NamedTuple):
    """Contexts (N, d) and the rewards of all arms (N, K)."""

    x: np.ndarray
    rewards: np.ndarray


class Entry(NamedTuple):
    """How many steps a call takes, and the call."""

    steps: int
    call: Callable[[], object]


class Goal(NamedTuple):
    """What the time of ours is held against: faster by a factor, or slower by at most one."""

    faster: float | None = None
    slower: float | None = None
    aim: float | None = None

    def words(self, ratio: float) -> str:
        """The goal, and whether the ratio (theirs over ours) meets it."""
        aim = "" if self.aim is None else f", aim {self.aim:g}x"
        if self.faster is not None:
            return f"{self.faster:g}x faster{aim}: {_verdict(ratio >= self.faster)}"
        if self.slower is not None:
            return f"at most {self.slower:g}x slower{aim}: {_verdict(ratio >= 1 / self.slower)}"
        return ""


VW: dict[str, Any] = {"options": "--squarecb --gamma_scale 100 --interactions sa", "best": 1.0}
VW_CUBIC = VW | {"options": f"{VW['options']} --interactions ssa --interactions sssa"}
LINEAR_PEERS: dict[str, tuple[Settings, int, Goal]] = {
    "VW": (VW, 2000, Goal(faster=15, aim=20)),
    "VW by arm number": (VW | {"options": "--squarecb --gamma_scale 100"}, 2000, Goal()),
    "River LinUCB": ({}, 1000, Goal(faster=40)),
    "MABWiser LinUCB": ({"alpha": 0.25}, 300, Goal(faster=100)),
    "MABWiser LinTS": ({"alpha": 0.25}, 300, Goal(faster=100)),
    "bayesianbandits NIG, Thompson": ({}, 200, Goal(faster=100)),
    "bayesianbandits Normal, Thompson": ({"alpha": 1.0, "beta": 10.0}, 200, Goal(faster=100)),
    "contextualbandits LinUCB": ({"alpha": 0.25}, 300, Goal()),
}
"""Settings, steps a turn, and the goal. pybandits is left out: its update compiles anew for seconds."""


def print_times(turns: int) -> None:
    """Print all tables; `turns` is how often every time is taken."""
    print(f"\n{machine()}, JAX {jax.__version__}, one thread, median (best) of {turns} turns.")
    _linear(turns)
    _network(
        "network of rank 10 on statlog",
        _data("statlog", 2000),
        50,
        {"VW": (VW, 1000, Goal(slower=1.5)), "VW, cubic": (VW_CUBIC, 1000, Goal(slower=1.5))},
        turns,
    )
    _network(
        "network of rank 10 on 784 pixels",
        _data("mnist", 200, limit=5000),
        50,
        {"VW": (VW, 200, Goal(slower=6, aim=3))},
        turns,
    )
    _service(turns)


def linear_agents(rows: Rows) -> dict[str, Entry]:
    """Our agents with a linear model for each of seven arms, over all rows in one compiled program."""
    known = credo.Normal(0.1)
    unknown = credo.Normal(credo.InverseGamma(2.0, 0.2))
    ours = {}
    for name, noise, var, policy in (
        ("linear, UCB", known, 1.0, bandits.UCB(1.0)),
        ("linear, Thompson", known, 1.0, bandits.Thompson()),
        ("unknown noise, UCB", unknown, 10.0, bandits.UCB(1.0)),
        ("unknown noise, Thompson", unknown, 10.0, bandits.Thompson()),
    ):
        net = credo.Linear()
        agent = bandits.Agent(credo.extended_kalman(credo.Model(net, noise)), 7, "arms", policy)
        ours[name] = _scan(agent, agent.init(net.init(0, (10,)), var=var), rows)
    return ours


def _linear(turns: int) -> None:
    world: Any = bandits.load_environment("linear")
    rows = rows_of(world, 20_000)
    ours = linear_agents(rows)
    goals = {name: goal for name, (_, _, goal) in LINEAR_PEERS.items()}
    theirs = peer_entries(
        {name: (settings, steps) for name, (settings, steps, _) in LINEAR_PEERS.items()}, rows
    )
    middle = _race("linear, 10 inputs, 7 arms", ours, theirs, goals, turns)
    ratio = middle["unknown noise, Thompson"] / middle["linear, Thompson"]
    print(f"\nWith unknown noise, Thompson takes {ratio:.1f}x its time (goal 2x: {_verdict(ratio <= 2)}).")


def _network(
    title: str, rows: Rows, hidden: int, peers: Mapping[str, tuple[Settings, int, Goal]], turns: int
) -> None:
    arms = rows.rewards.shape[1]
    inputs = rows.x.shape[1]
    net = credo.MLP(outputs=arms, hidden=(hidden,))
    params = net.init(0, (inputs,))
    learner = credo.bong(credo.Model(net, credo.Normal(0.02)), LowRank(10))
    ours = {}
    for policy, name in ((bandits.UCB(1.0), "UCB"), (bandits.Thompson(draws=64), "Thompson")):
        agent = bandits.Agent(learner, arms, "outputs", policy)
        belief = agent.init(params, var=net.prior_var(params))
        ours[name] = _scan(agent, belief, rows)
        ours[f"{name}, decide alone"] = _scan(agent, belief, rows, learn=False)
    theirs = peer_entries({name: (settings, steps) for name, (settings, steps, _) in peers.items()}, rows)
    size = sum(leaf.size for leaf in jax.tree.leaves(params))
    _race(f"{title}, P = {size:,}", ours, theirs, {name: goal for name, (_, _, goal) in peers.items()}, turns)


def _service(turns: int) -> None:
    """Calls from Python, one after the other: microseconds of wall clock and of processor."""
    rows = rows_of(bandits.load_environment("linear"), 1000)
    with tempfile.TemporaryDirectory() as folder:
        one = bandit("arms", Path(folder), 10_000)
        print("\n### one call after the other, linear, 10 inputs, 7 arms\n")
        print("| what | wall us | processor us | goal |\n|---|--:|--:|---|")
        lines: dict[str, list[tuple[float, float]]] = {}
        for _ in range(turns + 1):
            for name, decide, learn in [
                ("Bandit", one.decide, lambda decision, x, reward: one.reward(decision.id, reward)),
                *callers(rows),
            ]:
                for what, pair in zip((".decide", ".reward"), call_times(decide, learn, rows), strict=True):
                    lines.setdefault(name + what, []).append(pair)
    for name, pairs in lines.items():
        wall, processor = (1e6 * statistics.median(column) for column in zip(*pairs[1:], strict=True))
        goal = f"below 200 us: {_verdict(wall < 200)}" if name == "Bandit.decide" else ""
        print(f"| {name} | {wall:,.0f} | {processor:,.0f} | {goal} |", flush=True)


@functools.cache
def _vw() -> Any:
    return build_peer("VW", VW)(7, 10, 0)


def callers(rows: Rows) -> list[tuple[str, Callable[..., Any], Callable[..., Any]]]:
    if "cannot run" in version("VW"):
        return []
    return [("VW", _vw().decide, lambda arm, x, reward: _vw().learn(x, arm, reward))]


def call_times(
    decide: Callable[..., Any], learn: Callable[..., Any], rows: Rows
) -> tuple[tuple[float, float], tuple[float, float]]:
    """The median wall seconds, and the mean processor seconds, of decisions and of rewards."""
    walls: tuple[list[float], list[float]] = ([], [])
    spent = [0.0, 0.0]
    for x, rewards in zip(*rows, strict=True):
        moments = [(time.perf_counter(), time.process_time())]
        decision = decide(x)
        moments.append((time.perf_counter(), time.process_time()))
        arm = decision if isinstance(decision, int) else int(decision.arm)
        learn(decision, x, float(rewards[arm]))
        moments.append((time.perf_counter(), time.process_time()))
        for kind in (0, 1):
            walls[kind].append(moments[kind + 1][0] - moments[kind][0])
            spent[kind] += moments[kind + 1][1] - moments[kind][1]
    first, second = (
        (statistics.median(wall), total / len(wall)) for wall, total in zip(walls, spent, strict=True)
    )
    return first, second


def rows_of(world: Any, count: int, scaled: bool = False) -> Rows:
    """The first rows of a world."""

    def body(carry: Any, t: jax.Array) -> Any:
        state, scaler = carry
        x = world.context(state).x
        key = jax.random.fold_in(jax.random.key(1), t)
        rewards = jax.vmap(lambda arm: world.reward(state, arm, key))(jnp.arange(world.arms))
        shown = scaler.apply(x) if scaled else x
        scaler = scaler.observe(x)
        return (world.advance(state, jnp.asarray(0), key), scaler), (shown, rewards)

    start = world.start(jax.random.key(0))
    _, (x, rewards) = jax.lax.scan(body, (start, Scaler.start(world.context(start).x)), jnp.arange(count))
    return Rows(np.asarray(x), np.asarray(rewards))


def _data(name: str, count: int, **options: Any) -> Rows:
    return rows_of(bandits.load_environment(name, **options), count, scaled=name != "mnist")


def _scan(agent: bandits.Agent, belief: Any, rows: Rows, learn: bool = True) -> Entry:
    """Our agent over all rows in one compiled program."""

    @jax.jit
    def run(agent: bandits.Agent, belief: Any, x: jax.Array, rewards: jax.Array) -> Any:
        def body(belief: Any, row: Any) -> Any:
            x, reward, t = row
            choice = agent.decide(belief, x, jax.random.fold_in(jax.random.key(0), t))
            if learn:
                belief, _ = agent.update(belief, x, choice.arm, reward[choice.arm])
            return belief, choice.arm

        return jax.lax.scan(body, belief, (x, rewards, jnp.arange(len(x))))

    x = jnp.asarray(rows.x)
    rewards = jnp.asarray(rows.rewards)
    return Entry(len(rows.x), lambda: jax.block_until_ready(run(agent, belief, x, rewards)))


def peer_entries(every: Mapping[str, tuple[Settings, int]], rows: Rows) -> dict[str, Entry]:
    """The agents of other packages that can run, over the first rows; they go on learning in every turn."""
    entries = {}
    for name, (settings, steps) in every.items():
        if "cannot run" in version(name.split(",")[0]):
            continue
        agent = build_peer(name, settings)(rows.rewards.shape[1], rows.x.shape[1], 0)
        entries[name] = Entry(
            steps, functools.partial(_loop, agent, Rows(rows.x[:steps], rows.rewards[:steps]))
        )
    return entries


def _loop(agent: Any, rows: Rows) -> None:
    for x, rewards in zip(*rows, strict=True):
        arm = agent.decide(x)
        agent.learn(x, arm, float(rewards[arm]))


def _race(
    title: str,
    ours: Mapping[str, Entry],
    theirs: Mapping[str, Entry],
    goals: Mapping[str, Goal],
    turns: int,
) -> dict[str, float]:
    """Time all entries in turn, and print the table; returns the medians by name."""
    entries = {**ours, **theirs}
    times: dict[str, list[float]] = {name: [] for name in entries}
    for turn in range(turns + 1):
        for name, (steps, call) in entries.items():
            start = time.process_time()
            call()
            if turn:  # the first one compiles
                times[name].append((time.process_time() - start) / steps * 1e6)
    middle = {name: statistics.median(values) for name, values in times.items()}
    first = next(iter(ours))
    print(f"\n### {title} (load {os.getloadavg()[0]:.1f})\n")
    print(f"| | us a step | {' | '.join(f'credo, {name}' for name in ours)} | goal for {first} |")
    print("|---|--:|" + "--:|" * len(ours) + "---|")
    print(f"| credo | | {' | '.join(_shown(times[name]) for name in ours)} | |")
    for peer in theirs:
        cells = [_compared(middle[peer] / middle[name]) for name in ours]
        goal = goals[peer].words(middle[peer] / middle[first])
        print(f"| {peer} | {_shown(times[peer])} | {' | '.join(cells)} | {goal} |", flush=True)
    return middle


def _shown(times: Sequence[float]) -> str:
    return f"{statistics.median(times):,.1f} ({min(times):,.1f})"


def _compared(ratio: float) -> str:
    if ratio >= 1:
        return f"{ratio:.1f}x faster"
    return f"{1 / ratio:.1f}x slower"


def _verdict(met: bool) -> str:
    if met:
        return "met"
    return "**missed**"
