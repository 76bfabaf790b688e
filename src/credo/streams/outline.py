"""Comparing the structure of a saved learner with that of another: records, sizes and names, not numbers."""

from __future__ import annotations

import dataclasses
from typing import NoReturn

from credo.core.errors import FormatError
from credo.core.records import REGISTRY
from credo.streams.codec import Json

__all__ = ["require_same"]


def require_same(saved: Json, other: Json, path: str, file: str, static: bool = False) -> None:
    """Refuse a learner whose structure differs from the saved one's, and name the innermost place."""
    if _outline(saved, static) == _outline(other, static):
        return
    if not isinstance(saved, dict) or not isinstance(other, dict):
        _refuse(saved, other, path, file)
    name, fields, others = saved.get("record"), saved.get("fields"), other.get("fields")
    if name == other.get("record") and isinstance(fields, dict) and isinstance(others, dict):
        fixed = _static_fields(name)
        for field, child in fields.items():
            require_same(child, others.get(field), f"{path}.{field}", file, field in fixed)
    _refuse(saved, other, path, file)


def _refuse(saved: Json, other: Json, path: str, file: str) -> NoReturn:
    raise FormatError(
        f"{file} was saved by another model: {path} is {_spell(saved)} there and {_spell(other)} here."
    )


def _outline(code: Json, static: bool = False) -> Json:
    """The structure alone, in which numbers that are leaves of the tree, not `static`, count as equal."""
    if isinstance(code, list):
        return [_outline(child, static) for child in code]
    if not isinstance(code, dict):
        return "number" if isinstance(code, int) and not isinstance(code, bool) and not static else code
    if "float" in code or "array" in code:
        return "number"
    fields = code.get("fields")
    if "record" in code and isinstance(fields, dict):
        fixed = _static_fields(code["record"])
        outlines = {name: _outline(child, name in fixed) for name, child in fields.items()}
        return {"record": code["record"]} | outlines
    return {name: _outline(child, static) for name, child in code.items() if name != "function"}


def _static_fields(record: Json) -> set[str]:
    cls = REGISTRY.get(record) if isinstance(record, str) else None
    if cls is None or not dataclasses.is_dataclass(cls):
        return set()
    return {f.name for f in dataclasses.fields(cls) if f.metadata.get("static")}


def _spell(code: Json) -> str:
    if isinstance(code, dict):
        return str(code.get("record") or code.get("function") or next(iter(code)))
    return repr(code)
