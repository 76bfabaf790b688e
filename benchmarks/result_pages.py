"""Every page that has numbers of the results: README, RESULTS.md and the two of the default.

    python benchmarks/run.py --pages

What stands between `<!-- generated: NAME -->` and `<!-- end -->` is written from `results.json`; people write
the rest of a page.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import default_page
import result_beside
from result_evidence import Evidence, evidence
from result_file import FILE

__all__ = ["PAGES", "REGIONS", "filled", "pages", "write"]

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs/explanation"
PAGES = (
    ROOT / "README.md",
    ROOT / "benchmarks/RESULTS.md",
    DOCS / "defaults.md",
    DOCS / "defaults-tables.md",
)
REGIONS: dict[str, Callable[[Evidence], str]] = default_page.REGIONS | result_beside.REGIONS
"""What is written into the pages, by the name of the region."""

_REGION = re.compile(r"(<!-- generated: ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def filled(text: str, known: Evidence) -> str:
    """A page with its regions written from the results."""
    return _REGION.sub(lambda found: f"{found[1]}\n{REGIONS[found[2]](known)}\n\n{found[3]}", text)


def pages(path: Path = FILE) -> dict[Path, str]:
    """The pages as they should be by a file of results."""
    known = evidence(path)
    return {page: filled(page.read_text(encoding="utf-8"), known) for page in PAGES}


def write() -> None:
    """Write all pages."""
    for page, text in pages().items():
        page.write_text(text, encoding="utf-8")
