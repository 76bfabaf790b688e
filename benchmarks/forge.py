"""Thousands of forged and damaged files, each read and used by a process that is watched.

    python benchmarks/forge.py                       # 4,000 cases; about a quarter of an hour on two cores
    python benchmarks/forge.py --cases 200 --only bandit

A file is damaged (bits, bytes, members) or forged (JSON data and arrays, signed again; cells and compression
of tables), read, and used for one forecast, one step and another forecast. What may happen is that it is

- *refused*: by a `CredoError`, which is one sentence;
- *harmless*: it is read, and every forecast is finite;

and what must not happen is

- *internal*: any other error, or a crash;
- *NaN*: a forecast or a map that is not finite;
- *hanging*: no answer after `--seconds`;
- *memory*: more than 1.5 times the file and 300 MB.

The table counts them by format. Below it stands each case that must not happen; the exit status is then 1.
`--case FORMAT NUMBER` runs one case again, in this process.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import queue
import random
import resource
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from forged_formats import Form, forms
from forgeries import forge

from credo.core.errors import CredoError

FORMATS = ("session", "scikit-learn", "River", "bandit", "optimiser", "operator", "belief", "table")
OUTCOMES = ("refused", "harmless", "internal", "NaN", "hanging", "memory")
ALLOWED = ("refused", "harmless")

FACTOR = 1.5
SPARE = 300e6
"""A case may take so many times its file, and so many bytes beside."""

BEGINNING = 900.0
"""The seconds in which a process must begin, and a file be forged."""

ADDRESSES = 6e9
"""The bytes that a process may map beyond those that it has at its start, to spare the machine."""


class Outcome(NamedTuple):
    """What happened to a case: a word of `OUTCOMES`, what was forged, and what was said."""

    word: str
    forgery: str
    said: str
    megabytes: float = 0.0
    seconds: float = 0.0


def form_of(format: str, number: int) -> Form:
    """The form that a case forges: the forms of a format take turns."""
    some = forms()[format]
    return some[number % len(some)]


def run_case(
    format: str, number: int, seed: int, folder: Path, forged: Callable[[], None] = lambda: None
) -> Outcome:
    """Forge a file, call `forged`, and read and use the file."""
    form = form_of(format, number)
    chance = random.Random(f"{seed}/{format}/{number}")
    good = folder / f"{format}-{form.name}{form.suffix}"
    target = folder / f"{os.getpid()}{form.suffix}"
    if not good.exists():
        form.save(good)
    forgery = forge(good, form.mark, chance, target)
    forged()
    size = target.stat().st_size
    before = _resident(forget=True)
    start = time.perf_counter()
    word, said = attempt(form, target)
    seconds = time.perf_counter() - start
    taken = _resident() - before
    if taken > FACTOR * size + SPARE:
        word = "memory"
        said = f"{taken / 1e6:,.0f} MB for a file of {size / 1e6:.1f} MB; {said}"
    return Outcome(word, f"{form.name}: {forgery}", said, taken / 1e6, seconds)


def attempt(form: Form, path: Path) -> tuple[str, str]:
    """Read and use a file: a word of `OUTCOMES`, and what was said."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            numbers = form.use(form.load(path))
    except CredoError as error:
        sentence = str(error)
        fit = sentence.endswith((".", "?", ")")) and sentence.isprintable()
        return ("refused" if fit else "internal"), sentence
    except MemoryError as error:
        return "memory", repr(error)
    except Exception as error:
        return "internal", f"{type(error).__name__}: {error}"
    if all(np.isfinite(one).all() for one in numbers):
        return "harmless", ""
    return "NaN", "a forecast or a map is not finite"


def _resident(*, forget: bool = False) -> int:
    """The most bytes that this process had in memory since they were forgotten last."""
    if forget:
        with contextlib.suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5")
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) * 1024
    return 0


# The process that answers, and those that ask


def serve(seed: int, folder: Path, some: tuple[str, ...] = FORMATS) -> None:
    """Answer cases of some formats that come as JSON lines, one by one."""
    for format in some:  # what is compiled once is compiled before memory is measured
        for form in forms()[format]:
            good = folder / f"{format}-{form.name}{form.suffix}"
            with contextlib.suppress(Exception):
                if not good.exists():
                    form.save(good)
                form.use(form.load(good))
    mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (mapped + int(ADDRESSES), resource.RLIM_INFINITY))
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # nothing that a case prints is an answer

    def say(answer: object) -> None:
        print(json.dumps(answer), file=answers, flush=True)

    say("ready")
    for line in sys.stdin:
        format, number = json.loads(line)
        say(run_case(format, number, seed, folder, lambda: say("forged")))


