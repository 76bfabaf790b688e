"""Sentences about the columns of a table that a reader may want to know."""

from __future__ import annotations

from credo.tables.cells import cell_text, is_decorated, to_numbers

__all__ = ["constant_columns", "decorated_numbers"]


def constant_columns(still: list[tuple[str, float]], rows: int) -> list[str]:
    """One sentence about all columns of numbers that are constant so far."""
    if not still:
        return []
    first = f"in the first {rows} rows"
    if len(still) == 1:
        name, value = still[0]
        return [f"column {name!r} is always {value:g} {first}; it is kept, and is 0 until it changes"]
    shown = ", ".join(name for name, _ in still[:8]) + (", ..." if len(still) > 8 else "")
    many = f"{len(still)} columns are constant {first}"
    return [f"{many} and are 0 until they change: {shown}"]


def decorated_numbers(what: str, cells: list[object], numeric: bool, rows: int) -> list[str]:
    """A sentence about numbers with signs or commas, which are left out."""
    marked = [cell for cell in cells if is_decorated(cell)] if numeric else []
    if not marked:
        return []
    value, example = to_numbers(marked[:1])[0][0], cell_text(marked[0])
    written = f"{len(marked)} of the first {rows} rows are written so"
    return [f"{what} holds {example!r}, which is read as {value:.10g}; {written}"]
