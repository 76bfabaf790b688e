"""Downloads, which are kept only if they are complete and checked."""

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
