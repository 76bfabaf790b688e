"""The sources are as CONTRIBUTING.md says: who may print, how docstrings begin, and where tests stand."""

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


def test_each_assignment_is_one_thought() -> None:
    trees = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in SOURCES.items()}
    assert {name: lines for name, tree in trees.items() if (lines := parallel_assignments(tree))} == {}
    assert {name: lines for name, tree in trees.items() if (lines := nested_conditionals(tree))} == {}
    assert {name: lines for name, tree in trees.items() if (lines := spread_tuples(tree))} == {}


def test_what_is_dense_is_found() -> None:
    tree = ast.parse("a, b = 1, 2\nc = 1 if a else 2 if b else 3\na, b = b, a\nd, e = f(a)\n")
    assert parallel_assignments(tree) == [1]
    assert nested_conditionals(tree) == [2]
    assert spread_tuples(ast.parse("f(*(a, b), c)\nf(*(a, b, c))\nf(*a)")) == [2]


def parallel_assignments(tree: ast.Module) -> list[int]:
    """The lines in which several values that are written out are assigned, except where two change places."""
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        and isinstance(names := node.targets[0], ast.Tuple)
        and isinstance(values := node.value, ast.Tuple)
        and {ast.unparse(name) for name in names.elts} != {ast.unparse(value) for value in values.elts}
    ]


def spread_tuples(tree: ast.Module) -> list[int]:
    """The lines of calls into which a tuple of three values or more is spread that is written out there."""
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        for part in node.args
        if isinstance(part, ast.Starred) and isinstance(part.value, ast.Tuple) and len(part.value.elts) > 2
    ]


def nested_conditionals(tree: ast.Module) -> list[int]:
    """The lines in which a conditional expression stands in another."""
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.IfExp)
        and any(
            isinstance(inner, ast.IfExp)
            for part in (node.test, node.body, node.orelse)
            for inner in ast.walk(part)
        )
    ]


def test_a_distribution_is_called_so_in_the_code_too() -> None:
    trees = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in SOURCES.items()}
    assert {name: found for name, tree in trees.items() if (found := named(tree, "law"))} == {}
    assert named(ast.parse("def f(x, *, law): return x.prior_law(lawn, Laws)"), "law") == ["law", "prior_law"]


def named(tree: ast.Module, word: str) -> list[str]:
    """The names of which a word, or its plural, is one part."""
    names = [
        name
        for node in ast.walk(tree)
        for field in ("id", "arg", "attr", "name")
        if isinstance(name := getattr(node, field, None), str)
    ]
    return [name for name in names if {word, f"{word}s"} & set(name.split("_"))]


def test_docstrings_begin_with_a_noun_or_a_verb() -> None:
    trees = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in SOURCES.items()}
    assert {name: found for name, tree in trees.items() if (found := roundabout(tree))} == {}


def test_a_docstring_that_begins_roundabout_is_found() -> None:
    tree = ast.parse('"""What is here."""\nA = 1\n"""The one."""\nclass B:\n    """Let it be."""\n')
    assert roundabout(tree) == ["What in line 1", "Let in line 5"]


def roundabout(tree: ast.Module) -> list[str]:
    """The docstrings, with those below constants, that begin with neither a noun nor a plain verb."""
    words = {"What", "How", "Let", "Where", "Who", "Whose", "Why", "When"}
    texts = [
        (first[0], node.lineno)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
        and (first := node.value.value.split())
    ]
    return [f"{word} in line {line}" for word, line in texts if word in words]


def test_tests_are_ordered_as_the_rooms_are() -> None:
    rooms = {path.name for path in (ROOT / "src/credo").iterdir() if (path / "__init__.py").exists()}
    folders = {path.name for path in (ROOT / "tests").iterdir() if path.is_dir() and any(path.glob("*.py"))}
    assert folders - rooms <= {"papers", "benchmarks", "docs", "reports", "typing"}
    rooms = {path.name for path in (ROOT / "papers/src/credo_papers").iterdir() if path.is_dir()}
    folders = {path.name for path in (ROOT / "tests/papers").iterdir() if any(path.glob("*.py"))}
    assert folders <= rooms
