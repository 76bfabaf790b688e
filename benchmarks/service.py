"""What does a request to `credo serve` cost? The server's processor time a request, beside the disk.

    python benchmarks/service.py                  # a linear model, 1, 16 and 64 clients
    python benchmarks/service.py --model bank     # the default on two classes
    python benchmarks/service.py --build            # forecasts of one model while another is built
    python benchmarks/service.py --restart 100000   # restarts, from snapshots and by a replay

Rows have nine numbers and a category. Each client waits for its answer before it sends again. The server is a
process of its own; its processor time is that of all its threads, from /proc. Durable rows a second depend on
the disk, whose time for a flush is shown beside.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from credo.serve import Client

CLIENTS = (1, 16, 64)
COLUMNS = {f"x{place}": "number" for place in range(9)} | {"c": "category"}
SPECS: dict[str, dict[str, Any]] = {
    "linear": {"target": "y", "columns": COLUMNS, "options": {"model": "linear"}},
    "bank": {"target": "y", "columns": COLUMNS, "classes": ["no", "yes"]},
}


def row(rng: random.Random, model: str) -> dict[str, Any]:
    """A row with an id."""
    numbers = [rng.gauss(0, 1) for _ in range(9)]
    y = numbers[0] - 0.5 * numbers[1] * numbers[2] + rng.gauss(0, 0.3)
    x = {f"x{place}": round(number, 6) for place, number in enumerate(numbers)}
    target = y if model == "linear" else ("yes" if y > 0 else "no")
    return {"id": f"{rng.getrandbits(60):x}", "x": {**x, "c": rng.choice("uvwxyz")}, "y": target}


def processor_time(pid: int) -> float:
    """The processor time of a process so far, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident(pid: int) -> float:
    """The resident memory of a process, in MB."""
    line = next(
        one for one in Path(f"/proc/{pid}/status").read_text().splitlines() if one.startswith("VmRSS")
    )
    return int(line.split()[1]) / 1e3


def flush_time(folder: Path, times: int = 100) -> float:
    """How long fdatasync takes on the disk of a folder, in ms (the median)."""
    taken = []
    with open(folder / "flush", "wb", buffering=0) as file:
        for _ in range(times):
            file.write(b"x" * 4096)
            start = time.perf_counter()
            os.fdatasync(file.fileno())
            taken.append(time.perf_counter() - start)
    return 1e3 * float(np.median(taken))


def head_of(path: str, length: int, more: str = "") -> bytes:
    """The head of a request with a body of JSON, as the gate of the service lets it in."""
    said = f"Host: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n{more}"
    return f"POST {path} HTTP/1.1\r\n{said}\r\n".encode()


async def one_client(port: int, path: str, bodies: list[bytes], times: list[float], until: float) -> None:
    """Send bodies over one connection, each after the answer to the one before."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for body in bodies:
        start = time.perf_counter()
        if start > until:
            break
        writer.write(head_of(path, len(body)) + body)
        lines = await reader.readuntil(b"\r\n\r\n")
        length = int(lines.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        answer = await reader.readexactly(length)
        assert lines.startswith(b"HTTP/1.1 200"), answer
        times.append(time.perf_counter() - start)
    writer.close()


async def load(port: int, name: str, kind: str, clients: int, seconds: float, seed: int) -> list[float]:
    """So many clients for so long; how long each request took."""
    rng = random.Random(seed)
    times = list[float]()
    rows = [[row(rng, name) for _ in range(int(3000 * seconds / clients**0.5))] for _ in range(clients)]
    kept = ("id", "x", "y") if kind == "learn" else ("x",)
    bodies = [[json.dumps({key: one[key] for key in kept}).encode() for one in some] for some in rows]
    until = time.perf_counter() + seconds
    path = f"/v1/models/{name}/{kind}"
    await asyncio.gather(*(one_client(port, path, some, times, until) for some in bodies))
    return times


def measure(port: int, pid: int, name: str, seconds: float) -> list[str]:
    """A line of a table for each kind of request and each number of clients, which is printed, too."""
    lines = []
    for kind in ("learn", "predict"):
        for clients in CLIENTS:
            asyncio.run(load(port, name, kind, clients, 1.0, clients))
            before = processor_time(pid)
            start = time.perf_counter()
            times = asyncio.run(load(port, name, kind, clients, seconds, clients + 1000))
            spent = processor_time(pid) - before
            wall = time.perf_counter() - start
            p50, p99 = np.percentile(times, [50, 99]) * 1e3
            numbers = f"{1e6 * spent / len(times):,.0f} | {len(times) / wall:,.0f} | {p50:.1f} | {p99:.1f}"
            lines.append(f"| {name}, {kind} | {clients} | {numbers} | {1e3 * max(times):,.0f} |")
            print(lines[-1], flush=True)
    return lines


def markdown(quick: bool) -> str:
    """The section of RESULTS.md, of a linear model and of the default on two classes."""
    with tempfile.TemporaryDirectory() as place:
        flush = flush_time(Path(place))
        server = Server(Path(place) / "service")
        lines = list[str]()
        try:
            for name in SPECS:
                build(server, name)
                lines += measure(server.port, server.pid, name, 1.0 if quick else 5.0)
        finally:
            server.stop()
    head = [
        "\n## service",
        "",
        f"`fdatasync` of the disk takes {flush:.2f} ms (the median of 100); requests come over loopback.",
        "",
        "| model, request | clients | processor time us | a second | p50 ms | p99 ms | most ms |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    return "\n".join([*head, *lines]) + "\n"


def batch(client: Client, pid: int, name: str, rows: int = 2560) -> None:
    """A batch of rows to learn."""
    rng = random.Random(5)
    for turn in range(3):
        some = [row(rng, name) for _ in range(rows)]
        before = processor_time(pid)
        client.learn_batch(name, some)
        spent = processor_time(pid) - before
        print(f"{name}, learn:batch of {rows}: {1e6 * spent / rows:.0f} us a row (turn {turn})", flush=True)


class Server:
    """A service in a process of its own."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        command = [str(Path(sys.executable).parent / "credo"), "serve", str(folder), "--port", str(self.port)]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        self.pid = self.process.pid
        self.client = Client(f"http://127.0.0.1:{self.port}", retries=200)

    def stop(self) -> None:
        """Stop it as `kill` does."""
        self.client.close()
        self.process.terminate()
        print(f"exit status: {self.process.wait(60)}", flush=True)


