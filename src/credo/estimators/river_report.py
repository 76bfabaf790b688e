"""What an estimator for River says of a row in `debug_one`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from credo.live.feature_slots import FeatureSlots
from credo.live.feature_values import absent
from credo.live.live_learner import LiveLearner

__all__ = ["report"]

WIDEST = 30
"""The most characters of a name or value that are shown."""


def report(slots: FeatureSlots, live: LiveLearner | None, x: Mapping[Any, object], forecast: str) -> str:
    """What the estimator makes of a row, below its forecast in words; no `live` before the first row."""
    lines = [f"Forecast: {forecast}"]
    if live is None:
        return "\n".join([*lines, "Nothing was learned yet."])
    refused = f", {live.refused:,} of them refused" if live.refused else ""
    lines.append(f"Learned: {live.rows:,} rows{refused}; {len(slots.slots)} of {live.inputs} inputs in use")
    lines += changes(live)
    row = slots.row(x)
    seen = live.inputs_of(row)
    table = [("feature", "value", "input")]
    for place, slot in enumerate(slots.slots):
        if slot.kind in ("text", "words", "gap") and seen[place] == 0.0:
            continue
        value = x.get(slot.name)
        shown = "missing" if absent(value) else _short(value)
        table.append((_short(str(slot)), "" if slot.kind == "gap" else shown, f"{seen[place]:+.3f}"))
    unknown = [(_short(str(name)), _short(x[name]), "not met") for name in x if name not in slots.kinds]
    table += unknown
    widths = [max(len(cells[column]) for cells in table) for column in range(3)]
    lines.append("")
    lines += [
        f"{name:<{widths[0]}}  {value:>{widths[1]}}  {seen_as:>{widths[2]}}" for name, value, seen_as in table
    ]
    return "\n".join(lines)


def changes(live: LiveLearner) -> list[str]:
    """What the drift reported, one line; none where it reports nothing."""
    if live.change is None:
        return []
    alarms = f"{live.alarms} alarm{'s' * (live.alarms != 1)}"
    rows = ", ".join(f"{row:,}" for row in live.latest)
    where = f" (at row {rows})" if live.latest else ""
    return [f"Changes: {alarms}{where}; P(the latest row began a segment) {live.change:.3f}"]


def _short(value: object) -> str:
    if isinstance(value, float | np.floating):
        return f"{value:.6g}"
    text = str(value)
    return text if len(text) <= WIDEST else f"{text[: WIDEST - 3]}..."
