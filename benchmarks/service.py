"""What does a request to `credo serve` cost? The server's processor time a request, beside the disk.

    python benchmarks/service.py                  # a linear model, 1, 16 and 64 clients
    python benchmarks/service.py --model bank     # the default on two classes
    python benchmarks/service.py --model both --batch --memory

Rows have nine numbers and a category. Each client waits for its answer before it sends again. The server is a
process of its own; its processor time is that of all its threads, from /proc. Durable rows a second depend on
the disk, whose time for a flush is shown beside.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
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


async def one_client(port: int, path: str, bodies: list[bytes], times: list[float], until: float) -> None:
    """Send bodies over one connection, each after the answer to the one before."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for body in bodies:
        start = time.perf_counter()
        if start > until:
            break
        head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        lines = await reader.readuntil(b"\r\n\r\n")
        length = int(lines.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        answer = await reader.readexactly(length)
        assert lines.startswith(b"HTTP/1.1 200"), answer
        times.append(time.perf_counter() - start)
    writer.close()


async def load(port: int, name: str, kind: str, clients: int, seconds: float, seed: int) -> list[float]:
    """So many clients for so long; how long each request took."""
    rng, times = random.Random(seed), list[float]()
    rows = [[row(rng, name) for _ in range(int(3000 * seconds / clients**0.5))] for _ in range(clients)]
    kept = ("id", "x", "y") if kind == "learn" else ("x",)
    bodies = [[json.dumps({key: one[key] for key in kept}).encode() for one in some] for some in rows]
    until = time.perf_counter() + seconds
    path = f"/v1/models/{name}/{kind}"
    await asyncio.gather(*(one_client(port, path, some, times, until) for some in bodies))
    return times


def measure(port: int, pid: int, name: str, seconds: float) -> None:
    """A table for one model."""
    for kind in ("learn", "predict"):
        for clients in CLIENTS:
            asyncio.run(load(port, name, kind, clients, 1.0, clients))
            before, start = processor_time(pid), time.perf_counter()
            times = asyncio.run(load(port, name, kind, clients, seconds, clients + 1000))
            spent, wall = processor_time(pid) - before, time.perf_counter() - start
            p50, p99 = np.percentile(times, [50, 99]) * 1e3
            cost = f"{1e6 * spent / len(times):.0f} us of processor time a request"
            waits = f"p50 {p50:.1f} ms, p99 {p99:.1f} ms, most {1e3 * max(times):.0f}"
            speed = f"{len(times) / wall:.0f} a second"
            print(f"{name}, {kind}, {clients} clients: {cost}, {speed}, {waits}", flush=True)


def batch(client: Client, pid: int, name: str, rows: int = 2560) -> None:
    """A batch of rows to learn."""
    rng = random.Random(5)
    for turn in range(3):
        some = [row(rng, name) for _ in range(rows)]
        before = processor_time(pid)
        client.learn_batch(name, some)
        spent = processor_time(pid) - before
        print(f"{name}, learn:batch of {rows}: {1e6 * spent / rows:.0f} us a row (turn {turn})", flush=True)


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", choices=["linear", "bank", "both"], default="linear")
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--batch", action="store_true")
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--folder", type=Path, default=None, help="the disk to measure on")
    asked = parser.parse_args()
    names = ["linear", "bank"] if asked.model == "both" else [asked.model]
    with tempfile.TemporaryDirectory(dir=asked.folder) as place, socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        folder = Path(place)
        print(
            f"fdatasync of this disk: {flush_time(folder):.2f} ms; load {os.getloadavg()[0]:.1f}", flush=True
        )
        command = [str(Path(sys.executable).parent / "credo"), "serve", str(folder / "service")]
        server = subprocess.Popen([*command, "--port", str(port)], stdout=subprocess.DEVNULL)
        try:
            with Client(f"http://127.0.0.1:{port}", retries=200) as client:
                for name in names:
                    start, before = time.perf_counter(), processor_time(server.pid)
                    client.add(name, **SPECS[name])
                    client.wait(name)
                    spent = processor_time(server.pid) - before
                    wall = time.perf_counter() - start
                    print(f"{name} was built in {wall:.1f} s; {spent:.1f} s of processor time in the service")
                    measure(port, server.pid, name, asked.seconds)
                    if asked.batch:
                        batch(client, server.pid, name)
                if asked.memory:
                    print(f"resident: {resident(server.pid):.0f} MB")
        finally:
            server.terminate()
            print(f"exit status: {server.wait(60)}")


if __name__ == "__main__":
    main()
