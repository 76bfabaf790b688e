"""Bandit packages beside credo in the same runs: what they earn, and their processor time a step.

    python benchmarks/bandit_peers.py --rewards             # a table for each world, about half an hour
    python benchmarks/bandit_peers.py --times               # about three minutes
    python benchmarks/bandit_peers.py --tune --worlds wheel # the settings of the peers, on other seeds

The packages are installed into an environment of their own, with what credo needs:

    pip install -c constraints/py3.11.txt -e '.[demo]' vowpalwabbit mabwiser bayesianbandits contextualbandits
    pip install --no-deps pybandits numpyro    # they ask for older versions of JAX, but run
    pip install multipledispatch 'bokeh<4' loguru 'optuna<4' pydantic tqdm

All agents see the same rows in the same order, the reward of the arm that they chose alone, and inputs that
the same online scaler has standardised (pixels of MNIST as they are). Rewards of the wheel are divided by 50.
A package that cannot run is named with the reason.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

# One thread, for a processor time that says what was computed.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")
os.environ.setdefault("TQDM_DISABLE", "1")

import jax
import jax.numpy as jnp
import numpy as np
from bandit_peer_agents import PACKAGES, Build, version
from bandit_peer_settings import DEFAULT, TRIED, WORLDS, Settings, World, build_peer

from credo.bandits import PlayReport, play
from credo.bandits.rewards import Scaler
from credo_papers.bandits.bandit_agents import Player
from credo_papers.engine.purposes import SCORED

jax.config.update("jax_cpu_enable_async_dispatch", False)

ROW_KEYS = 0
REWARD_KEYS = 2
ADVANCE_KEYS = 4
"""What `play` folds into the key of a seed for these; `agree` checks that they are the same."""


class Stream(NamedTuple):
    """A seed's world: contexts (T, d), rewards and mean rewards of all arms (T, K), and the rewards' unit."""

    x: np.ndarray
    rewards: np.ndarray
    means: np.ndarray
    unit: float

    def scores(self, arms: np.ndarray, by_regret: bool) -> np.ndarray:
        """The reward or regret of every step (T,)."""
        steps = np.arange(len(arms))
        earned = self.rewards[steps, arms]
        if by_regret:
            earned = self.means[steps].max(axis=1) - self.means[steps, arms]
        return np.asarray(earned * self.unit)


def streams(world: World, keys: jax.Array, steps: int) -> list[Stream]:
    """The worlds that `play` has for these keys."""
    environment = world.environment()
    every = jnp.arange(environment.arms)

    def one(key: jax.Array) -> Any:
        def body(carry: Any, t: jax.Array) -> Any:
            state, scaler = carry

            def key_of(purpose: int) -> jax.Array:
                return jax.random.fold_in(jax.random.fold_in(key, purpose), t)

            x = environment.context(state).x
            rewards = jax.vmap(lambda arm: environment.reward(state, arm, key_of(REWARD_KEYS)))(every)
            shown = scaler.apply(x) if world.scaled else x
            scaler = scaler.observe(x)
            later = environment.advance(state, every[0], key_of(ADVANCE_KEYS))
            return (later, scaler), (shown, rewards, environment.means(state))

        start = environment.start(jax.random.fold_in(key, ROW_KEYS))
        scaler = Scaler.start(environment.context(start).x)
        return jax.lax.scan(body, (start, scaler), jnp.arange(steps))[1]

    parts = [np.asarray(part) for part in jax.jit(lambda keys: jax.lax.map(one, keys))(keys)]
    unit = float(np.asarray(environment.unit))
    return [Stream(x, all_rewards, means, unit) for x, all_rewards, means in zip(*parts, strict=True)]


@dataclass
class Result:
    """The scores (T,) of each seed of an agent, and its processor time a step."""

    name: str
    setting: str
    scores: list[np.ndarray]
    seconds: float | None


def play_peer(
    build: Build, stream: Stream, seed: int, steps: int, by_regret: bool
) -> tuple[np.ndarray, float]:
    """The scores (T,) of an agent of another package, and its processor time a step."""
    agent = build(stream.rewards.shape[1], stream.x.shape[1], seed)
    arms = np.zeros(steps, int)
    start = time.process_time()
    for t in range(steps):
        arms[t] = arm = agent.decide(stream.x[t])
        agent.learn(stream.x[t], arm, float(stream.rewards[t, arm]))
    return stream.scores(arms, by_regret), (time.process_time() - start) / steps


def play_ours(
    build: Callable[[int, int], Player], world: World, key: Any, count: int, steps: int
) -> PlayReport:
    """Our agent, by `play` as anybody runs it."""
    environment = world.environment()
    inputs = jax.eval_shape(lambda: environment.context(environment.start(0))).x.shape[-1]
    agent, params, var, options = build(environment.arms, inputs)
    return play(agent, environment, steps=steps, seeds=count, key=key, params=params, var=var, **options)


def agree(report: PlayReport, stream: Stream) -> None:
    """Stop where `play` had other rewards than the stream for the arms of its first seed."""
    arms = report.arms[0]
    ours = report.rewards[0], report.regrets[0]
    for mine, by_regret in zip(ours, (False, True), strict=True):
        if not np.allclose(mine, stream.scores(arms, by_regret), rtol=1e-4, atol=1e-4):
            raise SystemExit("play had other rows or rewards than the peers: the comparison is void.")


def rewards(title: str, options: argparse.Namespace) -> list[Result]:
    """Every agent in one world, ours first; what `--keep` has already is not run again."""
    world = WORLDS[title]
    seeds = options.seeds
    steps = options.steps
    key = jax.random.fold_in(jax.random.fold_in(jax.random.key(0), SCORED), 0)
    offered = streams(world, jax.random.split(key, seeds), steps)

    def ours(name: str) -> Result:
        report = play_ours(world.ours[name], world, key, seeds, steps)
        agree(report, offered[0])
        return Result(name, "", list(report.regrets if world.by_regret else report.rewards), None)

    def theirs(name: str) -> Result:
        chosen = world.peers[name]
        build = build_peer(name, chosen.settings)
        own = min(steps, chosen.steps)
        runs = [
            play_peer(build, stream, seed, own, world.by_regret)
            for seed, stream in enumerate(offered[: chosen.seeds])
        ]
        seconds = statistics.median(run[1] for run in runs)
        return Result(name, words(chosen.settings), [run[0] for run in runs], seconds)

    results = []
    for name in (*world.ours, *world.peers):
        if not _wanted(name, options.only):
            continue
        if name in world.peers and "cannot run" in version(name):
            continue
        file = None
        if options.keep:
            file = options.keep / f"{title}, {name}, {seeds} x {steps}.npz"
        if file is not None and file.exists():
            with np.load(file) as kept:
                seconds = float(kept["seconds"])
                results.append(
                    Result(
                        name,
                        str(kept["setting"]),
                        list(kept["scores"]),
                        None if math.isnan(seconds) else seconds,
                    )
                )
            continue
        try:
            result = ours(name) if name in world.ours else theirs(name)
        except Exception as error:  # what a package cannot do is a result, too
            if name in world.ours:
                raise
            print(f"# {title}: {name} cannot run: {type(error).__name__}: {str(error)[:120]}", flush=True)
            continue
        if file is not None:
            seconds = math.nan if result.seconds is None else result.seconds
            np.savez(file, scores=np.stack(result.scores), setting=result.setting, seconds=seconds)
        results.append(result)
        print(f"# {title}: {name}: {[round(float(run.sum()), 1) for run in result.scores]}", flush=True)
    return results


def _wanted(name: str, only: Sequence[str]) -> bool:
    return not only or any(part in name for part in only)


def words(settings: Settings) -> str:
    """Settings as a reader sees them."""
    if "options" in settings:
        return f"`{' '.join(settings['options'].split())}`, cost {settings['best']:g} - reward"
    return ", ".join(f"{name} {value}" for name, value in settings.items()) or "its own"


def table(world: World, results: Sequence[Result]) -> str:
    """The table of a world, the best agents first and those with fewer steps last."""
    reference = next((result for result in results if result.name == DEFAULT), None)
    what = "regret" if world.by_regret else "reward"
    lines = [
        f"\n### {world.title}: {what}\n",
        f"| agent | settings | runs | steps | mean | sd | worst | {DEFAULT}, same runs | ms a step |",
        "|---|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    sign = 1.0 if world.by_regret else -1.0

    def place(result: Result) -> tuple[int, float]:
        return -len(result.scores[0]), sign * float(np.mean([run.sum() for run in result.scores]))

    for result in sorted(results, key=place):
        totals = np.array([run.sum() for run in result.scores])
        count = len(totals)
        steps = len(result.scores[0])
        same = ""
        if reference is not None and reference is not result:
            same = f"{np.mean([run[:steps].sum() for run in reference.scores[:count]]):,.0f}"
        worst = totals.max() if world.by_regret else totals.min()
        sd = f"{totals.std(ddof=1):,.0f}" if count > 1 else ""
        cost = "" if result.seconds is None else f"{result.seconds * 1e3:,.2f}"
        lines.append(
            f"| {result.name} | {result.setting} | {count} | {steps:,} | {totals.mean():,.0f} | {sd} "
            f"| {worst:,.0f} | {same} | {cost} |"
        )
    return "\n".join(lines)


def tune(world: World, seeds: int, steps: int, only: Sequence[str]) -> None:
    """Print the score of every setting that was tried, on seeds that are not scored."""
    offered = streams(world, jax.random.split(jax.random.key(1000), seeds), steps)
    for name, every in TRIED.items():
        for settings in every:
            if not _wanted(name, only) or _order(settings) > world.crossed:
                continue
            build = build_peer(name, settings)
            line = f"{world.title} | {name} | {words(settings)} | "
            try:
                runs = [
                    play_peer(build, stream, seed, steps, world.by_regret)
                    for seed, stream in enumerate(offered)
                ]
                totals = [round(float(run[0].sum())) for run in runs]
                print(f"{line}{totals} | {runs[0][1] * 1e3:.2f} ms", flush=True)
            except Exception as error:  # what a package cannot do is a result, too
                print(f"{line}{type(error).__name__}: {str(error)[:120]}", flush=True)


def _order(settings: Settings) -> int:
    """The highest order of the products of inputs that VW is told to form."""
    return max(str(settings.get("options", "")).count("--interactions"), 1)


def main() -> None:
    """Print the versions, and the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rewards", action="store_true")
    parser.add_argument("--times", action="store_true")
    parser.add_argument("--tune", action="store_true")
    parser.add_argument("--worlds", nargs="+", choices=list(WORLDS), default=list(WORLDS))
    parser.add_argument("--only", nargs="+", default=[], help="agents whose names have one of these in them")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=5000)
    parser.add_argument("--keep", type=Path, help="a folder in which the rewards of finished agents are kept")
    parser.add_argument("--turns", type=int, default=7, help="how often every time is taken")
    options = parser.parse_args()
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)
    print(", ".join(version(name) for name in PACKAGES) + f", JAX {jax.__version__}", flush=True)
    for name in options.worlds:
        if options.tune:
            tune(WORLDS[name], options.seeds, options.steps, options.only)
        if options.rewards:
            print(table(WORLDS[name], rewards(name, options)), flush=True)
    if options.times:
        from bandit_peer_times import print_times

        print_times(options.turns)


if __name__ == "__main__":
    main()
