"""Sections of results as Markdown, and the sections that a benchmark prints as records."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Sequence

from result_file import Cell, Grid, Section

__all__ = ["day", "line", "markdown", "said", "sections_of", "table"]

_NUMBER = re.compile(r"-?(?:\d+|\d{1,3}(?:,\d{3})+)(\.\d+)?")
_RULE = re.compile(r":?-+:?")


def line(cells: Sequence[str]) -> str:
    """A line of a table."""
    return f"| {' | '.join(cells)} |"


def table(grid: Grid) -> str:
    """A table; columns of numbers are on the right."""
    rule = ["--:" if form else "---" for form in grid.formats]
    rows = [
        line([_shown(cell, form) for cell, form in zip(row, grid.formats, strict=True)]) for row in grid.rows
    ]
    return "\n".join([line(grid.columns), line(rule), *rows])


def _shown(cell: Cell, form: str) -> str:
    return "" if cell is None else cell if isinstance(cell, str) else format(cell, form)


def day(date: str) -> str:
    """A date in words: 2026-11-02 is 2 November 2026."""
    one = datetime.date.fromisoformat(date)
    return f"{one.day} {one:%B} {one.year}"


def said(section: Section) -> str:
    """A section of the page."""
    parts = [part if isinstance(part, str) else table(part) for part in section.body]
    head = f"{section.command}, {day(section.date)}: {section.conditions}"
    return "\n\n".join([f"## {section.title}", head, *parts])


def markdown(sections: Iterable[Section]) -> str:
    """All sections."""
    return "\n\n".join(map(said, sections))


def sections_of(text: str, command: str, date: str, conditions: str) -> list[Section]:
    """The sections of what a benchmark prints: `## TITLE`, then paragraphs and tables."""
    found = []
    for part in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        title, _, body = part.partition("\n")
        blocks = [block.strip("\n") for block in re.split(r"\n\s*\n", body) if block.strip()]
        parts = [_grid(block) if block.startswith("|") else block for block in blocks]
        found.append(Section(title.strip(), command, date, conditions, parts))
    return found


def _grid(text: str) -> Grid:
    """A table of Markdown, its columns of numbers as numbers."""
    head, rule, *rows = [[cell.strip() for cell in _split(each)] for each in text.splitlines()]
    if not all(_RULE.fullmatch(cell) for cell in rule):
        raise ValueError(f"the second line of a table is its rule, and this is not one: {rule}")
    columns = [list(column) for column in zip(*rows, strict=True)]
    formats = [
        _format(column, cell.endswith(":"), title)
        for column, cell, title in zip(columns, rule, head, strict=True)
    ]
    cells = [[_read(cell, form) for cell, form in zip(row, formats, strict=True)] for row in rows]
    return Grid(head, formats, cells)


def _split(text: str) -> list[str]:
    """The cells of a line; a bar that is escaped or in code does not end one."""
    return re.split(r"(?<!\\)\|", text.strip()[1:-1])


def _format(column: Sequence[str], right: bool, title: str) -> str:
    found = [_NUMBER.fullmatch(cell) for cell in column if cell]
    decimals = {len(one[1] or ".") - 1 for one in found if one}
    if title and found and all(found) and len(decimals) == 1:
        return f",.{decimals.pop()}f"
    if right:
        return ">"
    return ""


def _read(cell: str, form: str) -> Cell:
    if not cell:
        return None
    if not form.endswith("f"):
        return cell
    plain = cell.replace(",", "")
    if "." in plain:
        return float(plain)
    return int(plain)
