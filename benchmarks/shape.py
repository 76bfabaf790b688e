"""How large the code is, how dense, and how far a row walks through it: what the design is judged by.

    python benchmarks/shape.py             # the counts of src/credo
    python benchmarks/shape.py --walks     # and the calls of a row, a decision and an HTTP row
    python benchmarks/shape.py --strings   # and where a string is spelled as a class of a higher room

Tokens are those of `tokenize` without comments, docstrings and the ends of lines; a line of code has at least
one of them. A call is one of a Python function of credo, and a walk is counted when everything is compiled.
A return is a call in a file that the walk had left for another file before.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import sys
import tempfile
import threading
import tokenize
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "credo"

SILENT = frozenset(
    (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
)
"""Tokens that are no code."""


class Text(NamedTuple):
    """A file of the sources: its name from the package on, its text and its tree."""

    name: str
    text: str
    tree: ast.Module


class Size(NamedTuple):
    """What a file has of each thing."""

    tokens: int
    lines: int
    characters: int
    comments: int


class Walk(NamedTuple):
    """How many calls a walk made, in how many files, and how often it came back to a file."""

    calls: int
    files: int
    returns: int


def sources(folder: Path) -> list[Text]:
    """All files below a folder."""
    found = []
    for path in sorted(folder.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        found.append(Text(str(path.relative_to(folder.parent)), text, ast.parse(text)))
    return found


def docstring_lines(tree: ast.Module) -> set[int]:
    """The lines on which a string stands by itself: docstrings, and the words below a constant."""
    lines: set[int] = set()
    for node in ast.walk(tree):
        value = node.value if isinstance(node, ast.Expr) else None
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            lines.update(range(value.lineno, (value.end_lineno or value.lineno) + 1))
    return lines


def size_of(file: Text) -> Size:
    """The tokens, lines of code, characters on them, and comments of a file."""
    silent_lines = docstring_lines(file.tree)
    code_lines: set[int] = set()
    tokens = comments = 0
    for token in tokenize.generate_tokens(io.StringIO(file.text).readline):
        comments += token.type == tokenize.COMMENT
        docstring = token.type == tokenize.STRING and token.start[0] in silent_lines
        if token.type in SILENT or docstring:
            continue
        tokens += 1
        code_lines.update(range(token.start[0], token.end[0] + 1))
    lines = file.text.splitlines()
    characters = sum(len(lines[number - 1].strip()) for number in code_lines)
    return Size(tokens, len(code_lines), characters, comments)


def parallel_assignments(tree: ast.Module) -> int:
    """How many statements assign several values that are written out: a, b = x, y."""
    return sum(
        isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Tuple)
        and isinstance(node.value, ast.Tuple)
        for node in ast.walk(tree)
    )


def spread_tuples(tree: ast.Module) -> int:
    """How many calls spread a tuple of more than two values that is written out."""
    return sum(
        isinstance(part, ast.Starred) and isinstance(part.value, ast.Tuple) and len(part.value.elts) > 2
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        for part in node.args
    )


def count(tree: ast.Module, kind: type[ast.AST]) -> int:
    """How many nodes of a kind a tree has."""
    return sum(isinstance(node, kind) for node in ast.walk(tree))


def imported(file: Text, names: set[str]) -> Iterator[str]:
    """The modules of the package that a file imports anywhere."""
    for node in ast.walk(file.tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            modules = [name for name in inner if name in names]
            if len(modules) < len(inner) and node.module in names:
                modules.append(node.module)
            yield from modules


def with_one_importer(files: list[Text]) -> tuple[int, int]:
    """How many modules one other module imports and nobody else, and how many modules there are.

    A package's `__init__`, which passes names on, counts neither as a module nor as an importer.
    """
    modules = {
        file.name.removesuffix(".py").replace("/", "."): file
        for file in files
        if not file.name.endswith("__init__.py")
    }
    importers: dict[str, set[str]] = {name: set() for name in modules}
    for name, file in modules.items():
        for other in imported(file, set(modules)):
            importers[other].add(name)
    return sum(len(who) == 1 for who in importers.values()), len(modules)


def lower_rooms(layers: Path) -> list[str]:
    """The rooms from the highest to the lowest, by the floors that `make floors` checks."""
    text = layers.read_text(encoding="utf-8")
    rooms = re.findall(r"credo\.(\w+)", text)
    return list(dict.fromkeys(rooms))


def own_names(tree: ast.Module) -> set[str]:
    """The names that a file binds at its top: classes, constants, and variables of types."""
    names: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            names.add(node.name)
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        names.update(target.id for target in targets if isinstance(target, ast.Name))
    return names


FINDERS = frozenset(("attrgetter", "cast", "find_record", "getattr", "hasattr", "setattr"))
"""Functions that find something by the name that is passed to them."""

NAMING = frozenset(("__name__", "__qualname__", "record_name"))
"""Names of what says the name of a class."""

TABLES = frozenset(("REGISTRY", "__dict__", "globals", "vars"))
"""Names of tables that have classes by their names."""

CONTAINERS = frozenset(("dict", "frozenset", "list", "set", "tuple"))
HOLDERS = (ast.Tuple, ast.List, ast.Set, ast.Dict, ast.Starred, ast.BinOp, ast.IfExp)
"""Functions and expressions that hold names for others, which do something with them."""


def mentioned(node: ast.AST) -> set[str]:
    """The names and attributes in an expression."""
    found = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
    return found | {one.attr for one in ast.walk(node) if isinstance(one, ast.Attribute)}


def asked_tables(tree: ast.Module) -> set[str]:
    """The names of containers that a file asks by the name of a class."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare | ast.Subscript | ast.Call):
            words = mentioned(node)
            if words & NAMING:
                found |= words
    return found


