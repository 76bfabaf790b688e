"""The pages keep the rules of docs/explanation/house-style.md that a machine can check."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.docs.pages import ROOT, pages

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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_page_keeps_the_house_style(page: Path) -> None:
    assert faults(page) == []


def test_each_rule_finds_what_it_forbids(tmp_path: Path) -> None:
    """A rule that can no longer match would pass every page."""
    bad = ["of .5", "a law", "Where a row is missing, stop.", "fit it anew", "wait for ever", "amongst all"]
    bad += ["in haste", "the color", "we optimize", "the the end"]
    assert [[bool(re.search(rule, text)) for rule in RULES].index(True) for text in bad] == list(
        range(len(RULES))
    )
    page = tmp_path / "page.md"
    page.write_text("\n".join(bad) + "\n" + "one two " * 31 + "\n```\n.5\n```\n`.5`\n    .5\n")
    assert len(faults(page)) == len(bad) + 1, faults(page)
