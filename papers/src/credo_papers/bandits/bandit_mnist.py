"""MNIST as a bandit: 5,000 digits of 784 raw pixels, where only the chosen digit is told right or wrong."""

from __future__ import annotations

import functools

from credo.bandits import load_environment
from credo_papers.bandits import bandit_agents as agents
from credo_papers.bandits.bandit_contest import Contest, Contestant, Peer, contest
from credo_papers.engine.cell_folder import Cells
from credo_papers.engine.experiment import Outcome, Size
from credo_papers.engine.portions import Progress

__all__ = ["run"]

# Plan

RUNS: dict[Size, int] = {"quick": 2, "full": 5}
STEPS: dict[Size, int] = {"quick": 500, "full": 5000}
FEATURES = functools.partial(agents.random_features, features=400, length=6.0, scale=False)
RECTIFIED = functools.partial(
    agents.random_features,
    features=800,
    length=0.9,
    activation="relu",
    var=0.02,
    width=0.2,
    scale=False,
)
VW = Peer(3827, 96, "VW SquareCB, linear")
LOFI = Peer(3369, 35, "LOFI, its code rerun")
SUBSPACE = Peer(2646, 169, "subspace EKF, fair warm-up")
CONTESTANTS: list[tuple[str, agents.Build, Peer]] = [
    ("default", functools.partial(agents.default, scale=False), VW),
    ("linear of rank 10, UCB", agents.linear_outputs, VW),
    ("random features, UCB", FEATURES, LOFI),
    ("rectified random features, UCB", RECTIFIED, LOFI),
]

# Run


def run(size: Size, seed: int, progress: Progress, cells: Cells | None = None) -> Outcome:
    """Run the agents on the digits; the quick size has too few of them for a comparison."""
    steps = STEPS[size]
    world = f"{steps:,} digits"
    full = size == "full"
    plan = Contest(
        title=f"MNIST by bandit feedback: {world} of 784 pixels",
        worlds={world: load_environment("mnist", limit=5000)},
        contestants=[
            Contestant(label, build, {world: peer} if full else {}) for label, build, peer in CONTESTANTS
        ],
        steps=steps,
        seeds=RUNS[size],
        by_regret=False,
        settings={
            "inputs": "pixels from 0 to 1, as they are",
            "published": "other packages and the code of LOFI on two or three orders of the rows",
        },
        peers={world: [VW, LOFI, SUBSPACE]} if full else {},
    )
    return contest(plan, seed, progress, cells)
