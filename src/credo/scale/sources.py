"""Sources of the rows of a run: a file, or a folder of files that grows, here or at an address."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from credo.core.errors import CredoError, DataError, require_positive
from credo.core.places import Address, Place, place_of
from credo.scale.feed import Feed
from credo.scale.kafka import SCHEME, KafkaSource
from credo.sessions.chunk_parts import after_line, last_line
from credo.tables import Chunk, TableSource, open_table
from credo.tables.opening import NoRows

__all__ = ["QUIET", "FileSource", "FolderSource", "Source", "open_source"]

QUIET = 2.0
"""For how many seconds a file must not have changed before it counts as whole."""

_UNFINISHED_STARTS = (".", "_")
_UNFINISHED_ENDS = (".tmp", ".part")


class Source(Protocol):
    """The rows of a run."""

    name: str

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns in the first rows."""
        ...

    def peek(self, rows: int) -> tuple[Chunk, ...]:
        """The first chunks, by which columns are known."""
        ...

    def after(self, feed: Feed, folder: Place) -> Iterator[Chunk | None]:
        """The chunks after the rows that a feed has read, which must be as they were when the run in a folder
        learned them; None if no more have come yet.
        """
        ...

    def __enter__(self) -> Source: ...

    def __exit__(self, *exc: object) -> None: ...


class FileSource:
    """A file, or standard input."""

    def __init__(self, table: TableSource) -> None:
        self.table = table
        self.name = table.name

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns in the first rows."""
        return self.table.columns

    def peek(self, rows: int) -> tuple[Chunk, ...]:
        """The first chunks."""
        return self.table.peek(rows)

    def after(self, feed: Feed, folder: Place) -> Iterator[Chunk | None]:
        """The chunks after the rows that a feed has read."""
        yield from _unread(self.table, self.name, feed, folder, _Place())

    def __enter__(self) -> FileSource:
        return self

    def __exit__(self, *exc: object) -> None:
        self.table.close()


class FolderSource:
    """The files of a folder, in the order of their names, each of which is taken once it is whole.

    Arguments:
        files: the files.
        chunk_rows, strict: see `open_table`.
        follow: after how many seconds to look for new ones; None to end after the last one.
        say: is given a sentence about a file for which the run waits.
    """

    def __init__(
        self,
        files: Files,
        chunk_rows: int,
        strict: bool,
        follow: float | None,
        say: Callable[[str], None],
    ) -> None:
        self.files = files
        self.chunk_rows = chunk_rows
        self.strict = strict
        self.follow = follow
        self.say = say
        self.name = str(files.place)
        self._first: TableSource | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns of the first file with rows."""
        return self._beginning().columns

    def peek(self, rows: int) -> tuple[Chunk, ...]:
        """The first chunks of the first file with rows."""
        return self._beginning().peek(rows)

    def after(self, feed: Feed, folder: Place) -> Iterator[Chunk | None]:
        """The chunks after the rows that a feed has read."""
        done = {end.name: end.size for end in feed.files}
        place = _Place(feed.files[-1].line, feed.files[-1].read) if feed.files else _Place()
        while True:
            found = self._next(done, folder)
            if found is None:
                if self.follow is None:
                    break
                yield None
                try:
                    time.sleep(self.follow)
                except KeyboardInterrupt:
                    break
                continue
            name, size = found
            start = place
            place = _Place(place.line, place.read)
            table = self._open(name)
            if table is not None:
                with table:
                    chunks = (_later(chunk, start.line) for chunk in table)
                    yield from _unread(chunks, f"{self.name}: {name}", feed, folder, place)
            done[name] = size
            feed.end_file(name, size, place.line)
        if place.line < feed.line:
            raise DataError(
                f"{self.name} ends at line {place.line:,}, before line {feed.line:,} up to which {folder} "
                "has learned: files are gone from it."
            )

    def __enter__(self) -> FolderSource:
        return self

    def __exit__(self, *exc: object) -> None:
        if self._first is not None:
            self._first.close()

    def _beginning(self) -> TableSource:
        """The first file with rows, which is waited for where the folder is followed."""
        done = dict[str, int]()
        while self._first is None:
            found = self._next(done, None)
            if found is not None:
                done[found[0]] = found[1]
                self._first = self._open(found[0])
            elif self.follow is None:
                raise DataError(f"{self.name} has no file with rows.")
            else:
                time.sleep(self.follow)
        return self._first

    def _open(self, name: str) -> TableSource | None:
        """A file, None if it has no rows."""
        try:
            return open_table(self.files.open(name), chunk_rows=self.chunk_rows, strict=self.strict)
        except NoRows:
            return None

    def _next(self, done: dict[str, int], folder: Place | None) -> tuple[str, int] | None:
        """The name and the size of the next file after some; None if it has not come, or is not whole."""
        said = False
        while True:
            sizes = self.files.sizes()
            for name in sizes.keys() & done.keys():
                if sizes[name] != done[name]:
                    raise DataError(
                        f"{self.name}: {name} had {done[name]:,} bytes when {folder} learned it, and has "
                        f"{sizes[name]:,} now; a file that was read must stay as it is."
                    )
            new = sorted(sizes.keys() - done.keys())
            if not new:
                return None
            if done and new[0] < max(done):
                raise DataError(
                    f"{self.name}: {new[0]} comes before {max(done)}, which {folder} has learned; new files "
                    "must have later names."
                )
            if self.files.is_whole(new[0]):
                return new[0], sizes[new[0]]
            if self.follow is not None:
                return None
            if not said:
                self.say(f"{self.name}: waiting until {new[0]} is no longer written")
            said = True
            time.sleep(QUIET / 10)


