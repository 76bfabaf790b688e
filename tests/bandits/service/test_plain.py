"""Arrays are turned into plain values as a whole, and give what a walk through their elements gives."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import math
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from credo.bandits.logs.json_lines import json_line, plain
from credo.bandits.service.content import content_of

EDGES = np.array([0.0, -0.0, 1.0, -2.5, 5e-324, 1e-7, 1.1, 2.0**53, 1e16, 1e300])
WHOLE = [0, 1, -1, 127, -128]
VALUES: dict[str, Any] = {
    "float64": EDGES,
    "float32": np.array([0.1, -0.0, 1e-45, 3.4e38, 16777217.0], np.float32),
    "float16": np.array([0.1, -0.0, 6e-8, 65504.0], np.float16),
    "bfloat16": jnp.array([0.1, -0.0, 3.0], jnp.bfloat16),
    "longdouble": np.array([0.1, -0.0, 3.0], np.longdouble),
    "swapped": EDGES.astype(">f8"),
    "complex": np.array([1 + 2j]),
    "ints": np.array([*WHOLE, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63)]),
    "int8": np.array(WHOLE, np.int8),
    "uint64": np.array([0, 2**53 + 1, 2**63, 2**63 + 1025, 2**64 - 1], np.uint64),
    "bools": np.array([[True, False], [False, True]]),
    "nan": np.array([[1.0, np.nan], [-0.0, 3.0]]),
    "inf": np.array([1, np.inf, -np.inf, -0.0], np.float32),
    "0-d": np.array(-0.0),
    "0-d int": np.array(7),
    "0-d bool": np.array(True),
    "0-d nan": np.array(np.nan),
    "scalars": [np.float64(-0.0), np.float32(0.1), np.uint64(2**63 + 1), np.bool_(True), np.float64(np.inf)],
    "empty": np.zeros(0),
    "empty rows": np.zeros((0, 3)),
    "rows of nothing": np.zeros((2, 0), np.int32),
    "deep": np.arange(24.0).reshape(2, 3, 4) - 12,
    "strided": np.asfortranarray(np.arange(12.0).reshape(3, 4))[::-2, 1::2],
    "nested": {"b": [EDGES, {"a": np.array([1, 2]), 3: (np.zeros(2), None, "x")}], "a": np.float32(0.1)},
    "objects": np.array([1, -0.0, "x", None, True, 2**70, math.nan, [1.0, -0.0]], object),
    "huge": [10**400, -(10**400), 2**64],
    "texts": np.array(["a", "\u00e9"]),
    "jax": jnp.array([[0.1, -0.0], [jnp.inf, 2.0]]),
    "jax ints": jnp.arange(4),
    "masked": np.ma.array([1.0, -0.0, 3.0], mask=[False, True, False]),
    "times": np.array(["2020-01-01"], "datetime64[D]"),
}
"""Contexts of every kind."""


def walked(value: Any, single: Callable[[Any], Any]) -> Any:
    """Every element by itself."""
    value = value.tolist() if isinstance(value, np.generic | np.ndarray | jax.Array) else value
    if isinstance(value, Mapping):
        return {str(key): walked(item, single) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [walked(item, single) for item in value]
    if isinstance(value, dt.date):
        return value.isoformat()
    return single(value)


def number(value: Any) -> Any:
    """Equal numbers are one, whole or not."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            return float(value) + 0.0 if math.isfinite(value) else None
        except OverflowError:
            return repr(value)
    return value


def finite(value: Any) -> Any:
    """A number that JSON knows, or null."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


@pytest.mark.parametrize("name", VALUES)
def test_content_is_that_of_the_elements(name: str) -> None:
    elements = walked(VALUES[name], number)
    for arms in (None, ("y", "x")):
        assert content_of(VALUES[name], arms) == content_of(elements, arms)
    if not numeric(elements):
        text = json.dumps({"context": elements, "arms": ["x", "y"]}, sort_keys=True, default=repr)
        assert (
            content_of(VALUES[name], ("y", "x")) == hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
        )


def numeric(elements: Any) -> bool:
    """Whether there are numbers alone, in rows of one length."""
    try:
        array = np.asarray(elements)
    except (ValueError, OverflowError):
        return False
    return array.dtype.kind in "iuf" and array.ndim > 0 and array.size > 0


def test_content_differs_where_elements_do() -> None:
    elements = {
        name: json.dumps(walked(value, number), sort_keys=True, default=repr)
        for name, value in VALUES.items()
    }
    contents = {name: content_of(value, None) for name, value in VALUES.items()}
    assert len(set(contents.values())) == len(set(elements.values()))


@pytest.mark.parametrize("name", VALUES)
def test_lines_are_those_of_the_elements(name: str) -> None:
    expected = walked(VALUES[name], finite)
    assert repr(plain(VALUES[name])) == repr(expected)
    if name not in ("complex", "longdouble"):  # of which JSON has no form
        text = json.dumps({"context": expected}, ensure_ascii=False, allow_nan=False) + "\n"
        assert json_line({"context": VALUES[name]}) == text.encode()
