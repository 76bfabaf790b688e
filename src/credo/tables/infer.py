"""Infer what the columns of a table mean from its first rows, and what a reader may want to know of them."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from credo.core.errors import DataError, Named, Sentence, require_choice, require_integer, suggest
from credo.core.names import Task
from credo.tables.cells import (
    Mark,
    cell_text,
    decimal_mark,
    is_decorated,
    is_missing,
    label_text,
    to_list,
    to_numbers,
    truth,
)
from credo.tables.chunks import Chunk
from credo.tables.schema import TARGET_KINDS, ColumnSpec, Dropped, Schema, TargetSpec
from credo.tables.styles import ISO, NUMBER, Style, find_date_style, numbered_times, telling
from credo.tables.times import find_cycles, to_times

__all__ = [
    "ENOUGH",
    "PARSED",
    "WORD_SLOTS",
    "Remarks",
    "constant_columns",
    "decorated_numbers",
    "infer_column",
    "infer_schema",
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
    name: str,
    cells: list[object],
    forced: bool,
    max_categories: int,
    said: Remarks,
    semicolons: bool = False,
    style: Style | None = None,
) -> ColumnSpec | Dropped:
    """The meaning of a column by its first cells, categories where `forced`, or why it is left out; of a
    `style` where that is known.
    """
    present = [cell for cell in cells if not is_missing(cell)]
    missing = len(present) < len(cells)
    first = f"the first {len(cells)} rows"
    if not present:
        return Dropped(name, f"it has no values in {first}", "")
    column = (
        None if forced else _other_than_category(name, present, missing, len(cells), semicolons, said, style)
    )
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
    style = find_date_style([cell])
    if not only and style is not None:
        return ColumnSpec(name, "datetime", (), True, float(to_times([cell], style)[0][0]), style=style)
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
    name: str,
    present: list[object],
    missing: bool,
    rows: int,
    semicolons: bool,
    said: Remarks,
    style: Style | None,
) -> ColumnSpec | Dropped | None:
    """The column where its cells are numbers, times or truth values or are of no use; None for categories."""
    first = f"the first {rows} rows"
    if sum(isinstance(cell, (dict, list, tuple, set)) for cell in present) > (1 - PARSED) * len(present):
        return Dropped(name, "it holds nested values")
    mark, numbers, wrong = read_numbers(f"column {name!r}", present, semicolons)
    flags = all(isinstance(cell, (bool, np.bool_)) for cell in present)
    numeric = not flags and np.mean(~wrong) >= PARSED
    if numeric and style is None:
        style = numbered_times(name, present, numbers)
    if numeric and (style is None or style.kind == "number"):
        column = _numeric(name, numbers, wrong, missing, first, said)
        kept = isinstance(column, ColumnSpec)
        said.notes.extend(decorated_numbers(f"column {name!r}", present, kept, mark, rows))
        if isinstance(column, ColumnSpec):
            return replace(column, decimal=mark)
        return column
    dated = _datetime(name, present, missing, style, said)
    if dated is not None:
        return dated
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


def _datetime(
    name: str, present: list[object], missing: bool, style: Style | None, said: Remarks
) -> ColumnSpec | None:
    """The column where nearly all cells are times, of this style or of one that is found; else None."""
    own = None if style in (ISO, NUMBER) else style
    times, clock, wrong = to_times(present, own)
    if np.mean(~wrong) < PARSED and style is None:
        own = find_date_style(present)
        times, clock, wrong = to_times(present, own)
    if np.mean(~wrong) < PARSED:
        return None
    good = ~wrong & np.isfinite(times)
    if own is not None:
        said.notes.append(_dates(name, present, own))
    cycles = find_cycles(clock[good])
    return ColumnSpec(name, "datetime", (), missing, float(times[good][0]), cycles=cycles, style=own)


def _dates(name: str, present: list[object], style: Style) -> str:
    """A sentence about how dates are written."""
    if style.kind == "epoch":
        first = cell_text(present[0])
        return f"column {name!r} holds times in {style.unit} since 1970, such as {first!r}"
    example, decided = telling(style, present)
    moment = style.moment(example)
    assert moment is not None
    timed = moment.time() != dt.time()
    read = (moment if timed else moment.date()).isoformat()
    said = f"column {name!r} holds dates{f', {style.order}' if style.order else ''}: {example!r} is {read}"
    if decided:
        return said
    return f"{said}; no row says which comes first, so write them as {read} if this is wrong"


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


MOST_CLASSES = 1000


def infer_schema(
    chunks: Chunk | Iterable[Chunk],
    target: str,
    *,
    task: Task | None = None,
    classes: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    categorical: Sequence[str] = (),
    max_categories: int = 50,
    styles: Mapping[str, Style] | None = None,
) -> Schema:
    """Infer what each column means, and the task, from the first chunk or chunks.

    A column is numeric where at least 95% of its values that are not missing are numbers; failing that a
    datetime where as many are times, of ISO 8601 or all in one other style, a boolean where all are truth
    values, and otherwise categorical. If a column that is none of the first three has more than
    `max_categories` categories, it is text if most of its cells have several words, which are hashed, and
    otherwise the categories that are not frequent are hashed (`credo.tables.hashing`). Columns without
    values, with one text only, with nested values, row numbers, and single words that are nearly always
    different are left out. A number that is constant so far is kept, since a stream may change.

    The target is classified if it is text or boolean, or whole numbers with at most 2 distinct values, or
    with at most 20 that are at most 5% of the rows; otherwise it is regressed on.

    Arguments:
        chunks: the first chunk or chunks, as `TableSource.peek` gives them.
        target: the column that is predicted.
        task: one of `credo.tables.schema.TARGET_KINDS`; None infers classification or regression.
        classes: all class labels, where the first rows may not show them all; implies classification.
        drop: columns to leave out.
        categorical: columns to treat as categorical whatever they hold.
        max_categories: the most categories of a column that have a feature each; rarer ones are hashed.
        styles: how the cells of some columns are written, where that is known.

    Returns:
        The schema, with `target.why`, `dropped` and `notes` saying what was inferred and why.

    Raises:
        DataError: a named column is missing; the target is constant, missing throughout, text though
            regression is asked for, or has more than 1000 classes; or no column is left to learn from.

    Example:
        >>> chunk = Chunk({"a": ["1", "2", "3"], "class": ["UP", "DOWN", "UP"]}, np.arange(2, 5))
        >>> schema = infer_schema(chunk, "class")
        >>> schema.target.why
        "target 'class' has 2 distinct values (DOWN, UP): classification"
        >>> [(column.name, column.kind) for column in schema.columns]
        [('a', 'numeric')]
    """
    chunks = [chunks] if isinstance(chunks, Chunk) else list(chunks)
    if task is not None:
        require_choice("task", task, TARGET_KINDS)
    require_integer("max_categories", max_categories, 1)
    names = chunks[-1].names if chunks else ()
    rows = sum(map(len, chunks))
    if not rows:
        raise DataError(
            "the first rows hold none that can be used, so the columns' meaning cannot be inferred."
        )
    _require_columns(names, target, drop, categorical)
    joined = {
        name: [cell for chunk in chunks for cell in to_list(chunk.columns.get(name, [None] * len(chunk)))]
        for name in names
    }
    semicolons = chunks[-1].semicolons
    goal = _infer_target(target, joined[target], task, classes, semicolons)
    columns: list[ColumnSpec] = []
    dropped = [Dropped(name, "as asked") for name in dict.fromkeys(drop)]
    notes = decorated_numbers(f"target {target!r}", joined[target], not goal.kind.classed, goal.decimal, rows)
    said = Remarks(notes, [])
    known = styles or {}
    for name in names:
        if name == target or name in drop:
            continue
        column = infer_column(
            name, joined[name], name in categorical, max_categories, said, semicolons, known.get(name)
        )
        if isinstance(column, Dropped):
            dropped.append(column)
        else:
            columns.append(column)
    notes += constant_columns(said.still, rows)
    if not columns:
        reasons = "; ".join(map(str, dropped)) or "the table has no other column"
        raise DataError(f"no column is left to learn {target!r} from: {reasons}.")
    return Schema(goal, tuple(columns), tuple(dropped), tuple(notes))


def _require_columns(
    names: Sequence[str], target: str, drop: Sequence[str], categorical: Sequence[str]
) -> None:
    for field, wanted in (("target", (target,)), ("drop", drop), ("categorical", categorical)):
        if isinstance(wanted, str):
            raise DataError(f"{field} must be a list of column names; got the text {wanted!r}.")
        for name in wanted:
            if name not in names:
                hint = suggest(str(name), names)
                shown = ", ".join(names[:30]) + (f" and {len(names) - 30} more" if len(names) > 30 else "")
                close = f" ({hint})" if hint else ""
                raise DataError(f"{field} {name!r} is no column{close}; the columns are {shown}.")
    if target in drop:
        raise DataError(f"column {target!r} cannot be left out: it is the target.")
    both = [name for name in categorical if name in drop or name == target]
    if both:
        what = "the target" if both[0] == target else "in drop"
        raise DataError(f"column {both[0]!r} cannot be in categorical: it is {what}.")


def _infer_target(
    name: str, cells: list[object], task: Task | None, classes: Sequence[str] | None, semicolons: bool
) -> TargetSpec:
    present = [cell for cell in cells if not is_missing(cell)]
    if classes is not None:
        return _from_classes(name, present, task, classes)
    kind = None if task is None else TARGET_KINDS[task]
    mark, values, wrong = read_numbers(f"target {name!r}", present, semicolons)
    flags = all(isinstance(cell, (bool, np.bool_)) for cell in present)
    share = np.mean(~wrong) if present and not flags else 0.0
    usable = values[~np.isnan(values)]
    # a few labels beside text are labels, and many different numbers are not
    many = len(np.unique(usable)) > 20 or bool((usable != np.floor(usable)).any())
    numeric = bool(share >= PARSED or (share > 0.5 and many and (kind is None or not kind.classed)))
    if not present or (numeric and not usable.size):
        raise DataError(
            f"target {name!r} is missing in all of the first {len(cells)} rows; name another target."
        )
    if kind is not None and not kind.classed and not numeric and not flags:
        example = next(cell for cell, bad in zip(present, wrong, strict=True) if bad)
        raise DataError(
            f"target {name!r} holds text such as {cell_text(example)[:40]!r}, which {task} cannot "
            "predict; task must be classification, or name another target."
        )
    if kind is not None and kind.allowed is not None and np.mean(kind.allowed(usable)) < PARSED:
        raise DataError(
            f"target {name!r} holds numbers such as {usable[~kind.allowed(usable)][0]:g}, which are no "
            f"{kind.name}s ({kind.meaning}); task must be regression, or name another target."
        )
    whole = bool(numeric and (usable == np.floor(usable)).all())
    labels = _labels(present, wrong if numeric else None, whole)
    count = len(labels)
    if count == 1 and (not numeric or whole or kind is not None) and (kind is None or kind.classed):
        number = f", or {Named('task', 'regression')} if it is a number that will change" if numeric else ""
        raise DataError(
            f"target {name!r} is always {labels[0][:40]!r} in the first {len(cells)} rows, so nothing can be "
            f"learnt; name another target, or all classes with {Named('classes')}{number}."
        )
    shown = ", ".join(labels[:5]) + (", ..." if count > 5 else "")
    several = f"target {name!r} has {count} distinct values ({shown})"
    few = count <= 2 or (count <= 20 and count <= 0.05 * len(cells))
    why = f"target {name!r}: {task}, as asked"
    if task is None and (not numeric or (whole and few)):
        task = "classification"
        other = f"; {Named('task', 'regression')} to override" if numeric or flags else ""
        why = f"{several}: classification{other}"
    elif task is None:
        task = "regression"
        found = f"{several} in {len(cells)} rows" if whole else f"target {name!r} holds numbers"
        why = f"{found}: regression; {Named('task', 'classification')} to override"
        why += _other_tasks(usable) if whole else ""
    if numeric and wrong.any():
        text = next(cell for cell, bad in zip(present, wrong, strict=True) if bad)
        why += (
            f"; {int(wrong.sum())} of the first {len(cells)} rows hold text there, such as "
            f"{cell_text(text)[:40]!r}, and are skipped"
        )
    why = Sentence(why)
    if not TARGET_KINDS[task].classed:
        return TargetSpec(name, task, why=why, decimal=mark)
    if count > MOST_CLASSES:
        raise DataError(
            f"target {name!r} has {count} distinct values in the first {len(cells)} rows; classification "
            f"takes at most {MOST_CLASSES} classes."
        )
    if not numeric and count == len(present) and count >= ENOUGH:
        raise DataError(
            f"target {name!r} holds a different text in each of {count} rows, so there is no class to learn."
        )
    return TargetSpec(name, task, tuple(labels), whole, why, len(labels))


def _other_tasks(numbers: np.ndarray) -> str:
    """The tasks of whole numbers whose targets these may be, in words."""
    fitting = {
        task: kind.name for task, kind in TARGET_KINDS.items() if kind.whole and not kind.refused(numbers)
    }
    return "".join(f", {Named('task', task)} where they are {name}s" for task, name in fitting.items())


def _labels(present: list[object], wrong: np.ndarray | None, whole: bool) -> list[str]:
    """The distinct labels, numbers in their own order; where numbers are due, other cells are left out."""
    if wrong is not None:
        present = [cell for cell, bad in zip(present, wrong, strict=True) if not bad]
    labels = {label_text(cell, whole) for cell in present}
    ordered = sorted(labels)
    if wrong is None:
        return ordered
    return [ordered[place] for place in np.argsort(to_numbers(ordered)[0], kind="stable")]


def _from_classes(name: str, present: list[object], task: Task | None, classes: Sequence[str]) -> TargetSpec:
    if task is not None and not TARGET_KINDS[task].classed:
        raise DataError(f"classes must not be given with task {task}.")
    if isinstance(classes, str):
        raise DataError(f"classes must be a list of labels; got the text {classes!r}.")
    labels = [cell_text(label) for label in classes]
    if len(set(labels)) != len(labels) or not 2 <= len(labels) <= MOST_CLASSES:
        raise DataError(
            f"classes must be 2 to {MOST_CLASSES} different labels; got {', '.join(labels[:10]) or 'none'}."
        )
    whole = all(label.lstrip("-").isdecimal() for label in labels)
    met = {label_text(cell, whole) for cell in present}
    if met and met.isdisjoint(labels):
        raise DataError(
            f"target {name!r} holds none of the classes {', '.join(labels[:10])}; the first rows hold "
            f"{', '.join(sorted(met)[:10])}."
        )
    why = f"target {name!r} has the {len(labels)} classes given: classification"
    return TargetSpec(name, "classification", tuple(labels), whole, why)