class Server:
    """A process that answers cases, which is begun again where it dies or hangs."""

    def __init__(self, seed: int, folder: Path, seconds: float, only: str | None) -> None:
        self.seed = seed
        self.folder = folder
        self.seconds = seconds
        self.only = only
        self.process: subprocess.Popen[str] | None = None

    def ask(self, format: str, number: int) -> Outcome:
        """What happens to a case."""
        process = self.process or self._begin()
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(json.dumps([format, number]) + "\n")
            process.stdin.flush()
        forged = self._read(BEGINNING)
        start = time.perf_counter()
        answer = forged and self._read(self.seconds)
        if answer:
            return Outcome(*json.loads(answer))
        died = process.poll() is not None or answer == ""
        self.close()
        word, said = ("internal", "the process died") if died else ("hanging", f"after {self.seconds:g} s")
        return Outcome(word, form_of(format, number).name, said, 0.0, time.perf_counter() - start)

    def _begin(self) -> subprocess.Popen[str]:
        words = [sys.executable, __file__, "--serve", str(self.folder), "--seed", str(self.seed)]
        words += [] if self.only is None else ["--only", self.only]
        environment = {
            **os.environ,
            "JAX_PLATFORMS": "cpu",
            "JAX_COMPILATION_CACHE_DIR": str(self.folder / "compiled"),
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.1",
        }
        self.process = subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment,
        )
        self.lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._listen, args=(self.process, self.lines), daemon=True).start()
        if not self._read(BEGINNING):
            raise SystemExit("the process that answers cases does not start; try --case FORMAT NUMBER.")
        return self.process

    @staticmethod
    def _listen(process: subprocess.Popen[str], lines: queue.Queue[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            lines.put(line)
        lines.put("")

    def _read(self, seconds: float) -> str | None:
        """The next line; empty where the process has ended, None where it does not answer."""
        try:
            return self.lines.get(timeout=seconds)
        except queue.Empty:
            return None

    def close(self) -> None:
        """End the process."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


def run_all(
    cases: list[tuple[str, int]], seed: int, workers: int, seconds: float, only: str | None
) -> list[tuple[str, int, Outcome]]:
    """The outcomes of cases, by as many processes as there are workers."""
    waiting: queue.Queue[tuple[str, int]] = queue.Queue()
    for case in cases:
        waiting.put(case)
    results: list[tuple[str, int, Outcome]] = []

    def work(folder: Path) -> None:
        server = Server(seed, folder, seconds, only)
        try:
            while True:
                try:
                    format, number = waiting.get_nowait()
                except queue.Empty:
                    return
                outcome = server.ask(format, number)
                results.append((format, number, outcome))
                if len(results) % 100 == 0:
                    print(f"{len(results):,} of {len(cases):,} cases", file=sys.stderr, flush=True)
        finally:
            server.close()

    with tempfile.TemporaryDirectory() as home:
        folders = [Path(home) / str(number) for number in range(workers)]
        for folder in folders:
            folder.mkdir()
        threads = [threading.Thread(target=work, args=(folder,)) for folder in folders]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return results


def show(results: list[tuple[str, int, Outcome]]) -> int:
    """Print the table and what must not happen; the exit status."""
    print("| format | cases |" + "".join(f" {word} |" for word in OUTCOMES) + " most MB | longest s |")
    print("|---|--:|" + "--:|" * (len(OUTCOMES) + 2))
    for format in (*FORMATS, "all"):
        some = [one for kind, _, one in results if format in (kind, "all")]
        if some:
            words = (sum(one.word == word for one in some) for word in OUTCOMES)
            most = max(one.megabytes for one in some)
            longest = max(one.seconds for one in some)
            row = "".join(f" {number:,} |" for number in words)
            print(f"| {format} | {len(some):,} |{row} {most:,.0f} | {longest:.1f} |")
    bad = sorted(one for one in results if one[2].word not in ALLOWED)
    for format, number, outcome in bad:
        said = " ".join(outcome.said.split())[:200]
        print(f"{outcome.word}: {format} {number} ({outcome.forgery[:160]}): {said}")
    return int(bool(bad))


def main() -> int:
    """Run the cases that are asked for; the exit status."""
    words = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    words.add_argument("--cases", type=int, default=4000, help="how many, over all formats")
    words.add_argument("--only", choices=FORMATS, help="a format")
    words.add_argument("--seed", type=int, default=0)
    words.add_argument("--workers", type=int, default=2)
    words.add_argument("--seconds", type=float, default=60.0, help="after which a case hangs")
    words.add_argument("--case", nargs=2, metavar=("FORMAT", "NUMBER"), help="one case, in this process")
    words.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    said: Any = words.parse_args()
    if said.serve is not None:
        serve(said.seed, said.serve, (said.only,) if said.only else FORMATS)
        return 0
    if said.case is not None:
        with tempfile.TemporaryDirectory() as folder:
            outcome = run_case(said.case[0], int(said.case[1]), said.seed, Path(folder))
        print(outcome)
        return int(outcome.word not in ALLOWED)
    some = (said.only,) if said.only else FORMATS
    cases = [(some[number % len(some)], number // len(some)) for number in range(said.cases)]
    return show(run_all(cases, said.seed, said.workers, said.seconds, said.only))


if __name__ == "__main__":
    sys.exit(main())
