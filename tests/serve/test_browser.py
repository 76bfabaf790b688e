"""Pages of other origins in a real Chromium, and a name that is bound to this machine, reach nothing."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.serve.conftest import LINEAR, row
from tests.serve.test_processes import _Server

from credo.serve import Client

DRIVER = Path(__file__).with_name("browser.py")
NAMES = ["evil.example", "rebound.example"]

TRY = """
const tried = async (path, more) => {
    try {
        const answer = await fetch(SERVICE + path, more);
        return [answer.type, answer.status, await answer.text()];
    } catch (error) {
        return ["error", 0, ""];
    }
};
"""
"""A function of the scripts, that tells what a page sees of an answer."""

CROSS = """
const json = {"Content-Type": "application/json"}, text = {"Content-Type": "text/plain"};
const seen = {};
seen.text = await tried(LEARN, {method: "POST", body: ROW, headers: text});
seen.blind = await tried(LEARN, {method: "POST", body: ROW, headers: text, mode: "no-cors"});
seen.json = await tried(LEARN, {method: "POST", body: ROW, headers: json});
seen.untyped = await tried(LEARN, {method: "POST", body: new Blob([ROW]), mode: "no-cors"});
seen.put = await tried("/v1/models/more", {method: "PUT", body: SPEC, headers: json});
seen.remove = await tried("/v1/models/linear", {method: "DELETE"});
seen.list = await tried("/v1/models", {});
seen.opaque = await tried("/v1/models", {mode: "no-cors"});
navigator.sendBeacon(SERVICE + LEARN, new Blob([ROW], {type: "text/plain"}));
seen.image = await new Promise(done => {
    const image = new Image();
    image.onload = () => done("shown");
    image.onerror = () => done("broken");
    image.src = SERVICE + "/v1/models";
});
seen.form = await new Promise(done => {
    document.body.innerHTML = '<iframe name="sink"></iframe>' +
        '<form method="post" enctype="text/plain" target="sink"><input name="x"></form>';
    const form = document.forms[0], input = form.elements[0];
    input.name = ROW.slice(0, -1) + ',"y2":"';
    input.value = '"}';
    form.action = SERVICE + LEARN;
    document.querySelector("iframe").onload = () => done("sent");
    form.submit();
    setTimeout(() => done("refused"), 5000);
});
return seen;
"""
"""All that a page of another origin may try."""

OWN = """
const json = {"Content-Type": "application/json"};
const seen = {};
seen.list = await tried("/v1/models", {});
seen.put = await tried("/v1/models/more", {method: "PUT", body: SPEC, headers: json});
seen.learn = await tried(LEARN, {method: "POST", body: ROW, headers: json});
seen.remove = await tried("/v1/models/nothing", {method: "DELETE"});
seen.gone = await tried("/v1/models/linear", {method: "DELETE"});
return seen;
"""
"""What a page of the service's own origin may do, and one whose name was bound to this machine tries."""

HAS_QT = importlib.util.find_spec("PyQt6") is not None
HAS_BROWSER = HAS_QT and importlib.util.find_spec("PyQt6.QtWebEngineCore") is not None

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not HAS_BROWSER, reason="there is no browser: pip install PyQt6-WebEngine brings one"),
]


class _Page(BaseHTTPRequestHandler):
    """An empty page of another origin."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><body></body>")

    def log_message(self, format: str, *arguments: Any) -> None:
        """Say nothing."""


@pytest.fixture
def evil() -> Iterator[int]:
    """The port of a server of another origin."""
    server = HTTPServer(("127.0.0.1", 0), _Page)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server.server_address[1]
    server.shutdown()
    thread.join()
    server.server_close()


def step(page: str, service: str, script: str) -> tuple[str, str]:
    """A page to open, and a script in which `SERVICE`, `LEARN`, `ROW` and `SPEC` have values."""
    values = {"SERVICE": service, "LEARN": "/v1/models/linear/learn", "ROW": json.dumps(row(7))}
    values["SPEC"] = json.dumps(LINEAR)
    known = "".join(f"const {name} = {json.dumps(value)};" for name, value in values.items())
    return page, known + TRY + script


def browsed(steps: list[tuple[str, str]]) -> list[Any]:
    """What scripts saw in pages of a browser."""
    words = json.dumps(steps), json.dumps(NAMES)
    run = subprocess.run([sys.executable, str(DRIVER), *words], capture_output=True, text=True, timeout=200)
    assert run.returncode == 0, run.stderr
    seen: list[Any] = json.loads(run.stdout.splitlines()[-1])
    return seen


def refusals(service: str) -> int:
    lines = httpx.get(f"{service}/metrics").text.splitlines()
    return int(
        float(next(line.split()[1] for line in lines if line.startswith("credo_requests_refused_total")))
    )


def test_a_page_of_another_origin_learns_lists_and_deletes_nothing(tmp_path: Path, evil: int) -> None:
    with _Server(tmp_path / "service") as server, Client(server.url, retries=100) as client:
        client.add("linear", **LINEAR)
        client.wait("linear")
        client.learn("linear", row(0)["x"], row(0)["y"], "one")
        before, refused = client.model("linear"), refusals(server.url)
        port = server.url.rpartition(":")[2]
        own = f"http://rebound.example:{port}"  # what its server gives this name is this machine by now
        pages = [f"http://evil.example:{evil}/", f"http://127.0.0.1:{evil}/"]
        steps = [step(page, server.url, CROSS) for page in pages]
        *others, rebound = browsed([*steps, step(f"{own}/", own, OWN)])
        for seen in others:
            form, image = seen.pop("form"), seen.pop("image")
            assert image == "broken" and form in ("sent", "refused")
            blind = {seen.pop(name)[0] for name in ("blind", "untyped", "opaque")}
            assert blind <= {"opaque", "error"}  # sent, and what came back is not shown
            assert all(one == ["error", 0, ""] for one in seen.values()), seen
        assert [one[1] for one in rebound.values()] == [403] * len(rebound), rebound
        assert all("Host must be" in one[2] for one in rebound.values())
        assert refusals(server.url) >= refused + 10  # they came, and were not kept back by the browser alone
        assert client.model("linear") == before and [one["name"] for one in client.models()] == ["linear"]
        (ours,) = browsed([step(f"{server.url}/", server.url, OWN)])
        assert [one[1] for one in ours.values()] == [200, 202, 200, 404, 204]
