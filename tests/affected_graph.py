"""Which files depend on which, as far as the sources of a checkout say.

A file depends on the modules whose names it uses, wherever in the file they are imported; a name that a
package hands on leads to the module that defines it, and a function that others extend by `register` leads to
those. What is named in texts counts too: modules, programs for another process, files and folders, and
experiments of credo-papers. A file that is only read (a page, data, a source as text) counts itself; a file
that is run counts with all that it reaches. In doubt there is a file too many.
"""

from __future__ import annotations

import fnmatch
import gc
import os
import re
import textwrap
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.affected_facts import Facts, read_facts
from tests.affected_names import BARE, Names, module_name

__all__ = ["Graph"]

FOLDERS = (".github", "benchmarks", "constraints", "docs", "packaging", "papers", "src", "tests")
"""Where the files lie on which anything can depend; so do those beside these folders."""

FOR_ALL = ("constraints/*", "pyproject.toml", "papers/pyproject.toml", "Makefile")
"""Files on which every test depends, as on tests/conftest.py."""

FOR_DOCS = ("docs/*", "README.md", "mkdocs.yml")
"""Files on which all tests of the documentation depend."""

IMPORTED_FROM = {"src", "papers/src"}
"""Folders whose names are said for the sake of imports, not to read what is in them."""

BY_NAME = (
    "src/credo/core/records.py",
    "src/credo/flows/storage.py",
    "src/credo/streams/checkpoint.py",
    "papers/src/credo_papers/engine/registry.py",
)
"""Files that load what a caller names, so that the modules in their texts do not count: the caller's do."""

LEADING = (".py", ".md", ".credo", ".flow")
"""Files that lead to others: sources, pages with code in them, saved records, which name their classes."""

_HYPHENATED = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)+")
_MODULE = re.compile(r"(credo|credo_papers|tests)(\.[\w*]+)+")
_CLASS = re.compile(rb'"([A-Z]\w{2,})\\?"')
_FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^ *(python -m )?credo ", re.MULTILINE)