def annotated(tree: ast.Module) -> set[int]:
    """The nodes of all annotations, by their identity."""
    found: set[int] = set()
    for node in ast.walk(tree):
        for part in (getattr(node, "annotation", None), getattr(node, "returns", None)):
            if isinstance(part, ast.AST):
                found.update(id(one) for one in ast.walk(part))
    return found


def type_names(tree: ast.Module) -> set[int]:
    """The strings of a file that name a class, by the identity of their nodes.

    They are annotations, and what is passed to a function that finds by name, is the key of a table of
    classes, or is compared with the name of a class: by itself, or in a container that is bound to a name.

    A folder of the system, a column of a file and a word of a message may be spelled as a class is. They are
    in none of these places.
    """
    tables = asked_tables(tree)
    parents = {id(child): node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    found = annotated(tree)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
            continue
        outer = parents[id(node)]
        while isinstance(outer, HOLDERS) or (isinstance(outer, ast.Call) and called(outer) in CONTAINERS):
            outer = parents[id(outer)]
        if isinstance(outer, ast.Call):
            named = called(outer) in FINDERS or bool(mentioned(outer.func) & TABLES)
        elif isinstance(outer, ast.Subscript):
            named = bool(mentioned(outer.value) & (TABLES | tables))
        elif isinstance(outer, ast.Compare):
            named = bool(mentioned(outer) & (NAMING | TABLES))
        elif isinstance(outer, ast.MatchValue | ast.match_case):
            named = True
        elif isinstance(outer, ast.Assign):
            named = bool({word for target in outer.targets for word in mentioned(target)} & tables)
        elif isinstance(outer, ast.AnnAssign):
            named = bool(mentioned(outer.target) & tables)
        else:
            named = False
        if named:
            found.add(id(node))
    return found


def called(call: ast.Call) -> str:
    """The name of the function that is called, without what it belongs to."""
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return getattr(call.func, "id", "")


class HigherClass(NamedTuple):
    """A string that is spelled as a class of a higher room, and whether it names it."""

    place: str
    text: str
    names_it: bool


def classes_as_strings(files: list[Text]) -> list[HigherClass]:
    """The strings of each room that are spelled as classes which only higher rooms have."""
    order = lower_rooms(ROOT / "pyproject.toml")
    height = {room: -place for place, room in enumerate(order)}
    homes: dict[str, set[str]] = {}
    for file in files:
        room = file.name.split("/")[1].removesuffix(".py")
        for node in ast.walk(file.tree):
            if isinstance(node, ast.ClassDef):
                homes.setdefault(node.name, set()).add(room)
    found = []
    for file in files:
        room = file.name.split("/")[1].removesuffix(".py")
        silent = docstring_lines(file.tree)
        own = own_names(file.tree)
        naming = type_names(file.tree)
        for node in ast.walk(file.tree):
            if not isinstance(node, ast.Constant) or node.lineno in silent:
                continue
            text = node.value
            if not isinstance(text, str) or text not in homes or text in own:
                continue
            if room in height and all(height.get(home, 0) > height[room] for home in homes[text]):
                found.append(HigherClass(f"{file.name}:{node.lineno}", text, id(node) in naming))
    return found


class Recorder:
    """Notes the calls of credo's functions while it is asked to, in threads that begin after `install`."""

    def __init__(self) -> None:
        self.files: list[str] = []
        self.active = False
        self._prefix = str(SOURCE)

    def install(self) -> None:
        """See this thread and all that begin later."""
        threading.setprofile(self.note)
        sys.setprofile(self.note)

    def note(self, frame: FrameType, event: str, argument: object) -> None:
        """What Python calls at each event of a function."""
        file = frame.f_code.co_filename
        if self.active and event == "call" and file.startswith(self._prefix):
            self.files.append(file)

    def walk(self, call: Callable[[], object]) -> Walk:
        """The calls that a call leads to."""
        self.files = []
        self.active = True
        try:
            call()
        finally:
            self.active = False
        left: set[str] = set()
        returns = 0
        before = ""
        for here in self.files:
            if here != before:
                returns += here in left
                left.add(before)
            before = here
        return Walk(len(self.files), len(set(self.files)), returns)


RECORDER = Recorder()
walk = RECORDER.walk


def learner_step() -> Walk:
    """A step of a learner with a full covariance."""
    import jax.numpy as jnp

    import credo

    learner = credo.bong(credo.Model(credo.Linear(), credo.Normal(0.1)), credo.Full())
    belief = learner.init(credo.Linear().init(0, (3,)))
    belief, _ = learner.step(belief, jnp.ones(3), 1.0)
    return walk(lambda: learner.step(belief, jnp.ones(3), 1.0))


def session_row(model: str) -> Walk:
    """One row of a session, which has learned 40."""
    import numpy as np

    from credo.sessions import Session

    rng = np.random.default_rng(0)
    rows = [{"a": a, "b": -a, "y": 2 * a} for a in rng.normal(size=45).tolist()]
    session = Session.from_rows(rows[:40], "y", model=model)
    session.learn(rows[:40])
    for row in rows[40:44]:
        session.learn([row])
    return walk(lambda: session.learn([rows[44]]))


def bandit_calls() -> tuple[Walk, Walk]:
    """A decision and a reward of a bandit by name."""
    from credo import bandits

    bandit = bandits.Bandit(bandits.default_agent(3, 4), ["a", "b", "c"])
    context = {"age": 3.0, "city": "Oslo"}
    for _ in range(12):
        bandit.reward(bandit.decide(context).id, 1.0)
    chosen: list[Any] = []
    deciding = walk(lambda: chosen.append(bandit.decide(context)))
    rewarding = walk(lambda: bandit.reward(chosen[0].id, 1.0))
    return deciding, rewarding


def http_row() -> Walk:
    """A row that a linear model behind HTTP learns, in all threads of the service."""
    from litestar.testing import TestClient

    from credo.serve.app import build_app
    from credo.serve.service import Service

    with tempfile.TemporaryDirectory() as folder:
        service = Service(Path(folder), None)
        with TestClient(build_app(service, None), base_url="http://127.0.0.1") as client:
            spec = {"target": "y", "columns": {"a": "number"}, "options": {"model": "linear"}}
            client.put("/v1/models/m", json=spec).raise_for_status()
            while client.get("/v1/models/m/ready").status_code != 200:
                pass
            for number in range(20):
                row = {"id": str(number), "x": {"a": float(number)}, "y": 2.0 * number}
                client.post("/v1/models/m/learn", json=row).raise_for_status()
            last = {"id": "last", "x": {"a": 1.5}, "y": 3.0}
            return walk(lambda: client.post("/v1/models/m/learn", json=last).raise_for_status())


def count_named(tree: ast.Module, name: str) -> int:
    """How many classes of a name a file has."""
    return sum(isinstance(node, ast.ClassDef) and node.name == name for node in ast.walk(tree))


def print_sizes(files: list[Text]) -> None:
    """The table of counts."""
    sizes = [size_of(file) for file in files]
    tokens = sum(size.tokens for size in sizes)
    lines = sum(size.lines for size in sizes)
    alone, modules = with_one_importer(files)
    assigned = sum(count(file.tree, ast.Assign) for file in files)
    parallel = sum(parallel_assignments(file.tree) for file in files)
    rows = {
        "tokens": f"{tokens:,}",
        "files": f"{len(files):,}",
        "lines of code": f"{lines:,}",
        "characters a line of code": f"{sum(size.characters for size in sizes) / lines:.1f}",
        "comments a hundred lines": f"{100 * sum(size.comments for size in sizes) / lines:.1f}",
        "parallel assignments in a hundred": f"{100 * parallel / assigned:.1f}",
        "conditional expressions a thousand lines": (
            f"{1000 * sum(count(file.tree, ast.IfExp) for file in files) / lines:.1f}"
        ),
        "spread tuples of more than two": f"{sum(spread_tuples(file.tree) for file in files)}",
        "modules with one importer": f"{alone} of {modules} ({alone / modules:.0%})",
        "classes named `Form`": f"{sum(count_named(file.tree, 'Form') for file in files)}",
        "classes of a higher room in a string": f"{sum(one.names_it for one in classes_as_strings(files))}",
    }
    for name, value in rows.items():
        print(f"{name:<44} {value}")


def print_walks() -> None:
    """The table of walks."""
    RECORDER.install()
    deciding, rewarding = bandit_calls()
    walks = {
        "learner.step, bong, Full": learner_step(),
        "Session.learn, bank, one row": session_row("bank"),
        "Session.learn, linear, one row": session_row("linear"),
        "Bandit.decide": deciding,
        "Bandit.reward": rewarding,
        "an HTTP row, linear": http_row(),
    }
    print(f"\n{'walk':<44} calls  files  returns")
    for name, one in walks.items():
        print(f"{name:<44} {one.calls:>5}  {one.files:>5}  {one.returns:>7}")


def main() -> None:
    """Read the command line, count and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--folder", type=Path, default=SOURCE, help="the package that is counted")
    parser.add_argument("--walks", action="store_true", help="count the calls of a row, too")
    parser.add_argument("--strings", action="store_true", help="show where classes of higher rooms are named")
    options = parser.parse_args()
    files = sources(options.folder)
    print_sizes(files)
    if options.strings:
        for one in classes_as_strings(files):
            what = "names the class" if one.names_it else "a word that is spelled as a class"
            print(f"{one.place}: {one.text} ({what})")
    if options.walks:
        print_walks()


if __name__ == "__main__":
    main()
