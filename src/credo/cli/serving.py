"""`credo serve`: hold the folder, then serve it, or verify it."""

from __future__ import annotations

import os
from pathlib import Path

from credo.cli.compile_cache import keep_compiled_programs
from credo.cli.flags import ServeFlags
from credo.core import locking
from credo.core.errors import CredoError, DataError
from credo.core.extensions import extra

__all__ = ["serve_folder"]

LOCK = "lock"

LOOPS = "--xla_backend_extra_options=xla_cpu_small_while_loop_byte_threshold=262144"
"""Loops that touch at most so many bytes are compiled as one function of the processor. Otherwise XLA starts
every operation in them by itself, and wakes other threads for it: of a linear model this takes longer than
its arithmetic. XLA's own threshold is 1,024 bytes.
"""


def serve_folder(folder: Path, flags: ServeFlags) -> int:
    """Serve a folder until it is asked to stop, or verify it; the exit status."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise DataError(f"cannot make the folder {folder}: {error.strerror or error}.") from None
    lock = locking.hold(folder / LOCK)
    if lock is None:
        raise DataError(f"another process serves {folder}; give this one a folder of its own.")
    keep_compiled_programs(folder / "programs")
    _compile_small_loops_whole()
    try:
        if flags.verify:
            return _verify(folder)
        try:
            from credo.serve.server import serve
        except ImportError as error:
            raise CredoError(f"credo serve needs {error.name}: {extra('serve')}.") from None
        return serve(folder, flags.host, flags.port, flags.tokens, flags, _say, flags.host_name)
    finally:
        locking.let_go(lock)


def _compile_small_loops_whole() -> None:
    """Set `LOOPS` for this process, before XLA reads its flags, and for those that it starts."""
    flags = os.environ.get("XLA_FLAGS", "")
    if "xla_backend_extra_options" not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} {LOOPS}".strip()


def _say(sentence: str) -> None:
    print(sentence, flush=True)


def _verify(folder: Path) -> int:
    from credo.serve.verifying import verify

    verdicts = verify(folder)
    for one in verdicts:
        for note in one.notes:
            print(f"{one.name}: {note}")
        state = "the state is the same, bit by bit" if one.same_state else "THE STATE IS ANOTHER ONE"
        print(f"{one.name}: {one.lines:,} lines replayed; {state}; {one.other_answers:,} other answers")
    if all(one.same_state and not one.other_answers for one in verdicts):
        return 0
    return 1
