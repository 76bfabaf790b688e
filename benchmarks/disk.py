"""What each library takes on the disk, with everything that it needs: the sizes of installed files.

A package that is not installed is left out, with a message.
"""

from __future__ import annotations

import re
from importlib import metadata

__all__ = ["closure", "markdown", "megabytes"]

PACKAGES = {
    "credo": "credo",
    "River": "river",
    "Vowpal Wabbit": "vowpalwabbit",
    "scikit-learn": "scikit-learn",
}


def closure(name: str) -> list[str]:
    """A package and all that it needs without extras, as far as it is installed here.

    Raises:
        PackageNotFoundError: the package itself is not installed.
    """
    found = dict[str, None]()
    waiting = [name]
    while waiting:
        one = _plain(waiting.pop())
        if one in found:
            continue
        try:
            needs = metadata.requires(one) or []
        except metadata.PackageNotFoundError:
            if one == _plain(name):
                raise
            continue  # needed on another system, or by another Python
        found[one] = None
        waiting += [re.split(r"[ ;<>=!~\[(]", need)[0] for need in needs if "extra ==" not in need]
    return list(found)


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def megabytes(name: str) -> float:
    """The files of an installed package."""
    sizes = []
    for file in metadata.files(name) or []:
        path = file.locate()
        sizes.append(path.stat().st_size if path.is_file() else 0)  # type: ignore[attr-defined]
    return sum(sizes) / 1e6


def markdown() -> str:
    """The section: MB of every library, and the largest of its packages."""
    lines = ["## disk", "", "| library | MB | the largest |", "|---|--:|---|"]
    for title, name in PACKAGES.items():
        try:
            sizes = {one: megabytes(one) for one in closure(name)}
        except metadata.PackageNotFoundError:
            print(f"{name} is not installed, and is left out")
            continue
        largest = sorted(sizes, key=lambda one: -sizes[one])[:3]
        said = ", ".join(f"{one} {sizes[one]:.0f}" for one in largest)
        lines.append(f"| {title} | {sum(sizes.values()):,.0f} | {said} |")
    return "\n".join(lines)
