"""Classification as a bandit: statlog and covertype, where only the chosen class is told right or wrong.

A run has 5,000 rows, in an order of its own. Every agent starts cold, without rows to warm up on. Inputs are
standardised by running moments. A reward is 1 for the right class and 0 otherwise.
"""

from __future__ import annotations

from credo.bandits import load_environment
from credo_papers.bandits import bandit_agents as agents
from credo_papers.bandits.bandit_contest import Contest, Contestant, Peer, contest
from credo_papers.engine.cell_folder import Cells
from credo_papers.engine.experiment import Outcome, Size
from credo_papers.engine.portions import Progress

__all__ = ["run"]

# Plan

RUNS: dict[Size, int] = {"quick": 3, "full": 10}
WORLDS: dict[Size, tuple[str, ...]] = {"quick": ("statlog",), "full": ("statlog", "covertype")}
QUICK = ("default", "linear, UCB", "random features, UCB", "uniform")
"""The agents of the quick size."""

STEPS = 5000
CONTESTANTS = [
    Contestant(
        "default",
        agents.default,
        {
            "statlog": Peer(4825, 28, "VW SquareCB, cubic"),
            "covertype": Peer(3226, None, "subspace EKF, warmed up on all labels"),
        },
    ),
    Contestant(
        "linear, UCB",
        agents.linear,
        {"statlog": Peer(4595, 8, "MABWiser LinUCB")},
    ),
    Contestant(
        "linear, unknown noise, Thompson",
        agents.normal_inverse_gamma,
        {
            "statlog": Peer(4428, None, "the published linear agent"),
            "covertype": Peer(3018, None, "the published linear agent"),
        },
    ),
    Contestant(
        "network, Thompson",
        agents.network,
        {
            "statlog": Peer(4719, 96, "LOFI, its code rerun"),
            "covertype": Peer(2661, 334, "LiM2"),
        },
    ),
    Contestant("random features, UCB", agents.random_features, {}),
    Contestant(
        "uniform",
        agents.uniform,
        {"statlog": Peer(714, None, "expected"), "covertype": Peer(714, None, "expected")},
    ),
]
PEERS = {
    "statlog": [
        Peer(4719, 96, "LOFI, its code rerun"),
        Peer(4825, 28, "VW SquareCB, cubic"),
        Peer(4582, 33, "River LinUCB"),
    ],
    "covertype": [Peer(3018, None, "the published linear agent")],
}

# Run


def run(size: Size, seed: int, progress: Progress, cells: Cells | None = None) -> Outcome:
    """Run all agents on both data sets; the quick size has four of them and statlog."""
    players = [player for player in CONTESTANTS if size == "full" or player.label in QUICK]
    plan = Contest(
        title="Classes by bandit feedback: regret of 5,000 decisions from a cold start",
        worlds={name: load_environment(name) for name in WORLDS[size]},
        contestants=players,
        steps=STEPS,
        seeds=RUNS[size],
        by_regret=False,
        settings={
            "inputs": "standardised by running moments",
            "always the most frequent class": {"statlog": 3992, "covertype": 2419},
            "published": "other packages on three orders of rows; Duran-Martin et al. on one order",
        },
        peers={name: PEERS[name] for name in WORLDS[size]},
    )
    return contest(plan, seed, progress, cells)
