"""Pages and docstrings keep the rules of docs/explanation/house-style.md that a machine can check."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.docs.pages import ROOT, pages

import credo

RULES = {
    r"(?<![\w.`/])\.\d": "a digit stands before the decimal point",
    r"\b[Ll]aws?\b(?! of (?:motion|large|total))": "write distribution",
    r"(?:^[-*\d. ]*|[.:;] )Where\b(?!.*\?$)": "write If or When; Where is for places",
    r"\banew\b": "write again, or from scratch",
    r"\bfor ever\b": "write forever",
    r"\b(?:amongst|whilst|betwixt)\b": "write among or while",
    r"\bin haste\b": "say what is left out to save time",
    r"\b(?:behavior|color|center|neighbor|favor|label(?:ed|ing)|model(?:ed|ing))s?\b": "British spelling",
    r"(?<!-)\b(?:optim|standard|initial|normal|minim|maxim|recogn)iz(?:e[ds]?|ing|ation)\b": "as above",
    r"\b([a-z]{2,}) \1\b(?!')": "a word twice",
}
IN_CODE = {
    r"(?<![\w.`/])\.\d": "a digit stands before the decimal point",
    r"\b[Ll]aws?\b(?!:| of (?:motion|large|total))": "write distribution",
    r"\b(?:None|Error|empty|nothing) where\b": "write if; where is for places",
    r"\banew\b": "write again, or from scratch",
    r"\bfor ever\b": "write forever",
    r"\b(?:amongst|whilst|betwixt)\b": "write among or while",
    r"\bin haste\b": "say what is left out to save time",
    r"\b(?:came|comes) of (?:a|the)\b": "write results of, or what follows from",
    r"^ +\w+(?:, \w+)*: of (?:the|all|its)\b": "name what it is: the seed of the draws",
    r"\b([a-z]{2,}) \1\b(?!')": "a word twice",
}
"""What a machine can check of the docstrings of public names."""
LONGEST = 60
_INLINE = re.compile(r"`[^`]*`|\]\([^)]*\)|\[[^\]]*\]\[[^\]]*\]|\$[^$]*\$|<[^>]*>")
_SENTENCE = re.compile(r"(?<=[.!?]) +(?=[A-Z`])")
PAGES = [page for page in pages() if page.name not in {"changelog.md", "defaults-tables.md"}]


def lines_of(page: Path) -> Iterator[tuple[int, str]]:
    """The lines that a person wrote: no code, no formulas, no tables that a program writes."""
    code = generated = formula = False
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if line.lstrip().startswith("```"):
            code = not code
        elif line.strip() == "$$":
            formula = not formula
        elif line.startswith(("<!-- generated", "<!-- end")):
            generated = line.startswith("<!-- generated")
        elif not (code or generated or formula or line.startswith(("    ", "::: "))):
            yield number, _INLINE.sub("`_`", line)


def faults(page: Path) -> list[str]:
    found = []
    for number, line in lines_of(page):
        if page.name != "house-style.md":
            found += [
                f"{number}: {what}: {line[:120]}" for rule, what in RULES.items() if re.search(rule, line)
            ]
        if not line.startswith(("|", "#", "!")):
            longest = max((len(sentence.split()) for sentence in _SENTENCE.split(line)), default=0)
            found += [f"{number}: a sentence of {longest} words"] * (longest > LONGEST)
    return found


def public() -> set[str]:
    """The names that any room exports."""
    names = set(dir(credo))
    for path in (ROOT / "src/credo").rglob("__init__.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                names |= set(re.findall(r"'(\w+)'", ast.unparse(node.value)))
    return names


PUBLIC = public()


def docstrings(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of docstrings of public names and of their methods, but for examples."""
    waiting: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"))]
    while waiting:
        node = waiting.pop()
        inner = [one for one in ast.iter_child_nodes(node) if isinstance(one, ast.ClassDef | ast.FunctionDef)]
        top = isinstance(node, ast.Module)
        waiting += [one for one in inner if (one.name in PUBLIC if top else one.name[0] != "_")]
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            words = ast.get_docstring(node, clean=False) or ""
            example = False
            for number, line in enumerate(words.splitlines(), node.body[0].lineno):
                example = (example or line.lstrip().startswith(">>>")) and bool(line.strip())
                if not example:
                    yield number, _INLINE.sub("`_`", line)


ROOMS = sorted(path for path in (ROOT / "src/credo").iterdir() if path.is_dir() and path.name[0] != "_")


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: room.name)
def test_docstrings_keep_the_house_style(room: Path) -> None:
    found = []
    for path in sorted(room.rglob("*.py")):
        for number, line in docstrings(path):
            for rule, what in IN_CODE.items():
                if re.search(rule, line):
                    found.append(f"{path.relative_to(ROOT)}:{number}: {what}: {line.strip()}")
    assert found == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_page_keeps_the_house_style(page: Path) -> None:
    assert faults(page) == []


def test_each_rule_finds_what_it_forbids(tmp_path: Path) -> None:
    """A rule that can no longer match would pass every page."""
    assert re.search(list(IN_CODE)[2], "y: None where there is none") and len(PUBLIC) > 400
    bad = [
        "of .5",
        "a law",
        "Where a row is missing, stop.",
        "fit it anew",
        "wait for ever",
        "amongst all",
    ]
    bad += ["in haste", "the color", "we optimize", "the the end"]
    assert [[bool(re.search(rule, text)) for rule in RULES].index(True) for text in bad] == list(
        range(len(RULES))
    )
    page = tmp_path / "page.md"
    page.write_text("\n".join(bad) + "\n" + "one two " * 31 + "\n```\n.5\n```\n`.5`\n    .5\n")
    assert len(faults(page)) == len(bad) + 1, faults(page)
