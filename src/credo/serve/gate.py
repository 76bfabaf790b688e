"""Checks of what a request says of itself, before anything is read of it.

A browser sends requests for any page that is open in it, and without tokens nothing would tell these from
requests of its owner. So a service

- answers only under names of its own: another name may be one that a page's server resolves to this machine
  (DNS rebinding, as in CVE-2024-28224 of Ollama);
- refuses what a browser says comes from a page of another origin;
- takes only bodies that say what they are: for other kinds than forms and plain text, a browser first asks
  whether the page may send them (CORS), and is told no.
"""

from __future__ import annotations

import functools
import ipaddress
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

from credo.core.errors import CredoError
from credo.serve.problems import Problem

__all__ = ["JSON_BODIES", "LINE_BODIES", "SAVED", "Gate", "is_loopback", "require_kind"]

SAVED = "application/octet-stream"
"""The content type of a saved session."""

JSON_BODIES = ("application/json",)
"""The content types of a body of one JSON object."""

LINE_BODIES = ("application/x-ndjson", "application/jsonl", "application/json")
"""The content types of a body of lines."""

READING = ("GET", "HEAD", "OPTIONS")
"""The methods that change nothing."""

Headers = Mapping[bytes, bytes]
"""The headers of a request by name; of one that comes twice, the last."""

REMEMBERED = 64
"""The number of values of a header that are remembered, with their meaning: most requests say the same."""


class Gate:
    """A gate that lets requests in.

    Arguments:
        names: the names under which the service is reached besides loopback addresses, without ports.
        closed: whether it is reached under no other name. A service with tokens may be open: a page of
            another origin has no token.

    Raises:
        CredoError: a name holds a port, a path or a blank.

    Example:
        >>> gate = Gate()
        >>> gate.require({b"host": b"localhost:8000"}, "GET")
        >>> gate.require({b"host": b"a.org"}, "GET")
        Traceback (most recent call last):
            ...
        credo.serve.problems.Problem: Host must be a loopback address, or one of `host_name`; got 'a.org'.
    """

    def __init__(self, names: Iterable[str] = (), *, closed: bool = True) -> None:
        self.names = frozenset(name.lower() for name in names)
        self.closed = closed or bool(self.names)
        for name in self.names:
            if name != _host_of(name) or not name:
                raise CredoError(
                    f"host_name must be a name without a port, such as models.example.org; got {name!r}.",
                    field="host_name",
                )

    def require(self, headers: Headers, method: str) -> None:
        """Refuse a request that a page of another origin sent; a `Problem` with the status 403."""
        host = headers.get(b"host")
        if self.closed and host is not None:
            said = host.decode("latin-1")
            name = _host_of(said)
            if name not in self.names and not is_loopback(name):
                raise Problem(
                    403,
                    f"Host must be a loopback address, or one of `host_name`; got {said!r:.80}.",
                    field="Host",
                )
        origin = headers.get(b"origin")
        if origin is not None and not self._same(origin.decode("latin-1"), host):
            raise Problem(
                403,
                f"Origin must be that of the service; got {origin.decode('latin-1')!r:.80}.",
                field="Origin",
            )
        site = headers.get(b"sec-fetch-site")
        if site in (b"cross-site", b"same-site"):
            # a link on another page may be followed, which reads and shows
            followed = method in READING and headers.get(b"sec-fetch-mode") == b"navigate"
            if not followed:
                raise Problem(
                    403, "a page of another origin must not ask this service.", field="Sec-Fetch-Site"
                )

    def _same(self, origin: str, host: bytes | None) -> bool:
        """Whether an origin is the one under which the request came in, port and all, or one of the names."""
        place = origin.partition("://")[2].lower()
        return (host is not None and place == host.decode("latin-1").lower()) or _host_of(place) in self.names


def require_kind(headers: Headers, kinds: tuple[str, ...]) -> None:
    """Refuse a body that does not say that it is one of some kinds, or that is compressed; status 415."""
    _require_kind(headers.get(b"content-type", b""), headers.get(b"content-encoding", b"identity"), kinds)


@functools.lru_cache(REMEMBERED)
def _require_kind(content_type: bytes, content_encoding: bytes, kinds: tuple[str, ...]) -> None:
    kind = content_type.decode("latin-1").partition(";")[0].strip().lower()
    if kind not in kinds:
        got = repr(kind)[:80] if kind else "none"
        raise Problem(415, f"Content-Type must be {' or '.join(kinds)}; got {got}.", field="Content-Type")
    coding = content_encoding.decode("latin-1").strip().lower()
    if coding != "identity":
        raise Problem(
            415, f"Content-Encoding must be left out; got {coding!r:.80}.", field="Content-Encoding"
        )


@functools.lru_cache(REMEMBERED)
def is_loopback(name: str) -> bool:
    """Whether a host is this machine alone."""
    try:
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


@functools.lru_cache(REMEMBERED)
def _host_of(value: str) -> str:
    """The host of `host:port`, without the brackets of an address."""
    try:
        parts: Any = urlsplit(f"//{value}")
        return parts.hostname or ""
    except ValueError:
        return ""
