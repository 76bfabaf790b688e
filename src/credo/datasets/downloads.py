"""Downloads, which are kept only where they are complete and checked."""

from __future__ import annotations

import gzip
import hashlib
import http.client
import zlib
from collections.abc import Iterable
from pathlib import Path
from urllib.request import Request, urlopen

from credo.core.errors import DataError
from credo.core.files import write_atomically

__all__ = ["checksum", "fetch", "uncompressed"]

SECONDS_TO_CONNECT = 15
LARGEST = 512 * 1024 * 1024


def uncompressed(content: bytes) -> bytes:
    """The content of a gzip file, or the content itself where it is not compressed with gzip.

    Arguments:
        content: the bytes of a file.

    Returns:
        The bytes, uncompressed.

    Raises:
        DataError: if the file begins as a gzip file and is cut off or damaged.

    Example:
        >>> uncompressed(gzip.compress(b"abc")), uncompressed(b"abc")
        (b'abc', b'abc')
    """
    if not content.startswith(b"\x1f\x8b"):
        return content
    try:
        return gzip.decompress(content)
    except (EOFError, OSError, zlib.error) as error:
        raise DataError(f"the gzip file is cut off or damaged ({error}).") from error


def checksum(content: bytes) -> str:
    """The SHA-256 of some bytes, in hexadecimal.

    Files are compared by the checksum of their *uncompressed* content, because compressing the same content
    again gives another file.

    Example:
        >>> checksum(b"abc")[:16]
        'ba7816bf8f01cfea'
    """
    return hashlib.sha256(content).hexdigest()


def fetch(urls: Iterable[str], sha256: str, target: Path) -> bytes:
    """Download a file from the first address that delivers the right content, and keep it.

    Arguments:
        urls: addresses of the same file, in the order to try them.
        sha256: the SHA-256 of the uncompressed content.
        target: where the file is kept.

    Returns:
        The uncompressed content.

    Raises:
        DataError: if no address delivers the content (the sentence says what happened at each of them), or
            the file cannot be written.

    Example:
        >>> fetch([], "", Path("nowhere"))
        Traceback (most recent call last):
        ...
        credo.core.errors.DataError: there is no address to download it from.
    """
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
