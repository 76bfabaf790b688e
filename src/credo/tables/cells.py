"""The reading of raw cells: missing values, numbers, truth values and labels.

Numbers are read as people write them: with decimal points or commas, marks between thousands, and signs of
currencies.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np

__all__ = [
    "LARGEST",
    "LARGEST_TARGET",
    "MISSING",
    "Cells",
    "Mark",
    "cell_text",
    "decimal_mark",
    "decorated",
    "is_count",
    "is_decorated",
    "is_missing",
    "join_plain",
    "label_text",
    "plain",
    "to_list",
    "to_number_columns",
    "to_numbers",
    "truth",
]

Mark: TypeAlias = Literal[".", ","]
"""The decimal mark of a column."""

_NUMBER_SIGNS = (
    r"(?P<open>\()?(?P<before>[-+\u2212])? ?[$€£¥₹]? ?(?P<after>[-+\u2212])?"
    r"(?P<digits>{digits}) ?[%$€£¥₹]?(?P<behind>[-\u2212])?(?(open)\))"
)
_NUMBER_FORMS: dict[Mark, re.Pattern[str]] = {
    ".": re.compile(
        _NUMBER_SIGNS.format(
            digits=r"(?:[1-9]\d{0,2}(?P<mark>[, '\u2019\u00a0\u202f])\d{3}(?:(?P=mark)\d{3})*|\d+)"
            r"(?:\.\d*)?|\.\d+"
        )
    ),
    ",": re.compile(
        _NUMBER_SIGNS.format(
            digits=r"(?:[1-9]\d{0,2}(?:[. '\u2019\u00a0\u202f]\d{3})+|\d+)(?:,\d*)?(?:[eE][-+]?\d+)?|,\d+"
        )
    ),
}
_BARE: dict[Mark, dict[int, int | None]] = {
    ".": str.maketrans("\u2212", "-", ", '\u2019\u00a0\u202f$€£¥₹%"),
    ",": str.maketrans(",\u2212", ".-", ". '\u2019\u00a0\u202f$€£¥₹%"),
}


def decorated(text: str, mark: Mark) -> float | None:
    """The number of a text with this decimal mark, with marks between thousands, or signs of a currency or of
    percent, where parentheses or a minus behind are a minus, too; None if it is none.
    """
    match = _NUMBER_FORMS[mark].fullmatch(text.strip())
    if match is None:
        return None
    minus = match["open"] or match["behind"]
    sign = match["before"] or match["after"] or ""
    if (minus and sign) or (match["open"] and match["behind"]):
        return None
    number = float(plain(match["digits"], mark))
    return -number if minus or sign in ("-", "\u2212") else number


def plain(digits: str, mark: Mark) -> str:
    """Digits with this decimal mark, as Python writes them."""
    return digits.translate(_BARE[mark])


def join_plain(texts: list[str], mark: Mark) -> list[float] | None:
    """The numbers of texts that are all written so, at less cost than one by one; None if some is not."""
    if not all(map(_NUMBER_FORMS[mark].fullmatch, texts)):
        return None
    try:
        return list(map(float, plain("\n".join(texts), mark).split("\n")))
    except ValueError:  # a blank behind a sign, or two signs
        return None


def _reads(text: str, mark: Mark) -> bool:
    """Whether a text is a number with this decimal mark."""
    if mark == ".":
        try:
            float(text)
        except ValueError:
            pass
        else:
            return True
    return _NUMBER_FORMS[mark].fullmatch(text.strip()) is not None


def decimal_mark(cells: Iterable[object], semicolons: bool) -> tuple[Mark, str, str]:
    """The decimal mark of the texts of a column, with an example of a number that is one with a comma only,
    and one with a point only; both are there where the column mixes them, and most decide.

    1,234 and 1.234 may be numbers with either. The rest of the column decides, or if it does not, that cells
    are parted by `semicolons`, which is done where the comma is the decimal mark; otherwise it is the point.
    """
    commas = list[str]()
    points = list[str]()
    either = False
    for cell in cells:
        if isinstance(cell, str) and ("," in cell or "." in cell):
            comma = _reads(cell, ",")
            point = _reads(cell, ".")
            either |= comma and point and "," in cell
            if comma != point:
                (commas if comma else points).append(cell)
    mark: Mark = "," if len(commas) > len(points) or (semicolons and either and not points) else "."
    return mark, commas[0] if commas else "", points[0] if points else ""


Cells: TypeAlias = Sequence[object] | np.ndarray
"""Raw cells of a column: a sequence or one-dimensional array of any values."""

_SPELLINGS = ("", "NA", "N/A", "NaN", "null", "None", "?", "-")
MISSING = frozenset(form for s in _SPELLINGS for form in (s, s.lower(), s.upper(), s.capitalize()))
"""Texts that count as missing, regardless of blanks around them and of capitals."""

LARGEST = 1e38
"""Larger numbers, including infinities, count as missing, because no float32 feature can hold them."""

LARGEST_TARGET = 1e30
"""The largest size of a target that is a number, wherever it comes from: its square is a number in double
precision, and so is its distance from another one in single precision."""

_CLOCKED = frozenset((np.datetime64, np.timedelta64))
_PLAIN = frozenset((float, int))
_TRUE = ("true", "yes", "t", "y")
_FALSE = ("false", "no", "f", "n")
_TRUTH = {word: word in _TRUE for word in (*_TRUE, *_FALSE)}
_NAN = float("nan")


def is_missing(cell: object) -> bool:
    """Whether a cell is None, not a number, pandas' NA or NaT, or text that spells a missing value."""
    if isinstance(cell, str):
        return cell in MISSING or cell.strip().lower() in MISSING
    if cell is None or type(cell).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(cell, (np.datetime64, np.timedelta64)):
        return bool(np.isnat(cell))
    if isinstance(cell, (float, np.floating)):
        return math.isnan(cell)
    is_nan = None if isinstance(cell, np.ndarray) else getattr(cell, "is_nan", None)
    return is_nan is not None and bool(is_nan())


