"""Decimal points and commas: one mark for a whole column, or a refusal."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np
import pytest

from credo.core.errors import DataError
from credo.tables import Encoder, Schema, infer_schema, open_table
from credo.tables.cells import decimal_mark, is_decorated, to_numbers
from credo.tables.infer import late_column


def mark_of(*cells: object, semicolons: bool = False) -> str:
    return decimal_mark(cells, semicolons)[0]


def test_the_mark_of_a_column_is_what_reads_most_of_it() -> None:
    assert mark_of("0,788", "1") == mark_of("12,5") == mark_of("1.234,5") == mark_of("1.234.567", "1") == ","
    assert mark_of("0.788") == mark_of("1,234.5") == mark_of("1,234,567") == mark_of("1e-3") == "."
    assert mark_of("1,234") == mark_of("1.234") == mark_of() == mark_of(None, 3.5, "x,y") == "."
    # what may be either is decided by the rest of the column, then by what parts the cells
    assert mark_of("1,234", "0,5") == mark_of("1.234", "0,5") == ","
    assert mark_of("1,234", "0.5") == mark_of("1,234", "0.5", semicolons=True) == "."
    assert mark_of("1,234", semicolons=True) == "," and mark_of("1.234", semicolons=True) == "."
    assert decimal_mark(["0,5", "1,5", "2.5"], False) == (",", "0,5", "2.5")


@pytest.mark.parametrize(
    ("text", "point", "comma"),
    [
        ("0,788", None, 0.788),
        ("1,234", 1234.0, 1.234),
        ("1.234", 1.234, 1234.0),
        ("-1.5", -1.5, None),
        ("-1,5", None, -1.5),
        ("1,234.5", 1234.5, None),
        ("1.234,5", None, 1234.5),
        ("1.234.567", None, 1234567.0),
        ("1 234,5", None, 1234.5),
        ("1\u202f234,5 €", None, 1234.5),
        ("$1,234", 1234.0, 1.234),
        ("($17.59)", -17.59, None),
        ("(1,234)", -1234.0, -1.234),
        ("12.30-", -12.3, None),
        ("1 234.50", 1234.5, None),
        ("1\u202f234\u00a0567.5", None, None),
        ("1\u202f234\u202f567.5", 1234567.5, None),
        ("1'234.50", 1234.5, None),
        ("\u22125.5", -5.5, None),
        ("\u22125,5", None, -5.5),
        ("(-5)", None, None),
        ("-5-", None, None),
        ("(5", None, None),
        ("01 234", None, None),
        ("12A", None, None),
        ("+ 12", 12.0, 12.0),
        (",5", None, 0.5),
        ("1,5e-3", None, 0.0015),
        ("12,34,56", None, None),
        ("01,234", None, 1.234),
        ("1..2", None, None),
        ("", np.nan, np.nan),
        ("NA", np.nan, np.nan),
    ],
)
def test_a_number_is_read_by_the_mark_of_its_column(text: str, point: Any, comma: Any) -> None:
    for mark, number in ((".", point), (",", comma)):
        for beside in ([], ["x"], [None, 2.5]):  # alone, one by one, and among numbers
            values, wrong = to_numbers([text, *beside], "," if mark == "," else ".")
            assert wrong[0] == (number is None)
            np.testing.assert_array_equal(values[0], np.nan if number is None else number)
    assert is_decorated("1.234", ",") and not is_decorated("1.234") and not is_decorated("12", ",")


def learned(text: str) -> tuple[Schema, np.ndarray, np.ndarray, list[str]]:
    """The schema of a table by its first rows, its numbers and targets, and why rows were skipped."""
    chunk = next(iter(open_table(io.StringIO(text), format="csv")))
    schema = Schema.from_dict(json.loads(json.dumps(infer_schema(chunk.part(0, 40), "y").to_dict())))
    encoder = Encoder(schema, standardise=False)
    _, x, y, report = encoder.encode(encoder.initial(), chunk, learn=False)
    return schema, x[:, 0], y, [str(row) for row in report.bad]


def test_a_semicolon_file_with_decimal_commas_is_read_in_its_own_units() -> None:
    a = np.arange(1000, 1050) / 1000
    rows = [f"{number:.3f};{2 * number:.2f}\n".replace(".", ",") for number in a]
    schema, x, y, bad = learned("a;y\n" + "".join(rows))
    np.testing.assert_allclose(x, a, rtol=1e-6)
    np.testing.assert_allclose(y, np.round(2 * a, 2))
    assert not bad and schema.target.decimal == schema.columns[0].decimal == ","
    assert "column 'a' holds '1,000', which is read as 1" in " ".join(schema.notes)


def test_points_between_thousands_are_no_decimals_later_in_the_file() -> None:
    first = [f"{number},5;{number}\n" for number in range(40)]
    _, x, _, bad = learned("a;y\n" + "".join(first) + "1.234;1\n" + "2.5;2\n" + "7;3\n")
    assert x[-2:].tolist() == [1234.0, 7.0]
    assert bad == ["line 43 holds '2.5' in the numeric column 'a'"]


def test_a_comma_that_no_thousands_have_is_no_number_beside_points() -> None:
    first = [f'"{number}.5",{number}\n' for number in range(40)]
    _, x, _, bad = learned("a,y\n" + "".join(first) + '"1,234",1\n' + '"0,788",2\n')
    assert x[-1] == 1234.0 and bad == ["line 43 holds '0,788' in the numeric column 'a'"]


def test_a_column_that_mixes_the_marks_is_refused_and_few_slips_are_skipped() -> None:
    mixed = ["0,5", "0.5"] * 20
    with pytest.raises(DataError, match=r"column 'a' holds numbers with decimal commas, such as '0,5', and"):
        learned("a;y\n" + "".join(f"{cell};{row}\n" for row, cell in enumerate(mixed)))
    few = [f"{row},5" for row in range(39)] + ["0.5"]
    _, _, _, bad = learned("a;y\n" + "".join(f"{cell};{row}\n" for row, cell in enumerate(few)))
    assert bad == ["line 41 holds '0.5' in the numeric column 'a'"]
    # nineteen of twenty are enough
    with pytest.raises(DataError, match="holds numbers with decimal commas"):
        learned("a;y\n" + "".join(f"{cell};{row}\n" for row, cell in enumerate([*mixed[:38], "x", "z"])))
    # texts that are no numbers in the main are categories, as before
    words = ["x", "y", "0,5", "0.5"] * 10
    schema, *_ = learned("a;y\n" + "".join(f"{cell};{row}\n" for row, cell in enumerate(words)))
    assert schema.columns[0].kind == "categorical"


def test_a_late_column_has_the_mark_of_its_first_cell() -> None:
    column, other = late_column("a", "0,788"), late_column("a", "0.788")
    assert column is not None and (column.kind, column.decimal) == ("numeric", ",")
    assert other is not None and (other.kind, other.decimal) == ("numeric", ".")
