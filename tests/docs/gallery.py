"""Draw the pictures of docs/gallery.md: python -m tests.docs.gallery [NAME ...]

Each picture is what matplotlib holds when the block above it has run. The lines that drew it are in the file
as a digest, so that a test can say which pictures are old. Look at every picture that you draw.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from pathlib import Path
from typing import Any, NamedTuple

from tests.docs.pages import DOCS, blocks

PAGE = DOCS / "gallery.md"
MARK = "Lines"


class Picture(NamedTuple):
    """A picture: its file, the block that draws it, the block for all, and the first line in the page."""

    path: Path
    code: str
    common: str
    line: int

    @property
    def digest(self) -> str:
        """Of the lines."""
        return hashlib.sha256((self.common + self.code).encode()).hexdigest()[:16]


def pictures() -> list[Picture]:
    """The pictures of the page; the first block is for all."""
    text = PAGE.read_text(encoding="utf-8")
    common, *rest = blocks(PAGE)
    found = []
    for block in rest:
        image = re.match(r"\s*!\[[^\]]+\]\(([\w/.-]+)\)", text[block.end :])
        if image is None:
            raise ValueError(f"the block at line {block.line} has no picture below it")
        found.append(Picture(DOCS / image[1], block.code, common.code, block.line))
    return found


def draw(picture: Picture, path: Path) -> None:
    """Run the lines of a picture, and save it."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    from credo.plots import style

    small: Any = {
        "axes.titlesize": 10,
        "axes.labelsize": 10,
        "xtick.labelsize": 9,
        "ytick.labelsize": 9,
        "legend.fontsize": 9,
        "legend.frameon": True,
        "legend.framealpha": 0.85,
        "legend.edgecolor": "white",
        "lines.linewidth": 1.6,
        "figure.figsize": (5.2, 3.2),
        "figure.dpi": 150,
        "figure.constrained_layout.use": True,
    }
    with style():
        plt.rcParams.update(small)
        namespace: dict[str, object] = {"__name__": "__main__"}
        exec(compile(picture.common, str(PAGE), "exec"), namespace)
        exec(compile("\n" * (picture.line - 1) + picture.code, str(PAGE), "exec"), namespace)
        plt.savefig(path, metadata={"Software": None, MARK: picture.digest})
        plt.close("all")


def main(names: list[str]) -> None:
    """Draw all pictures, or those that are named."""
    for picture in pictures():
        if not names or picture.path.stem in names:
            draw(picture, picture.path)
            print(picture.path.stem, picture.path.stat().st_size // 1000, "kB", flush=True)


if __name__ == "__main__":
    os.environ.setdefault("MPLBACKEND", "agg")
    main(sys.argv[1:])
