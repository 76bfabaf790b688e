"""The form of JSON data, as annotations say it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, TypedDict

import numpy as np
import pytest

from credo.core.errors import FormatError
from credo.core.forms import LARGEST_COUNT, Seed, Size, require_bounded, require_form, require_sizes
from credo.core.records import record, static_field
from credo.tables import Moments


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


@pytest.mark.table
@pytest.mark.parametrize(("name", "value", "sentence"), BAD)
def test_what_has_another_form_is_refused_by_its_place(name: str, value: Any, sentence: str) -> None:
    changed = {key: one for key, one in {**GOOD, name: value}.items() if one is not ...}
    with pytest.raises(FormatError) as refusal:
        require_form(changed, Saved, "saved")
    assert sentence in str(refusal.value) and str(refusal.value).endswith(".")
    assert str(refusal.value).startswith(str(refusal.value.field))


@record
class Sized:
    """Sizes, a seed, a loop, and a number of a compiled program."""

    size: int | tuple[int, ...] = static_field(default=1)
    seed: int = static_field(default=0)
    steps: int = static_field(default=1)
    number: int = 0


def test_sizes_loops_and_whole_numbers_have_bounds() -> None:
    largest = {"size": (3, 2**24), "seed": 2**32 - 1, "steps": 2**14, "number": 2**31 - 1}
    require_sizes(Sized, {**largest, "unknown": 10**30})
    for name, most in (("size", 2**24), ("seed", 2**32 - 1), ("steps", 2**14), ("number", 2**31 - 1)):
        for value in (most + 1, -most - 1, [1, (most + 1,)]):
            with pytest.raises(FormatError, match=rf"a\.{name}.* must be a whole number of at most {most:,}"):
                require_sizes(Sized, {name: value}, "a.")


def test_numbers_are_finite_and_their_squares_too() -> None:
    for dtype, most in (("f4", 1e18), ("f8", 1e150)):
        require_bounded(np.array([most, -most, 0.0], dtype), "mean")
        for value in (1.1 * most, -1.1 * most):
            with pytest.raises(FormatError, match="mean must be at most"):
                require_bounded(np.array([0.0, value], dtype), "mean")
        for value in (np.nan, -np.inf):
            with pytest.raises(FormatError, match="mean must be finite"):
                require_bounded(np.array([value], dtype), "mean")
    require_bounded(np.array([2**62]), "count")


def test_moments_that_no_numbers_have_are_refused() -> None:
    good = Moments(np.array(3), *(np.array([value], kind) for value, kind in _COLUMN)).arrays()
    Moments.from_arrays(good)
    cases = [("count", 4, "from 0 to"), ("count", -1, "from 0 to"), ("centre", np.inf, "finite")]
    cases += [("s1", np.nan, "finite"), ("s2", -1.0, "at least 0"), ("s2", np.inf, "finite")]
    for name, value, words in cases:
        changed = np.full(1, value).astype(good[name].dtype)
        with pytest.raises(FormatError, match=rf"scaler\.{name} must be .*{words}"):
            Moments.from_arrays({**good, name: changed}, "scaler")


_COLUMN: list[tuple[float, type]] = [(3, np.int64), (1.0, float), (0.5, float), (2.0, float)]
