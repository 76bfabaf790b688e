"""Open a file, a stream, a zip archive or standard input as bytes, and find out what it really holds."""

from __future__ import annotations

import gzip
import io
import json
import os
import sys
import zipfile
import zlib
from pathlib import Path
from typing import IO, Any, Literal, TypeAlias, get_args

from credo.core.errors import DataError, asking, suggest

__all__ = [
    "FORMATS",
    "ByteStream",
    "Format",
    "NoRows",
    "Source",
    "format_of_name",
    "is_archive",
    "member_name",
    "open_bytes",
    "sniff",
]

Format: TypeAlias = Literal["csv", "tsv", "jsonl", "parquet"]
"""The formats of tables that can be opened."""

FORMATS: tuple[Format, ...] = get_args(Format)
"""All formats."""

Source: TypeAlias = str | os.PathLike[str] | IO[str] | IO[bytes] | io.IOBase
"""A path, "-" for standard input, or a readable stream."""

_SUFFIXES: dict[str, Format] = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
}
_SNIFFED = ("", ".txt", ".data", ".dat")
_WORKBOOKS = (".xls", ".xlsx", ".xlsm", ".ods")
_HEAD = 65536
LONGEST_LINE = 1 << 24
"""The most bytes of a line of text, so that no line takes more memory than there is."""

_MAGIC = (
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"%PDF", "a PDF document"),
    (b"PK\x03\x04", "a zip archive or Excel workbook"),
    (b"\xd0\xcf\x11\xe0", "an old Excel workbook"),
    (b"BZh", "bzip2 data"),
    (b"\xfd7zXZ", "xz data"),
    (b"\x28\xb5\x2f\xfd", "zstandard data"),
    (b"\x1f\x8b", "gzip data inside gzip data"),
    (b"SQLite format", "an SQLite database"),
    (b"\x89HDF", "an HDF5 file"),
    (b"ARROW1", "an Arrow/Feather file"),
    (b"\x93NUMPY", "a NumPy array"),
    (b"\x7fELF", "a program"),
    (b"\xff\xfe", "UTF-16 text"),
    (b"\xfe\xff", "UTF-16 text"),
)


class NoRows(DataError):
    """A table that is empty, or has column names alone."""


