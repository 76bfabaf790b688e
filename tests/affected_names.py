"""Where the names lead that a source uses: through the packages that hand them on, to where they are made."""

from __future__ import annotations

import fnmatch
from collections import defaultdict
from collections.abc import Iterator, Mapping

from tests.affected_facts import COMPUTED, Facts

__all__ = ["Names", "module_name"]

BARE = ("src/", "papers/src/")
"""Folders whose modules are called without the folder."""

PROGRAMS = ("benchmarks", "packaging")
"""Folders of programs, which import each other by their bare names."""

LISTS = {("papers/src/credo_papers/engine/registry.py", "names"): "papers/src/credo_papers"}
"""Functions that list all that can be loaded by name: who calls one depends on the whole folder."""


def module_name(path: str) -> str:
    """The dotted name of a source, by which others import it."""
    for folder in BARE:
        path = path.removeprefix(folder)
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


class Names:
    """The names of modules and of what is in them. Nodes are those of `affected_graph.Graph`.

    Attributes:
        modules: the file of each module.
        extended: the nodes of functions that other files extend by `register`, with the nodes of these.
    """

    def __init__(self, facts: Mapping[str, Facts], groups: Mapping[str, list[str]]) -> None:
        """Know the sources by their paths, and what is behind groups of entry points."""
        self.modules = {module_name(path): path for path in facts}
        self.extended = defaultdict[str, set[str]](set)
        self._facts, self._groups = facts, groups
        self._places = {place for name in self.modules for place in _heads(name)}

    def used(self, facts: Facts, path: str) -> set[str]:
        """The nodes behind the names that a source uses, or a program in a text of it."""
        goals = set[str]()
        for name, dotteds in facts.imported.items():
            for dotted in dotteds:
                goals |= self._imported(self._full(dotted, path), facts.used[name], facts, path)
        for dotted in facts.dotted:
            nodes, package = self._follow(dotted)
            first, _, rest = dotted.partition(".")
            named = any(f"{behind}.".startswith(f".{rest}.") for behind in facts.used[first])
            goals |= {self._whole(package)} if package and not named else nodes
        return goals

    def said(self, text: str) -> set[str]:
        """The nodes behind the name of a module, of something in one, or of a group of entry points."""
        if text in self._groups:
            return {node for goal in self._groups[text] for node in self.said(goal)}
        if "*" in text:
            return {f"{self.modules[name]}#" for name in fnmatch.filter(self.modules, text)}
        nodes, package = self._follow(text, sure=False)
        return nodes | ({f"{self.modules[package]}#"} if package else set())

    def _imported(self, dotted: str, used: set[str], facts: Facts, path: str) -> set[str]:
        """The nodes behind one imported name, of which these attributes are used."""
        nodes, package = self._follow(dotted)
        goals = set(nodes)
        if package:
            goals |= {node for behind in used for node in self._attribute(f"{package}{behind}", facts)}
        for (source, function), folder in LISTS.items():
            if used and dotted.endswith(f".{function}") and f"{source}#" in nodes:
                goals.add(f"{folder}/#")
        if ".register" in used:
            for node in nodes:
                if node.endswith("#"):
                    self.extended[node].add(f"{path}#")
        return goals

    def _full(self, dotted: str, path: str) -> str:
        """The name of a module with its folder, where programs and their tests import it without."""
        for folder in PROGRAMS:
            if (
                path.startswith((f"{folder}/", "tests/"))
                and f"{folder}.{dotted.split('.')[0]}" in self.modules
            ):
                return f"{folder}.{dotted}"
        return dotted

    def _attribute(self, dotted: str, facts: Facts) -> set[str]:
        """The nodes behind an attribute of a package; a computed one has a name that is among the texts."""
        before, _, last = dotted.rpartition(".")
        if last == COMPUTED:
            package = self._follow(before)[1]
            handed = self._facts[self.modules[package]].handed if package else {}
            names = {text for text, _ in facts.texts} & handed.keys()
            if names:
                return {node for name in names for node in self._attribute(f"{before}.{name}", facts)}
        nodes, package = self._follow(dotted)
        return nodes | ({self._whole(package)} if package else set())

    def _whole(self, package: str) -> str:
        return f"{self.modules[package].rpartition('/')[0]}/#"

    def _follow(self, dotted: str, sure: bool = True, depth: int = 0) -> tuple[set[str], str]:
        """The nodes behind a dotted name, and the package where it ends, if it ends at one.

        Without `sure` it may be no name at all: one that its package does not have leads nowhere.
        """
        place, *parts = dotted.split(".")
        nodes = set[str]()
        while place in self._places:
            path = self.modules.get(place, "")
            if path and not path.endswith("/__init__.py"):
                return nodes | {f"{path}#"}, ""
            if not parts:
                return nodes, place if path else ""
            name, *parts = parts
            inner = f"{place}.{name}"
            if path:
                nodes |= {f"{path}::", f"{path}::{name}"}
                facts = self._facts[path]
                goal = facts.handed.get(name, inner)
                if goal != inner and goal.split(".")[0] in self._places and depth < 20:
                    more, package = self._follow(".".join([goal, *parts]), sure, depth + 1)
                    module = {f"{self.modules[inner]}#"} if inner in self.modules else set()
                    return nodes | more | module, package
                if name == "__all__":
                    return nodes | {path}, ""
                if inner not in self._places and not name.startswith("__"):
                    if name in facts.defined:
                        return nodes | {f"{path}#"}, ""
                    return (nodes | {self._whole(place)}, "") if sure else (set(), "")
            place = inner
        return nodes, ""


def _heads(name: str) -> Iterator[str]:
    """A dotted name and those that it begins with."""
    while name:
        yield name
        name = name.rpartition(".")[0]
