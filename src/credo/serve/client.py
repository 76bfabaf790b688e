"""A client of the service, which asks again with the same id where it got no answer."""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from credo.core.errors import CredoError, DataError, require_integer, require_positive
from credo.core.extensions import extra

__all__ = ["Client", "ServiceError"]


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
        self.retries = retries
        self._lost = httpx.TransportError
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
        wait = 0.05
        status = 0
        content = b""
        sentence = ""
        for attempt in range(self.retries + 1):
            status = 0
            content = b""
            try:
                response = self._http.request(method, path, content=body, headers=headers)
                status = response.status_code
                content = response.content
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
            sentence = problem["detail"]
            field = problem.get("field")
        except (ValueError, KeyError, TypeError):
            sentence = f"the service answered with the status {status}."
            field = None
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


class Client(Connection):
    """Learn, forecast and decide with the models of a `credo serve`.

    A request that got no answer, or was put off, is sent again with the same id, so that a row is learned
    once however often it was sent. Answers are the JSON objects of the service.

    Arguments:
        url: the address, such as "http://127.0.0.1:8000".
        token: the bearer token, if the service asks for one.
        retries: how often a request is sent again.
        timeout: for how many seconds an answer is awaited.
        transport: an `httpx` transport, for tests.

    Raises:
        CredoError: httpx is not installed, or a number is not allowed.

    Cost: a request each; `learn_batch` and `predict_batch` send many rows in one.

    Example:
        >>> client = Client("http://127.0.0.1:8000", retries=3)
        >>> client.close()
    """

    def add(self, name: str, **spec: Any) -> dict[str, Any]:
        """Add a model, or find it there.

        Arguments:
            name: its name.
            spec: what it is, see `credo.serve.specs`: target, task, columns, options, or kind="bandit", arms.

        Raises:
            ServiceError: the service refused.
        """
        return self._call("PUT", f"/v1/models/{name}", spec)

    def add_saved(self, name: str, path: str | os.PathLike[str]) -> dict[str, Any]:
        """Add a model that goes on from a saved session.

        Arguments:
            name: its name.
            path: a file that `Session.save` or `credo learn` wrote.

        Raises:
            DataError: the file cannot be read.
            ServiceError: the service refused.
        """
        try:
            body = Path(path).read_bytes()
        except OSError as error:
            raise DataError(f"cannot read {path}: {error.strerror or error}.") from None
        kind = {"Content-Type": "application/octet-stream"}
        answer: dict[str, Any] = json.loads(self._send("PUT", f"/v1/models/{name}", body, kind))
        return answer

    def models(self) -> list[dict[str, Any]]:
        """All models."""
        models: list[dict[str, Any]] = self._call("GET", "/v1/models")["models"]
        return models

    def model(self, name: str) -> dict[str, Any]:
        """A model, its scores and its notes.

        Arguments:
            name: its name.
        """
        return self._call("GET", f"/v1/models/{name}")

    def remove(self, name: str) -> None:
        """Remove a model and all that it has learned.

        Arguments:
            name: its name.
        """
        self._call("DELETE", f"/v1/models/{name}")

    def wait(self, name: str, seconds: float = 300.0) -> None:
        """Wait until a model answers.

        Arguments:
            name: its name.
            seconds: for how long.

        Raises:
            ServiceError: it failed, or is not there in time.
        """
        end = time.monotonic() + seconds
        while (model := self.model(name))["stage"] != "ready":
            if model["stage"] == "failed" or time.monotonic() > end:
                raise ServiceError(
                    f"model {name!r} is {model['stage']}. {model.get('reason', '')}".strip(), 503
                )
            time.sleep(0.1)

    def learn(
        self,
        name: str,
        x: Mapping[str, Any],
        y: Any,
        id: str | None = None,
        *,
        weight: float | None = None,
        time: float | str | None = None,
    ) -> dict[str, Any]:
        """Learn a row; the answer has its forecast before, and its score.

        Arguments:
            name: the model.
            x: the cells by column.
            y: the target.
            id: the id of the row; None for a new one.
            weight: how many equal rows it counts as; None for 1.
            time: when it was observed, where the model has a `time_unit`: in seconds since 1970, or a text of
                ISO 8601.

        Raises:
            ServiceError: the service refused, or did not answer.
        """
        content = {"id": _id(id), "x": x, "y": y} | _given(weight=weight, time=time)
        return self._call("POST", f"/v1/models/{name}/learn", content)

    def learn_batch(self, name: str, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Learn rows, at most 10,000, all or none.

        Arguments:
            name: the model.
            rows: each with x and y, and an id if it has one.
        """
        return self._lines(f"/v1/models/{name}/learn:batch", [{"id": _id(None), **row} for row in rows])

    def predict(
        self, name: str, x: Mapping[str, Any], id: str | None = None, *, time: float | str | None = None
    ) -> dict[str, Any]:
        """Forecast a row.

        Arguments:
            name: the model.
            x: the cells by column.
            id: an id under which the row waits for its label; None keeps nothing.
            time: when it is observed, as for `learn`; without an id it may be left out.
        """
        content = {"x": x} | _given(id=id, time=time)
        return self._call("POST", f"/v1/models/{name}/predict", content)

    def predict_batch(self, name: str, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Forecast rows, at most 10,000.

        Arguments:
            name: the model.
            rows: each with x, and all or none with an id.
        """
        return self._lines(f"/v1/models/{name}/predict:batch", rows)

    def label(self, name: str, id: str, y: Any) -> dict[str, Any]:
        """Learn what was observed of a row that was forecast.

        Arguments:
            name: the model.
            id: the id of the forecast.
            y: the target.
        """
        return self._call("POST", f"/v1/models/{name}/label", {"id": id, "y": y})

    def decide(
        self,
        name: str,
        context: Any = None,
        arms: Sequence[str] | Mapping[str, Mapping[str, Any]] | None = None,
        id: str | None = None,
        *,
        size: int | None = None,
    ) -> dict[str, Any]:
        """Choose an arm; the answer has the arm, its propensity and the id of the decision.

        With a size, choose several arms in an order, a slate; the answer has the arms, the propensity of the
        whole slate, and those of its `places`.

        Arguments:
            name: the bandit.
            context: numbers, texts, lists and objects by name, a list of numbers, or None.
            arms: the arms among which to choose, or where the bandit takes arms with a call their features by
                name; None for all.
            id: the id of the decision; None for a new one.
            size: how many arms, in an order; None for a single one.
        """
        content = {"id": _id(id), "context": context, "arms": _arms(arms)} | _given(size=size)
        return self._call("POST", f"/v1/models/{name}/decide", content) | {"id": content["id"]}

    def reward(self, name: str, id: str, value: float, *, part: str | None = None) -> dict[str, Any]:
        """Learn the reward of a decision, or keep a part of it.

        Arguments:
            name: the bandit.
            id: the id of the decision.
            value: the reward, or the part.
            part: the name of the part; None for the last one, or all of it.
        """
        content = {"id": id, "value": value} | _given(part=part)
        return self._call("POST", f"/v1/models/{name}/reward", content)

    def reward_slate(
        self, name: str, id: str, values: Sequence[float], *, seen: str | Sequence[float] | None = None
    ) -> dict[str, Any]:
        """Learn what a reader of a slate did; the answer has a status for each place, or None if unseen.

        Arguments:
            name: the bandit.
            id: the id of the slate.
            values: the reward of each place, from the top.
            seen: "cascade", down to the first reward that is not 0, which is what None means; "all"; or the
                probability that each place is seen.
        """
        shares = seen if seen is None or isinstance(seen, str) else list(seen)
        content = {"id": id, "values": list(values)} | _given(seen=shares)
        return self._call("POST", f"/v1/models/{name}/reward", content)

    def observe(
        self,
        name: str,
        context: Any,
        arm: str,
        reward: float | None = None,
        *,
        propensity: float | Mapping[str, float] | None = None,
        arms: Sequence[str] | Mapping[str, Mapping[str, Any]] | None = None,
        id: str | None = None,
    ) -> dict[str, Any]:
        """Learn from a choice that was made elsewhere; the answer has its id.

        Arguments:
            name: the bandit.
            context: as for `decide`.
            arm: the chosen arm.
            reward: its reward; None if it comes later.
            propensity: the probability with which it was chosen, or those of all arms by name.
            arms: as for `decide`.
            id: the id of the choice; None for a new one.
        """
        content = {"id": _id(id), "context": context, "arm": arm, "reward": reward}
        content |= {"propensity": propensity, "arms": _arms(arms)}
        return self._call("POST", f"/v1/models/{name}/observe", content) | {"id": content["id"]}


def _arms(arms: Sequence[str] | Mapping[str, Mapping[str, Any]] | None) -> Any:
    if arms is None:
        return None
    if isinstance(arms, Mapping):
        return dict(arms)
    return list(arms)


def _given(**fields: Any) -> dict[str, Any]:
    """The fields that are not None."""
    return {name: value for name, value in fields.items() if value is not None}


def _id(id: str | None) -> str:
    if id is None:
        return uuid.uuid4().hex
    return id
