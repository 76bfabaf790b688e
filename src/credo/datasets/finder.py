"""The search for the files of the data sets, in this order:

1. the folder of the `data_dir` argument, else of the environment variable `CREDO_DATA_DIR`;
2. the cache: `CREDO_CACHE_DIR`, else the platform's folder for caches (`~/.cache/credo` on Linux);
3. an installed package that ships the file;
4. a download, checked and then kept in the cache.

Files in the folder of step 1 are the user's own. One whose content differs from the published content is
used, and the note of the data set mentions the difference. Files in the cache and downloads must have the
checksum.
"""

from __future__ import annotations

import gzip
import hashlib
import http.client
import importlib.util
import os
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.request import Request, urlopen

from credo.core.caches import cache_dir
from credo.core.errors import DataError
from credo.core.extensions import extra
from credo.core.files import write_atomically

__all__ = ["DataFile", "FileContent", "Finder", "MissingFile", "package_file"]


SECONDS_TO_CONNECT = 15
LARGEST = 512 * 1024 * 1024


def uncompressed(content: bytes) -> bytes:
    """The content of a gzip file, or the content itself if it is not compressed with gzip."""
    if not content.startswith(b"\x1f\x8b"):
        return content
    try:
        return gzip.decompress(content)
    except (EOFError, OSError, zlib.error) as error:
        raise DataError(f"the gzip file is cut off or damaged ({error}).") from error


def checksum(content: bytes) -> str:
    """The SHA-256, in hexadecimal, of *uncompressed* content: compressing it again gives another file."""
    return hashlib.sha256(content).hexdigest()


def fetch(urls: Iterable[str], sha256: str, target: Path) -> bytes:
    """Download from the first address that delivers the right uncompressed content, and keep the file."""
    failures = []
    for url in urls:
        try:
            content = _get(url)
            plain = uncompressed(content)
        except (OSError, DataError, http.client.HTTPException) as error:
            failures.append(f"{url} failed ({_reason(error)})")
            continue
        if checksum(plain) != sha256:
            failures.append(
                f"{url} delivered other content (SHA-256 {checksum(plain)[:12]}..., not {sha256[:12]}...)"
            )
            continue
        _keep(target, content)
        return plain
    raise DataError("; ".join(failures) + "." if failures else "there is no address to download it from.")


def _keep(target: Path, content: bytes) -> None:
    try:
        write_atomically(target, content)
    except DataError as error:
        reason = str(error).rstrip(".")
        raise DataError(f"{reason}; name another folder in CREDO_CACHE_DIR.") from error


def _reason(error: Exception) -> str:
    return str(getattr(error, "reason", None) or error).rstrip(".")


def _get(url: str) -> bytes:
    if not url.startswith(("https://", "http://")):
        raise DataError(f"the address {url!r} is not a web address.")
    request = Request(url, headers={"User-Agent": "credo"})
    with urlopen(request, timeout=SECONDS_TO_CONNECT) as response:
        content: bytes = response.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise DataError(f"the file is larger than {LARGEST} bytes.")
    return content


CACHE = "the cache"


class MissingFile(DataError):
    """A file of a data set that was found nowhere."""


@dataclass(frozen=True)
class DataFile:
    """A file of a data set, and the places that it can come from.

    `path` is below a data folder or the cache; `sha256` is of the uncompressed content, empty if it is not
    known, which a download needs; `package` is one that ships the file, with the path inside it.
    """

    path: str
    sha256: str = ""
    urls: tuple[str, ...] = ()
    package: tuple[str, str] | None = None


@dataclass(frozen=True)
class FileContent:
    """The uncompressed content of a file; its path for errors, and its place, in fixed words, for notes."""

    content: bytes
    path: str
    place: str


def package_file(package: str, path: str) -> Path | None:
    """A file inside an installed package, found without importing the package; None if it is missing."""
    spec = importlib.util.find_spec(package)
    folders = (spec.submodule_search_locations if spec else None) or []
    return next((Path(folder, path) for folder in folders if Path(folder, path).is_file()), None)


@dataclass(frozen=True)
class Finder:
    """Finds the files of one data set, first in `data_dir`, or in `CREDO_DATA_DIR` if that is None."""

    name: str
    data_dir: str | os.PathLike[str] | None = None
    allow_download: bool = True

    def __post_init__(self) -> None:
        for field, folder in self._folders():
            if not folder.is_dir():
                raise DataError(
                    f"{field} must be a folder with data sets; got {str(folder)!r}, which is none."
                )

    def at_hand(self, file: DataFile) -> bool:
        """Whether the file is in the data folder or in the cache."""
        return any(path.is_file() for _, path in self._places(file))

    def read(self, file: DataFile) -> FileContent:
        """Read a file from the first place that has it, or say where it was looked for and what to do."""
        failures = []
        for field, path in self._places(file):
            if not path.is_file():
                failures.append(f"{field} has no {file.path}")
            elif field == CACHE:
                if (plain := self._checked(path, file)) is not None:
                    return FileContent(plain, str(path), f"{file.path} in {CACHE}")
                failures.append(f"{path} is damaged or of another version and can be removed")
            else:
                plain = self._load(path)
                same = not file.sha256 or checksum(plain) == file.sha256
                differs = "" if same else ", whose content differs from what was published"
                return FileContent(plain, str(path), f"{file.path} in {field}{differs}")
        if file.package:
            package, inside = file.package
            if shipped := package_file(package, inside):
                return FileContent(self._load(shipped), str(shipped), f"the package {package}")
            failures.append(f"the package {package}, which ships it, is not installed or too old")
        if file.urls and self.allow_download:
            target = cache_dir() / file.path
            try:
                return FileContent(
                    fetch(file.urls, file.sha256, target), str(target), f"{file.path}, downloaded"
                )
            except DataError as error:
                failures.append(str(error).rstrip("."))
        elif file.urls:
            failures.append("downloads were not allowed")
        raise MissingFile(
            f"data set {self.name!r} was not found: {'; '.join(failures)}; {self._advice(file)}."
        )

    def _load(self, path: Path) -> bytes:
        try:
            return uncompressed(path.read_bytes())
        except (OSError, DataError) as error:
            raise DataError(
                f"data set {self.name!r}: {path} cannot be read: {str(error).rstrip('.')}."
            ) from error

    def _checked(self, path: Path, file: DataFile) -> bytes | None:
        try:
            plain = self._load(path)
        except DataError:
            return None
        if not file.sha256 or checksum(plain) == file.sha256:
            return plain
        return None

    def _folders(self) -> Iterator[tuple[str, Path]]:
        if self.data_dir is not None:
            yield "data_dir", Path(self.data_dir).expanduser()
        elif chosen := os.environ.get("CREDO_DATA_DIR"):
            yield "CREDO_DATA_DIR", Path(chosen).expanduser()

    def _places(self, file: DataFile) -> Iterator[tuple[str, Path]]:
        for field, folder in [*self._folders(), (CACHE, cache_dir())]:
            path = folder / file.path
            bare = path.with_suffix("") if path.suffix == ".gz" else path
            yield field, path if path.is_file() or not bare.is_file() else bare

    def _advice(self, file: DataFile) -> str:
        place = f"place the file at {file.path} in a folder and name that folder in CREDO_DATA_DIR"
        if file.package:
            return f"run {extra('data')}, or {place}"
        return place
