"""Requests to the service, which are sent again where there was no answer."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any, Self

from credo.core.errors import CredoError, require_integer, require_positive
from credo.core.extensions import extra

__all__ = ["Connection", "ServiceError"]

AGAIN = (429, 502, 503, 504)
"""The statuses after which a request is sent again."""


JSON = {"Content-Type": "application/json"}
LINES = {"Content-Type": "application/x-ndjson"}


class ServiceError(CredoError):
    """A request that the service refused, or did not answer.

    Arguments:
        message: the sentence of the service.
        status: the status, or 0 if no answer came.
        field: the field that the sentence is about.

    Example:
        >>> ServiceError("id must be a new one.", 409).status
        409
    """

    def __init__(self, message: str, status: int, *, field: str | None = None) -> None:
        super().__init__(message, field=field)
        self.status = status


class Connection:
    """A connection with a service. The arguments are those of `Client`."""

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        retries: int = 5,
        timeout: float = 30.0,
        transport: Any = None,
    ) -> None:
        require_integer("retries", retries, 0)
        require_positive("timeout", timeout)
        try:
            import httpx
        except ImportError:
            raise CredoError(f"a client needs httpx: {extra('serve')}.") from None
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self.retries, self._lost = retries, httpx.TransportError
        self._http = httpx.Client(base_url=url, headers=headers, timeout=timeout, transport=transport)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def _send(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> bytes:
        wait, status, content, sentence = 0.05, 0, b"", ""
        for attempt in range(self.retries + 1):
            status, content = 0, b""
            try:
                response = self._http.request(method, path, content=body, headers=headers)
                status, content = response.status_code, response.content
            except self._lost as error:
                sentence = f"{self._http.base_url} did not answer: {error}."
            if 200 <= status < 300:
                return content
            if status and status not in AGAIN:
                break
            if attempt < self.retries:
                time.sleep(wait)
                wait = min(2 * wait, 5.0)
        if not status:
            raise ServiceError(sentence, 0)
        try:
            problem = json.loads(content)
            sentence, field = problem["detail"], problem.get("field")
        except (ValueError, KeyError, TypeError):
            sentence, field = f"the service answered with the status {status}.", None
        raise ServiceError(sentence, status, field=field)

    def _call(self, method: str, path: str, content: Mapping[str, Any] | None = None) -> dict[str, Any]:
        body = self._send(method, path) if content is None else self._send(method, path, _body(content), JSON)
        answer: dict[str, Any] = json.loads(body) if body else {}
        return answer

    def _lines(self, path: str, rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        body = self._send("POST", path, b"\n".join(map(_body, rows)), LINES)
        return [json.loads(line) for line in body.splitlines() if line]


def _body(content: Mapping[str, Any]) -> bytes:
    return json.dumps(content, separators=(",", ":")).encode()
