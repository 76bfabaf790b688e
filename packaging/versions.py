"""Put a built site beside those of other versions: python packaging/versions.py site sites 0.2.0

`sites` gets a folder for each minor version (0.2), a `versions.json` from which the pages fill their menu of
versions, and an `index.html` that leads to the newest. A later 0.2.1 replaces 0.2; the other folders stay.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

LEADS = """<!doctype html>
<meta charset="utf-8">
<title>credo</title>
<meta http-equiv="refresh" content="0; url={name}/">
<a href="{name}/">The newest version</a>
"""


def minor(version: str) -> str:
    """The first two numbers of a version."""
    found = re.fullmatch(r"v?(\d+\.\d+)(?:\.\d+)?(?:\S*)", version)
    if found is None:
        raise SystemExit(f"A version looks like 0.2.0; got {version!r}.")
    return found[1]


def place(site: Path, sites: Path, version: str) -> Path:
    """Copy a built site to its folder; write the list of versions, and the page that leads to the newest."""
    if not (site / "index.html").exists():
        raise SystemExit(f"{site} has no index.html: run make docs first.")
    name = minor(version)
    if (sites / name).exists():
        shutil.rmtree(sites / name)
    shutil.copytree(site, sites / name)
    names = [path.name for path in sites.iterdir() if re.fullmatch(r"\d+\.\d+", path.name)]
    names.sort(key=lambda name: tuple(map(int, name.split("."))), reverse=True)
    listed = [{"version": one, "title": one, "aliases": ["latest"] * (one == names[0])} for one in names]
    (sites / "versions.json").write_text(json.dumps(listed, indent=1) + "\n", encoding="utf-8")
    (sites / "index.html").write_text(LEADS.format(name=names[0]), encoding="utf-8")
    return sites / name


if __name__ == "__main__":
    if len(sys.argv) != 4:
        raise SystemExit(__doc__)
    print(f"wrote {place(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])}")
