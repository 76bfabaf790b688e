"""Written files: their rights, links, and what is left where writing fails."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import credo
from credo.core.errors import DataError
from credo.core.files import move, replacing, write_atomically


@pytest.fixture
def umask() -> Iterator[None]:
    """An umask that leaves the group nothing to write and others nothing."""
    before = os.umask(0o027)
    yield
    os.umask(before)


def rights(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_written_file_has_the_rights_that_the_umask_leaves(umask: None, tmp_path: Path) -> None:
    write_atomically(tmp_path / "new", b"1")
    assert rights(tmp_path / "new") == 0o640
    coin = credo.BetaBernoulli()
    assert rights(credo.save(tmp_path / "coin.credo", coin, coin.init())) == 0o640


@pytest.mark.parametrize(("before", "after"), [(0o600, 0o600), (0o666, 0o640), (0o440, 0o440)])
def test_a_file_keeps_narrower_rights(umask: None, before: int, after: int, tmp_path: Path) -> None:
    path, fresh = tmp_path / "secret", tmp_path / "fresh"
    writes: list[Callable[[], None]] = [lambda: write_atomically(path, b"2"), lambda: move(fresh, path)]
    for write in writes:
        path.unlink(missing_ok=True)
        path.write_bytes(b"1")
        path.chmod(before)
        fresh.write_bytes(b"2")
        write()
        assert (rights(path), path.read_bytes()) == (after, b"2")


def test_what_replaces_a_secret_file_is_never_readable_by_others(umask: None, tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_bytes(b"1")
    path.chmod(0o600)
    with replacing(path) as file:
        assert rights(file) == 0o600 and file.parent == path.parent


def test_a_symbolic_link_stays_and_its_target_is_written(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    target, link, fresh = tmp_path / "far" / "target", tmp_path / "link", tmp_path / "fresh"
    link.symlink_to(target)
    write_atomically(link, b"1")  # where the target does not exist yet, too
    assert link.is_symlink() and target.read_bytes() == b"1"
    write_atomically(link, b"2")
    assert link.is_symlink() and target.read_bytes() == b"2"
    fresh.write_bytes(b"3")
    move(fresh, link)
    assert link.is_symlink() and target.read_bytes() == b"3" and not fresh.exists()
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(DataError, match="its symbolic link leads nowhere"):
        write_atomically(tmp_path / "loop", b"4")


def test_nothing_is_left_where_writing_fails(tmp_path: Path) -> None:
    path = tmp_path / "kept"
    path.write_bytes(b"1")
    with pytest.raises(ZeroDivisionError), replacing(path) as file:
        file.write_bytes(b"2")
        raise ZeroDivisionError
    assert path.read_bytes() == b"1" and os.listdir(tmp_path) == ["kept"]
    with pytest.raises(DataError, match=r"cannot write .*\."):
        write_atomically(path / "below", b"2")


def test_a_pipe_is_written_and_stays_a_pipe(tmp_path: Path) -> None:
    path, seen = tmp_path / "pipe", []
    os.mkfifo(path)
    reader = threading.Thread(target=lambda: seen.append(path.read_bytes()))
    reader.start()
    write_atomically(path, b"through")
    reader.join()
    assert seen == [b"through"] and stat.S_ISFIFO(path.stat().st_mode)
