"""Small changes of the package's source, each of which some test ought to notice.

A mutation is one change of one expression or statement: `+` for `-`, `*` for `/`, `<` for `<=`, `==` for
`!=`, `and` for `or`, `&` for `|`, a sign or a `not` left out, True for False, a number one larger, two
arguments swapped, one branch of a `where` taken always, a check or an early return left out. Docstrings,
annotations, messages of errors, constants of the module and representations are left alone.
"""

from __future__ import annotations

import ast
import copy
import random
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Mutation", "choose", "mutations"]

LEAST = 2
"""How many mutations every room has before the larger rooms have more."""

PAIRS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
}
"""What an operator is exchanged for."""

SILENT = ("__repr__", "__str__", "_show", "_brief", "_spell", "suggest")
"""Functions that write words only."""

LARGEST = 100
"""Whole numbers from here on are sizes of blocks and the like, where one more changes nothing."""


@dataclass(frozen=True)
class Mutation:
    """One change of one file.

    Attributes:
        path: the file, from the folder of the package.
        line, column: where the change begins.
        kind: what is changed, in words.
        start, stop: the bytes of the source that are replaced.
        new: what stands there instead.
    """

    path: str
    line: int
    column: int
    kind: str
    start: int
    stop: int
    new: str

    @property
    def name(self) -> str:
        """A name that stays the same while the file does."""
        return f"{self.path}:{self.line}:{self.column}: {self.kind}"

    def apply(self, source: bytes) -> bytes:
        """The source with the change."""
        return source[: self.start] + self.new.encode() + source[self.stop :]


def mutations(root: Path) -> list[Mutation]:
    """All mutations of the package in a folder, in the order of its files."""
    files = sorted(path for path in root.rglob("*.py") if path.name != "__init__.py")
    return [mutation for path in files for mutation in _in_file(path, str(path.relative_to(root)))]


def choose(root: Path, count: int, seed: int, rooms: Collection[str] = ()) -> list[Mutation]:
    """A random choice of mutations, spread over the rooms by their lines of code.

    It is the same for the same seed, and the beginning of every longer choice.

    Arguments:
        root: the folder of the package.
        count: how many.
        seed: the seed of the choice.
        rooms: the rooms to choose from; all by default.
    """
    waiting: dict[str, list[Mutation]] = {}
    for mutation in sorted(mutations(root), key=lambda one: random.Random(f"{seed}:{one.name}").random()):
        room = mutation.path.split("/")[0]
        if "/" in mutation.path and (not rooms or room in rooms):
            waiting.setdefault(room, []).append(mutation)
    lines = {room: _lines(root / room) for room in waiting}
    taken = dict.fromkeys(waiting, 0)
    chosen: list[Mutation] = []
    places: set[tuple[str, int]] = set()
    while len(chosen) < count and any(waiting.values()):
        open_rooms = [room for room in waiting if waiting[room]]
        room = max(open_rooms, key=lambda one: (-min(taken[one], LEAST), lines[one] / (taken[one] + 1)))
        mutation = waiting[room].pop()
        if (mutation.path, mutation.line) not in places:
            places.add((mutation.path, mutation.line))
            taken[room] += 1
            chosen.append(mutation)
    return chosen


def _lines(folder: Path) -> int:
    return sum(path.read_bytes().count(b"\n") for path in folder.rglob("*.py"))


def _in_file(path: Path, name: str) -> Iterator[Mutation]:
    source = path.read_bytes()
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for node, kind, new in _changes(ast.parse(source)):
        assert node.end_lineno is not None and node.end_col_offset is not None
        start = starts[node.lineno - 1] + node.col_offset
        stop = starts[node.end_lineno - 1] + node.end_col_offset
        yield Mutation(name, node.lineno, node.col_offset, kind, start, stop, new)


Place = ast.expr | ast.stmt
"""What can be replaced."""


def _changes(tree: ast.Module) -> Iterator[tuple[Place, str, str]]:
    """The places of a file that can be changed: the node, what is changed, and the new source."""
    for node in _numeric(tree):
        if isinstance(node, ast.expr):
            for kind, new in _of_expression(node):
                yield node, kind, f"({ast.unparse(new)})"
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            yield node, "a call left out", "pass"
        elif isinstance(node, ast.If) and not node.orelse and isinstance(node.body[-1], ast.Return):
            yield node.test, "an early return left out", "False"


def _numeric(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes that compute something, without words, types and declarations."""
    if isinstance(node, ast.Raise | ast.Assert | ast.JoinedStr | ast.Import | ast.ImportFrom):
        return
    if isinstance(node, ast.FunctionDef) and node.name in SILENT:
        return
    if isinstance(node, ast.Assign | ast.AnnAssign) and node.col_offset == 0:
        return  # a constant of the module, or a type
    if isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "__name__ == '__main__'"):
        return
    if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1].startswith(
        ("static_field", "TypeVar", "isinstance", "CredoError", "suggest")
    ):
        return
    yield node
    skipped = {"annotation", "returns", "decorator_list", "type_comment", "bases"}
    for field, value in ast.iter_fields(node):
        if field not in skipped:
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from _numeric(child)


def _of_expression(node: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """What an expression can be changed into, in words and as a tree."""
    if isinstance(node, ast.BinOp | ast.BoolOp) and type(node.op) in PAIRS:
        if not (isinstance(node, ast.BinOp) and _words(node)):
            yield _exchange(node, "op", node.op)
    elif isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in PAIRS:
        kind, _ = _exchange(node, "op", node.ops[0])
        yield kind, _with(node, lambda new: setattr(new, "ops", [PAIRS[type(node.ops[0])]()]))
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not | ast.Invert):
        if not isinstance(node.operand, ast.Constant):
            yield f"{type(node.op).__name__} left out", node.operand
    elif isinstance(node, ast.Constant):
        if isinstance(node.value, bool):
            yield f"{node.value} to {not node.value}", ast.Constant(not node.value)
        elif isinstance(node.value, int | float) and abs(node.value) < LARGEST:
            yield f"{node.value} to {node.value + 1}", ast.Constant(node.value + 1)
    elif isinstance(node, ast.Call):
        yield from _of_call(node)


def _of_call(node: ast.Call) -> Iterator[tuple[str, ast.expr]]:
    args = node.args
    if any(isinstance(arg, ast.Starred) for arg in args):
        return
    if ast.unparse(node.func).endswith(".where") and len(args) == 3:
        yield "where: always the first", args[1]
        yield "where: always the second", args[2]
    elif len(args) >= 2 and ast.dump(args[0]) != ast.dump(args[1]) and not isinstance(args[0], ast.Constant):
        yield (
            "two arguments swapped",
            _with(node, lambda new: setattr(new, "args", [args[1], args[0], *args[2:]])),
        )


def _exchange(node: ast.expr, field: str, op: ast.AST) -> tuple[str, ast.expr]:
    other = PAIRS[type(op)]
    return f"{type(op).__name__} to {other.__name__}", _with(node, lambda new: setattr(new, field, other()))


def _with(node: ast.expr, change: Callable[[ast.expr], None]) -> ast.expr:
    new = copy.copy(node)
    change(new)
    return new


def _words(node: ast.BinOp) -> bool:
    """Whether an operand is text, so that + joins."""
    return any(
        isinstance(side, ast.JoinedStr) or (isinstance(side, ast.Constant) and isinstance(side.value, str))
        for side in (node.left, node.right)
    )
