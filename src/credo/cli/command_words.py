"""The shared parts of commands: help, its examples, the hyphen for standard input, and Ctrl-C at the start.

While modules are imported nothing was begun, so the program ends at once; an exception may come up in a
callback of the import system, which ignores it.
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

__all__ = ["STREAM", "examples_of", "flowing", "model_of_service", "source_of", "starting"]

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


_EXAMPLES = {
    "learn": """
credo learn mnist
credo learn prices.csv --target price --test new.csv
credo learn electricity --drift walk:3e-4
cat log.jsonl | credo learn - --target clicked --predictions -
credo learn prices.csv --target price --predictions p.csv --keep id,date
credo learn prices.csv --resume runs/prices
credo learn demand.csv --time hour --target load --horizon 24
""",
    "predict": """
credo predict runs/prices new.csv --out predictions.csv
credo predict runs/prices new.csv --keep id --level 0.5
cat new.jsonl | credo predict runs/prices/belief.credo -
""",
    "keyed": """
credo keyed clicks.csv --key user --target spent --out runs/users
credo keyed clicks.csv --key user --target spent --out runs/users --resume
credo keyed a.csv --key user --target y --out runs/u --shards 4 --workers 2
credo keyed clicks --key user --target y --time day --out runs/u --follow 10
""",
    "reproduce": """
credo reproduce
credo reproduce kf-linreg
credo reproduce moons --full --out results
""",
    "serve": """
credo serve models
credo serve models --host 0.0.0.0 --port 8000 --tokens tokens
credo serve models --verify
""",
    "datasets": """
credo datasets
credo learn digits
""",
    "cache": """
credo cache
credo cache --clear
""",
    "bandit run": """
credo bandit run statlog --seeds 5
credo bandit run bernoulli --agent beta --policy thompson
credo bandit run linear --steps 2000 --delay 10 --out runs/late
""",
    "bandit evaluate": """
credo bandit evaluate log.jsonl --policy uniform --policy red
credo bandit evaluate log.jsonl --report seen
""",
    "bandit replay": """
credo bandit replay log.jsonl
""",
    "bandit decide": """
credo bandit decide shop.credo - --arms red,blue --log log.jsonl
cat requests.jsonl | credo bandit decide shop.credo -
""",
    "flow train": """
credo flow train flow.toml
credo flow train flow.toml --resume runs/flow-flow
""",
    "flow evaluate": """
credo flow evaluate linear-10
credo flow evaluate runs/flow-flow
""",
}


def examples_of(command: str) -> str:
    """The examples of a command, as they stand below its help."""
    lines = _EXAMPLES[command].strip().splitlines()
    return "\n".join(["", "Examples:", "", *(f"  {line}" for line in lines), ""])