class Graph:
    """What depends on what.

    A node is the text of a file (`path`); what a file does (`path#`); a name that a package hands on
    (`path::name`), or what else such a package does (`path::`); all that a folder does (`folder/#`), or its
    texts (`folder/*`).

    Attributes:
        files: all files, from the root.
        sources: those in Python.
        tests: those that pytest collects.
        edges: what each node depends on.
    """

    def __init__(self, root: Path, deleted: Iterable[str] = ()) -> None:
        """Read a checkout; files that were deleted count as empty ones."""
        self.root = root
        self.files = {*_files(root), *deleted}
        self.sources = sorted(path for path in self.files if path.endswith(".py"))
        self.tests = [path for path in self.sources if re.fullmatch(r"tests/(.*/)?test_\w+\.py", path)]
        self.edges = defaultdict[str, set[str]](set)
        self._folders = {str(above) for path in self.files for above in Path(path).parents} - {"."}
        self._data = defaultdict[str, set[str]](set)
        for path in self.files:
            if not path.endswith((".py", ".md", ".pyi")):
                self._data[path.rpartition("/")[2]].add(path)
        self._claimed = set[str]()
        self._experiments = {
            Path(path).stem.replace("_", "-"): f"{path}#"
            for path in self.sources
            if re.fullmatch(r"papers/src/\w+/\w+/[a-z]\w*\.py", path)
        }
        self._facts = self._read()
        self._names = Names(self._facts, _groups(root / "papers" / "pyproject.toml"))
        self._connect()
        self._behind = defaultdict[str, set[str]](set)
        for node, goals in self.edges.items():
            for goal in goals:
                self._behind[goal].add(node)

    def reaching(self, nodes: Iterable[str]) -> set[str]:
        """The nodes themselves, and all that depend on one of them."""
        found = set(nodes)
        waiting = list(found)
        while waiting:
            new = self._behind[waiting.pop()] - found
            found |= new
            waiting += new
        return found

    def affected(self, nodes: Iterable[str]) -> list[str]:
        """The files of tests that depend on one of these nodes."""
        found = self.reaching(nodes)
        return [path for path in self.tests if f"{path}#" in found]

    def _read(self) -> dict[str, Facts]:
        collecting = gc.isenabled()
        gc.disable()  # a tree has many nodes and no circles: reading takes a quarter of the time
        try:
            return {path: self._facts_of(path) for path in self.sources}
        finally:
            if collecting:
                gc.enable()

    def _facts_of(self, path: str) -> Facts:
        name = module_name(path)
        package = name if path.endswith("/__init__.py") else name.rpartition(".")[0]
        try:
            facts = read_facts(self._text(path), package)
        except SyntaxError:  # which pytest will show
            return Facts()
        if f"{path}i" in self.files:
            facts.handed |= read_facts(self._text(f"{path}i"), package).handed
        return facts

    def _text(self, path: str) -> str:
        return self._bytes(path).decode("utf-8")

    def _bytes(self, path: str) -> bytes:
        place = self.root / path
        return place.read_bytes() if place.exists() else b""

    def _connect(self) -> None:
        for path, facts in self._facts.items():
            goals = {path, f"{path}::"} | self._names.used(facts, path)
            goals |= {goal for text, joined in facts.texts for goal in self._said(text, joined, path)}
            if path == "tests/conftest.py":  # what it sets in the package is no reason to run every test
                goals = {goal for goal in goals if goal.startswith("tests/")}
            above = [f"{folder}/conftest.py" for folder in Path(path).parents]
            self.edges[f"{path}#"] |= goals | {f"{file}#" for file in above if file in self.files}
        for node, goals in self._names.extended.items():
            self.edges[node] |= goals
        for path in self.files:
            if path.endswith(LEADING[1:]):
                self.edges[f"{path}#"] |= {path} | (
                    self._page(path) if path.endswith(".md") else self._saved(path)
                )
        for folder in self._folders:
            inside = {path for path in self.files if path.startswith(f"{folder}/")}
            self.edges[f"{folder}/*"] = inside | {f"{path}#" for path in inside if path.endswith(LEADING[1:])}
            self.edges[f"{folder}/#"] = {f"{path}#" for path in inside if path.endswith(".py")}
        for path in set().union(*self._data.values()) - self._claimed:
            for owner in self._owners(path):
                self.edges[f"{owner}#"] |= {path, f"{path}#"}
        for test in self.tests:
            shared = FOR_ALL + (FOR_DOCS if test.startswith("tests/docs/") else ())
            for pattern in shared:
                self.edges[f"{test}#"] |= set(fnmatch.filter(self.files, pattern))

    def _owners(self, path: str) -> list[str]:
        """Whose data a file is that no source names: the modules of its folder, or the tests of its room."""
        if path.startswith("tests/"):
            return [test for test in self.tests if test.startswith(f"{_room(path)}/")]
        folders = (str(folder) for folder in Path(path).parents if path.startswith(BARE))
        homes = (
            [source for source in self.sources if source.rpartition("/")[0] == folder] for folder in folders
        )
        return next((home for home in homes if home), [])

    def _said(self, text: str, joined: bool, path: str) -> set[str]:
        """The nodes behind a text in a source; `joined` where slashes join it."""
        if _MODULE.fullmatch(text):
            return set() if path in BY_NAME else self._names.said(text)
        goals = set[str]()
        if "import " in text and "credo" in text:
            goals |= self._program(text, path)
        if text == "credo" and "subprocess" in self._facts[path].imported:
            goals |= self._names.said("credo.__main__.main")
        if f"benchmarks.{text}" in self._names.modules and self._loads_benchmarks(path):
            goals.add(f"{self._names.modules[f'benchmarks.{text}']}#")
        if not path.startswith("src/") and path not in BY_NAME:
            goals |= self._experiments_said(text)
        if joined or (len(text) < 200 and not re.search(r"\s|://", text)):
            goals |= self._paths_said(text.strip("/").removeprefix("./"), joined, path)
        return goals

    def _program(self, text: str, path: str) -> set[str]:
        """What a program in a text depends on."""
        for code in (text, text.replace("*", "_")):
            try:
                return self._names.used(read_facts(textwrap.dedent(code)), path)
            except SyntaxError:
                continue
        return {node for name in _MODULE.finditer(text) for node in self._names.said(name[0])}

    def _loads_benchmarks(self, path: str) -> bool:
        """Whether a source imports or runs programs of benchmarks, which it names in texts."""
        facts = self._facts[path]
        near = path.startswith("benchmarks/") or any("benchmarks" in text for text, _ in facts.texts)
        return near and not facts.imported.keys().isdisjoint(("importlib", "import_module", "subprocess"))

    def _experiments_said(self, text: str) -> set[str]:
        names = {text, *_HYPHENATED.findall(text)} & self._experiments.keys()
        return {self._experiments[name] for name in names}

    def _paths_said(self, text: str, joined: bool, path: str) -> set[str]:
        """The files and folders that a text names from the root or its own folder, or by their last parts."""
        if not re.search(r"\w\w", text):
            return set()
        long, found = "/" in text, set[str]()
        for place in (text, f"{path.rpartition('/')[0]}/{text}"):
            if "*" in place and "/" in place:
                found |= set(fnmatch.filter(self.files, place))
            elif place in self.files:
                found.add(place)
            elif place in self._folders - IMPORTED_FROM and (joined or long):
                found.add(f"{place}/*")
        inner, last = f"{_room(path)}/", text.rpartition("/")[2]
        for name in fnmatch.filter(self._data, last) if "*" in last else {last} & self._data.keys():
            ends = fnmatch.filter(self._data[name], f"*/{text}")
            found |= {file for file in ends if long or file.startswith(inner)}
        for file in found:
            if file.startswith(inner):
                self._claimed |= {file} | (
                    {*fnmatch.filter(self.files, file)} if file.endswith("/*") else set()
                )
        return found | {f"{file}#" for file in found if file.endswith(LEADING)}

    def _page(self, path: str) -> set[str]:
        """What the code in a page depends on, and the command line where there is a command in it."""
        goals = set[str]()
        for language, code in _FENCE.findall(self._text(path)):
            goals |= self._experiments_said(code)
            if language == "python":
                goals |= self._program(code, path)
            elif _COMMAND.search(code):
                goals |= self._names.said("credo.__main__.main")
        return goals

    def _saved(self, path: str) -> set[str]:
        """The modules of the classes that a file of saved records names."""
        names = {name.decode() for name in _CLASS.findall(self._bytes(path))}
        return {
            f"{home}#" for home in self.sources if home.startswith(BARE) and names & self._facts[home].defined
        }


def _room(path: str) -> str:
    """The folder of a source that owns its data: src/credo/ROOM, tests/ROOM, or the folder of programs."""
    parts = path.split("/")[:-1]
    return "/".join(parts[: {"src": 3, "papers": 4}.get(parts[0] if parts else "", 2)])


def _files(root: Path) -> Iterator[str]:
    for place, folders, names in os.walk(root):
        inner = Path(place).relative_to(root)
        if place == str(root):
            folders[:] = [name for name in folders if name in FOLDERS]
        folders[:] = [name for name in folders if name != "__pycache__"]
        yield from (str(inner / name) for name in names)


def _groups(file: Path) -> dict[str, list[str]]:
    """What is behind the groups of entry points of a distribution."""
    if not file.exists():
        return {}
    groups = tomllib.loads(file.read_text(encoding="utf-8"))["project"].get("entry-points", {})
    return {group: [goal.replace(":", ".") for goal in goals.values()] for group, goals in groups.items()}
