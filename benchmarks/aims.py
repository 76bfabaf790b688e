"""What the ratios of `official.py` and the rows of `speed.py` have to be, and what they should be.

A ratio is the processor time of an official code over ours: above 1, credo is faster. `least` is what a
change must not fall short of; `aim` is where we want to be. They hold for a machine that does nothing else.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["HEAD", "Asked", "Goal", "Measured", "asked", "cells", "goal"]

HEAD = [
    "| case | ours | us a row | official code | us a row | ratio | must | aim | reached | x roofline |",
    "|---|---|--:|---|--:|--:|--:|--:|---|--:|",
]
"""The first lines of the table."""


class Measured(NamedTuple):
    """The ratio of a case, None where the peer cannot run, with the reason."""

    title: str
    ours: str
    peer: str
    ratio: float | None
    why: str = ""


class Asked(NamedTuple):
    """What a row of `speed.py` must be and what is aimed at; `most` says that less is better."""

    must: float
    aim: float
    most: bool = False

    def words(self) -> tuple[str, str]:
        """Both, as cells of the table."""
        side = "at most" if self.most else "at least"
        return f"{side} {self.must:,.4g}", f"{self.aim:,.4g}"

    def reached(self, value: float) -> str:
        """What of both a number reaches."""

        def good(limit: float) -> bool:
            if self.most:
                return value <= limit
            return value >= limit

        return "aim" if good(self.aim) else "must" if good(self.must) else "no"


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
    **{
        (f"RunLength K = 1, P = {size}", "credo", "the bare learner"): Goal(1 / 2, 1 / 2)
        for size in ("51", "505")
    },
    ("one row from Python, D = 10", "credo.pack, forecast + step", "River BayesianLinearRegression"): Goal(
        1 / 3, 1 / 3
    ),
    ("one row from Python, D = 10", "credo, learner.step", "River BayesianLinearRegression"): Goal(
        1 / 8, 1 / 8
    ),
}


_ROWS = {
    "diagonal Fisher EKF, P = 101,770, 32 rows a batch": Asked(25, 30),
    "the bank of two classes, a scan": Asked(1.4, 1.4, most=True),
    "credo learn, classes, rows a second": Asked(14_000, 14_000),
    "credo learn, numbers, rows a second": Asked(18_000, 18_000),
    'RiverClassifier("linear").learn_one': Asked(1.8, 1.8, most=True),
    "credo learn, 100 rows, cold": Asked(9, 9, most=True),
    "credo learn, 100 rows, warm": Asked(3, 3, most=True),
    "credo learn mnist, cold": Asked(20, 20, most=True),
    "credo learn mnist, warm": Asked(12, 12, most=True),
    "Bandit, decide and reward, 10 inputs, 7 arms": Asked(1, 1),
    "Thompson, unknown noise, 7 arms, a scan": Asked(12, 12),
    "default agent, 5 arms, a reward, ms": Asked(0.15, 0.15, most=True),
    "default agent, 50 arms, a reward, ms": Asked(0.4, 0.4, most=True),
    "1,000 arms with features, linear, Thompson, a decision, ms": Asked(5, 5, most=True),
    "1,000 arms with features, default agent, a decision, ms": Asked(5, 5, most=True),
}


def asked(row: str, against: str) -> Asked | None:
    """What is asked of a row of `speed.py`, None where nothing is.

    Rows of `official.py` are a title, a colon and our name; of a transcription the same is asked as of the
    official code that it stands for.
    """
    if row in _ROWS:
        return _ROWS[row]
    title, _, ours = row.rpartition(": ")
    peer = "BONG, update alone" if against.startswith("BONG") else against
    found = goal(title, ours, peer)
    if found is None:
        return None
    return Asked(*found)


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
