"""Downloads are complete and checked, or not there."""

from __future__ import annotations

import gzip
import http.client
import io
import os
from pathlib import Path
from urllib.request import Request

import pytest

from credo.core.errors import DataError
from credo.datasets import finder
from credo.datasets.finder import checksum, fetch, uncompressed

PLAIN = b"the content" * 100
ADDRESSES = ("https://first.example/file.gz", "https://second.example/file.gz")


def serve(monkeypatch: pytest.MonkeyPatch, answers: dict[str, bytes | Exception]) -> list[str]:
    requests: list[str] = []

    def urlopen(request: Request, timeout: float) -> io.BytesIO:
        url = request.full_url
        requests.append(url)
        answer = answers[url]
        if isinstance(answer, Exception):
            raise answer
        return io.BytesIO(answer)

    monkeypatch.setattr(finder, "urlopen", urlopen)
    return requests


def test_a_download_is_checked_and_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    requests = serve(monkeypatch, {ADDRESSES[0]: gzip.compress(PLAIN)})
    target = tmp_path / "deep" / "file.gz"
    assert fetch(ADDRESSES, checksum(PLAIN), target) == PLAIN
    assert uncompressed(target.read_bytes()) == PLAIN
    assert requests == [ADDRESSES[0]]


def test_the_same_content_compressed_otherwise_has_the_same_checksum(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    serve(monkeypatch, {ADDRESSES[0]: gzip.compress(PLAIN, compresslevel=1)})
    assert fetch(ADDRESSES, checksum(PLAIN), tmp_path / "file.gz") == PLAIN


@pytest.mark.parametrize(
    "bad",
    [
        OSError("no route"),
        http.client.IncompleteRead(b"half"),
        b"other content",
        gzip.compress(PLAIN)[:-20],
        b"\x1f\x8bnot gzip at all",
    ],
    ids=["no route", "cut off", "other content", "truncated", "not gzip"],
)
def test_a_failing_address_is_followed_by_the_next(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, bad: bytes | Exception
) -> None:
    requests = serve(monkeypatch, {ADDRESSES[0]: bad, ADDRESSES[1]: PLAIN})
    assert fetch(ADDRESSES, checksum(PLAIN), tmp_path / "file.gz") == PLAIN
    assert requests == list(ADDRESSES)


def test_other_content_is_refused_and_leaves_nothing_behind(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    serve(monkeypatch, dict.fromkeys(ADDRESSES, b"other content"))
    with pytest.raises(DataError, match=r"first\.example.*delivered other content.*second\.example"):
        fetch(ADDRESSES, checksum(PLAIN), tmp_path / "cache" / "file.gz")
    assert not (tmp_path / "cache").exists()


def test_an_address_outside_the_web_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="not a web address"):
        fetch(["file:///etc/hostname"], checksum(PLAIN), tmp_path / "file")


def test_an_interrupted_write_leaves_the_old_file_and_no_temporary_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    target = tmp_path / "file"
    target.write_bytes(b"old")

    def fail(*args: object) -> None:
        raise OSError(28, "No space left on device")

    serve(monkeypatch, {ADDRESSES[0]: PLAIN})
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(DataError, match=r"No space left.*CREDO_CACHE_DIR"):
        fetch(ADDRESSES, checksum(PLAIN), target)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert target.read_bytes() == b"old"


def test_a_cache_that_is_a_file_is_named_in_the_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "cache").write_bytes(b"")
    serve(monkeypatch, {ADDRESSES[0]: PLAIN})
    with pytest.raises(DataError, match="CREDO_CACHE_DIR"):
        fetch(ADDRESSES, checksum(PLAIN), tmp_path / "cache" / "file")
