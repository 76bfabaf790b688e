"""Does the default agent stay with a wrong arm? Regrets in one context that never changes, beside Thompson's.

    python benchmarks/bandit_locks.py              # 200 runs of 1,500 decisions: about five minutes

Three arms pay 0.35, 0.45 and 0.6, or five arms have normal rewards whose means are drawn from N(0, 1). The
last column counts the runs that lose more than four times the median of Thompson sampling.
"""

from __future__ import annotations

import argparse
from typing import Any

import jax.numpy as jnp
import numpy as np

import credo
from credo import bandits
from credo.bandits.environments import BernoulliArms, Context, GaussianArms
from credo.bandits.environments.wrapped import Surrounding
from credo.core.records import record, static_field
from credo.core.types import Array, ArrayLike, Key

KEY = 3


@record
class OneContext(Surrounding[Any, Any]):
    """An environment without contexts, with a context of one number that never changes."""

    environment: Any
    arms: int = static_field(default=0)

    def start(self, key: Key) -> Any:
        """As inside."""
        return self.environment.start(key)

    def context(self, state: Any) -> Context:
        """The number 1."""
        return Context(jnp.ones(1), self.environment.context(state).allowed)

    def means(self, state: Any) -> Array:
        """As inside."""
        means: Array = self.environment.means(state)
        return means

    def reward(self, state: Any, arm: ArrayLike, key: Key) -> Array:
        """As inside."""
        reward: Array = self.environment.reward(state, arm, key)
        return reward

    def advance(self, state: Any, arm: ArrayLike, key: Key) -> Any:
        """As inside."""
        return self.environment.advance(state, arm, key)


def lost(agent: Any, world: Any, steps: int, seeds: int) -> np.ndarray:
    """The regret of each run."""
    return np.asarray(bandits.play(agent, world, steps=steps, seeds=seeds, key=KEY).regrets.sum(axis=1))


def main() -> None:
    """Play in both worlds, and print a line for each agent."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seeds", type=int, default=200, help="how many runs")
    parser.add_argument("--steps", type=int, default=1500, help="decisions in a run")
    options = parser.parse_args()
    beta = bandits.Agent(credo.BetaBernoulli(), 3, "arms")
    worlds: dict[str, tuple[Any, Any]] = {
        "three arms": (BernoulliArms(chances=np.array([0.35, 0.45, 0.6])), beta),
        "five normal arms": (GaussianArms(arms=5), bandits.default_agent(5, 0, units=None)),
    }
    for name, (world, thompson) in worlds.items():
        regrets = {"Thompson sampling": lost(thompson, world, options.steps, options.seeds)}
        fixed = bandits.UCB(0.7, floor=1e-3)
        for words, policy in (("a fixed width", fixed), ("a width that grows", None)):
            agent = bandits.default_agent(world.arms, 1, policy=policy)
            regrets[words] = lost(agent, OneContext(world), options.steps, options.seeds)
        bound = 4 * np.median(regrets["Thompson sampling"])
        for words, each in regrets.items():
            far = int(np.sum(each > bound))
            print(f"{name}, {words}: mean {each.mean():.1f}, worst {each.max():.0f}, {far} above", flush=True)


if __name__ == "__main__":
    main()
