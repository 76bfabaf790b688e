"""Plain lines become whole columns of numbers, with the results and refusals of reading cell by cell."""

from __future__ import annotations

import io
from collections.abc import Iterator

import numpy as np
import pytest

from credo.core.errors import DataError
from credo.core.names import Task
from credo.tables import Chunk, Encoder, infer_schema, open_table
from credo.tables.live import read_ahead
from credo.tables.readers import LineColumns

ROWS = [f"{i / 7!r},{' ' * (i % 3)}{-i}e-1,{'uvw'[i % 3]},{i % 5}.50\n" for i in range(40)]


def read(lines: list[str], careful: bool) -> list[Chunk]:
    """The chunks of a table; a quotation mark in the last column of each line asks for a careful look."""
    if careful:
        lines = [f'{line[:-1]},""\n' for line in lines]
    head = "a,b,c,y" + (",z\n" if careful else "\n")
    return list(open_table(io.StringIO(head + "".join(lines)), format="csv", chunk_rows=7))


@pytest.mark.parametrize(
    "cell", ["1e999", "nan", "", "NA", "$5.20", "1_0", "0x10", "\uff11", "1;2", "x", " 4\t"]
)
def test_whole_columns_hold_the_numbers_that_cells_spell(cell: str) -> None:
    lines = [*ROWS[:10], f"{cell},0.5,u,1.0\n", *ROWS[10:]]
    results = []
    for careful in (False, True):
        chunks = read(lines, careful)
        assert isinstance(chunks[0].columns, LineColumns) is not careful
        encoder = Encoder(infer_schema(read(ROWS, False), "y"))
        state, rows = encoder.initial(), []
        for chunk in chunks:
            state, x, y, report = encoder.encode(state, chunk)
            rows.append((x, y, report.lines, [str(row) for row in report.bad], report.missing))
        results.append((state.arrays(), rows))
    (plain, rows), (other, careful_rows) = results
    assert all(np.array_equal(plain[name], other[name], equal_nan=True) for name in plain)
    for row, same in zip(rows, careful_rows, strict=True):
        assert all(np.array_equal(*pair) for pair in zip(row[:3], same[:3], strict=True))
        assert row[3:] == same[3:]


@pytest.mark.parametrize("odd", ["1,2\n", "\n", "1,2,u,3,4\n", "a, b,c,y\n", '1,"2\n3",u,4\n', "1,2,u,3\r\n"])
def test_odd_lines_among_plain_ones_are_met_as_ever(odd: str) -> None:
    def outcome(lines: list[str], rows: int) -> list[object]:
        try:
            text = io.StringIO("a,b,c,y\n" + "".join(lines), newline="")
            chunks = list(open_table(text, format="csv", chunk_rows=rows))
        except DataError as error:
            return [str(error)]
        bad = [str(row) for chunk in chunks for row in chunk.bad]
        cells = [tuple(chunk.columns["b"]) for chunk in chunks]
        return [*np.concatenate([chunk.lines for chunk in chunks]).tolist(), *sum(cells, ()), *bad]

    # with all rows in one chunk, the odd line has the whole table looked at cell by cell
    lines = [*ROWS[:30], odd, *ROWS[30:]]
    assert outcome(lines, 4) == outcome(lines, 100)


def test_a_thread_reads_ahead_and_fails_where_reading_did() -> None:
    def items() -> Iterator[int]:
        yield from (1, 2, 3)
        raise DataError("the file is cut.")

    taken: list[int] = []
    with pytest.raises(DataError, match="cut"):
        taken.extend(read_ahead(items(), lambda number: 10 * number))
    assert taken == [10, 20, 30]


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_targets_are_read_with_the_numbers_only_where_they_are_plain_numbers(task: Task) -> None:
    """Not labels, and not numbers with a decimal comma, whatever the cells of a chunk look like."""
    cells = ("01", "02", "10") if task == "classification" else ("1.234", "2.500", "10")
    end = "b\n" if task == "classification" else ",5\n"
    lines = [f"{row};{row / 4};{cells[row % 3]}\n" for row in range(30)]
    first = [line.replace("\n", end) if row < 9 else line for row, line in enumerate(lines)]

    def chunk(some: list[str]) -> Chunk:
        return next(iter(open_table(io.StringIO("a;b;y\n" + "".join(some)), format="csv", chunk_rows=30)))

    schema, later = infer_schema(chunk(first), "y", task=task), chunk(lines)
    assert isinstance(later.columns, LineColumns)
    encoder = Encoder(schema)
    _, _, y, report = encoder.encode(encoder.initial(), later)
    assert not report.bad
    if task == "classification":
        assert [schema.target.classes[int(label)] for label in y] == [cells[row % 3] for row in range(30)]
    else:
        assert schema.target.decimal == ","
        assert y.tolist() == [(1234.0, 2500.0, 10.0)[row % 3] for row in range(30)]