def build(server: Server, name: str) -> None:
    """Build a model."""
    start = time.perf_counter()
    before = processor_time(server.pid)
    server.client.add(name, **SPECS[name])
    server.client.wait(name, 1200.0)  # where clients take all of a processor, as in `beside_building`
    spent = processor_time(server.pid) - before
    wall = time.perf_counter() - start
    print(f"{name} was built in {wall:.1f} s; {spent:.1f} s of processor time in the service", flush=True)


def beside_building(server: Server) -> None:
    """How long forecasts of a linear model take while a bank is built."""
    build(server, "linear")
    asyncio.run(load(server.port, "linear", "predict", 4, 1.0, 0))
    thread = threading.Thread(target=build, args=(server, "bank"))
    thread.start()
    times: list[float] = []
    while thread.is_alive():
        times += asyncio.run(load(server.port, "linear", "predict", 4, 1.0, len(times)))
    p50, p99 = np.percentile(times, [50, 99]) * 1e3
    waits = f"p50 {p50:.1f} ms, p99 {p99:.1f} ms, most {1e3 * max(times):.0f}"
    print(f"linear, predict, 4 clients, while a bank is built: {waits} ({len(times)} requests)", flush=True)


def restarts(folder: Path, rows: int) -> None:
    """The processor time of a restart from snapshots, and of one that replays all lines."""
    server = Server(folder)
    for name in ("linear", "linear-2"):
        server.client.add(name, **SPECS["linear"])
    server.client.add("shop", kind="bandit", arms=["red", "blue"], agent="linear")
    for name in ("linear", "linear-2", "shop"):
        server.client.wait(name)
    rng = random.Random(9)
    for _ in range(rows // 2500):
        server.client.learn_batch("linear", [row(rng, "linear") for _ in range(2500)])
    server.stop()
    for words in ("from snapshots", f"with a replay of {rows:,} rows"):
        start = time.perf_counter()
        server = Server(folder)
        for name in ("linear", "linear-2", "shop"):
            server.client.wait(name)
        spent = processor_time(server.pid)
        wall = time.perf_counter() - start
        print(f"restart {words}: {spent:.1f} s of processor time, {wall:.1f} s", flush=True)
        print(f"resident: {resident(server.pid):.0f} MB")
        server.stop()
        with contextlib.closing(sqlite3.connect(folder / "journal.db")) as db:
            db.execute("DELETE FROM snapshots")
            db.commit()


def main() -> None:
    """Run what was asked for."""
    words: dict[str, Any] = {"description": __doc__, "formatter_class": argparse.RawDescriptionHelpFormatter}
    parser = argparse.ArgumentParser(**words)
    parser.add_argument("--model", choices=["linear", "bank", "both"], default="linear")
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--batch", action="store_true")
    parser.add_argument("--build", action="store_true", help="forecasts while a bank is built, alone")
    parser.add_argument("--restart", type=int, default=0, help="restarts with so many rows, alone")
    parser.add_argument("--folder", type=Path, default=None, help="the disk to measure on")
    asked = parser.parse_args()
    names = ["linear", "bank"] if asked.model == "both" else [asked.model]
    with tempfile.TemporaryDirectory(dir=asked.folder) as place:
        folder = Path(place)
        busy = os.getloadavg()[0]
        print(f"fdatasync of this disk: {flush_time(folder):.2f} ms; load {busy:.1f}", flush=True)
        if asked.restart:
            restarts(folder / "service", asked.restart)
            return
        server = Server(folder / "service")
        try:
            if asked.build:
                beside_building(server)
                return
            for name in names:
                build(server, name)
                measure(server.port, server.pid, name, asked.seconds)
                if asked.batch:
                    batch(server.client, server.pid, name)
            print(f"resident: {resident(server.pid):.0f} MB")
        finally:
            server.stop()


if __name__ == "__main__":
    main()
