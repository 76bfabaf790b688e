"""How peers stand beside each other on a group of streams, and what dirt costs each of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from default_dirty import KINDS
from result_markdown import line

__all__ = ["Table", "dirt", "rank", "standing"]

Table: TypeAlias = dict[str, dict[str, Mapping[str, Any]]]
"""Scores by stream and peer."""


def rank(table: Table, peer: str) -> float:
    """The mean place of a peer's log loss on the streams that it ran on."""
    places = []
    for row in table.values():
        if peer in row:
            places.append(1 + sum(other["log_loss"] < row[peer]["log_loss"] for other in row.values()))
    return float(np.mean(places))


def standing(table: Table, task: str) -> str:
    """Every peer: its first places, its mean rank, how far it is behind the best, and its mean calibration.

    A peer counts on the streams that it ran on. The best of a stream is the least log loss that any peer has.
    """
    calibration = "ece" if task == "classification" else "coverage"
    title = "ECE" if task == "classification" else "coverage of 90% intervals"
    head = ["peer", "streams", "first", "mean rank", "nats behind the best: median", "mean", title]
    head.append(f"{title} after 2,000 rows")
    lines = [line(head), line(["---", *["--:"] * (len(head) - 1)])]
    ranks = {peer: rank(table, peer) for peer in {peer for row in table.values() for peer in row}}
    for peer in sorted(ranks, key=lambda peer: (ranks[peer], peer)):
        rows = [row for row in table.values() if peer in row]
        behind = [row[peer]["log_loss"] - min(one["log_loss"] for one in row.values()) for row in rows]
        late = [row[peer][f"{calibration}_settled"] for row in rows]
        known = [number for number in late if number is not None]
        cells = [peer, str(len(rows)), str(sum(gap == 0.0 for gap in behind)), f"{ranks[peer]:.1f}"]
        cells += [_number(float(np.median(behind))), _number(float(np.mean(behind)))]
        cells += [f"{np.mean([row[peer][calibration] for row in rows]):.3f}"]
        cells += [f"{np.mean(known):.3f}" if known else ""]
        lines.append(line(cells))
    return "\n".join(lines)


def dirt(table: Table) -> str:
    """What each kind of dirt costs each peer: the log loss of the dirty copy less that of the clean stream.

    A cell has the median and the largest over the streams that the peer has both ways, and their number.
    Peers are in the order of the mean of their medians.

    Arguments:
        table: the scores of clean streams, and of dirty ones, which are called `NAME~KIND`.
    """
    losses: dict[str, dict[str, list[float]]] = {}
    for name, row in table.items():
        clean, mark, kind = name.partition("~")
        for peer, scores in row.items() if mark else ():
            if peer in table.get(clean, {}):
                cost = scores["log_loss"] - table[clean][peer]["log_loss"]
                losses.setdefault(peer, {}).setdefault(kind, []).append(cost)
    if not losses:
        return ""

    def lost(peer: str) -> float:
        return float(np.mean([np.median(costs) for costs in losses[peer].values()]))

    lines = [line(["peer", *KINDS]), line(["---", *["--:"] * len(KINDS)])]
    for peer in sorted(losses, key=lambda peer: (lost(peer), peer)):
        cells = [_cost(losses[peer][kind]) if kind in losses[peer] else "" for kind in KINDS]
        lines.append(line([peer, *cells]))
    return "\n".join(lines)


def _cost(costs: Sequence[float]) -> str:
    return f"{_number(float(np.median(costs)), '+')}, {_number(max(costs), '+')} ({len(costs)})"


def _number(value: float, sign: str = "") -> str:
    """Three decimals, or two digits of what is large."""
    if abs(value) < 1000.0:
        return f"{value:{sign}.3f}"
    return f"{value:{sign}.2g}"
