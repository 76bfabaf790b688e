"""The default agent with rewards in other units, and with one absurd reward or context.

    python benchmarks/bandit_units.py

The same worlds, seeds and draws are played with rewards as they are, times 0.01 and 1,000, plus 10 and less
10; with one reward of 1e6 or -1e6; and with one context in which an input is 1e9, all at the same decision.
The tables say which share of the choices is the same as with rewards as they are, and by how much of the
reward the regret grows. A path that chooses otherwise once sees other rewards from then on, so that such a
change may also be a gain.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from functools import partial
from typing import Any, Generic, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from bandit_defaults import WORLDS

from credo import bandits
from credo.bandits.environments import Context, Environment
from credo.bandits.environments.wrapped import Surrounding
from credo.core.records import record, static_field
from credo.core.types import Array, ArrayLike, Key

KEY = 2000
SEEDS = 10
STEPS = 2000
AT = 300
PLAYED = ("statlog", "segments", "electricity", "linear", "logistic", "drift", "tails", "counts")

S = TypeVar("S")


@record
class Changed(Surrounding[tuple[S, Array], S], Generic[S]):
    """Another environment, whose rewards are factor r + shift, but for one, and 0 at first; and one of whose
    contexts has one input of another value. Regrets are those of rewards as they are.
    """

    environment: Environment[S]
    factor: ArrayLike = 1.0
    shift: ArrayLike = 0.0
    reward_once: ArrayLike | None = None
    input_once: ArrayLike | None = None
    zeros: ArrayLike = 0
    arms: int = static_field(default=0)

    def start(self, key: Key) -> tuple[S, Array]:
        """The state inside, and the number of the decision."""
        return self.environment.start(key), jnp.zeros((), jnp.int32)

    def context(self, state: tuple[S, Array]) -> Context:
        """As inside, but for one."""
        inside = self.environment.context(state[0])
        if self.input_once is None:
            return inside
        x = jnp.asarray(inside.x)
        return Context(jnp.where(state[1] == AT, x.at[..., 0].set(self.input_once), x), inside.allowed)

    def means(self, state: tuple[S, Array]) -> Array:
        """As inside."""
        return self.environment.means(state[0])

    def reward(self, state: tuple[S, Array], arm: ArrayLike, key: Key) -> Array:
        """The reward in other units."""
        reward = jnp.asarray(self.factor) * self.environment.reward(state[0], arm, key) + self.shift
        reward = jnp.where(state[1] < self.zeros, 0.0, reward)
        if self.reward_once is None:
            return reward
        return jnp.where(state[1] == AT, self.reward_once, reward)

    def advance(self, state: tuple[S, Array], arm: ArrayLike, key: Key) -> tuple[S, Array]:
        """As inside, and one decision more."""
        return self.environment.advance(state[0], arm, key), state[1] + 1


UNITS: Mapping[str, Mapping[str, float]] = {
    "times 0.01": {"factor": 0.01},
    "times 1,000": {"factor": 1000.0},
    "plus 10": {"shift": 10.0},
    "less 10": {"shift": -10.0},
}
ABSURD: Mapping[str, Mapping[str, float]] = {
    "a reward of 1e6": {"reward_once": 1e6},
    "of -1e6": {"reward_once": -1e6},
    "an input of 1e9": {"input_once": 1e9},
}


def played(name: str, seeds: int, **change: Any) -> tuple[np.ndarray, np.ndarray, float]:
    """The arms and regrets (S, T) of the default agent in a world, and its mean reward a run."""
    make, steps = WORLDS[name]
    inside = make()
    world: Any = Changed(inside, **change)
    inputs = jax.eval_shape(lambda: inside.context(inside.start(0))).x.shape[-1]
    agent = bandits.default_agent(inside.arms, inputs)
    report = bandits.play(agent, world, steps=min(steps, STEPS), seeds=seeds, key=KEY)
    return report.arms, report.regrets, float(report.rewards.sum(axis=1).mean())


def main() -> None:
    """Play, and print two tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--worlds", nargs="*", default=list(PLAYED), choices=list(WORLDS))
    given = parser.parse_args()
    heads = ["world", *UNITS, *(f"{name}: lost" for name in ABSURD)]
    print(f"| {' | '.join(heads)} |\n|---{'|--:' * (len(heads) - 1)}|")
    for name in given.worlds:
        play = partial(played, name, given.seeds)
        arms, regrets, reward = play()
        cells = [f"{np.mean(play(**change)[0] == arms):.2%}" for change in UNITS.values()]
        for change in ABSURD.values():
            more = play(**change)[1].sum(axis=1) - regrets.sum(axis=1)
            se = np.std(more) / np.sqrt(given.seeds - 1)
            cells.append(f"{np.mean(more) / reward:.2%} ({se / reward:.2%})")
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
