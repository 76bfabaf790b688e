"""The default agent in worlds whose first ten rewards are 0, whatever it chooses.

    python benchmarks/bandit_first.py

The table has the mean regret of 1,500 decisions, with its standard error, in each world as it is and with the
zeros.
"""

from __future__ import annotations

import argparse
from typing import Any

import jax
import numpy as np
from bandit_defaults import WORLDS
from bandit_units import Changed

from credo import bandits

KEY = 2000
STEPS = 1500
ZEROS = 10
PLAYED: dict[str, tuple[str, float]] = {
    "still": ("still", 0.0),
    "still, rewards + 5": ("still", 5.0),
    "much noise": ("much noise", 0.0),
    "logistic": ("logistic", 0.0),
    "rare clicks": ("rare clicks", 0.0),
}
"""What the table calls a world, its name in `bandit_defaults`, and what is added to its rewards."""


def regret(name: str, shift: float, zeros: int, seeds: int) -> str:
    """The mean regret and its standard error."""
    inside = WORLDS[name][0]()
    world: Any = Changed(inside, shift=shift, zeros=zeros)
    inputs = jax.eval_shape(lambda: inside.context(inside.start(0))).x.shape[-1]
    agent = bandits.default_agent(inside.arms, inputs)
    totals = bandits.play(agent, world, steps=STEPS, seeds=seeds, key=KEY).regrets.sum(axis=1)
    return f"{totals.mean():.1f} ± {totals.std() / np.sqrt(seeds - 1):.1f}"


def main() -> None:
    """Play, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    given = parser.parse_args()
    print("| world | as it is | first ten rewards 0 |\n|---|--:|--:|")
    for title, (name, shift) in PLAYED.items():
        cells = [regret(name, shift, zeros, given.seeds) for zeros in (0, ZEROS)]
        print(f"| {title} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
