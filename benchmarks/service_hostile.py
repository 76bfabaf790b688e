"""How long do honest clients of `credo serve` wait beside hostile ones?

    python benchmarks/service_hostile.py                       # every attack by itself, then all at once
    python benchmarks/service_hostile.py --attack columns      # one of them

Sixteen honest clients, half of which learn and half of which forecast, each send again once answered.
Beside them a process of its own attacks: over `LINES` connections, without a pause, until it is ended.
Honest clients are measured without attacks first, and once more at the end: what lies between is the noise
of the machine. The two processors of a small machine are shared by the service, the honest and the hostile.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from service import SPECS, Server, build, flush_time, head_of, one_client, row

HONEST = 16
LINES = 4
"""The connections of an attack."""

GROWTH = 200
"""The number of rows with new columns, which a model may be sent by mistake as well."""

MOST_NEW = 300
"""The most new columns of a row of the attack `wide growth`: 1, 1 + step, ... and from the start again."""

STEP = 37

Sent = tuple[str, bytes, str]
"""The path, the body and more of the head of a request."""


def bodies_of(attack: str, line: int) -> Iterator[Sent]:
    """The requests of one connection of an attack."""
    path = "/v1/models/linear/learn"
    rng = random.Random(line)
    good = json.dumps(row(rng, "linear")).encode()
    if attack == "surrogates":
        cell = b'{"id": "bad", "x": {"x0": "\\ud800"}, "y": 1}'
        misnamed = b'{"id": "bad", "x": {"\\ud800": 1}, "y": 1}'
        yield from itertools.cycle([(path, cell, ""), (path, misnamed, "")])
    elif attack == "columns":
        wide = {f"new-{number}": 1.0 for number in range(10_000)}
        yield from itertools.repeat((path, json.dumps({"id": "bad", "x": wide, "y": 1.0}).encode(), ""))
    elif attack == "origins":
        yield from itertools.repeat((path, good, "Origin: https://evil.example\r\n"))
    elif attack in ("growth", "growth of the same"):
        name = "linear" if attack == "growth of the same" else "other"
        for number in range(line, GROWTH, LINES):
            one = row(rng, "linear")
            one["x"][f"new-{number}"] = 1.0
            yield f"/v1/models/{name}/learn", json.dumps(one).encode(), ""
    elif attack == "wide growth":
        rng = random.Random(LINES + line)  # other ids than those of `growth`
        for number in range(line, GROWTH, LINES):
            one = row(rng, "linear")
            one["x"] |= {f"new-{number}-{place}": 1.0 for place in range(1 + number * STEP % MOST_NEW)}
            yield "/v1/models/other/learn", json.dumps(one).encode(), ""


ATTACKS = ("surrogates", "columns", "heads", "origins", "growth", "growth of the same", "wide growth")


async def half_heads(port: int) -> None:
    """Open connections whose heads never end, and new ones in the place of those that are closed."""
    while True:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"POST /v1/models/linear/learn HTTP/1.1\r\nHost: 127.0.0.1\r\nx-half: ")
        await reader.read()
        writer.close()


async def send_all(port: int, requests: Iterator[Sent], statuses: dict[int, int]) -> None:
    """Send requests over one connection, each after the answer to the one before."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for path, body, more in requests:
        writer.write(head_of(path, len(body), more) + body)
        lines = await reader.readuntil(b"\r\n\r\n")
        length = int(lines.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        await reader.readexactly(length)
        status = int(lines.split(b" ")[1])
        statuses[status] = statuses.get(status, 0) + 1
    writer.close()


async def attack_for_ever(port: int, attacks: list[str]) -> None:
    """Attack until the process is ended; say each second how often that was answered, by status."""
    statuses: dict[int, int] = {}
    tasks = []
    for attack in attacks:
        if attack == "heads":
            tasks += [asyncio.create_task(half_heads(port)) for _ in range(200)]
        else:
            tasks += [
                asyncio.create_task(send_all(port, bodies_of(attack, line), statuses))
                for line in range(LINES)
            ]
    while True:
        await asyncio.sleep(0.25)
        print(json.dumps(statuses), flush=True)


def bodies(kind: str, count: int, seed: int) -> list[bytes]:
    """The bodies of one honest client."""
    rng = random.Random(seed)
    kept = ("id", "x", "y") if kind == "learn" else ("x",)
    rows = [row(rng, "linear") for _ in range(count)]
    return [json.dumps({key: one[key] for key in kept}).encode() for one in rows]


async def honest(port: int, seconds: float, seed: int) -> dict[str, list[float]]:
    """How long the honest clients wait for each request."""
    times: dict[str, list[float]] = {"learn": [], "predict": []}
    half = HONEST // 2
    count = int(500 * seconds)
    # what they send is written before the first of them begins, as that takes a second
    sent = [(kind, bodies(kind, count, seed + place)) for kind in times for place in range(half)]
    until = time.perf_counter() + seconds
    paths = {kind: f"/v1/models/linear/{kind}" for kind in times}
    await asyncio.gather(*(one_client(port, paths[kind], some, times[kind], until) for kind, some in sent))
    return times


def measured(server: Server, what: str, seconds: float, seed: int, quiet: dict[str, float]) -> None:
    """A line for the learning and one for the forecasts of honest clients."""
    times = asyncio.run(honest(server.port, seconds, seed))
    for kind, waits in times.items():
        waits = waits or [seconds]  # nobody was answered
        p50, p99 = np.percentile(waits, [50, 99]) * 1e3
        base = quiet.setdefault(kind, float(p99))
        numbers = f"{p50:.1f} | {p99:.1f} | {1e3 * max(waits):,.0f} | {len(waits) / seconds:,.0f}"
        print(f"| {what} | {kind} | {numbers} | {p99 / base:.1f} |", flush=True)


def beside(server: Server, attacks: list[str], seconds: float, seed: int, quiet: dict[str, float]) -> None:
    """Measure honest clients beside attacks."""
    command = [sys.executable, __file__, "--port", str(server.port), "--attack", *attacks]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.readline()
    try:
        what = attacks[0] if len(attacks) == 1 else "all"
        measured(server, what, seconds, seed, quiet)
    finally:
        process.kill()
        said = process.stdout.read().splitlines()
        process.wait()
    print(f"    answers to the hostile: {said[-1] if said else 'none'}", flush=True)


def main() -> None:
    """Run what was asked for."""
    words: dict[str, Any] = {"description": __doc__, "formatter_class": argparse.RawDescriptionHelpFormatter}
    parser = argparse.ArgumentParser(**words)
    parser.add_argument("--attack", nargs="*", choices=ATTACKS, default=[])
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--port", type=int, default=0, help="attack the service at this port")
    asked = parser.parse_args()
    if asked.port:
        asyncio.run(attack_for_ever(asked.port, asked.attack))
        return
    with tempfile.TemporaryDirectory() as place:
        print(
            f"fdatasync of this disk: {flush_time(Path(place)):.2f} ms; load {os.getloadavg()[0]:.1f}",
            flush=True,
        )
        os.environ.setdefault(
            "CREDO_CACHE_DIR", f"{place}/cache"
        )  # programs are compiled as on a new machine
        server = Server(Path(place) / "service")
        quiet: dict[str, float] = {}
        try:
            build(server, "linear")
            server.client.add("other", **SPECS["linear"])
            server.client.wait("other")
            asyncio.run(honest(server.port, 2.0, 0))
            print("| beside | request | p50 ms | p99 ms | most ms | a second | p99 / quiet p99 |")
            print("|---|---|--:|--:|--:|--:|--:|")
            measured(server, "nobody", asked.seconds, 10, quiet)
            for number, attack in enumerate(asked.attack or ATTACKS[:5], 2):
                beside(server, [attack], asked.seconds, 10 * number, quiet)
            if not asked.attack:
                beside(server, list(ATTACKS[:5]), asked.seconds, 100, quiet)
            measured(server, "nobody, again", asked.seconds, 110, quiet)
            print(f"load at the end {os.getloadavg()[0]:.1f}")
        finally:
            server.stop()


if __name__ == "__main__":
    main()
