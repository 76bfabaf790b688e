"""Locks on files, which the operating system opens when their owner ends, however it ends."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path

__all__ = ["hold", "let_go", "lock_open"]

_HELD = (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES, errno.EDEADLK)


_FAR = 2**40
"""The byte that is locked on Windows."""


def hold(path: Path) -> int | None:
    """Lock a file, created if need be: its number, for `let_go`, or None if another process has the lock.

    If a file system knows no locks, none is taken, and nobody is kept out.
    """
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        if not lock_open(file):
            os.close(file)
            return None
        try:
            if os.path.samestat(os.fstat(file), os.stat(path)):
                return file
        except FileNotFoundError:
            pass
        os.close(file)  # the owner has removed the file just before it let go: try the new one


def lock_open(file: int) -> bool:
    """Lock an open file until it is closed; False if it is locked already, also by this process.

    If a file system knows no locks, none is taken, and nobody is kept out.
    """
    try:
        _lock(file)
    except OSError as error:
        return error.errno not in _HELD
    return True


def _lock(file: int) -> None:
    if sys.platform == "win32":
        import msvcrt

        # There others cannot read what is locked, so the lock lies on a byte that no file reaches.
        place = os.lseek(file, 0, os.SEEK_CUR)
        os.lseek(file, _FAR, os.SEEK_SET)
        try:
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        finally:
            os.lseek(file, place, os.SEEK_SET)
    else:
        import fcntl

        # of the open file and not of the process, so that a second writer in this process is kept out, too
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def let_go(file: int) -> None:
    """Open a lock."""
    os.close(file)
