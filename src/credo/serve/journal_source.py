"""The rows that a model of a service learned, as a table for runs with other learners."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from credo.core.errors import DataError, asking, suggest
from credo.serve.building import JOURNAL
from credo.serve.journal_lines import Event
from credo.serve.journal_store import Store
from credo.serve.specs import UNITS
from credo.tables import Chunk, TableSource

__all__ = ["TIME", "journal_target", "model_of", "open_journal"]

TIME = "time"
"""The column of the times of rows, if the model has them, in its unit."""


def journal_target(folder: Path, model: str) -> str:
    """The target of a model; a DataError if there is no such model, or it has none."""
    store = Store(folder / JOURNAL)
    try:
        target: str = _table_of(store, folder, model)[1]["target"]
        return target
    finally:
        store.close()


def open_journal(folder: Path, model: str, chunk_rows: int = 1000) -> TableSource:
    """The rows that a model has learned so far, in that order, counted as the journal counts its lines."""
    store = Store(folder / JOURNAL)
    number, spec = _table_of(store, folder, model)
    chunks = _chunks(store, number, spec["target"], UNITS.get(spec.get("time_unit", "")), chunk_rows)
    return TableSource(f"{folder}/{model}", "journal", chunks, store.close)


def model_of(store: Store, folder: Path, model: str) -> tuple[int, dict[str, Any]]:
    """The number of the model whose lines a model learns, and its specification."""
    models = {row.name: row for row in store.models()}
    if model not in models:
        hint = suggest(model, list(models))
        raise DataError(asking(f"{folder} has no model {model!r}", hint))
    row = models[model]
    spec: dict[str, Any] = msgspec.json.decode(row.spec)
    return row.number if row.parent is None else row.parent, spec


def _table_of(store: Store, folder: Path, model: str) -> tuple[int, dict[str, Any]]:
    """The same of a model of a table."""
    number, spec = model_of(store, folder, model)
    if "target" not in spec:
        raise DataError(f"{folder}/{model} must be a model of a table; it is a {spec.get('kind')}.")
    return number, spec


def _chunks(store: Store, model: int, target: str, unit: float | None, size: int) -> Iterator[Chunk]:
    for events in store.events(model, 0, store.last(), size):
        rows = [row for event in events if (row := _row(event, target, unit)) is not None]
        if rows:
            names = dict.fromkeys(name for _, cells, _ in rows for name in cells)
            columns = {name: [cells.get(name) for _, cells, _ in rows] for name in names}
            weights = np.array([weight for *_, weight in rows])
            lines = np.array([line for line, *_ in rows], np.int64)
            yield Chunk(columns, lines, loose=True, weights=weights if (weights != 1.0).any() else None)


def _row(event: Event, target: str, unit: float | None) -> tuple[int, dict[str, object], float] | None:
    """The line, the cells and the weight of a row that was learned; None for another event."""
    content: Any = event.content
    if event.kind not in ("learn", "label"):
        return None
    given: Any = content if event.kind == "learn" else event.row
    cells: dict[str, object] = {**given.x, target: content.y}
    if unit is not None:
        cells[TIME] = None if given.time is None else given.time / unit
    return event.seq, cells, 1.0 if content.weight is None else content.weight
