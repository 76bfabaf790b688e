"""A lock on a folder, which the operating system opens when its owner ends, however it ends."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path

__all__ = ["hold", "let_go"]

_HELD = (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES, errno.EDEADLK)


def hold(path: Path) -> int | None:
    """Lock a file, created if need be: its number, for `let_go`, or None if another process has the lock.

    If a file system knows no locks, none is taken, and nobody is kept out.
    """
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            _lock(file)
        except OSError as error:
            if error.errno in _HELD:
                os.close(file)
                return None
        try:
            if os.path.samestat(os.fstat(file), os.stat(path)):
                return file
        except FileNotFoundError:
            pass
        os.close(file)  # the owner has removed the file just before it let go: try the new one


def _lock(file: int) -> None:
    if sys.platform == "win32":
        import msvcrt

        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def let_go(file: int) -> None:
    """Open a lock."""
    os.close(file)
