"""Write the addresses of a repository into what is published: python packaging/urls.py https://HOST/OWNER/NAME

The workflow of a release calls it before it builds: the repository knows its own address there, and no file
has to be changed where it is copied or moved. The pyproject files get a table of addresses, and the links and
pictures of the README, which an index shows without its folder, become absolute.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def table(repository: str) -> str:
    """The table `[project.urls]` of a repository."""
    addresses = {
        "Source": repository,
        "Documentation": f"{repository}/tree/main/docs",
        "Changelog": f"{repository}/blob/main/CHANGELOG.md",
        "Issues": f"{repository}/issues",
    }
    lines = [f'{name} = "{address}"' for name, address in addresses.items()]
    return "\n".join(["[project.urls]", *lines, "", ""])


def write(path: Path, repository: str) -> None:
    """Put the table before the first table that follows `[project]`."""
    text = path.read_text(encoding="utf-8")
    if "[project.urls]" in text:
        raise SystemExit(f"{path} has [project.urls] already.")
    before, rest = text.split("[project.optional-dependencies]", 1)
    path.write_text(f"{before}{table(repository)}[project.optional-dependencies]{rest}", encoding="utf-8")


def absolute(text: str, repository: str) -> str:
    """A page of Markdown whose links and pictures lead into the repository from anywhere."""

    def link(match: re.Match[str]) -> str:
        mark, words, path = match.groups()
        return f"{mark}[{words}]({repository}/{'raw' if mark else 'blob'}/main/{path})"

    return re.sub(r"(!?)\[([^\]]*)\]\((?!https?:|#)([^)\s]+)\)", link, text)


if __name__ == "__main__":
    if len(sys.argv) != 2 or not sys.argv[1].startswith("https://"):
        raise SystemExit(__doc__)
    for name in ("pyproject.toml", "papers/pyproject.toml"):
        write(ROOT / name, sys.argv[1].rstrip("/"))
    readme = ROOT / "README.md"
    readme.write_text(absolute(readme.read_text(encoding="utf-8"), sys.argv[1].rstrip("/")), encoding="utf-8")
