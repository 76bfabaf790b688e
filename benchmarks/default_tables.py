"""The long tables of docs/explanation/defaults-tables.md, in Markdown, made of scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from default_groups import STANDARD, dirt_of, group_of
from default_results import Shape
from default_standing import Table, dirt, rank, standing
from result_markdown import line

__all__ = ["described", "tables"]

Entry: TypeAlias = Mapping[str, Any]
METRICS = {
    "classification": {
        "log_loss": "Log loss",
        "error": "Error",
        "ece": "ECE (15 bins)",
        "ece_settled": "ECE after 2,000 rows",
    },
    "regression": {
        "log_loss": "Log loss",
        "rmse": "RMSE",
        "coverage": "Coverage of 90% intervals",
        "coverage_settled": "Coverage of 90% intervals after 2,000 rows",
        "crps": "CRPS",
    },
}
TITLES = {
    None: "all streams but the unseen tables, dirty copies and wide ones",
    "chosen": "streams on which members were chosen",
    "held": "streams that no choice has seen",
    "unseen": "tables that no choice has seen",
    "wide": "wide streams",
}
"""The groups whose metrics are shown stream by stream, and first two of them together."""

SPEED = ("rows_per_second", "Rows a second of processor time")
COVERAGE = 0.9
COVERS = (0.88, 0.92)
LARGEST_ECE = 0.03
TOLERANCE = 1.02


def tables(entries: Sequence[Entry], names: Sequence[str], ours: str) -> str:
    """All tables: a summary, each stream with its best peer, every metric by peer, dirt, and the ablations.

    Arguments:
        entries: the saved entries.
        names: the streams in the order of the tables.
        ours: the peer's name that stands for credo; its variations begin with it and a comma.
    """
    sections: list[str] = []
    variations = [entry for entry in entries if entry["peer"].startswith(f"{ours}, ")]
    plain = [entry for entry in entries if entry not in variations]
    for group, where in TITLES.items():
        within = STANDARD if group is None else (group,)
        for task, metrics in METRICS.items():
            some = [e for e in plain if e["task"] == task and group_of(e["stream"]) in within]
            table = _table(some, names)
            if not table:
                continue
            sections += [f"## {task.capitalize()}: {where}", _summary(table, task, ours)]
            sections += [standing(table, task)]
            if group is None:
                continue
            sections += ["### Each stream and its best peer", _best(table, task, ours)]
            for metric, title in (*metrics.items(), SPEED):
                sections += [f"### {title}", _wide(table, metric, ours)]
    sections += _dirty(plain, names)
    if variations:
        sections += ["## Ablations: log loss with a setting changed, less that of the default"]
        sections.append(_ablations(entries, variations, names, ours))
    return "\n\n".join(sections)


def _table(entries: Sequence[Entry], names: Sequence[str]) -> Table:
    table: Table = {name: {} for name in names}
    for entry in entries:
        table.get(entry["stream"], {})[entry["peer"]] = entry["scores"]
    return {name: row for name, row in table.items() if row}


def _dirty(plain: Sequence[Entry], names: Sequence[str]) -> list[str]:
    """What dirt costs, and how the peers stand on the dirty copies."""
    sections: list[str] = []
    for task in METRICS:
        table = _table([entry for entry in plain if entry["task"] == task], names)
        if cost := dirt(table):
            sections += [f"## {task.capitalize()}: log loss of dirty copies, less that of the clean stream"]
            sections += ["The median, the largest, and the number of streams.", cost]
        for kind in dict.fromkeys(dirt_of(name) for name in table if dirt_of(name)):
            some = {name: row for name, row in table.items() if dirt_of(name) == kind}
            sections += [f"### Copies with {kind}", standing(some, task)]
    return sections


def described(shapes: Mapping[str, Shape]) -> str:
    """The streams, with their sizes; dirty copies have those of the clean ones, and are left out."""
    lines = [line(["stream", "group", "task", "rows", "columns", "classes"])]
    lines.append(line(["---", "---", "---", "--:", "--:", "--:"]))
    for name, shape in shapes.items():
        if dirt_of(name) is None:
            sizes = [f"{shape.rows:,}", str(shape.columns), str(shape.classes or "")]
            lines.append(line([name, group_of(name), shape.task, *sizes]))
    return "\n".join(lines)


def _summary(table: Table, task: str, ours: str) -> str:
    """Sentences about the streams that have a row of ours."""
    both = {name: row for name, row in table.items() if ours in row and len(row) > 1}
    if not both:
        return "There is no row of credo yet."
    word = "error" if task == "classification" else "rmse"

    def score(metric: str, keep: Callable[[str], bool]) -> np.ndarray:
        return np.array([min(row[p][metric] for p in row if keep(p)) for row in both.values()])

    own = score("log_loss", lambda peer: peer == ours)
    lines = [
        f"credo has the least log loss on {_count(own, score('log_loss', lambda p: p != ours))} streams."
    ]
    if all(any(p.startswith("River") for p in row) for row in both.values()):
        gap = score("log_loss", lambda peer: peer.startswith("River")) - own
        lines.append(f"The best River model of each stream is {gap.mean():.3f} nats behind on average.")
    close = score(word, lambda peer: peer == ours) <= TOLERANCE * score(word, lambda peer: peer != ours)
    what = "error" if word == "error" else "RMSE"
    lines.append(f"Its {what} is at most 2% above the best peer's on {close.sum()} of {len(close)} streams.")
    if task == "classification":
        lines.append(
            f"Its ECE is {_mean(both, 'ece', ours)} on average, {_settled(both, 'ece_settled', ours)}."
        )
    else:
        lines.append(
            f"Its 90% intervals cover {_mean(both, 'coverage', ours)} on average, "
            f"{_settled(both, 'coverage_settled', ours)}."
        )
    dearest = [row[ours]["worst"] for row in both.values() if row[ours]["worst"] is not None]
    if dearest:
        lines.append(f"Its worst row costs {max(dearest):.1f} nats.")
    peers = sorted({peer for row in both.values() for peer in row})
    ranks = {peer: rank(both, peer) for peer in peers}
    order = sorted(ranks, key=lambda peer: ranks[peer])
    lines.append(f"Mean ranks: {', '.join(f'{peer} {ranks[peer]:.1f}' for peer in order)}.")
    return "\n".join(lines)


def _count(own: np.ndarray, others: np.ndarray) -> str:
    return f"{int((own <= others).sum())} of {len(own)}"


def _mean(table: Table, metric: str, peer: str) -> str:
    return f"{np.mean([row[peer][metric] for row in table.values()]):.3f}"


def _settled(table: Table, metric: str, peer: str) -> str:
    late = [row[peer][metric] for row in table.values() if row[peer][metric] is not None]
    if not late:
        return "and no stream has more than 2,000 rows"
    good = sum(number <= LARGEST_ECE if metric.startswith("ece") else _covers(number) for number in late)
    limits = f"at most {LARGEST_ECE}" if metric.startswith("ece") else f"from {COVERS[0]} to {COVERS[1]}"
    return (
        f"and from {min(late):.3f} to {max(late):.3f} after 2,000 rows, "
        f"where it is {limits} on {good} of {len(late)} streams"
    )


def _covers(coverage: float) -> bool:
    return COVERS[0] <= coverage <= COVERS[1]


def _best(table: Table, task: str, ours: str) -> str:
    word, calibration = ("error", "ece") if task == "classification" else ("rmse", "coverage")
    shown = ["log_loss", word, calibration, *(["crps"] if task == "regression" else [])]
    titles = [title.split(" (")[0] for key, title in METRICS[task].items() if key in shown]
    head = ["stream", "rows", "best peer", *(f"{title}: peer, credo" for title in titles)]
    lines = [line(head), line(["---", "--:", "---", *["--:"] * len(titles)])]
    for name, row in table.items():
        peers = {peer: scores for peer, scores in row.items() if peer != ours}
        if not peers:
            continue
        best = min(peers, key=lambda peer: peers[peer]["log_loss"])
        cells = [name, f"{peers[best]['rows']:,}", best]
        for key in shown:
            own = f"{row[ours][key]:.3f}" if ours in row else "-"
            cells.append(f"{peers[best][key]:.3f}, {own}")
        lines.append(line(cells))
    return "\n".join(lines)


def _wide(table: Table, metric: str, ours: str) -> str:
    """A metric of every peer on every stream, with the best in bold."""
    peers = sorted({peer for row in table.values() for peer in row}, key=lambda peer: (peer != ours, peer))
    lines = [line(["stream", *peers]), line(["---", *["--:"] * len(peers)])]
    for name, row in table.items():
        numbers = {peer: row[peer].get(metric) for peer in peers if peer in row}
        present = {peer: number for peer, number in numbers.items() if number is not None}
        if not present:
            continue
        best = _best_of(metric, present)
        cells = [name]
        for peer in peers:
            number = present.get(peer)
            text = "" if number is None else _text(metric, number)
            cells.append(f"**{text}**" if peer == best else text)
        lines.append(line(cells))
    return "\n".join(lines)


def _best_of(metric: str, numbers: Mapping[str, float]) -> str:
    if metric == SPEED[0]:
        return max(numbers, key=lambda peer: numbers[peer])
    if metric.startswith("coverage"):
        return min(numbers, key=lambda peer: abs(numbers[peer] - COVERAGE))
    return min(numbers, key=lambda peer: numbers[peer])


def _text(metric: str, number: float) -> str:
    if metric == SPEED[0]:
        return f"{number:,.0f}"
    if metric in ("rmse", "crps"):
        return f"{number:.3g}"
    if abs(number) < 1000:
        return f"{number:.3f}"
    return f"{number:.2g}"


def _ablations(entries: Sequence[Entry], variations: Sequence[Entry], names: Sequence[str], ours: str) -> str:
    base = {entry["stream"]: entry["scores"]["log_loss"] for entry in entries if entry["peer"] == ours}
    titles = sorted({entry["peer"] for entry in variations})
    lines = [line(["stream", *(title.removeprefix(f"{ours}, ") for title in titles)])]
    lines.append(line(["---", *["--:"] * len(titles)]))
    changes: dict[str, list[float]] = {title: [] for title in titles}
    for name in names:
        losses = {e["peer"]: e["scores"]["log_loss"] for e in variations if e["stream"] == name}
        if name not in base or not losses:
            continue
        for title, loss in losses.items():
            changes[title].append(loss - base[name])
        cells = [f"{losses[title] - base[name]:+.3f}" if title in losses else "" for title in titles]
        lines.append(line([name, *cells]))
    means = [f"{np.mean(changes[title]):+.3f}" if changes[title] else "" for title in titles]
    return "\n".join([*lines, line(["mean", *means])])
