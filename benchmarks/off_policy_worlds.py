"""Worlds for off-policy evaluation: logs of policies that stay, learn or meet a moving world, with a value.

Anything was chosen on the worlds of `CHOSEN`: which interval, which constant, which estimator.
Those of `SCORED`, and the logs of the default agent (`default_logs`), are only scored.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.stats import norm, qmc

from credo.bandits import Log, default_agent
from credo.bandits.default import agent_of
from credo.bandits.policies import Policy

__all__ = ["CHOSEN", "SCORED", "Case", "World", "default_logs", "logs_of"]

BLOCK = 20
"""After how many rows an agent that learns looks at its rewards."""

DRAWS = 64
"""From how many draws a Thompson sampler finds its probabilities."""


class Case(NamedTuple):
    """A log, the probabilities (N, K) of the policy that is asked about, and its value."""

    log: Log
    target: np.ndarray
    truth: float


@dataclass(frozen=True)
class World:
    """Contexts x ~ N(0, I), expected rewards f(a_k + b_k x), an agent, and a policy that is asked about.

    `agent` is "fixed" (a softmax of other coefficients), "greedy" or "thompson", which learn ridge
    regressions; `floor` is the least probability of an arm. `rewards` are "binary" (f is the logistic
    function), "normal", "heavy" (Student's t with 3 degrees of freedom), or "rare" (one in twenty, as great
    as a log-normal number). `motion` lets the a_k stay, jump halfway, or go through a wave; `memory` is the
    correlation of a context with the one before. `policy` is "soft" (a softmax of the truth), "uniform",
    "best" (the arm with the largest a_k + b_k x) or "last" (the last arm always).
    """

    name: str
    arms: int
    inputs: int
    agent: Literal["fixed", "greedy", "thompson"]
    policy: Literal["soft", "uniform", "best", "last"]
    rewards: Literal["binary", "normal", "heavy", "rare"] = "binary"
    motion: Literal["still", "jump", "wave"] = "still"
    floor: float = 0.02
    memory: float = 0.0
    seed: int = 0

    def coefficients(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """a (K,), b (K, d), and those of the softmax that logs (K, 1 + d)."""
        rng = np.random.default_rng([self.seed, 1])
        shape = self.arms, self.inputs
        b = rng.normal(size=shape) * 0.8 / np.sqrt(self.inputs)
        return 0.5 * rng.normal(size=self.arms), b, rng.normal(size=(self.arms, 1 + self.inputs))

    def shifts(self, rows: int) -> np.ndarray:
        """What is added to the a_k at each time (N, K)."""
        rng = np.random.default_rng([self.seed, 2])
        size = rng.normal(size=self.arms)
        phase = rng.random(self.arms)
        t = np.linspace(0.0, 1.0, rows)[:, None]
        if self.motion == "jump":
            return np.asarray(1.5 * size * (t > 0.5))
        wave = np.sin(2.0 * np.pi * (1.5 * t + phase))
        if self.motion == "wave":
            return np.asarray(wave)
        return np.zeros((rows, self.arms))

    def means(self, linear: np.ndarray) -> np.ndarray:
        """The expected rewards."""
        return 1.0 / (1.0 + np.exp(-linear)) if self.rewards in ("binary", "rare") else linear

    def draw(self, mean: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Rewards with these means."""
        if self.rewards == "binary":
            return np.asarray((rng.random(mean.shape) < mean), dtype=float)
        if self.rewards == "normal":
            return np.asarray(mean + rng.normal(size=mean.shape))
        if self.rewards == "heavy":
            return np.asarray(mean + rng.standard_t(3, mean.shape))
        size = np.exp(rng.normal(size=mean.shape) - 0.5)
        return np.asarray(20.0 * mean * (rng.random(mean.shape) < 0.05) * size)

    def asked(self, linear: np.ndarray) -> np.ndarray:
        """The probabilities (..., K) of the policy that is asked about, where the world is still."""
        if self.policy == "soft":
            odds = np.exp(1.5 * linear)
            return np.asarray(odds / odds.sum(axis=-1, keepdims=True))
        if self.policy == "uniform":
            return np.full(linear.shape, 1.0 / self.arms)
        best = linear.argmax(axis=-1) if self.policy == "best" else np.full(linear.shape[:-1], self.arms - 1)
        return np.asarray(np.eye(self.arms)[best])

    def truth(self, rows: int) -> float:
        """The value over all contexts and the times of a log, by quasi Monte Carlo."""
        a, b, _ = self.coefficients()
        points = qmc.Sobol(self.inputs, scramble=False).random_base2(12)
        linear = a + norm.ppf(points + 0.5 / len(points)) @ b.T
        asked = self.asked(linear)
        shifts = self.shifts(rows)
        if self.motion == "still":
            shifts = shifts[:1]
        return float(np.mean([(asked * self.means(linear + one)).sum(axis=1).mean() for one in shifts]))


