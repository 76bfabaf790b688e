"""The strings that name a class are told from words that are only spelled as one."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def shape(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("shape")


def named(shape: Any, text: str) -> bool:
    """Whether the string "Bank" names a class in some code."""
    tree = ast.parse(text)
    naming = shape.type_names(tree)
    return any(id(node) in naming for node in ast.walk(tree) if getattr(node, "value", None) == "Bank")


@pytest.mark.parametrize(
    "text",
    [
        'if type(a).__name__ == "Bank": pass',
        'if type(a).__name__ in ("Point", "Bank"): pass',
        'KINDS = frozenset({"Point", "Bank"})\nif type(a).__name__ in KINDS: pass',
        'RULES = {"Bank": 1}\nrule = RULES[type(a).__name__]',
        'RULES: dict[str, int] = {"Bank": 1}\nrule = RULES.get(record_name(type(a)))',
        'kind = REGISTRY["Bank"]',
        'kind = REGISTRY.get("Bank")',
        'kind = getattr(adapt, "Bank")',
        'a = cast("Bank", b)',
        'def f(a: "Bank") -> None: pass',
        'match type(a).__name__:\n    case "Bank": pass',
    ],
)
def test_a_string_that_names_a_class_is_found(shape: Any, text: str) -> None:
    assert named(shape, text)


@pytest.mark.parametrize(
    "text",
    [
        'folder = Path.home() / "AppData" / "Bank"',
        'times = columns["Bank"]',
        'lines = [line for line in lines if line.startswith(("flags", "Bank"))]',
        'raise CredoError("Bank")',
        'TITLES = {"Bank": 1}\ntitle = TITLES[column]',
    ],
)
def test_a_word_that_is_spelled_as_a_class_is_not(shape: Any, text: str) -> None:
    assert not named(shape, text)
