"""What is inferred of columns and targets, and how it is said."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pandas as pd
import pytest

from credo.core.errors import CredoError, DataError, FormatError
from credo.tables import Chunk, ColumnSpec, Schema, TargetSpec, from_frame, infer_schema

N = 200
RNG = np.random.default_rng(0)


def chunk_of(**columns: Any) -> Any:
    return Chunk(columns, np.arange(2, 2 + len(next(iter(columns.values())))))


def kinds(schema: Any) -> Any:
    return {column.name: column.kind for column in schema.columns}


def text_of(values: Any) -> Any:
    return [str(value) for value in values]


COLUMNS = {
    "price": text_of(RNG.normal(size=N)),
    "gaps": [text if i % 10 else ["", "NA", "n/a", "NULL", "None", "?", "-", " nan "][i // 10 % 8]
             for i, text in enumerate(text_of(RNG.normal(size=N)))],
    "dirty": [text if i % 25 else "oops" for i, text in enumerate(text_of(RNG.normal(size=N)))],
    "city": text_of(RNG.choice(["Oslo", "Rome", "Lima"], N)),
    "mixed": text_of(RNG.choice(["1", "2", "x"], N)),
    "flag": text_of(RNG.choice(["yes", "no"], N)),
    "when": [f"2024-01-{1 + i // 24:02d}T{i % 24:02d}:00:00Z" for i in range(N)],
    "id": text_of(range(N)),
    "comment": [f"remark {i} of mine" for i in range(N)],
    "code": [f"c{i:04d}" for i in range(N)],
    "same": ["x"] * N,
    "still": ["3.5"] * N,
    "void": ["NA"] * N,
    "nested": [{"a": 1}] * N,
    "y": text_of(RNG.choice(["UP", "DOWN"], N)),
}  # fmt: skip


def test_columns_of_every_kind() -> None:
    schema = infer_schema(chunk_of(**COLUMNS), "y")
    assert kinds(schema) == {
        "price": "numeric",
        "gaps": "numeric",
        "dirty": "numeric",
        "city": "categorical",
        "mixed": "categorical",
        "flag": "boolean",
        "when": "datetime",
        "comment": "text",
        "still": "numeric",
    }
    assert [column.name for column in schema.columns if column.has_missing] == ["gaps"]
    assert {column.name: column.why for column in schema.dropped} == {
        "id": "it is an id: whole numbers that never repeat in the first 200 rows",
        "code": "it is text that is nearly always different (200 of 200 values)",
        "same": "it is always 'x' in the first 200 rows",
        "void": "it has no values in the first 200 rows",
        "nested": "it holds nested values",
    }
    assert schema.notes == (
        "column 'dirty' is numeric, but 8 of the first 200 rows hold text there and are skipped",
        "column 'comment' is text: its words are hashed into 64 features",
        "column 'still' is always 3.5 in the first 200 rows; it is kept, and is 0 until it changes",
    )
    assert schema.features[-2:] == ("still", "(a value is missing)")
    assert "gaps=(missing)" in schema.features and "cos(when weekday)" in schema.features
    assert schema.width == len(schema.features) == 1 + 2 + 1 + 4 + 4 + 1 + 5 + 64 + 1 + 1


def test_a_schema_goes_through_json() -> None:
    schema = infer_schema(chunk_of(**COLUMNS), "y")
    assert Schema.from_dict(json.loads(json.dumps(schema.to_dict()))) == schema
    assert all(isinstance(sentence, str) for sentence in schema.sentences)
    saved: dict[str, Any] = schema.to_dict()
    cases: list[tuple[dict[str, Any], str]] = [
        ({**saved, "version": 9}, "a saved schema must have version 1; got 9"),
        ({"version": 1}, "schema has no 'columns'"),
        ({**saved, "columns": [{**saved["columns"][0], "kind": "odd"}]}, "got 'odd'"),
    ]
    for broken, sentence in cases:
        with pytest.raises(FormatError, match=re.escape(sentence)):
            Schema.from_dict(broken)


def test_what_is_asked_goes_before_what_is_inferred() -> None:
    data = chunk_of(**COLUMNS)
    schema = infer_schema(
        data, "y", drop=["city", "flag"], categorical=["mixed", "still", "id"], max_categories=2
    )
    found = {column.name: column for column in schema.columns}
    assert "city" not in found and found["still"].categories == ("3.5",)
    assert len(found["mixed"].categories) == 2 and len(found["id"].categories) == 2
    assert (
        "column 'mixed' has 3 categories in the first 200 rows: the 2 most frequent have a feature each, "
        "and the others are hashed into 16" in schema.notes[1]
    )


def test_columns_of_a_frame() -> None:
    frame = pd.DataFrame(
        {
            "n": RNG.normal(size=N),
            "k": pd.array(RNG.integers(0, 9, N), "Int64"),
            "b": RNG.random(N) < 0.5,
            "t": pd.date_range("2024-01-01", periods=N, freq="h"),
            "z": pd.date_range("2024-01-01", periods=N, freq="h", tz="Europe/Oslo"),
            "c": pd.Categorical(RNG.choice(["u", "v"], N)),
            "d": pd.to_timedelta(RNG.integers(0, 99, N), "s"),
            "y": RNG.integers(0, 3, N),
        }
    )
    schema = infer_schema(from_frame(frame).peek(), "y")
    assert list(kinds(schema).values()) == [
        "numeric", "numeric", "boolean", "datetime", "datetime", "categorical", "numeric",
    ]  # fmt: skip
    assert schema.target.classes == ("0", "1", "2")


@pytest.mark.parametrize(
    ("values", "task", "classes", "why"),
    [
        (
            ["UP", "DOWN"] * 50,
            "classification",
            ("DOWN", "UP"),
            "2 distinct values (DOWN, UP): classification",
        ),
        ([True, False] * 50, "classification", ("False", "True"), "`task='regression'` to override"),
        (["1", "0", "1.0"] * 50, "classification", ("0", "1"), "values (0, 1): classification; `task='regr"),
        (["10", "9", "2"] * 50, "classification", ("2", "9", "10"), "3 distinct values (2, 9, 10)"),
        ([1.0, 2.0] * 50, "classification", ("1", "2"), "values (1, 2)"),
        (
            ["1", "2", "3"] * 5,
            "regression",
            (),
            "in 15 rows: regression; `task='classification'` to override",
        ),
        (list(range(21)) * 100, "regression", (), "has 21 distinct values (0, 1, 2, 3, 4, ...) in 2100 rows"),
        (["1.5", "2.5", "NA"] * 50, "regression", (), "holds numbers: regression"),
    ],
)
def test_the_task_is_inferred_and_said(values: Any, task: Any, classes: Any, why: Any) -> None:
    target = infer_schema(chunk_of(a=list(range(len(values))), y=values), "y").target
    assert (target.task, target.classes) == (task, classes)
    assert why in target.why and target.why.startswith("target 'y' ")


def test_numbers_with_signs_are_numbers_and_said() -> None:
    prices = [f"${5 + i / 100:.2f}" if i % 5 == 0 else f"{5 + i / 100:.2f}" for i in range(N)]
    schema = infer_schema(chunk_of(a=["1,234", "5%", "-$3", "€ 7.5"] * (N // 4), y=prices), "y")
    assert schema.target.task == "regression" and kinds(schema) == {"a": "numeric"}
    said = f"which is read as 5; {N // 5} of the first {N} rows are written so"
    assert schema.notes[0] == f"target 'y' holds '$5.00', {said}"
    assert "column 'a' holds '1,234', which is read as 1234" in schema.notes[1]


def test_text_in_a_target_that_is_mostly_numbers_is_skipped_and_said() -> None:
    values = ["call us" if i % 5 == 0 else f"{5 + i / 100:.2f}" for i in range(N)]
    target = infer_schema(chunk_of(a=list(range(N)), y=values), "y").target
    assert target.task == "regression" and target.classes == ()
    assert f"{N // 5} of the first {N} rows hold text there, such as 'call us', and are skipped" in target.why
    few = ["other" if i % 5 == 0 else str(i % 3) for i in range(N)]  # labels, of which some are numbers
    assert infer_schema(chunk_of(a=list(range(N)), y=few), "y").target.classes == ("0", "1", "2", "other")


def test_constant_columns_are_one_sentence() -> None:
    still = {f"k{i}": [7] * N for i in range(13)}
    notes = infer_schema(chunk_of(a=list(range(N)), y=["u", "v"] * (N // 2), **still), "y").notes
    assert notes == (
        f"13 columns are constant in the first {N} rows and are 0 until they change: "
        "k0, k1, k2, k3, k4, k5, k6, k7, ...",
    )


def test_the_task_and_the_classes_may_be_given() -> None:
    data = chunk_of(a=["1", "2", "4"], y=["1", "2", "1"])
    assert infer_schema(data, "y", task="regression").target.task == "regression"
    assert infer_schema(data, "y", classes=["1", "2", "3"]).target.classes == ("1", "2", "3")
    minus = infer_schema(chunk_of(a=["1", "2"], y=["+", "-"]), "y", classes=["+", "-"]).target
    assert minus.classes == ("+", "-")
    flags = chunk_of(a=["1", "2"], y=[True, False])
    assert infer_schema(flags, "y", task="regression").target.task == "regression"


A, Y = list(range(40)), ["u", "v"] * 20
ERRORS = [
    (
        {"target": "clas"},
        {"klass": Y},
        "target 'clas' is no column (did you mean 'klass'?); the columns are a, klass.",
    ),
    ({"target": "zzz"}, {"y": Y}, "target 'zzz' is no column; the columns are a, y."),
    ({"drop": ["b"]}, {"y": Y}, "drop 'b' is no column; the columns are a, y."),
    ({"drop": "a"}, {"y": Y}, "drop must be a list of column names; got the text 'a'."),
    ({"categorical": ["b"]}, {"y": Y}, "categorical 'b' is no column"),
    ({"drop": ["y"]}, {"y": Y}, "column 'y' cannot be left out: it is the target."),
    ({"categorical": ["y"]}, {"y": Y}, "column 'y' cannot be in categorical: it is the target."),
    ({"categorical": ["a"], "drop": ["a"]}, {"y": Y}, "column 'a' cannot be in categorical: it is in drop."),
    ({"drop": ["a"]}, {"y": Y}, "no column is left to learn 'y' from: column 'a' is left out: as asked."),
    ({}, {"y": ["u"] * 40}, "target 'y' is always 'u' in the first 40 rows, so nothing can be learnt"),
    ({}, {"y": ["2"] * 40}, "or `task='regression'` if it is a number that will change"),
    ({"task": "classification"}, {"y": ["2"] * 40}, "target 'y' is always '2' in the first 40 rows"),
    ({}, {"y": ["", "NA"] * 20}, "target 'y' is missing in all of the first 40 rows"),
    ({}, {"y": ["inf"] * 40}, "target 'y' is missing in all of the first 40 rows"),
    ({"task": "regression"}, {"y": Y}, "target 'y' holds text such as 'u', which regression cannot"),
    ({}, {"y": [f"t{i}" for i in A]}, "target 'y' holds a different text in each of 40 rows"),
    (
        {},
        {"y": [f"{i},5" if i % 2 else f"{i}.5" for i in A]},
        "target 'y' holds numbers with decimal commas, such as '1,5', and with points, such as '0.5'",
    ),
    ({"task": "count"}, {"y": [i / 2 for i in A]}, "holds numbers such as 0.5, which are no counts"),
    ({"task": "odd"}, {"y": Y}, "task must be one of classification, regression, count"),
    ({"classes": ["u", "v"], "task": "regression"}, {"y": Y}, "classes must not be given with task"),
    ({"classes": ["u"]}, {"y": Y}, "classes must be 2 to 1000 different labels; got u."),
    ({"classes": "uv"}, {"y": Y}, "classes must be a list of labels; got the text 'uv'."),
    ({"classes": ["p", "q"]}, {"y": Y}, "target 'y' holds none of the classes p, q"),
    ({"max_categories": 0}, {"y": Y}, "max_categories must be a whole number at least 1; got 0"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "columns", "sentence"), ERRORS)
def test_refusals(arguments: Any, columns: Any, sentence: Any) -> None:
    arguments = {"target": "y", **arguments}
    with pytest.raises(CredoError, match=re.escape(sentence)):
        infer_schema(chunk_of(a=A, **columns), **arguments)


@pytest.mark.parametrize(
    ("y", "task"), [(["2"] * 40, "regression"), (["2"] * 40, "count"), ([5.5] * 40, None)]
)
def test_a_number_that_is_constant_so_far_may_be_learned(y: Any, task: Any) -> None:
    target = infer_schema(chunk_of(a=A, y=y), "y", task=task).target
    assert target.task == (task or "regression")


def test_too_many_classes() -> None:
    data = chunk_of(a=[1.5, 2] * 1200, y=[f"t{i // 2}" for i in range(2400)])
    with pytest.raises(DataError, match=r"1200 distinct values .* classification takes at most 1000"):
        infer_schema(data, "y")


def test_no_rows() -> None:
    with pytest.raises(DataError, match="the first rows hold none that can be used"):
        infer_schema([], "y")


def test_late_columns_have_room_until_there_is_none() -> None:
    schema = Schema(TargetSpec("y", "regression"), (ColumnSpec("a", "numeric"),))
    late = [ColumnSpec(name, "numeric", has_missing=True) for name in "bcdefg"]
    wider = schema.including(late[:1])
    assert schema.including([]).width == schema.width == 2 and wider.width == 12
    # the next four fit beside it
    assert wider.including(late[1:3]).including(late[3:5]).width == 12
    assert wider.including(late[1:]).width > 14
