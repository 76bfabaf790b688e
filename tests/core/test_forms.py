"""The form of JSON data, as annotations say it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, TypedDict

import pytest

from credo.core.errors import FormatError
from credo.core.forms import LARGEST_COUNT, Seed, Size, require_form


@dataclass
class Column:
    name: str
    slots: Size = 0


class Pair(NamedTuple):
    left: int
    right: float | None = None


class Saved(TypedDict):
    columns: list[Column]
    pairs: list[Pair]
    kind: Literal["a", "b"]
    seed: Seed
    words: dict[str, str | list[int]]
    three: tuple[int, int, float]
    rest: Any
    later: NotRequired[bool]


GOOD: dict[str, Any] = {
    "columns": [{"name": "a", "slots": 3}, {"name": "b"}],
    "pairs": [[1, 2.5], [3], [4, None], [5, -1e300]],
    "kind": "b",
    "seed": 2**32 - 1,
    "words": {"x": "y", "z": [1, 2]},
    "three": [1, 2, 3],
    "rest": object(),
    "more": "is not looked at",
}

BAD: list[tuple[str, Any, str]] = [
    ("columns", {}, "saved.columns must be a list; got {}."),
    ("columns", [{"name": 3}], "saved.columns.0.name must be text; got 3."),
    ("columns", [{"slots": 1}], "saved.columns.0 has no 'name'."),
    ("columns", [{"name": "a", "b": 1}], "saved.columns.0 must be a Column, which has no 'b'"),
    ("columns", [{"name": "a", "slots": 10**30}], "slots must be a whole number at least 0; got 1000"),
    ("columns", [{"name": "a", "slots": 2**20 + 1}], "slots must be a whole number from 0 to 1,048,576; got"),
    ("columns", [3], "saved.columns.0 must be named parts; got 3."),
    ("pairs", [[]], "saved.pairs.0 must be a list of 1; got []."),
    ("pairs", [[1, 2, 3]], "saved.pairs.0 must be a list of 2; got [1, 2, 3]."),
    ("pairs", [[1, "x"]], "saved.pairs.0.1 must be a finite number or nothing; got 'x'."),
    ("pairs", [[-1]], "saved.pairs.0.0 must be a whole number at least 0; got -1."),
    ("pairs", [[True]], "saved.pairs.0.0 must be a whole number at least 0; got True."),
    ("pairs", [[1, float("nan")]], "must be a finite number or nothing; got nan."),
    ("pairs", [[1, 10**400]], "must be a finite number or nothing; got 1000"),
    ("pairs", [[1, float("-inf")]], "must be a finite number or nothing; got -inf"),
    ("pairs", [[LARGEST_COUNT + 1]], "saved.pairs.0.0 must be a whole number"),
    ("kind", "c", "saved.kind must be one of a, b; got 'c'."),
    ("seed", 2**32, "saved.seed must be a whole number from 0 to 4,294,967,295; got 4294967296."),
    ("words", {"x": 3}, "saved.words.x must be text or a list; got 3."),
    ("words", {"x": [1, "2"]}, "saved.words.x.1 must be a whole number at least 0; got '2'."),
    ("three", [1, 2], "saved.three must be a list of 3; got [1, 2]."),
    ("three", ["1", 2, 3], "saved.three.0 must be a whole number"),
    ("later", None, "saved.later must be true or false; got None."),
    ("rest", ..., "saved has no 'rest'."),
    ("columns", ["x" * 200], "; got '" + "x" * 56 + "...."),
]


def test_what_has_the_form_passes() -> None:
    require_form(GOOD, Saved, "saved")
    require_form({**GOOD, "later": True, "pairs": []}, Saved, "saved")
    require_form([LARGEST_COUNT, 0], list[int], "counts")
    require_form(5, Annotated[int, 5], "five")


@pytest.mark.parametrize(("name", "value", "sentence"), BAD)
def test_what_has_another_form_is_refused_by_its_place(name: str, value: Any, sentence: str) -> None:
    changed = {key: one for key, one in {**GOOD, name: value}.items() if one is not ...}
    with pytest.raises(FormatError) as refusal:
        require_form(changed, Saved, "saved")
    assert sentence in str(refusal.value) and str(refusal.value).endswith(".")
    assert str(refusal.value).startswith(str(refusal.value.field))
