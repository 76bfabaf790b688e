"""credo: online Bayesian learning and sequential decision making.

See one observation, predict the next with honest uncertainty, learn from it in constant time and memory.

    learner = model of the data x dynamics of the parameters x belief family x update rule

Everything is reached from here (`credo.bong`, `credo.Model`, `credo.Normal`, ...). Names load when they are
first used, so `import credo` is quick. They are listed once, with their rooms, in the stub beside this file
(`__init__.pyi`), which gives them their types in editors and type checkers.
"""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

__version__ = "0.1.0"


def _listed() -> dict[str, str]:
    """The room of every name that the stub lists; "credo" is that of the rooms themselves."""
    stub = ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    lines = [line for line in stub.body if isinstance(line, ast.ImportFrom)]
    return {alias.name: line.module for line in lines if line.module for alias in line.names}


_ROOM_OF = _listed()

__all__ = sorted([*_ROOM_OF, "__version__"])


def __getattr__(name: str) -> object:
    room = _ROOM_OF.get(name)
    if room is None:
        raise AttributeError(f"module 'credo' has no attribute {name!r}")
    value = importlib.import_module(f"credo.{name}") if room == "credo" else None
    globals()[name] = getattr(importlib.import_module(room), name) if value is None else value
    return globals()[name]


def __dir__() -> list[str]:
    return __all__