def to_list(cells: Cells) -> list[object]:
    """Cells as a list of Python objects, datetime64 as datetime (timedelta64 as seconds)."""
    if isinstance(cells, np.ndarray):
        if cells.dtype.kind == "M":
            return list(cells.astype("datetime64[us]").tolist())
        if cells.dtype.kind == "m":
            return list(np.where(np.isnat(cells), _NAN, cells / np.timedelta64(1, "s")).tolist())
        return list(cells.tolist())
    return list(cells)


def to_numbers(cells: Cells, mark: Mark = ".") -> tuple[np.ndarray, np.ndarray]:
    """Cells as numbers (n,) in float64, NaN if missing, infinite or larger than `LARGEST`, and which hold
    no number (n,). They are read as by Python's float, without currency or percent signs or marks between
    thousands; with the decimal `mark` of a comma, 1.234,5 is 1234.5, and 1.234 is 1234.
    """
    count = len(cells)
    if count == 1 and type(cells) is list and (row := _lone_numbers(cells)) is not None:
        return row[0], np.zeros(1, bool)
    if isinstance(cells, np.ndarray):
        if cells.dtype.kind in "fiub":
            return _bounded(cells.astype(np.float64)), np.zeros(count, bool)
        cells = to_list(cells)
    values = _try_numbers(cells, count) if mark == "." else _try_decorated(cells, count, mark)
    if values is None and mark == ".":
        try:
            values = _try_numbers([_NAN if cell in MISSING else cell for cell in cells], count)
        except TypeError:
            values = None
        if values is None:
            values = _try_decorated(cells, count, mark)
    wrong = np.zeros(count, bool)
    if values is None:
        values = np.full(count, _NAN)
        for place, cell in enumerate(cells):
            number = _number(cell, mark)
            if number is None:
                wrong[place] = True
            else:
                values[place] = number
    return _bounded(values), wrong


