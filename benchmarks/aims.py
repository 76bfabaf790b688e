"""What the ratios of `official.py` have to be, and what they should be.

A ratio is the processor time of an official code over ours: above 1, credo is faster. `least` is what a
change must not fall short of; `aim` is where we want to be. They hold for a machine that does nothing else.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["HEAD", "Goal", "cells", "goal"]

HEAD = [
    "| case | ours | us a row | official code | us a row | ratio | must | aim | reached | x roofline |",
    "|---|---|--:|---|--:|--:|--:|--:|---|--:|",
]
"""The first lines of the table."""


class Goal(NamedTuple):
    """The least ratio that will do, and the one that is aimed at."""

    least: float
    aim: float


_GOALS = {
    ("low rank 10, P = 1,510", "credo", "BONG, update alone"): Goal(3.0, 3.5),
    ("low rank 10, P = 42,310", "credo", "BONG, update alone"): Goal(4.2, 4.8),
    ("low rank 10, P = 101,770", "credo", "BONG, update alone"): Goal(4.2, 4.8),
    ("low rank 10, P = 1,510", "credo", "rebayes LOFI"): Goal(3.5, 3.5),
    ("low rank 10, P = 42,310", "credo", "rebayes LOFI"): Goal(4.0, 4.0),
    ("low rank 10, P = 101,770", "credo", "rebayes LOFI"): Goal(4.8, 4.8),
    **{
        (f"full EKF, one output, P = {size}", "credo, root", "BONG, update alone"): Goal(1.3, 2.0)
        for size in ("100", "500", "1,000")
    },
    ("Kalman scan, D = 2, one output", "credo, root", "dynamax lgssm_filter"): Goal(1.2, 1.2),
    ("Kalman scan, D = 10, 4 outputs", "credo, root", "dynamax lgssm_filter"): Goal(1.2, 1.2),
    ("one row from Python, D = 10", "credo.pack, forecast + step", "River BayesianLinearRegression"): Goal(
        1 / 3, 1 / 3
    ),
    ("one row from Python, D = 10", "credo, learner.step", "River BayesianLinearRegression"): Goal(
        1 / 8, 1 / 8
    ),
}


def goal(title: str, ours: str, theirs: str) -> Goal | None:
    """What is asked of a case, None where nothing is. What a title says after its case does not matter."""
    for (case, mine, peer), asked in _GOALS.items():
        if (mine, peer) == (ours, theirs) and (title == case or title.startswith(case + ",")):
            return asked
    return None


def cells(title: str, ours: str, theirs: str, ratio: float) -> str:
    """The ratio beside what is asked of it, and what of that is reached, as cells of the table."""
    asked = goal(title, ours, theirs)
    if asked is None:
        return f"{ratio:.2f} | | |"
    reached = "aim" if ratio >= asked.aim else "must" if ratio >= asked.least else "no"
    return f"{ratio:.2f} | {asked.least:.2g} | {asked.aim:.2g} | {reached}"
