"""For the reference pages: records are dataclasses, and doctests are examples.

The pages are made without importing credo. `record` is a decorator of our own, so the constructor that it
gives a class is spelled out here; and doctests, in an `Example:` section or bare, are told to the parser.
"""

from __future__ import annotations

from typing import Any

import griffe


class Records(griffe.Extension):
    """Give every `@record` class its constructor, and every doctest its section."""

    def on_package(self, *, pkg: griffe.Module, **kwargs: Any) -> None:
        """Visit everything, once all modules are loaded."""
        self._visit(pkg)

    def _visit(self, parent: griffe.Module | griffe.Class) -> None:
        for member in list(parent.members.values()):
            if member.is_alias:
                continue
            if isinstance(member, griffe.Class) and _is_record(member) and "__init__" not in member.members:
                member.set_member("__init__", _constructor(member))
            if isinstance(member, griffe.Module | griffe.Class):
                self._visit(member)
            if member.docstring is not None:
                member.docstring.value = with_examples(member.docstring.value)
        if parent.docstring is not None and isinstance(parent, griffe.Module):
            parent.docstring.value = with_examples(parent.docstring.value)


def _is_record(cls: griffe.Class) -> bool:
    return any(str(decorator.value) in ("record", "credo.record") for decorator in cls.decorators)


def _constructor(cls: griffe.Class) -> griffe.Function:
    parameters = [griffe.Parameter("self", kind=griffe.ParameterKind.positional_or_keyword)]
    for field in cls.members.values():
        if (
            isinstance(field, griffe.Attribute)
            and field.annotation is not None
            and "property" not in field.labels
        ):
            if field.name in _inherited_constants(cls):
                continue
            kind = griffe.ParameterKind.positional_or_keyword
            parameters.append(
                griffe.Parameter(field.name, annotation=field.annotation, kind=kind, default=_default(field))
            )
    return griffe.Function("__init__", parameters=griffe.Parameters(*parameters), parent=cls, returns="None")


def _inherited_constants(cls: griffe.Class) -> set[str]:
    return {"linear", "anchored"} & set(cls.members)


def _default(field: griffe.Attribute) -> Any:
    """The default: the value itself, or that of a declaration; None where there is none."""
    value = field.value
    if isinstance(value, griffe.ExprCall) and str(value.function) in ("field", "static_field"):
        for argument in value.arguments:
            if isinstance(argument, griffe.ExprKeyword) and argument.name == "default":
                return argument.value
        return None
    return value


def with_examples(text: str) -> str:
    """The docstring with every run of doctest lines inside an `Examples:` section."""
    result: list[str] = []
    inside = False
    for line in text.splitlines():
        if line.rstrip() == "Example:":
            line = "Examples:"
        if line.startswith(">>>") and not inside:
            result += ["", "Examples:"]
            inside = True
        if inside and not line.strip():
            inside = False
        result.append(f"    {line}" if inside else line)
    return "\n".join(result)