class Files:
    """The files of a folder, which are told from those that are being written.

    Arguments:
        place: the folder, or its address.
    """

    def __init__(self, place: Place) -> None:
        self.place = place
        self._seen: dict[str, tuple[tuple[int, float], float]] = {}

    def sizes(self) -> dict[str, int]:
        """The sizes of the files that are not being written under another name."""
        if isinstance(self.place, Address):
            found = self.place.sizes()
        else:
            try:
                found = {path.name: path.stat().st_size for path in self.place.iterdir() if path.is_file()}
            except OSError as error:
                raise DataError(f"{self.place} cannot be read: {error.strerror or error}.") from None
        return {
            name: size
            for name, size in found.items()
            if not name.startswith(_UNFINISHED_STARTS) and not name.endswith(_UNFINISHED_ENDS)
        }

    def is_whole(self, name: str) -> bool:
        """Whether a file has not changed for a while; an object of a store is there once it is whole."""
        if isinstance(self.place, Address):
            return True
        status = (self.place / name).stat()
        now = time.monotonic()
        state = status.st_size, status.st_mtime
        before, since = self._seen.get(name, (None, now))
        self._seen[name] = state, since if before == state else now
        # the clock of a file server may be another: what this process has seen is enough
        return max(time.time() - status.st_mtime, now - self._seen[name][1]) >= QUIET

    def open(self, name: str) -> Any:
        """A file, as `open_table` takes it."""
        return _opened(self.place / name)


def open_source(
    source: str | TableSource,
    chunk_rows: int,
    strict: bool = False,
    follow: float | None = None,
    say: Callable[[str], None] = lambda sentence: None,
) -> Source:
    """The rows of a table, a file, a folder or an address; see `learn_keyed` and `open_table`."""
    if isinstance(source, TableSource):
        if follow is not None:
            raise _no_folder(source.name)
        return FileSource(source)
    if source.startswith(SCHEME):
        if follow is not None:
            require_positive("follow", follow)
        return KafkaSource(source, chunk_rows, strict, follow)
    place = place_of(source, "source")
    is_folder = place.is_dir()
    if follow is not None:
        require_positive("follow", follow)
        if not is_folder:
            raise _no_folder(source)
    if is_folder:
        return FolderSource(Files(place), chunk_rows, strict, follow, say)
    if isinstance(place, Address) and not place.is_file():
        raise DataError(f"{source} does not exist.")
    return FileSource(open_table(_opened(place), chunk_rows=chunk_rows, strict=strict))


def _no_folder(source: str) -> CredoError:
    return CredoError(
        f"follow must be for a folder, to which files come, or a topic of Kafka; got {source}.",
        field="follow",
    )


def _opened(place: Place) -> Any:
    """A file, as `open_table` takes it: the bytes of one at an address have its path as their name."""
    if isinstance(place, Path):
        return str(place)
    stream = place.system.open(place.path, "rb")
    stream.name = place.path
    return stream


@dataclasses.dataclass
class _Place:
    """The last line that was read, and what `Feed.passed` gives up to there."""

    line: int = 0
    read: tuple[int, int] = (0, 0)


def _later(chunk: Chunk, lines: int) -> Chunk:
    """A chunk whose lines are counted from so many on."""
    if not lines:
        return chunk
    bad = [dataclasses.replace(row, line=row.line + lines) for row in chunk.bad]
    return dataclasses.replace(chunk, lines=chunk.lines + lines, bad=bad)


def _unread(chunks: Iterable[Chunk], name: str, feed: Feed, folder: Place, place: _Place) -> Iterator[Chunk]:
    """The chunks after those that a feed has read, which must be as they were; `place` goes on with them."""
    after = feed.line
    expected = feed.read
    cut = place.line < after

    def watched() -> Iterator[Chunk]:
        for chunk in chunks:
            if place.line < after:
                known = int(np.searchsorted(chunk.lines, after, side="right"))
                place.read = feed.passed(chunk.part(0, known), place.read)
                place.line = max(place.line, last_line(chunk))
                if place.line >= after and place.read != expected:
                    raise DataError(
                        f"{name} is not the file from which {folder} has learned: up to line {after:,} "
                        f"its keys or targets have changed."
                    )
            place.line = max(place.line, last_line(chunk))
            yield chunk

    yield from after_line(watched(), after)
    if cut and place.line < after:
        raise DataError(
            f"{name} ends at line {place.line:,}, before line {after:,} up to which {folder} has learned: it "
            "was cut, or is another file."
        )
