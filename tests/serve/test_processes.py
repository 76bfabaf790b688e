"""The command in a process of its own: the page is true, and a kill loses nothing that was acknowledged."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.serve.conftest import LINEAR, row

from credo.serve import Client, ServiceError

ROOT = Path(__file__).parents[2]
CREDO = str(Path(sys.executable).parent / "credo")
BANDIT: dict[str, Any] = {"kind": "bandit", "arms": ["red", "blue"], "agent": "beta", "features": 0}
DEFAULT: dict[str, Any] = {"kind": "bandit", "arms": ["red", "blue"], "features": 4}
SHOPS = ("shop", "shop-default")
BANK: dict[str, Any] = {"target": "y", "columns": LINEAR["columns"], "classes": ["no", "yes"]}


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def environment() -> dict[str, str]:
    """That of a user, whose programs are kept where those of other tests are."""
    return os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "blocks", "verdicts"),
    [("serve", 13, 3), ("back-up-a-service", 4, 1), ("serve-behind-a-proxy", 4, 0)],
)
def test_the_pages_are_true(tmp_path: Path, name: str, blocks: int, verdicts: int) -> None:
    page = (ROOT / f"docs/how-to/{name}.md").read_text(encoding="utf-8")
    if "nginx -p" in page and shutil.which("nginx") is None:
        pytest.skip("nginx is not installed")
    found = re.findall(r"^```sh\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert len(found) == blocks
    script = "set -e\n" + "\necho\n".join(found)
    for port in ("8000", "8443"):
        script = script.replace(port, str(free_port()))
    run = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, env=environment(), capture_output=True, timeout=200
    )
    said = run.stdout.decode()
    assert run.returncode == 0, said + run.stderr.decode()
    learned = ('"stage":"ready"', '"learned":true')
    more = ('"mean":', '"status":"learned"', '"arm":', '"statuses":["learned","learned"]')
    for part in (*learned, *more) if name == "serve" else learned:
        assert part in said
    assert said.count("the state is the same, bit by bit; 0 other answers") == verdicts


def context_of(model: str, id: str) -> dict[str, Any] | None:
    """What is known at a decision: nothing, where the agent is one of chances."""
    return {"number": float(id.partition("-")[2]) % 7.0} if model == "shop-default" else None


class _Load:
    """Clients that learn, forecast, label, decide and reward until they are stopped, and note answers. They
    ask again so many times where there is no answer.
    """

    def __init__(self, url: str, models: list[str], clients: int, retries: int = 200) -> None:
        self.url, self.models, self.stopped = url, models, threading.Event()
        self.retries = retries
        self.acknowledged: dict[tuple[str, str, str], dict[str, Any]] = {}
        self.repeats = 0
        self.errors: list[BaseException] = []
        self.threads = [threading.Thread(target=self._client, args=(seed,)) for seed in range(clients)]
        for thread in self.threads:
            thread.start()

    def _client(self, seed: int) -> None:
        number = 0
        try:
            with Client(self.url, retries=self.retries, timeout=60.0) as client:
                while not self.stopped.is_set():
                    self._one(client, seed, number)
                    number += 1
        except BaseException as error:  # pragma: no cover
            self.errors.append(error)

    def _one(self, client: Client, seed: int, number: int) -> None:
        for model in self.models:
            if model in SHOPS:
                self._decide(client, model, f"{seed}-{number}")
                continue
            one = row(number, seed + 1)
            y = one["y"] if model.startswith("linear") else ("yes" if one["y"] > 0 else "no")
            if number % 4 == 3:
                self._note(model, "predict", one["id"], client.predict(model, one["x"], one["id"]))
                self._note(model, "label", one["id"], client.label(model, one["id"], y))
            else:
                self._note(model, "learn", one["id"], client.learn(model, one["x"], y, one["id"]))

    def _decide(self, client: Client, model: str, id: str) -> None:
        decision = client.decide(model, context_of(model, id), id=id)
        decision.pop("id")
        self._note(model, "decide", id, decision)
        self._note(model, "reward", id, client.reward(model, id, float(decision["arm"] == "red")))

    def _note(self, model: str, kind: str, id: str, answer: dict[str, Any]) -> None:
        self.repeats += bool(answer.pop("duplicate", False))
        self.acknowledged[model, kind, id] = answer

    def stop(self) -> None:
        self.stopped.set()
        for thread in self.threads:
            thread.join()
        if self.errors:
            raise self.errors[0]


class _Server:
    """A service of a folder in a process of its own, which can be killed and started again."""

    def __init__(self, folder: Path) -> None:
        self.folder, port = folder, free_port()
        self.url = f"http://127.0.0.1:{port}"
        self.command = [CREDO, "serve", str(folder), "--port", str(port), "--snapshot-rows", "100"]
        self.process = self.start()

    def start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(self.command, env=environment(), stdout=subprocess.DEVNULL)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def __enter__(self) -> _Server:
        return self

    def __exit__(self, *error: object) -> None:
        self.kill()


def _again(client: Client, load: _Load, model: str, kind: str, id: str) -> dict[str, Any]:
    """The answer to a request that was acknowledged, when it is sent once more."""
    seed, number = map(int, id.split("-"))
    one = row(number, seed)
    y = one["y"] if model.startswith("linear") else ("yes" if one["y"] > 0 else "no")
    content = {"learn": {"x": one["x"], "y": y}, "predict": {"x": one["x"]}, "label": {"y": y}}.get(kind, {})
    if kind == "reward":
        content = {"value": float(load.acknowledged[model, "decide", id]["arm"] == "red")}
    if kind == "decide":
        content = {"context": context_of(model, id)}
    return client._call("POST", f"/v1/models/{model}/{kind}", {"id": id, **content})


def _require_acknowledged(client: Client, load: _Load) -> None:
    """Whatever was acknowledged is known, and is answered as it was."""
    for (model, kind, id), answer in load.acknowledged.items():
        again = _again(client, load, model, kind, id)
        assert again.pop("duplicate") is True, (model, kind, id)
        if answer.get("stage") is None:
            assert again == answer, (model, kind, id)


def _require_verified(folder: Path, models: int) -> None:
    """The lines of every model, replayed, give its state bit by bit."""
    check = [CREDO, "serve", str(folder), "--verify"]
    verdict = subprocess.run(check, env=environment(), capture_output=True, text=True)
    assert verdict.returncode == 0, verdict.stdout + verdict.stderr
    assert verdict.stdout.count("the state is the same, bit by bit; 0 other answers") == models


def _killed(folder: Path, specs: dict[str, dict[str, Any]], kills: int, clients: int) -> str:
    """Kill a service under load again and again; then nothing is lost or moved, and all is bit by bit."""
    with _Server(folder) as server, Client(server.url, retries=100) as client:
        for name, spec in specs.items():
            client.add(name, **spec)
        for name in specs:
            client.wait(name)
        load = _Load(server.url, list(specs), clients)
        for kill in range(kills):
            if kill % 3 < 2:
                for name in specs:
                    client.wait(name)
            time.sleep(0.5 + kill % 4)
            server.kill()
            server.process = server.start()
        for name in specs:
            client.wait(name)
        time.sleep(0.5)
        load.stop()
        assert len(load.acknowledged) > 20 * kills
        _require_acknowledged(client, load)
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(60) == 0
    _require_verified(folder, len(specs))
    return f"{kills} kills, {len(load.acknowledged):,} acknowledged, 0 lost, {load.repeats} repeats"


@pytest.mark.crash
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kills", [4, pytest.param(30, marks=pytest.mark.thorough)])
def test_many_kills_lose_nothing(tmp_path: Path, kills: int) -> None:
    specs = {"linear": LINEAR, "linear-2": {**LINEAR, "levels": [0.05, 0.95]}, "bank": BANK, "shop": BANDIT}
    specs["shop-default"] = DEFAULT
    print(_killed(tmp_path / "service", specs, kills, clients=16))


WIDE = {f"new-{number}": 1.0 for number in range(10_000)}
PAGE = {"Origin": "https://evil.example"}
REBOUND = {"Host": "evil.example"}
ATTACKS: list[tuple[bytes, dict[str, str], int]] = [
    (b'{"id": "bad", "x": {"a": "\\ud800"}, "y": 1}', {}, 400),
    (b'{"id": "bad", "x": {"\\ud800": 1}, "y": 1}', {}, 400),
    (json.dumps({"id": "bad", "x": WIDE, "y": 1.0}).encode(), {}, 422),
    (json.dumps({**row(1), "id": "bad"}).encode(), {"Content-Type": "text/plain"}, 415),
    (json.dumps({**row(1), "id": "bad"}).encode(), PAGE, 403),
    (json.dumps({**row(1), "id": "bad"}).encode(), REBOUND, 403),
    (b"[" * 100_000, {}, 400),
]


def _attack(url: str, halves: list[socket.socket]) -> None:
    """Send what must be refused, and leave heads half sent."""
    for body, headers, status in ATTACKS:
        kind = {"Content-Type": "application/json"}
        answer = httpx.post(f"{url}/v1/models/linear/learn", content=body, headers=kind | headers, timeout=60)
        assert answer.status_code == status, answer.text
    for _ in range(20):
        half = socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])))
        half.sendall(b"POST /v1/models/linear/learn HTTP/1.1\r\nHost: 127.0.0.1\r\nx-half: ")
        halves.append(half)
    with socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2]))) as long:
        long.sendall(b"GET / HTTP/1.1\r\n" + b"x: " + b"a" * 200_000)
        assert long.recv(100).startswith(b"HTTP/1.1 431")


GROWTH, BATCH = 200, 25
"""The number of rows of hostile clients each of which has a column of its own, and of those sent at once."""


def _grow(url: str, place: int, taken: list[str]) -> None:
    """Send every fourth batch of rows with new columns to a model of their own, again if that is late."""
    with Client(url, retries=50, timeout=60.0) as client:
        for start in range(place * BATCH, GROWTH, 4 * BATCH):
            rows = [row(number) for number in range(start, start + BATCH)]
            for number, one in enumerate(rows, start):
                one["x"] = {**one["x"], f"new-{number}": 1.0}
            client.learn_batch("grows", rows)
            taken += [one["id"] for one in rows]


@pytest.mark.crash
@pytest.mark.timeout(900)
def test_hostile_clients_take_nothing_from_honest_ones(tmp_path: Path) -> None:
    specs = {"linear": LINEAR, "shop": BANDIT, "grows": LINEAR}
    folder, halves, grown = tmp_path / "service", list[socket.socket](), list[str]()
    with _Server(folder) as server, Client(server.url, retries=100) as client:
        for name, spec in specs.items():
            client.add(name, **spec)
        for name in specs:
            client.wait(name)
        load = _Load(server.url, ["linear", "shop"], 16, retries=0)  # so that no answer may be missing
        growing = [threading.Thread(target=_grow, args=(server.url, place, grown)) for place in range(4)]
        for thread in growing:
            thread.start()
        rounds = 0
        while rounds < 3 or any(thread.is_alive() for thread in growing):
            before = len(load.acknowledged)
            _attack(server.url, halves)
            while (
                len(load.acknowledged) == before
            ):  # a client whose answer does not come in time has an error
                assert not load.errors, load.errors
                time.sleep(0.05)
            rounds += 1
        load.stop()
        assert len(grown) == GROWTH
        for half in halves[-20:]:
            half.settimeout(30.0)
            assert half.recv(100).startswith(b"HTTP/1.1 408")  # within ten seconds of its first byte
        for half in halves:
            half.close()
        assert client._http.get("/livez").status_code == client._http.get("/readyz").status_code == 200
        server.kill()
        server.process = server.start()
        for name in specs:
            client.wait(name)
        _require_acknowledged(client, load)
        assert client.model("grows")["learned"] == GROWTH
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(60) == 0
    _require_verified(folder, len(specs))


def test_a_client_asks_again_with_the_same_id() -> None:
    bodies: list[dict[str, Any]] = []

    def answer(request: httpx.Request) -> httpx.Response:
        bodies.append(json.loads(request.content))
        if len(bodies) == 1:
            raise httpx.ReadError("the connection is gone")
        if len(bodies) == 2:
            return httpx.Response(429, json={"detail": "later."})
        return httpx.Response(200, json={"seq": 1, "duplicate": True})

    with Client("http://service", retries=2, transport=httpx.MockTransport(answer)) as client:
        assert client.learn("m", {"a": 1.0}, 2.0)["duplicate"]
    assert len(bodies) == 3 and bodies[0] == bodies[1] == bodies[2]

    def refuse(request: httpx.Request) -> httpx.Response:
        bodies.append({})
        return httpx.Response(409, json={"detail": "id must be a new one.", "field": "id"})

    refused = pytest.raises(ServiceError, match="id must be a new one")
    with Client("http://service", transport=httpx.MockTransport(refuse)) as client, refused as error:
        client.label("m", "1", 2.0)
    assert error.value.status == 409 and error.value.field == "id" and len(bodies) == 4
