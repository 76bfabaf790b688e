"""The pages of the documentation, and the code in them."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent.parent
DOCS = ROOT / "docs"
NOT_RUN = "# not run"

_FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """A fenced Python block.

    Attributes:
        line: its first line in the page.
        code: the code.
        end: where the block ends in the page's text.
        printed: what the page says it prints, or None.
        printed_end: where that ends, or 0.
    """

    line: int
    code: str
    end: int
    printed: str | None
    printed_end: int


def pages() -> list[Path]:
    """Every page, and the README."""
    return [*sorted(DOCS.rglob("*.md")), ROOT / "README.md"]


def blocks(page: Path) -> list[Block]:
    """The Python blocks of a page that are to be run; a `text` block right behind one is what it prints."""
    text = page.read_text(encoding="utf-8")
    fences = list(_FENCE.finditer(text))
    found = []
    for fence, following in itertools.zip_longest(fences, fences[1:]):
        if fence[1] != "python" or fence[2].lstrip().startswith(NOT_RUN):
            continue
        line = text.count("\n", 0, fence.start()) + 2
        if (
            following is not None
            and following[1] == "text"
            and not text[fence.end() : following.start()].strip()
        ):
            found.append(Block(line, fence[2], fence.end(), following[2], following.end()))
        else:
            found.append(Block(line, fence[2], fence.end(), None, 0))
    return found
