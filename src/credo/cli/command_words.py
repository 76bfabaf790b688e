"""The shared parts of commands: help, the hyphen for standard input, and Ctrl-C while modules are imported.

Nothing was begun then, so the program ends at once; an exception may come up in a callback of the import
system, which ignores it.
"""

from __future__ import annotations

import contextlib
import inspect
import os
import re
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import TypeVar

from credo.core.errors import CredoError
from credo.core.extensions import extra

__all__ = ["STREAM", "flowing", "model_of_service", "source_of", "starting"]

Command = TypeVar("Command", bound=Callable[..., int])

STREAM = "<->"
"""The stand-in for a lone hyphen, which the parser would take for an option."""


def source_of(word: str) -> str:
    """The word as the user wrote it."""
    if word == STREAM:
        return "-"
    return word


def model_of_service(source: str) -> tuple[Path, str] | None:
    """The folder of a service and its model, if FOLDER/MODEL is such a source; a CredoError if the packages
    that read a journal are not installed.
    """
    path = Path(source)
    if source == "-" or "://" in source or path.exists() or not (path.parent / "journal.db").is_file():
        return None
    try:
        import credo.serve.journal_source  # noqa: F401
    except ImportError as error:
        raise CredoError(f"the journal of a service needs {error.name}: {extra('serve')}.") from None
    return path.parent, path.name


def flowing(command: Command) -> Command:
    """Join the lines of each paragraph of a command's help, which is then wrapped to the terminal."""
    text, _, rest = inspect.cleandoc(command.__doc__ or "").partition("\nParameters\n")
    paragraphs = [" ".join(part.split()) for part in text.split("\n\n")]
    rest = re.sub(r"\n {4}(\S.*(?:\n {4,}\S.*)+)", lambda lines: "\n    " + " ".join(lines[1].split()), rest)
    command.__doc__ = "\n\n".join([*paragraphs, f"Parameters\n{rest}"])
    return command


@contextlib.contextmanager
def starting() -> Iterator[None]:
    """End the program at the first Ctrl-C within this context."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, _leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _leave(number: int, frame: FrameType | None) -> None:
    os.write(2, b"credo: interrupted; nothing was written.\n")
    os._exit(128 + number)