def logs_of(world: World, logs: int, rows: int, seed: int = 0) -> Iterator[Case]:
    """Logs of a world, which differ in contexts, choices and rewards."""
    rng = np.random.default_rng([world.seed, 3, seed])
    a, b, other = world.coefficients()
    shifts = world.shifts(rows)
    truth = world.truth(rows)
    x = rng.normal(size=(rows, logs, world.inputs))
    for t in range(1, rows):
        x[t] = world.memory * x[t - 1] + np.sqrt(1.0 - world.memory**2) * x[t]
    z = np.concatenate([np.ones((rows, logs, 1)), x], axis=2)
    linear = a + x @ b.T
    pmfs = np.empty((rows, logs, world.arms))
    chosen = np.empty((rows, logs), int)
    rewards = np.empty((rows, logs))
    learner = _Ridge.start(world, logs)
    run = np.arange(logs)
    for t in range(rows):
        if world.agent == "fixed":
            odds = np.exp(z[t] @ other.T * 0.7)
            share = odds / odds.sum(axis=1, keepdims=True)
        else:
            share = learner.share(z[t], world.agent == "thompson", rng, t)
        pmfs[t] = (1.0 - world.arms * world.floor) * share + world.floor
        chosen[t] = (rng.random((logs, 1)) > pmfs[t].cumsum(axis=1)[:, :-1]).sum(axis=1)
        rewards[t] = world.draw(world.means(linear[t] + shifts[t])[run, chosen[t]], rng)
        learner.learn(z[t], chosen[t], rewards[t])
    arms = tuple(f"arm {k}" for k in range(world.arms))
    for n in run:
        p = pmfs[np.arange(rows), n, chosen[:, n]]
        log = Log(arms, chosen[:, n], rewards[:, n], p, x[:, n], pmfs[:, n])
        yield Case(log, world.asked(linear[:, n]), truth)


@dataclass
class _Ridge:
    """Ridge regressions of every arm in every log, and draws of their coefficients."""

    xx: np.ndarray
    xy: np.ndarray
    coefficients: np.ndarray
    draws: np.ndarray

    @classmethod
    def start(cls, world: World, logs: int) -> _Ridge:
        width = 1 + world.inputs
        shape = logs, world.arms, width
        return cls(
            np.broadcast_to(np.eye(width), (*shape, width)).copy(),
            np.zeros(shape),
            np.zeros(shape),
            np.zeros((DRAWS, *shape)),
        )

    def share(self, z: np.ndarray, sampled: bool, rng: np.random.Generator, t: int) -> np.ndarray:
        """The probabilities of the arms (logs, K)."""
        arms = self.xy.shape[1]
        if t % BLOCK == 0:
            cov = np.linalg.inv(self.xx)
            self.coefficients = np.einsum("nkij,nkj->nki", cov, self.xy)
            if sampled:
                noise = rng.normal(size=self.draws.shape)
                root = np.linalg.cholesky(cov)
                self.draws = self.coefficients + np.einsum("nkij,snkj->snki", root, noise)
        if not sampled:
            return np.asarray(np.eye(arms)[np.einsum("nki,ni->nk", self.coefficients, z).argmax(axis=1)])
        best = np.einsum("snki,ni->snk", self.draws, z).argmax(axis=2)
        return np.stack([(best == arm).mean(axis=0) for arm in range(arms)], axis=1)

    def learn(self, z: np.ndarray, chosen: np.ndarray, rewards: np.ndarray) -> None:
        run = np.arange(len(z))
        self.xx[run, chosen] += z[:, :, None] * z[:, None, :]
        self.xy[run, chosen] += rewards[:, None] * z


