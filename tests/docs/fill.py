"""Write anew what the Python blocks of some pages print: python -m tests.docs.fill docs/tutorial.md ...

A tool for whoever changes a page or the numbers of the library; the tests compare, this replaces. Read the
difference before you commit it: the words around a number may have become wrong.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import tempfile
from pathlib import Path

from tests.docs.pages import blocks


def fill(page: Path) -> None:
    """Run a page and replace, or add, the `text` block behind every block that prints."""
    namespace: dict[str, object] = {"__name__": "__main__"}
    parts, start, text = [], 0, page.read_text(encoding="utf-8")
    for block in blocks(page):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile("\n" * (block.line - 1) + block.code, str(page), "exec"), namespace)
        parts.append(text[start : block.end])
        start = block.printed_end or block.end
        if printed.getvalue():
            parts.append(f"\n\n```text\n{printed.getvalue()}```")
    page.write_text("".join([*parts, text[start:]]), encoding="utf-8")


if __name__ == "__main__":
    wanted = [Path(name).resolve() for name in sys.argv[1:]]
    os.chdir(tempfile.mkdtemp())
    for each in wanted:
        fill(each)
