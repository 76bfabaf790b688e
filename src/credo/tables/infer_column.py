"""Infer what one column of a table means from its first cells, and what a reader may want to know of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from credo.core.errors import DataError, Named
from credo.tables.cells import cell_text, is_decorated, is_missing, to_numbers, truth
from credo.tables.number_formats import Mark, decimal_mark
from credo.tables.schema import ColumnSpec, Dropped
from credo.tables.times import find_cycles, to_times

__all__ = [
    "ENOUGH",
    "PARSED",
    "WORD_SLOTS",
    "Remarks",
    "constant_columns",
    "decorated_numbers",
    "infer_column",
    "is_text",
    "late_column",
    "read_numbers",
]

PARSED = 0.95
"""The least share of the cells of a column that must be of a kind for the column to be of that kind."""

ENOUGH = 20
"""The least number of cells from which something can be said about all of them."""

SEVERAL = 2.5
"""The least mean number of words in the cells of a text."""

# How many features the words of a text share; and in a column of very many categories, how many have a
# feature each, and how many features the others share.
WORD_SLOTS = 64
FREQUENT = 40
CATEGORY_SLOTS = 16

LATE_SLOTS = 16
"""The number of features that the categories of a column share that comes after the first rows."""

_ID_NAMES = ("id", "index", "idx", "row", "rowid", "row_id", "rownum", "no", "nr", "key", "uuid")


class Remarks(NamedTuple):
    """Sentences about columns, and the columns of numbers that are constant so far, with their value."""

    notes: list[str]
    still: list[tuple[str, float]]


def infer_column(
    name: str, cells: list[object], forced: bool, max_categories: int, said: Remarks, semicolons: bool = False
) -> ColumnSpec | Dropped:
    """The meaning of a column by its first cells, categories where `forced`, or why it is left out."""
    present = [cell for cell in cells if not is_missing(cell)]
    missing = len(present) < len(cells)
    first = f"the first {len(cells)} rows"
    if not present:
        return Dropped(name, f"it has no values in {first}", "")
    column = None if forced else _other_than_category(name, present, missing, len(cells), semicolons, said)
    if column is not None:
        return column
    texts = Counter(cell_text(cell) for cell in present)
    words = not forced and is_text(texts)
    unlike = len(present) >= ENOUGH and _nearly_all_unlike(texts, present)
    if len(texts) <= max_categories and not (words and unlike):
        return ColumnSpec(name, "categorical", _ranked(texts, max_categories), missing)
    if words:
        said.notes.append(f"column {name!r} is text: its words are hashed into {WORD_SLOTS} features")
        return ColumnSpec(name, "text", has_missing=missing, slots=WORD_SLOTS)
    some = min(FREQUENT, max_categories)
    said.notes.append(
        f"column {name!r} has {len(texts)} categories in {first}: the {some} most frequent have a feature "
        f"each, and the others are hashed into {CATEGORY_SLOTS}"
    )
    return ColumnSpec(name, "categorical", _ranked(texts, some), missing, slots=CATEGORY_SLOTS)


def late_column(name: str, cell: object, only: str = "") -> ColumnSpec | None:
    """The meaning of a column by its first value that is not `only`, its text so far; None if nested."""
    if isinstance(cell, (dict, list, tuple, set)):
        return None
    if isinstance(cell, (bool, np.bool_)):
        return ColumnSpec(name, "boolean", has_missing=True)
    mark = decimal_mark([cell], False)[0]
    numbers, wrong = to_numbers([cell], mark)
    if not only and not wrong[0]:
        if np.isnan(numbers[0]):
            return None
        return ColumnSpec(name, "numeric", has_missing=True, decimal=mark)
    times, _, wrong = to_times([cell])
    if not only and not wrong[0]:
        return ColumnSpec(name, "datetime", (), True, float(times[0]))
    if not only and is_text({cell_text(cell)}):
        return ColumnSpec(name, "text", has_missing=True, slots=WORD_SLOTS)
    return ColumnSpec(name, "categorical", (only,) if only else (), True, slots=LATE_SLOTS)


def is_text(texts: Collection[str]) -> bool:
    """Whether most of these are several words between blanks, which identifiers and addresses are not."""
    return sum(len(text.split()) for text in texts) >= SEVERAL * len(texts)


def _nearly_all_unlike(texts: Collection[str], cells: Collection[object]) -> bool:
    return len(texts) > 0.9 * len(cells)


def _ranked(texts: Counter[str], most: int) -> tuple[str, ...]:
    """The categories, the most frequent first."""
    return tuple(sorted(texts, key=lambda text: (-texts[text], text))[:most])


def _other_than_category(
    name: str, present: list[object], missing: bool, rows: int, semicolons: bool, said: Remarks
) -> ColumnSpec | Dropped | None:
    """The column where its cells are numbers, times or truth values or are of no use; None for categories."""
    first = f"the first {rows} rows"
    if sum(isinstance(cell, (dict, list, tuple, set)) for cell in present) > (1 - PARSED) * len(present):
        return Dropped(name, "it holds nested values")
    mark, numbers, wrong = read_numbers(f"column {name!r}", present, semicolons)
    flags = all(isinstance(cell, (bool, np.bool_)) for cell in present)
    if not flags and np.mean(~wrong) >= PARSED:
        column = _numeric(name, numbers, wrong, missing, first, said)
        kept = isinstance(column, ColumnSpec)
        said.notes.extend(decorated_numbers(f"column {name!r}", present, kept, mark, rows))
        if isinstance(column, ColumnSpec):
            return replace(column, decimal=mark)
        return column
    times, clock, wrong_times = to_times(present)
    if np.mean(~wrong_times) >= PARSED:
        origin = float(times[~wrong_times][0])
        return ColumnSpec(name, "datetime", (), missing, origin, cycles=find_cycles(clock[~wrong_times]))
    texts = {cell_text(cell) for cell in present}
    if len(texts) == 1:
        only = next(iter(texts))
        return Dropped(name, f"it is always {only[:40]!r} in {first}", only)
    if all(truth(cell) is not None for cell in present) and len({truth(cell) for cell in present}) == 2:
        return ColumnSpec(name, "boolean", has_missing=missing)
    if not is_text(texts) and len(present) >= ENOUGH and _nearly_all_unlike(texts, present):
        some = f", and {np.mean(~wrong):.0%} of them are numbers" if not wrong.all() else ""
        return Dropped(
            name, f"it is text that is nearly always different ({len(texts)} of {len(present)} values{some})"
        )
    return None


def _numeric(
    name: str, numbers: np.ndarray, wrong: np.ndarray, missing: bool, first: str, said: Remarks
) -> ColumnSpec | Dropped:
    usable = numbers[~np.isnan(numbers)]
    if not usable.size:
        return Dropped(name, f"it has no finite numbers in {first}", "")
    whole = bool((usable == np.floor(usable)).all())
    alone = len(np.unique(usable)) == len(usable) == len(numbers)
    plain = name.strip().lower()
    named_id = (
        plain in _ID_NAMES or plain.endswith(("_id", " id")) or plain.startswith(("unnamed:", "column_1"))
    )
    if whole and alone and named_id and usable.size >= ENOUGH:
        return Dropped(name, f"it is an id: whole numbers that never repeat in {first}")
    if wrong.any():
        said.notes.append(
            f"column {name!r} is numeric, but {int(wrong.sum())} of {first} hold text there and are skipped"
        )
    if usable.size >= ENOUGH and usable.min() == usable.max():
        said.still.append((name, float(usable[0])))
    missing = missing or bool((np.isnan(numbers) & ~wrong).any())
    return ColumnSpec(name, "numeric", has_missing=missing)


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


def read_numbers(what: str, present: list[object], semicolons: bool) -> tuple[Mark, np.ndarray, np.ndarray]:
    """The decimal mark of a column, and its cells as numbers by it, with those that are none.

    Numbers of which some have a decimal comma and some a point are refused by a `DataError`, if they are
    what the column holds, and neither mark reads nearly all of them.
    """
    mark, comma, point = decimal_mark(present, semicolons)
    numbers, wrong = to_numbers(present, mark)
    if comma and point and np.mean(~wrong) < PARSED:
        other = to_numbers(present, "." if mark == "," else ",")[1]
        if np.mean(~wrong | ~other) >= PARSED:
            raise DataError(
                f"{what} holds numbers with decimal commas, such as {comma[:40]!r}, and with points, such "
                f"as {point[:40]!r}; write them in one way, or name it in {Named('drop')} or "
                f"{Named('categorical')}.",
            )
    return mark, numbers, wrong


def decorated_numbers(what: str, cells: list[object], numeric: bool, mark: Mark, rows: int) -> list[str]:
    """A sentence about numbers with signs, decimal commas or marks between thousands."""
    marked = [cell for cell in cells if is_decorated(cell, mark)] if numeric else []
    if not marked:
        return []
    value = to_numbers(marked[:1], mark)[0][0]
    example = cell_text(marked[0])
    written = f"{len(marked)} of the first {rows} rows are written so"
    return [f"{what} holds {example!r}, which is read as {value:.10g}; {written}"]
