"""Every module that is imported exists.

The checkers of types let pass what they do not find, since their verdict is to be the same in an environment
where packages are absent.
"""

from __future__ import annotations

import ast
import re
import sys
from functools import cache
from pathlib import Path

from tests.needed import EXTRAS

ROOT = Path(__file__).resolve().parent.parent.parent
ROOMS = ("src", "papers/src", "tests", "benchmarks")
PLACES = [ROOT / room for room in ("src", "papers/src", "benchmarks", "")]

PEERS = [
    "PyQt6",
    "bayes_opt",
    "blackjax",
    "bong",
    "botorch",
    "cuthbert",
    "cuthbertlib",
    "dynamax",
    "equinox",
    "flax",
]
PEERS += ["gpytorch", "posteriors", "rebayes", "rebayes_mini", "skopt", "torch"]
"""Packages that no environment for tests has: what we measure ourselves beside, what users may bring, and a
browser."""

_IMPORT = re.compile(r"^\s*(?:from (\w[\w.]*) import|import (\w[\w.]*))", re.MULTILINE)


@cache
def exists(module: str) -> bool:
    """Whether there is such a module, or its package may be absent and is."""
    first, *_ = names = module.split(".")
    if first in sys.stdlib_module_names:
        return True
    folders = [*PLACES, *map(Path, sys.path)]
    for name in names:
        inside = [folder / name for folder in folders if (folder / name).is_dir()]
        if not inside and not any(is_file(folder, name) for folder in folders):
            return name is first and name in {*EXTRAS, *PEERS}
        folders = inside
    return True


def is_file(folder: Path, name: str) -> bool:
    """Whether a folder has a file of that module, which may be compiled."""
    return (folder / f"{name}.py").exists() or any(folder.glob(f"{name}.*"))


def imports(code: str) -> set[str]:
    """What code imports, without what only its strings do."""
    lines = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Import | ast.ImportFrom)]
    names = [
        [x.name for x in node.names] if isinstance(node, ast.Import) else [node.module] for node in lines
    ]
    return {name for some in names for name in some if name}


def test_what_is_imported_exists() -> None:
    files = [path for room in ROOMS for path in (ROOT / room).rglob("*.py*") if path.suffix != ".pyc"]
    count, wrong = 0, []
    for path in files:
        code = path.read_text(encoding="utf-8")
        found = {first or second for first, second in _IMPORT.findall(code)}
        count += len(found)
        if unknown := {module for module in found if not exists(module)}:
            wrong += [(path.relative_to(ROOT).as_posix(), module) for module in unknown & imports(code)]
    assert count > 5000
    assert wrong == []


def test_what_does_not_exist_is_found() -> None:
    assert exists("credo.learners") and exists("scipy.stats") and exists("os.path") and exists("torch.func")
    for wrong in ("credo.lerners", "scipy.stat", "credo.cli.main.nothing", "numpi"):
        assert not exists(wrong)
