"""What CONTRIBUTING.md says of the sources is so: who may print, and where tests stand."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("src/credo", "papers/src/credo_papers")
SOURCES = {
    str(path.relative_to(ROOT)): path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))
}


def test_below_the_command_line_nothing_prints_or_names_a_flag() -> None:
    below = [name for name in SOURCES if "/cli/" not in name]
    trees = {name: ast.parse(SOURCES[name].read_text(encoding="utf-8")) for name in below}
    assert {name: found for name, tree in trees.items() if (found := prints(tree) + flags(tree))} == {}


def prints(tree: ast.Module) -> list[str]:
    """The places where a file prints."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    named = [node for node in calls if isinstance(node.func, ast.Name) and node.func.id == "print"]
    return [f"print in line {node.lineno}" for node in named]


def flags(tree: ast.Module) -> list[str]:
    """The texts, other than docstrings, in which there is a flag."""
    documents = {
        id(first.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and isinstance(first := node.body[0] if node.body else None, ast.Expr)
    }
    texts = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documents
    ]
    return [
        text for text in texts if any(word.startswith("--") and word[2:3].isalpha() for word in text.split())
    ]


def test_tests_are_ordered_as_the_rooms_are() -> None:
    rooms = {path.name for path in (ROOT / "src/credo").iterdir() if (path / "__init__.py").exists()}
    folders = {path.name for path in (ROOT / "tests").iterdir() if path.is_dir() and any(path.glob("*.py"))}
    assert folders - rooms <= {"papers", "benchmarks", "docs", "reports", "typing"}
    rooms = {path.name for path in (ROOT / "papers/src/credo_papers").iterdir() if path.is_dir()}
    folders = {path.name for path in (ROOT / "tests/papers").iterdir() if any(path.glob("*.py"))}
    assert folders <= rooms
