"""Clocks and tables."""

from __future__ import annotations

import gc
import platform
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

REPEATS = 3


@dataclass
class Row:
    """One measurement: rows a second, and what it is compared with."""

    group: str
    what: str
    rows_per_second: float
    compile_seconds: float | None = None
    belief_megabytes: float | None = None
    peer: str | None = None
    ratio: float | None = None


@dataclass
class Table:
    """All measurements of a session."""

    rows: list[Row] = field(default_factory=list)

    def add(self, row: Row) -> float:
        """Keep and print a measurement; returns its rows a second."""
        self.rows.append(row)
        print(f"{row.group:10} {row.what:48} {row.rows_per_second:12,.0f} rows/s", flush=True)
        return row.rows_per_second

    def compare(self, group: str, ours: str, peer: str) -> None:
        """State the ratio of two measurements on the row of ours."""
        named = {(r.group, r.what): r for r in self.rows}
        mine = named[group, ours]
        theirs = named[group, peer]
        clone = Row(**{**mine.__dict__, "peer": peer, "ratio": mine.rows_per_second / theirs.rows_per_second})
        self.rows.append(clone)
        if mine.ratio is None and mine in self.rows:
            self.rows.remove(mine)

    def markdown(self) -> str:
        """The tables as markdown."""
        lines = []
        for group in dict.fromkeys(r.group for r in self.rows):
            lines += [
                f"\n## {group}\n",
                "| what | rows/s | compile s | belief MB | against | ratio |",
                "|---|--:|--:|--:|---|--:|",
            ]
            for r in self.rows:
                if r.group == group:
                    cells = [
                        r.what,
                        f"{r.rows_per_second:,.0f}",
                        "" if r.compile_seconds is None else f"{r.compile_seconds:.1f}",
                        "" if r.belief_megabytes is None else f"{r.belief_megabytes:.2f}",
                        r.peer or "",
                        "" if r.ratio is None else f"{r.ratio:,.1f}",
                    ]
                    lines.append("| " + " | ".join(cells) + " |")
        return "\n".join(lines)


def seconds(call: Callable[[], object], repeats: int = REPEATS) -> tuple[float, float]:
    """The best time of some calls after a first one, and the time of that first one (with compilation)."""
    gc.collect()
    started = time.perf_counter()
    call()
    first = time.perf_counter() - started
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        call()
        times.append(time.perf_counter() - started)
    return min(times), first


def medians(
    calls: dict[str, Callable[[], object]], repeats: int = 5, clock: Callable[[], float] = time.perf_counter
) -> dict[str, tuple[float, float]]:
    """Of several calls taken in turn, so that all meet the same load: the median time of each after a first
    one, and the time of that first one (with compilation). `time.process_time` counts processor time.
    """
    first = {}
    times = {name: list[float]() for name in calls}
    for name, call in calls.items():
        started = clock()
        call()
        first[name] = clock() - started
    for _ in range(repeats):
        for name, call in calls.items():
            started = clock()
            call()
            times[name].append(clock() - started)
    return {name: (statistics.median(times[name]), first[name]) for name in calls}


def machine() -> str:
    """The machine, in words."""
    import os

    model = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo") as info:
            model = next(line.split(":", 1)[1].strip() for line in info if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    return f"{os.cpu_count()} cores of {model}, Python {platform.python_version()}"


def peak_megabytes() -> float:
    """The largest memory that this process has held."""
    import resource

    # The other counter, where there is this one, starts at what the parent process held.
    try:
        with open("/proc/self/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024
    except (OSError, StopIteration):
        pass

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def held_megabytes() -> float:
    """The memory that this process holds now."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) / 1024


def copy_seconds(size: int) -> float:
    """The least time in which `size` bytes are read and written, by copies of an array of that size."""
    source = np.ones(max(size // 4, 1), np.float32)
    target = np.empty_like(source)
    times = []
    repeats = max(1, 20_000_000 // max(size, 1))
    for _ in range(7):
        started = time.perf_counter()
        for _ in range(repeats):
            np.copyto(target, source)
        times.append((time.perf_counter() - started) / repeats)
    return min(times)
