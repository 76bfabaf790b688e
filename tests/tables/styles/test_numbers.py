"""Numbers as people write them: negative ones in parentheses, and blanks or apostrophes between thousands."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from credo.tables import Chunk, Encoder, infer_schema
from credo.tables.cells import to_numbers


def grouped(number: int, mark: str) -> str:
    """Cents in units, with a mark between thousands."""
    return f"{abs(number) / 100:,.2f}".replace(",", mark)


STYLES: dict[str, Callable[[int], str]] = {
    "parentheses": lambda cents: f"(${grouped(cents, ',')})" if cents < 0 else f"${grouped(cents, ',')}",
    "behind": lambda cents: grouped(cents, ",") + "-" * (cents < 0),
    "blanks": lambda cents: "-" * (cents < 0) + grouped(cents, " "),
    "narrow blanks": lambda cents: "-" * (cents < 0) + grouped(cents, "\u202f"),
    "apostrophes": lambda cents: "-" * (cents < 0) + grouped(cents, "'"),
    "minus": lambda cents: "\u2212" * (cents < 0) + grouped(cents, ""),
}


@pytest.mark.parametrize("style", STYLES)
def test_inputs_and_targets_are_read_by_one_rule(style: str) -> None:
    cents = [(row * 7919 % 400_000) - 150_000 for row in range(1, 61)]
    cells = list(map(STYLES[style], cents))
    chunk = Chunk({"price": [*cells, "12A"], "y": [*cells, "5.0"]}, np.arange(2, 63))
    schema = infer_schema(chunk.part(0, 40), "y")
    encoder = Encoder(schema, standardise=False)
    _, x, y, report = encoder.encode(encoder.initial(), chunk)
    assert schema.columns[0].kind == "numeric" and schema.target.task == "regression"
    np.testing.assert_allclose(y, np.array(cents) / 100)
    np.testing.assert_allclose(x[:, 0], np.array(cents) / 100, rtol=1e-6)
    assert [str(row) for row in report.bad] == ["line 62 holds '12A' in the numeric column 'price'"]


@given(st.sampled_from(sorted(STYLES)), st.integers(-(10**9), 10**9))
def test_any_number_is_read_as_it_was_written(style: str, cents: int) -> None:
    numbers, wrong = to_numbers([STYLES[style](cents), "x"])
    assert not wrong[0] and numbers[0] == cents / 100


def test_codes_stay_categories() -> None:
    for cells in (["12A", "13B", "14C"], ["3M", "Bosch", "Shell"], ["01 234", "02 345", "00 111"]):
        chunk = Chunk({"code": cells * 10, "y": [float(row) + 0.5 for row in range(30)]}, np.arange(2, 32))
        assert infer_schema(chunk, "y").columns[0].kind == "categorical"