def to_number_columns(columns: Sequence[Cells]) -> np.ndarray | None:
    """The numbers (n, K) of several columns at once, at much less cost; None if a cell is not a number."""
    if len(columns[0]) == 1:
        row = _lone_numbers([cells[0] if type(cells) is list else cells for cells in columns])
        if row is not None:
            return row
    for cells in columns:
        if isinstance(cells, np.ndarray):
            if cells.dtype.kind not in "fiub":
                return None
        elif not _CLOCKED.isdisjoint(map(type, cells)):
            return None
    try:
        values = np.array(columns, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        return None
    if values.shape != (len(columns), len(columns[0])):
        return None
    with np.errstate(invalid="ignore"):
        usual = bool((np.abs(values) <= LARGEST).all())
    if usual:
        return values.T
    return None


def _lone_numbers(cells: Sequence[object]) -> np.ndarray | None:
    """Numbers (1, K) of one row of Python's floats and integers; None for other cells, and absurd ones."""
    if not _PLAIN.issuperset(map(type, cells)):
        return None
    try:
        values = np.array([cells], np.float64)
    except OverflowError:
        return None
    if (np.abs(values) <= LARGEST).all():
        return values
    return None


def _try_numbers(cells: Sequence[object], count: int) -> np.ndarray | None:
    if not _CLOCKED.isdisjoint(map(type, cells)):
        return None  # NumPy would read these as numbers of whatever unit they have
    try:
        values = np.asarray(cells, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        return None
    if values.shape == (count,):
        return values
    return None


def _try_decorated(cells: Sequence[object], count: int, mark: Mark) -> np.ndarray | None:
    """The numbers of texts that are all missing, or written as `decorated` reads them."""
    try:
        present = [place for place, cell in enumerate(cells) if cell not in MISSING]
    except TypeError:
        return None
    texts = [cell.strip() for place in present if isinstance(cell := cells[place], str)]
    numbers = join_plain(texts, mark) if len(texts) == len(present) else None
    if numbers is None:
        return None
    values = np.full(count, _NAN)
    values[present] = numbers
    return values


def _number(cell: Any, mark: Mark = ".") -> float | None:
    if is_missing(cell):
        return _NAN
    if mark == "," and isinstance(cell, str):
        return decorated(cell, mark)
    try:
        return float(cell / np.timedelta64(1, "s") if isinstance(cell, np.timedelta64) else cell)
    except OverflowError:
        return math.inf
    except (TypeError, ValueError):
        if isinstance(cell, str):
            return decorated(cell, mark)
        return None


def is_decorated(cell: object, mark: Mark = ".") -> bool:
    """Whether a cell is a number that Python's float does not read, or reads otherwise."""
    if not isinstance(cell, str):
        return False
    number = decorated(cell, mark)
    try:
        return number is not None and float(cell) != number
    except ValueError:
        return True


def is_count(values: np.ndarray) -> np.ndarray:
    """Which numbers are counts: whole, and at least 0."""
    counts: np.ndarray = (values >= 0) & (values == np.floor(values))
    return counts


def _bounded(values: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        return np.where(np.abs(values) <= LARGEST, values, np.nan)


def truth(cell: object) -> bool | None:
    """Read a truth value (true/false, yes/no, t/f, y/n, 0/1), or None if the cell is something else."""
    if isinstance(cell, (bool, np.bool_)):
        return bool(cell)
    if isinstance(cell, (int, float)) and cell in (0, 1):
        return bool(cell)
    if isinstance(cell, str):
        return _TRUTH.get(cell.strip().lower())
    return None


def cell_text(cell: object) -> str:
    """A cell as the name of a category: text stripped, 1.0 as 1, anything else as Python spells it."""
    if isinstance(cell, str):
        return cell.strip()
    if isinstance(cell, bytes):
        return cell.decode("utf-8", "replace").strip()
    if isinstance(cell, (float, np.floating)) and math.isfinite(cell) and float(cell).is_integer():
        return str(int(cell))
    return str(cell)


def label_text(cell: object, whole: bool) -> str:
    """A target cell as a class name. Where classes are whole numbers, "1", "1.0" and 1 are the same."""
    if whole:
        number = _number(cell)
        if number is not None and math.isfinite(number) and number.is_integer():
            return str(int(number))
    return cell_text(cell)
