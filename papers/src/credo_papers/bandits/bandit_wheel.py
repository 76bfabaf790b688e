"""The wheel: five arms and points on a disk, of which the few beyond the radius delta are worth much more.

Rewards are divided by 50 before an agent sees them, and regrets are in the original units. An arm at random
loses about 19,700 at delta = 0.95, and the safe arm everywhere nearly as much.
"""

from __future__ import annotations

import functools

from credo.bandits.environments import RewardUnit, Wheel
from credo_papers.bandits import bandit_agents as agents
from credo_papers.bandits.bandit_contest import Contest, Contestant, Peer, contest
from credo_papers.engine.cell_folder import Cells
from credo_papers.engine.experiment import Outcome, Size
from credo_papers.engine.portions import Progress

__all__ = ["run"]

# Plan

RUNS: dict[Size, int] = {"quick": 3, "full": 10}
DELTAS: dict[Size, tuple[float, ...]] = {"quick": (0.95,), "full": (0.5, 0.7, 0.9, 0.95, 0.99)}
STEPS = 5000
DIVISOR = 50.0
MAIN = "delta = 0.95"
FEATURES = functools.partial(
    agents.random_features, length=0.7, linear=0.5, var=3.0, noise_var=1e-3, width=2.0, scale=False
)
CONTESTANTS = [
    Contestant("default", agents.default, {MAIN: Peer(4959, 1677, "VW softmax")}),
    Contestant("linear, UCB", agents.linear, {MAIN: Peer(3047, 785, "River LinUCB")}),
    Contestant("inputs and random features, UCB", FEATURES, {MAIN: Peer(7587, 3910, "LOFI, its code rerun")}),
]
PEERS = {
    MAIN: [
        Peer(3047, 785, "River LinUCB"),
        Peer(4959, 1677, "VW softmax"),
        Peer(7587, 3910, "LOFI, its code rerun"),
    ]
}

# Run


def run(size: Size, seed: int, progress: Progress, cells: Cells | None = None) -> Outcome:
    """Run the agents on wheels of several radii."""
    plan = Contest(
        title="The wheel: regret by the radius of the dull part",
        worlds={f"delta = {delta:g}": RewardUnit(Wheel(delta=delta), DIVISOR) for delta in DELTAS[size]},
        contestants=CONTESTANTS,
        steps=STEPS,
        seeds=RUNS[size],
        by_regret=True,
        settings={
            "inputs": "standardised by running moments, but raw for random features",
            "divisor of rewards": DIVISOR,
            "published": "other packages on three runs, rewards divided by 50 too",
        },
        peers=PEERS,
    )
    return contest(plan, seed, progress, cells)