CHOSEN = (
    World("fixed", 3, 2, "fixed", "soft", seed=1),
    World("fixed, another arm", 4, 3, "fixed", "last", "normal", seed=2),
    World("greedy", 3, 2, "greedy", "uniform", floor=0.05, seed=3),
    World("thompson", 4, 3, "thompson", "soft", floor=0.01, seed=4),
    World("thompson, uniform", 3, 2, "thompson", "uniform", "normal", floor=0.01, seed=5),
    World("a wave", 3, 2, "thompson", "soft", "normal", "wave", seed=6),
    World("heavy rewards", 3, 2, "fixed", "soft", "heavy", seed=7),
    World("rare rewards", 3, 2, "greedy", "uniform", "rare", floor=0.1, seed=8),
    World("small propensities", 4, 2, "fixed", "uniform", floor=0.003, seed=9),
    World("contexts with memory", 3, 2, "fixed", "best", memory=0.8, floor=0.1, seed=10),
)
"""Worlds that anything may be chosen on."""

SCORED = (
    World("fixed", 5, 4, "fixed", "soft", "normal", seed=21),
    World("fixed, binary", 2, 3, "fixed", "best", floor=0.1, seed=22),
    World("greedy", 4, 3, "greedy", "soft", "normal", floor=0.03, seed=23),
    World("thompson", 3, 4, "thompson", "best", floor=0.02, seed=24),
    World("thompson, uniform", 5, 2, "thompson", "uniform", floor=0.01, seed=25),
    World("a jump", 3, 3, "thompson", "soft", "binary", "jump", floor=0.02, seed=26),
    World("a wave", 4, 2, "greedy", "last", "normal", "wave", floor=0.05, seed=27),
    World("heavy rewards", 4, 2, "thompson", "soft", "heavy", floor=0.05, seed=28),
    World("rare rewards", 2, 2, "fixed", "soft", "rare", floor=0.1, seed=29),
    World("small propensities", 3, 3, "fixed", "last", "normal", floor=0.003, seed=30),
    World("contexts with memory", 4, 3, "thompson", "uniform", memory=0.8, floor=0.05, seed=31),
)
"""Worlds that are only scored."""


def default_logs(
    logs: int,
    rows: int,
    *,
    moving: bool,
    policy: Policy | None = None,
    seed: int = 0,
    at_once: int = 20,
) -> Iterator[dict[str, Case]]:
    """Logs of the default agent with its own policy or another, in a world that stays or goes through a wave.

    Each has a case for a "soft" policy and for a "uniform" one. `seed` 0 is only scored.
    """
    still = World("default", 3, 3, "thompson", "soft", motion="wave" if moving else "still")
    still = replace(still, seed=41 + moving + 10 * seed)
    worlds = {"soft": still, "uniform": replace(still, policy="uniform")}
    truths = {name: world.truth(rows) for name, world in worlds.items()}
    a, b, _ = still.coefficients()
    shifts = jnp.asarray(still.shifts(rows))
    start = default_agent(still.arms, still.inputs, policy=policy)
    agent = agent_of(start)

    def one(key: Any) -> Any:
        def body(belief: Any, t: Any) -> Any:
            draw, decide, reward, learn = jax.random.split(jax.random.fold_in(key, t), 4)
            x = jax.random.normal(draw, (still.inputs,))
            choice = agent.decide(belief, x, decide)
            mean = jax.nn.sigmoid(jnp.asarray(a) + jnp.asarray(b) @ x + shifts[t])[choice.arm]
            r = (jax.random.uniform(reward) < mean).astype(mean.dtype)
            belief, _ = agent.update(belief, x, choice.arm, r, key=learn)
            return belief, (x, choice.arm, r, choice.pmf)

        return jax.lax.scan(body, start.init(0), jnp.arange(rows))[1]

    many = jax.jit(jax.vmap(one))
    keys = jax.random.split(jax.random.key(seed), logs)
    arms = tuple(f"arm {k}" for k in range(still.arms))
    for at in range(0, logs, at_once):
        for x, chosen, r, pmfs in zip(*map(np.asarray, many(keys[at : at + at_once])), strict=True):
            pmf = np.maximum(pmfs.astype(float), 0.0)
            pmf /= pmf.sum(axis=1, keepdims=True)
            log = Log(arms, chosen, r, pmf[np.arange(rows), chosen], x.astype(float), pmf)
            yield {name: Case(log, world.asked(a + x @ b.T), truths[name]) for name, world in worlds.items()}
