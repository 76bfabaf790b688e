"""Cut CSV, TSV and JSON lines text into chunks of raw cells.

Delimited lines without quotation marks are cut late: numbers are read in one pass, and cells on request.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice, repeat
from typing import Any

import numpy as np

from credo.core.errors import DataError
from credo.core.once import KeyTwice, once
from credo.tables.cells import Cells
from credo.tables.chunks import BadRow, Chunk, ChunkSize, DriftWatch
from credo.tables.live import LiveText, is_prompt, until_idle
from credo.tables.schema import is_number

__all__ = [
    "LineColumns",
    "csv_chunks",
    "guess_delimiter",
    "is_plain",
    "json_chunk",
    "jsonl_chunks",
    "unique_names",
]

_DELIMITERS = ",;\t|"
_LONGEST = csv.field_size_limit()


class LineColumns(Mapping[str, Cells]):
    """The columns of some plain lines, which are split into cells only where cells are asked for."""

    def __init__(self, lines: Sequence[str], names: Sequence[str], delimiter: str) -> None:
        self.lines = lines
        self.names = list(names)
        self.delimiter = delimiter
        self._cells: dict[str, Cells] | None = None
        self._numbers: tuple[tuple[str, ...], np.ndarray | None] | None = None

    def __getitem__(self, name: str) -> Cells:
        if self._cells is None:
            self._cells = dict(zip(self.names, self._split(), strict=True))
        return self._cells[name]

    def _split(self) -> Iterator[tuple[str, ...]]:
        """The cells of each column, as the csv module would split the lines with `skipinitialspace`."""
        text = self._text()
        cells = text.replace("\n", self.delimiter).split(self.delimiter)
        if text.startswith(" ") or "\n " in text or f"{self.delimiter} " in text:
            cells = [cell.lstrip(" ") for cell in cells]
        width = len(self.names)
        return (tuple(cells[place::width]) for place in range(width))

    def _text(self) -> str:
        text = "".join(self.lines)
        if "\r" in text:
            text = text.replace("\r\n", "\n").replace("\r", "\n")
        return text.removesuffix("\n")

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        return repr(dict(self))

    def numbers(self, names: Sequence[str]) -> np.ndarray | None:
        """The columns of these names that exist, as numbers (n, K); None if a cell is no number."""
        wanted = tuple(names)
        if self._numbers is None or self._numbers[0] != wanted:
            self._numbers = wanted, self._read(wanted)
        return self._numbers[1]

    def _read(self, names: tuple[str, ...]) -> np.ndarray | None:
        if not names or not all(name in self.names for name in names):
            return None
        places = None if list(names) == self.names else [self.names.index(name) for name in names]
        try:
            values = np.loadtxt(self.lines, delimiter=self.delimiter, comments=None, usecols=places, ndmin=2)
        except ValueError:
            return None
        if values.shape == (len(self.lines), len(names)):
            return values
        return None


def is_plain(lines: Sequence[str], header: Sequence[str], delimiter: str) -> bool:
    """Whether, at a glance, each line is one row of as many cells as the header, and none is that again."""
    if len(header) < 2 or delimiter not in _DELIMITERS:
        return False
    text = "".join(lines)
    return (
        '"' not in text
        and set(map(str.count, lines, repeat(delimiter))) == {len(header) - 1}
        and max(map(len, lines)) < _LONGEST
        and (max(header, key=len) not in text or not _all_named(lines, header))
    )


def _all_named(lines: Sequence[str], header: Sequence[str]) -> bool:
    """Whether there is a line with all names of the header somewhere in it."""
    for name in sorted(header, key=len, reverse=True):
        lines = [line for line in lines if name in line]
    return bool(lines)


_END = "\0"
"""A mark after the last line of a text, which holds none: a record that has it at its end was still open."""

MOST_KEYS = 2000
"""The most keys of JSON lines that become columns after the first chunk."""


def unique_names(cells: Sequence[object], name: str) -> list[str]:
    """Make column names of header cells: stripped, an empty one called column_K, the same twice refused."""
    names = [str(cell).strip() or f"column_{place}" for place, cell in enumerate(cells, 1)]
    places: dict[str, int] = {}
    for place, column in enumerate(names, 1):
        first = places.setdefault(column, place)
        if first != place:
            raise DataError(
                f"{name} has two columns named {column!r} (columns {first} and {place}); "
                "each name must be unique."
            )
    return names


def guess_delimiter(line: str) -> str:
    """The delimiter most frequent in a header outside quotation marks: comma, semicolon, tab or bar."""
    bare = "".join(line.split('"')[::2])
    return max(",;\t|", key=bare.count)


def csv_chunks(
    text: io.TextIOWrapper, name: str, delimiter: str | None, size: ChunkSize, strict: bool
) -> Iterator[Chunk]:
    """Read CSV text in chunks, with names in the first line and without blank lines; a delimiter of None is
    guessed from the header, and where `strict` a bad row raises.
    """
    lines = iter(text)
    before = 0
    first = ""
    while not first.strip():
        before += 1
        try:
            first = next(lines)
        except StopIteration:
            raise DataError(f"{name} is empty.") from None
        except UnicodeDecodeError as error:
            raise _undecodable(name, before - 1, error) from None
    delimiter = delimiter or guess_delimiter(first)
    reader = csv.reader(chain([first], lines, [_END]), delimiter=delimiter, skipinitialspace=True)
    opening, stop = _take(reader, 1, name, before - 1, text)
    _closed(opening, stop, len(opening[0]), name)
    (header,) = opening
    names = unique_names(header, name)
    if all(_is_number(cell) for cell in header):
        raise DataError(
            f"{name} has no header: its first line holds only numbers ({', '.join(header[:4])}); "
            "the first line must name the columns."
        )
    width = len(names)
    semicolons = delimiter == ";"
    watch = DriftWatch(name, f"have not the {width} cells that the header names")
    at_once = not isinstance(text, LiveText)
    last = width
    end = 0
    while True:
        start = reader.line_num + before
        count = size.next()
        if at_once:
            plain = _lines(lines, count, name, start - 1)
            if plain and is_plain(plain, header, delimiter):
                watch.good(len(plain))
                before += len(plain)
                columns = LineColumns(plain, names, delimiter)
                yield Chunk(columns, start + np.arange(len(plain)), semicolons=semicolons)
                continue
            # a record takes a line at least, so that none of these lines is left over
            before += reader.line_num
            reader = csv.reader(chain(plain, lines, [_END]), delimiter=delimiter, skipinitialspace=True)
        rows, stop = _take(reader, count, name, before - 1, text)
        stop = _closed(rows, stop, width, name)
        if not rows:
            if 0 < last < width and not _ends_whole(text):
                raise DataError(
                    f"{name} is cut: its last line, {end}, has {last} of the {width} cells and no line end."
                )
            return
        last = len(rows[-1])
        end = stop
        bad: list[BadRow] = []
        if end - start + 1 == len(rows) and set(map(len, rows)) == {width} and header not in rows:
            watch.good(len(rows))
            at = np.arange(start, end + 1)
        else:
            rows, at, bad = _sort_rows(rows, start, header, name, watch)
        if strict and bad:
            raise DataError(f"{name}: {bad[0]}.")
        cells = list(zip(*rows, strict=True)) if rows else [()] * width
        yield Chunk(dict(zip(names, cells, strict=True)), at, bad, semicolons=semicolons)


def _ends_whole(text: io.TextIOWrapper) -> bool:
    """Whether the last line of a text that was read has a line end, as far as that is known."""
    return bool(getattr(getattr(text.buffer, "raw", None), "whole", True))


def _lines(lines: Iterator[str], count: int, name: str, before: int) -> list[str]:
    """Up to `count` lines."""
    taken: list[str] = []
    try:
        taken.extend(islice(lines, count))
    except UnicodeDecodeError as error:
        raise _undecodable(name, before + len(taken), error) from None
    return taken


def _take(
    reader: Any, count: int, name: str, before: int, text: io.TextIOWrapper
) -> tuple[list[tuple[str, ...]], int]:
    """Up to `count` records and the line the last one ends on."""
    try:
        rows = list(map(tuple, until_idle(islice(reader, count), text)))
    except UnicodeDecodeError as error:
        raise _undecodable(name, before + reader.line_num, error) from None
    except csv.Error as error:
        raise DataError(
            f"{name} cannot be split into cells at line {before + reader.line_num} ({error}); "
            "is a quotation mark left open?"
        ) from None
    return rows, before + reader.line_num


def _closed(rows: list[tuple[str, ...]], stop: int, width: int, name: str) -> int:
    """The line that the last of some records ends on, without the end mark. A DataError refuses a last record
    that is as wide as the header because a quotation mark was never closed, which made it take the rest.
    """
    if not rows or not rows[-1] or not rows[-1][-1].endswith(_END):
        return stop
    *cells, rest = rows.pop()
    rest = rest.removesuffix(_END)
    if cells or rest:
        if len(cells) + 1 == width:
            line = stop - 1 - rest.removesuffix("\n").count("\n")
            raise DataError(
                f"{name} opens a quotation mark at line {line} that is never closed; close it or take it out."
            )
        rows.append((*cells, rest))
    return stop - 1


def _sort_rows(
    rows: list[tuple[str, ...]], start: int, header: tuple[str, ...], name: str, watch: DriftWatch
) -> tuple[list[tuple[str, ...]], np.ndarray, list[BadRow]]:
    width = len(header)
    complete: list[tuple[str, ...]] = []
    at: list[int] = []
    bad: list[BadRow] = []
    line = start
    for row in rows:
        span = 1
        if any("\n" in cell or "\r" in cell for cell in row):
            span += sum(cell.replace("\r\n", "\n").replace("\r", "\n").count("\n") for cell in row)
        if row == header:
            raise DataError(
                f"{name} repeats its header at line {line}: it looks like several files joined; "
                "take the repeated header out."
            )
        if len(row) == width:
            watch.good()
            complete.append(row)
            at.append(line)
        elif row:
            reason = f"has {len(row)} cell{'' if len(row) == 1 else 's'} where the header names {width}"
            if span > 1:
                reason += f", and runs to line {line + span - 1}: is a quotation mark left open?"
            bad.append(BadRow(line, reason))
            watch.bad(line)
        line += span
    return complete, np.array(at, dtype=np.int64), bad


def _undecodable(name: str, lines: int, error: UnicodeDecodeError) -> DataError:
    before = error.object[: error.start]
    line = lines + 1 + (before.count(b"\n") or before.count(b"\r"))
    byte = error.object[error.start]
    return DataError(f"{name} is not UTF-8 text at line {line} (byte 0x{byte:02X}); convert it to UTF-8.")


def _is_number(cell: str) -> bool:
    return is_number(cell) and cell.strip().lower() not in ("nan", "inf", "infinity")


def jsonl_chunks(text: io.TextIOWrapper, name: str, size: ChunkSize, strict: bool) -> Iterator[Chunk]:
    """Read JSON lines in chunks; the keys of the first chunk are the columns, and later ones join them."""
    watch = DriftWatch(name, "are not JSON objects with the keys met so far")
    numbered = _numbered(text, name)
    names: dict[str, None] = {}
    opening = True
    while True:
        records: list[dict[str, object]] = []
        at: list[int] = []
        bad: list[BadRow] = []
        ignored: dict[str, int] = {}
        count = 0
        for line, raw in until_idle(islice(numbered, size.next()), text):
            count += 1
            record, reason = _record(raw)
            if record is None and opening and not records and not bad:
                raise DataError(f"{name} should be jsonl but line {line} is not a JSON object: it {reason}.")
            if record is None and not raw.endswith(("\n", "\r")) and reason.startswith("is not JSON"):
                raise DataError(
                    f"{name} is cut: its last line, {line}, stops in the middle of a JSON object."
                )
            if record is not None and not opening and names.keys().isdisjoint(record):
                record = None
                reason = "has none of the keys met so far"
            if record is None:
                bad.append(BadRow(line, reason))
                watch.bad(line)
                continue
            watch.good()
            records.append(record)
            at.append(line)
            if opening or is_prompt(text) or len(names) < MOST_KEYS:
                names.update(dict.fromkeys(record))
            elif not names.keys() >= record.keys():
                for key in record.keys() - names.keys():
                    ignored[key] = ignored.get(key, 0) + 1
        if not count:
            return
        if strict and bad:
            raise DataError(f"{name}: {bad[0]}.")
        opening = opening and not records
        columns = {key: [record.get(key) for record in records] for key in names}
        yield Chunk(columns, np.array(at, dtype=np.int64), bad, loose=True, ignored=ignored)


def json_chunk(rows: Iterable[tuple[int, bytes | None]]) -> Chunk:
    """JSON objects that come one by one, such as messages, as a chunk; what is none is a bad row.

    Arguments:
        rows: the place of each row, and its bytes; None if it has none.

    Example:
        >>> chunk = json_chunk([(1, b'{"a": 1}'), (2, None), (3, b"[]")])
        >>> chunk.columns, chunk.lines.tolist(), [str(row) for row in chunk.bad]
        ({'a': [1]}, [1], ['line 2 has no content', 'line 3 holds an array where an object is due'])
    """
    records: list[dict[str, object]] = []
    at: list[int] = []
    bad: list[BadRow] = []
    names: dict[str, None] = {}
    for line, data in rows:
        try:
            record, reason = (None, "has no content") if data is None else _record(data.decode("utf-8"))
        except UnicodeDecodeError:
            record = None
            reason = "is not UTF-8"
        if record is None:
            bad.append(BadRow(line, reason))
            continue
        records.append(record)
        at.append(line)
        if len(names) < MOST_KEYS:
            names.update(dict.fromkeys(record))
    columns = {key: [record.get(key) for record in records] for key in names}
    return Chunk(columns, np.array(at, np.int64), bad, loose=True)


def _numbered(text: io.TextIOWrapper, name: str) -> Iterator[tuple[int, str]]:
    line = 0
    while True:
        try:
            raw = text.readline()
        except UnicodeDecodeError as error:
            raise _undecodable(name, line, error) from None
        if not raw:
            return
        line += 1
        if raw.strip():
            yield line, raw


def _record(raw: str) -> tuple[dict[str, object] | None, str]:
    try:
        value = _DECODE(raw)
        half = _HALF.search(json.dumps(value, ensure_ascii=False)) if "\\u" in raw else None
    except KeyTwice as error:
        return None, str(error)
    except (ValueError, RecursionError) as error:
        return None, f"is not JSON ({getattr(error, 'msg', None) or type(error).__name__})"
    if not isinstance(value, dict):
        return None, f"holds {_JSON_KINDS.get(type(value), 'null')} where an object is due"
    if not value:
        return None, "holds an object without keys"
    if half is not None:
        return None, f"holds \\u{ord(half[0]):x}, which is half of a character"
    return value, ""


_DECODE = json.JSONDecoder(object_pairs_hook=once).decode
_HALF = re.compile("[\ud800-\udfff]")
_JSON_KINDS = {list: "an array", str: "a string", int: "a number", float: "a number", bool: "true or false"}
