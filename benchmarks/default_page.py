"""What the tables of docs/explanation/defaults.md and defaults-tables.md say, made of the results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from default_best import BATCH, OURS, ahead, dirt_said, dirty_costs, losses, stands
from default_groups import GROUPS, clean_of
from default_results import Result, Shape
from default_tables import described, tables
from result_evidence import Evidence
from result_markdown import day, line, table

__all__ = ["METHODS", "REGIONS"]

RIVER = (
    "River AMF",
    "River AMF, min-max",
    "River AMF, scaled",
    "River ARF",
    "River HAT",
    "River KNN",
    "River SRP",
    "River linear",
)
OTHERS = ("CapyMOA ARF", "MLP Adam", "VW --nn 10", "VW -q ::", "VW plain", "sklearn SGD")
METHODS = {
    "classification": (OURS, *BATCH, *RIVER, "River NB", "River softmax", "CapyMOA SRP", *OTHERS),
    "regression": (OURS, *BATCH, *RIVER, "River BLR", "River BLR, scaled", "CapyMOA SOKNL", *OTHERS),
}
"""The methods that `defaults.py` can run, by task; River's softmax is for more than two classes."""

TITLES = {
    "unseen": "Tables from packages, which no choice has seen",
    "held": "Streams that no choice has seen",
    "chosen": "Streams on which members were chosen",
    "wide": "Wide streams",
} | {group: f"Copies of the tables with {group.split('~')[1]}" for group in GROUPS if "~" in group}


def _standing(group: str) -> Callable[[Evidence], str]:
    def text(evidence: Evidence) -> str:
        scores = evidence.table(group)
        return f"{stands(scores)}\n\n{ahead(scores)}"

    return text


DIRTY = tuple(group for group in GROUPS if "~" in group)


def _lost(evidence: Evidence) -> str:
    return losses(evidence.table("unseen", *DIRTY, "held", "wide", "chosen"))


def _dirt(evidence: Evidence) -> str:
    return dirt_said(evidence.table("unseen", *DIRTY))


def _dirty(evidence: Evidence) -> str:
    return dirty_costs(evidence.table("unseen", *DIRTY))


def _tables(evidence: Evidence) -> str:
    names = [name for names in GROUPS.values() for name in names]
    return tables([one.entry for one in evidence.results], names, OURS)


def _streams(evidence: Evidence) -> str:
    return described(evidence.shapes)


def _days(evidence: Evidence) -> str:
    """When each group was run, and by which versions."""
    lines = [
        line(["streams", "credo: day, version and number of streams", "peers: day and number of scores"])
    ]
    lines.append(line(["---"] * 3))
    for group, title in TITLES.items():
        if some := evidence.of(group):
            theirs = Counter(one.date for one in some if one.method != OURS)
            peers = "; ".join(f"{date} ({count})" for date, count in sorted(theirs.items()))
            lines.append(line([title, _dated([one for one in some if one.method == OURS]), peers]))
    versions = {one.version for one in evidence.results if one.version and one.method != OURS}
    said = f"Versions of the peers: {', '.join(sorted(versions))}; those of the earliest are not on record."
    return "\n".join([*lines, "", said])


def _dated(results: Sequence[Result]) -> str:
    """The days and versions of results, with their streams but for those of which there are most."""
    kinds: dict[tuple[str, str], list[str]] = {}
    for one in results:
        kinds.setdefault((one.date, one.version.removeprefix(f"{OURS} ")), []).append(one.stream)
    most = max(map(len, kinds.values()), default=0)
    parts = []
    for (date, version), streams in sorted(kinds.items()):
        names = f": {', '.join(streams)}" if len(streams) < most else ""
        parts.append(f"{date}{f', {version}' if version else ''} ({len(streams)}{names})")
    return "; ".join(parts) or "none yet"


def _absent(evidence: Evidence) -> str:
    """Which methods have run on all streams of a group, on some of them, and on none."""
    lines = [line(["streams", "on all", "on some, but not on", "on none"]), line(["---"] * 4)]
    for group, title in TITLES.items():
        ran = {(one.stream, one.method) for one in evidence.of(group)}
        if not ran:
            lines.append(line([title, "", "", "every method"]))
            continue
        sizes = {name: size for name in GROUPS[group] if (size := evidence.shapes.get(clean_of(name)))}
        cells: tuple[list[str], ...] = ([], [], [])
        for method in dict.fromkeys(method for methods in METHODS.values() for method in methods):
            fit = [name for name, shape in sizes.items() if _fits(method, shape)]
            out = [clean_of(name) for name in fit if (name, method) not in ran]
            if not out:
                cells[0].append(method)
            elif len(out) < len(fit):
                cells[1].append(f"{method} ({', '.join(out)})")
            else:
                cells[2].append(method)
        lines.append(line([title, *("; ".join(some) for some in cells)]))
    return "\n".join(lines)


def _fits(method: str, shape: Shape) -> bool:
    return method in METHODS[shape.task] and (method != "River softmax" or shape.classes > 2)


def _budgets(evidence: Evidence) -> str:
    section = evidence.sections["budgets"]
    said = f"Measured on {day(section.date)} by {section.command}; {section.conditions}"
    return "\n\n".join([table(section.grid), said, *(part for part in section.body if isinstance(part, str))])


REGIONS: dict[str, Callable[[Evidence], str]] = {
    "budgets": _budgets,
    "unseen": _standing("unseen"),
    "held": _standing("held"),
    "lost": _lost,
    "dirt": _dirt,
    "dirty": _dirty,
    "days": _days,
    "absent": _absent,
    "streams": _streams,
    "tables": _tables,
}
"""What is written into the pages, by the name of the region."""
