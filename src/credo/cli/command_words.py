"""Words of a command line: the help of a command, and the hyphen that stands for standard input."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import TypeVar

__all__ = ["STREAM", "flowing", "source_of"]

Command = TypeVar("Command", bound=Callable[..., int])

STREAM = "<->"
"""What a lone hyphen is replaced by, which the parser would take for an option."""


def source_of(word: str) -> str:
    """The word as the user wrote it."""
    return "-" if word == STREAM else word


def flowing(command: Command) -> Command:
    """Join the lines of each paragraph of a command's help, which is then wrapped to the terminal."""
    text, _, rest = inspect.cleandoc(command.__doc__ or "").partition("\nParameters\n")
    paragraphs = [" ".join(part.split()) for part in text.split("\n\n")]
    rest = re.sub(r"\n {4}(\S.*(?:\n {4,}\S.*)+)", lambda lines: "\n    " + " ".join(lines[1].split()), rest)
    command.__doc__ = "\n\n".join([*paragraphs, f"Parameters\n{rest}"])
    return command
