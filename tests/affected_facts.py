"""What a source says of others: what it imports, which names it uses, and which texts are in it.

Nothing is imported; a source is read with `ast`. What only a type checker imports does not count, and neither
do docstrings.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

__all__ = ["COMPUTED", "Facts", "read_facts"]

COMPUTED = "?"
"""Stands for an attribute whose name a program puts together."""


@dataclass
class Facts:
    """What one source says of others.

    Attributes:
        imported: the dotted names behind each name that an import binds.
        dotted: modules that are imported as `import a.b`, which binds `a` only.
        used: the attributes that are taken of each name, as ".adapt.WoLF"; "" is the name itself.
        texts: its texts, each with * for what is put in, and whether slashes join it to a path.
        handed: the dotted name behind each name that others may import from here.
        defined: the names that are made here.
    """

    imported: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    dotted: set[str] = field(default_factory=set)
    used: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    texts: set[tuple[str, bool]] = field(default_factory=set)
    handed: dict[str, str] = field(default_factory=dict)
    defined: set[str] = field(default_factory=set)


def read_facts(code: str, package: str = "") -> Facts:  # noqa: C901 - a case after the other
    """The facts of a source; relative imports begin at its package."""
    facts, tree = Facts(), ast.parse(code)
    aliases: list[tuple[str, str]] = []
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        match node:
            case ast.expr_context():
                pass
            case ast.Name(id=name):
                facts.used[name].add("")
            case ast.Attribute():
                inner, behind = _chain(node)
                if isinstance(inner, ast.Name):
                    facts.used[inner.id].add(behind)
                else:
                    waiting.append(inner)
            case ast.Constant(value=str(text)):
                facts.texts.add((text, False))
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                for line in node.body:
                    facts.handed |= dict(_bindings(line, package))
                waiting += node.orelse
            case ast.Import() | ast.ImportFrom():
                _note_import(node, package, facts)
            case ast.Assign(targets=[ast.Name(id=alias)], value=ast.Name(id=name)):
                aliases.append((alias, name))
            case ast.AnnAssign(target=ast.Name(id=alias), value=ast.Name(id=name)):
                aliases.append((alias, name))
            case ast.Call(func=ast.Name(id="getattr"), args=[owner, name, *rest]):
                attribute = str(name.value) if isinstance(name, ast.Constant) else COMPUTED
                waiting += [ast.Attribute(owner, attribute), name, *rest]
            case ast.BinOp(op=ast.Div()):
                waiting += _note_path(node, facts)
            case ast.JoinedStr():
                facts.texts.add((_pattern(node), False))
                waiting += _put_in(node)
            case ast.Expr(value=ast.Constant()):
                pass  # a docstring
            case _:
                for inside in map(node.__dict__.get, node._fields):
                    if isinstance(inside, list):
                        waiting += [one for one in inside if isinstance(one, ast.AST)]
                    elif isinstance(inside, ast.AST):
                        waiting.append(inside)
    for alias, name in aliases:
        facts.used[name] |= facts.used[alias] or {""}
    facts.defined |= _defined(tree)
    return facts


def _note_import(node: ast.Import | ast.ImportFrom, package: str, facts: Facts) -> None:
    for name, dotted in _bindings(node, package):
        facts.imported[name].add(dotted)
        facts.handed[name] = dotted
    if isinstance(node, ast.Import):
        facts.dotted |= {alias.name for alias in node.names if "." in alias.name and not alias.asname}


def _bindings(node: ast.AST, package: str) -> Iterator[tuple[str, str]]:
    """The names that an import binds, each with the dotted name behind it."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            first = alias.name.partition(".")[0]
            yield (alias.asname, alias.name) if alias.asname else (first, first)
    elif isinstance(node, ast.ImportFrom):
        parts = package.split(".")
        above = parts[: len(parts) - node.level + 1] if node.level else []
        base = ".".join([*above, *([node.module] if node.module else [])])
        for alias in node.names:
            yield alias.asname or alias.name, f"{base}.{alias.name}"


def _chain(node: ast.Attribute) -> tuple[ast.expr, str]:
    """What stands before a chain of attributes, and the chain."""
    inner: ast.expr = node
    behind = ""
    while isinstance(inner, ast.Attribute):
        behind = f".{inner.attr}{behind}"
        inner = inner.value
    return inner, behind


def _note_path(node: ast.BinOp, facts: Facts) -> Iterator[ast.AST]:
    """Note the path that slashes join, as far as it is text; gives what else is in it."""
    parts: list[str] = []
    inner: ast.expr = node
    while isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Div):
        match inner.right:
            case ast.Constant(value=str(text)):
                parts.insert(0, text)
            case ast.JoinedStr() as joined:
                parts.insert(0, _pattern(joined))
                yield from _put_in(joined)
            case other:
                yield other
                parts = ["*", *parts] if parts else []
        inner = inner.left
    if parts:
        facts.texts.add(("/".join(parts).removeprefix("*/"), True))
    yield inner


def _pattern(node: ast.JoinedStr) -> str:
    """The text of an f-string, with * for what is put in."""
    return "".join(str(part.value) if isinstance(part, ast.Constant) else "*" for part in node.values)


def _put_in(node: ast.JoinedStr) -> Iterator[ast.AST]:
    return (part.value for part in node.values if isinstance(part, ast.FormattedValue))


def _defined(tree: ast.Module) -> set[str]:
    """The names that a module makes itself."""
    names = set[str]()
    for line in tree.body:
        match line:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                names.add(name)
            case ast.Assign(targets=targets):
                names |= {target.id for target in targets if isinstance(target, ast.Name)}
            case ast.AnnAssign(target=ast.Name(id=name)):
                names.add(name)
            case _:
                pass
    return names