class ByteStream(io.RawIOBase):
    """The bytes of one source; each failure to read them, NUL or a line that is too long in a text, or an end
    before the `size` that it had at first, is a `DataError` naming it. `whole`: the last line has ended.
    """

    def __init__(self, stream: Any, name: str, *, size: int = 0, text: bool = False) -> None:
        self.stream = stream
        self.name = name
        self.size = size
        self.text = text
        self.whole = True
        self._pending = b""
        self._passed = self._line = 0
        self._is_str = isinstance(stream, io.TextIOBase)

    def readable(self) -> bool:
        """True: the stream can be read."""
        return True

    def head(self, size: int = _HEAD) -> bytes:
        """The first bytes, up to the end of the first line if that is within `size`, not consumed."""
        while len(self._pending) < size and b"\n" not in self._pending[16:]:
            more = self._fetch(size)
            if not more:
                break
            self._pending += more
        return self._pending

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer, and return the number of bytes: 0 at the end."""
        data = self._pending or self._fetch(len(buffer))
        part = data[: len(buffer)]
        self._pending = data[len(buffer) :]
        buffer[: len(part)] = part
        return len(part)

    def share(self) -> float | None:
        """The share of the bytes on disk that were read; None if they cannot be counted, as in a pipe."""
        packed = self.stream.fileobj if isinstance(self.stream, gzip.GzipFile) else None
        if isinstance(packed, ByteStream):
            return packed.share()
        try:
            size = os.fstat(self.stream.fileno()).st_size
            return min(self.stream.tell() / size, 1.0) if size and self.stream.seekable() else None
        except (AttributeError, OSError, ValueError):
            # A thread that reads ahead closes the stream at its end, at any moment: were `closed` asked for
            # first, it might change before the calls above.
            if getattr(self.stream, "closed", False):
                return 1.0
            return None

    def close(self) -> None:
        """Close this and the stream it reads, standard input excepted."""
        if not self.closed and self.stream not in (sys.stdin, getattr(sys.stdin, "buffer", None)):
            packed = self.stream.fileobj if isinstance(self.stream, gzip.GzipFile) else None
            self.stream.close()
            if isinstance(packed, ByteStream):
                packed.close()
        super().close()

    def _fetch(self, size: int) -> bytes:
        try:
            data: bytes
            if self._is_str:
                data = self.stream.readline().encode("utf-8", "surrogatepass")
            else:
                data = (getattr(self.stream, "read1", None) or self.stream.read)(size) or b""
        except EOFError:
            raise DataError(
                f"{self.name} ends in the middle of its {self._packing} data, after {self._passed} bytes of "
                "text: it was cut short; copy or download it again."
            ) from None
        except zipfile.BadZipFile as error:
            raise DataError(f"{self.name} holds damaged zip data ({str(error).rstrip('.')}).") from None
        except (gzip.BadGzipFile, zlib.error) as error:
            raise DataError(
                f"{self.name} holds damaged {self._packing} data after {self._passed} bytes ({error})."
            ) from None
        except OSError as error:
            raise DataError(f"{self.name} cannot be read: {error.strerror or error}.") from None
        if not data and self._passed < self.size:
            raise DataError(
                f"{self.name} was cut while it was read: it had {self.size:,} bytes at first, and ended "
                f"after {self._passed:,}."
            )
        self._look(data)
        self._passed += len(data)
        return data

    @property
    def _packing(self) -> str:
        if isinstance(self.stream, zipfile.ZipExtFile):
            return "zip"
        return "gzip"

    def _look(self, data: bytes) -> None:
        """Note where lines end, and refuse a text that is none, or one of whose lines is too long."""
        if self.text and b"\0" in data:
            raise DataError(
                f"{self.name} holds a NUL byte at byte {self._passed + data.index(0) + 1}: "
                "it is not text; CSV, TSV and JSON lines must be UTF-8 text."
            )
        rest = len(data) - 1 - max(data.rfind(b"\n"), data.rfind(b"\r"))
        self._line = rest if rest < len(data) else self._line + rest
        self.whole = self._line == 0 if data else self.whole
        if self.text and self._line > LONGEST_LINE:
            raise DataError(
                f"{self.name} holds a line of more than {LONGEST_LINE:,} bytes, from byte "
                f"{self._passed + len(data) - self._line + 1:,} on; is it a table?"
            )


def format_of_name(path: str, wanted: Format | None) -> tuple[Format | None, bool]:
    """The format that is wanted, or that of the suffix (None: the content decides); and if it is gzip."""
    suffix = Path(path).suffix.lower()
    gz = False
    if suffix == ".gz":
        gz = True
        suffix = Path(Path(path).stem).suffix.lower()
    if wanted is not None:
        return wanted, gz
    if suffix in _SUFFIXES:
        return _SUFFIXES[suffix], gz
    if suffix in _SNIFFED:
        return None, gz
    if suffix in _WORKBOOKS:
        raise DataError(f"{path} is an Excel workbook; save its sheet as CSV, and name that file.")
    raise DataError(
        f"{path} has the unknown suffix {suffix!r}: allowed are {', '.join(_SUFFIXES)} (and .gz after a text "
        f"one), or name its format, one of {', '.join(FORMATS)}."
    )


def open_bytes(source: Source) -> ByteStream:
    """Open a path, "-" (standard input) or a stream that is open already, and unpack gzip."""
    if isinstance(source, str) and source == "-":
        raw = ByteStream(getattr(sys.stdin, "buffer", sys.stdin), "standard input")
    elif isinstance(source, (str, os.PathLike)):
        path = os.fspath(source)
        packed = is_archive(path)
        file = open_member(path)[0] if packed else _open_path(path)
        raw = ByteStream(file, str(source), size=0 if packed else os.fstat(file.fileno()).st_size)
    elif hasattr(source, "read"):
        name = getattr(source, "name", None)
        raw = ByteStream(getattr(source, "buffer", source), name if isinstance(name, str) else "the stream")
    else:
        raise DataError(
            f"a table must be a path, '-' or a readable stream; got {type(source).__name__} "
            "(a DataFrame is read with from_frame)."
        )
    try:
        return _unpacked(raw, str(source).lower().endswith(".gz"))
    except BaseException:
        raw.close()
        raise


def _unpacked(raw: ByteStream, named_gz: bool) -> ByteStream:
    head = raw.head()
    if head[:2] == b"\x1f\x8b":
        raw = ByteStream(gzip.GzipFile(fileobj=raw), raw.name)
        head = raw.head()
    elif named_gz and head:
        raise DataError(
            f"{raw.name} is named .gz but holds no gzip data; take .gz off its name or pack it with gzip."
        )
    if not head.strip():
        raise NoRows(f"{raw.name} is empty.")
    return raw


def _open_path(path: str) -> io.FileIO:
    try:
        if os.path.isdir(path):
            raise IsADirectoryError
        return open(path, "rb", buffering=0)
    except FileNotFoundError:
        folder = os.path.dirname(path) or "."
        near = os.listdir(folder) if os.path.isdir(folder) else []
        hint = suggest(os.path.basename(path), near)
        raise DataError(asking(f"{path} does not exist", hint)) from None
    except IsADirectoryError:
        raise DataError(f"{path} is a directory; name one file of {', '.join(FORMATS)}.") from None
    except PermissionError:
        raise DataError(f"{path} may not be read: permission denied.") from None
    except OSError as error:
        raise DataError(f"{path} cannot be opened: {error.strerror or error}.") from None


def is_archive(path: str) -> bool:
    """Whether a path is that of an existing file named .zip."""
    return path.lower().endswith(".zip") and os.path.isfile(path)


def member_name(path: str) -> str:
    """The name of the only file in a zip archive."""
    stream, name = open_member(path)
    stream.close()
    return name


def open_member(path: str) -> tuple[IO[bytes], str]:
    """Open the only file in a zip archive, beside folders and what macOS adds: its bytes and its name."""
    try:
        archive = zipfile.ZipFile(path)
    except zipfile.BadZipFile:
        raise DataError(f"{path} is no zip archive, or is cut short; copy or download it again.") from None
    except (OSError, ValueError, NotImplementedError) as error:
        raise DataError(f"{path} cannot be opened: {getattr(error, 'strerror', '') or error}.") from None
    names = [
        info.filename
        for info in archive.infolist()
        if not info.is_dir()
        and not info.filename.startswith("__MACOSX/")
        and not os.path.basename(info.filename).startswith(".")
    ]
    if len(names) != 1:
        archive.close()
        shown = ", ".join(names[:4]) + (", ..." if len(names) > 4 else "")
        what = f"{len(names)} files ({shown}); unpack it, and name one of them" if names else "no file"
        raise DataError(f"{path} holds {what}.")
    try:
        return archive.open(names[0]), names[0]
    except (RuntimeError, NotImplementedError, OSError, ValueError, zipfile.BadZipFile) as error:
        archive.close()
        why = (getattr(error, "strerror", "") or str(error)).split(",")[0].rstrip(".")
        raise DataError(f"{path} cannot be unpacked ({why}); name the file inside it.") from None


def sniff(head: bytes, name: str, promised: Format | None) -> Format:  # noqa: C901 - a case after the other
    """Detect the format of a source from its first bytes, and check it against the promised one, if any."""
    claim = f"{name} should be {promised}" if promised else f"{name} should be csv, tsv or jsonl"
    if head[:4] == b"PAR1":
        if promised not in (None, "parquet"):
            raise DataError(
                f"{claim} but holds parquet data; name it .parquet or ask for the format parquet."
            )
        return "parquet"
    for magic, what in _MAGIC:
        if head.startswith(magic):
            raise DataError(
                f"{claim} but holds {what}; credo reads {', '.join(FORMATS)}, in UTF-8 where text."
            )
    if promised == "parquet":
        raise DataError(f"{claim} but does not begin with PAR1, as parquet files do; is it text?")
    if b"\0" in head:
        raise DataError(f"{claim} but holds a NUL byte at byte {head.index(0) + 1}: it is not text.")
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if start[:9].lower() == b"<!doctype" or start[:5].lower() in (b"<html", b"<?xml"):
        raise DataError(f"{claim} but holds an HTML or XML page; was a web page saved in place of the data?")
    line = start.split(b"\n", 1)[0].strip()
    if promised in ("csv", "tsv"):
        if line[:1] == b"{" and _is_object(line):
            raise DataError(f"{claim} but holds JSON lines; name it .jsonl or ask for the format jsonl.")
        return promised
    if line[:1] == b"[" and (promised == "jsonl" or _is_json(start, line)):
        raise DataError(f"{name} holds a JSON array; jsonl must hold one JSON object per line.")
    if promised == "jsonl":
        if len(start) < _HEAD and not _is_object(line):
            shown = line[:40].decode("utf-8", "replace")
            raise DataError(f"{claim} but its first line is not a JSON object: it begins {shown!r}.")
        return "jsonl"
    if line[:1] == b"{":
        return "jsonl"
    if line.count(b"\t") > line.count(b","):
        return "tsv"
    return "csv"


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _is_json(start: bytes, line: bytes) -> bool:
    return line == b"[" or start[1:].lstrip()[:1] == b"{"
