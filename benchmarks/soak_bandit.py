"""A crash loop: `credo bandit decide` is killed at random moments under a writer, and must lose nothing.

    python benchmarks/soak_bandit.py [--kills 30] [--seed 0] [-- OPTIONS OF credo bandit decide]

A writer sends requests and rewards in bursts, some with ids of its own, some twice and some in conflict. The
process is ended by SIGKILL at random moments, and started again with the same AGENT and `--log`; what had no
answer is sent again. In the end, everything that was acknowledged must be in the log, no id may have been
given to two requests, and a process that is left alone and gets the lines of the log must write the same log,
give the same answers, and save the same belief, bit by bit.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

from credo.bandits import Agent
from credo.streams import checkpoint

Line: TypeAlias = dict[str, Any]

WINDOW = 40
RECENT = 10
"""How many decisions are remembered, and among the latest how many every reward must be known. Between lie
the lines that a kill left without an answer.
"""

OPTIONS: list[str] = []
"""The default agent, as users have it."""


def main() -> int:
    """Run the loop, and say what came of it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("options", nargs="*", default=OPTIONS)
    words = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="credo-soak-") as name:
        counts, wrong = soak(Path(name), words.kills, words.seed, words.options)
    print(", ".join(f"{count:,} {what}" for what, count in counts.items()))
    for sentence in wrong:
        print(f"DIFFERS: {sentence}")
    print("nothing acknowledged was lost, and all decisions are the same, bit by bit" * (not wrong))
    return bool(wrong)


def soak(folder: Path, kills: int, seed: int, options: list[str]) -> tuple[Counter[str], list[str]]:
    """Kill a process so often, and compare what is left with a process that is left alone: counts, and what
    is wrong.
    """
    writer = Writer(seed)
    chance = random.Random(seed + 1)
    counts = Counter[str]()
    for kill in range(kills + 1):
        life = Life(folder, "disturbed", options)
        answered = life.lead(writer, chance if kill < kills else None)
        counts["kills"] += life.killed
        print(
            f"{kill + 1:3} {'killed' if life.killed else 'ended':6} after {answered:5,} answers", flush=True
        )
    events = [json.loads(line) for line in (folder / "disturbed.jsonl").read_bytes().splitlines()]
    begun = [place for place, event in enumerate(events) if event["kind"] == "begin"]
    events = events[begun[-1] + 1 :] if begun else events
    replayed = replay(folder, events, options)
    counts += Counter(answer.get("status", "decisions") for _, answer in writer.answers)
    return counts, differences(folder, writer, events, replayed)


class Writer:
    """Sends lines until they are answered, and remembers all lines with their answers."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.waiting: deque[Line] = deque()
        self.answers: list[tuple[Line, Line]] = []
        self.unrewarded: list[str] = []
        self.sent = 0

    def burst(self) -> list[Line]:
        """The lines to be sent now: those without an answer, or new ones."""
        if not self.waiting:
            self.waiting.extend(self._new() for _ in range(self.chance.randint(1, 12)))
        return list(self.waiting)

    def _new(self) -> Line:
        self.sent += 1
        kind = self.chance.random()
        if kind < 0.35 and self.unrewarded:
            id = self.unrewarded.pop(self.chance.randrange(len(self.unrewarded)))
            return {"id": id, "reward": self.chance.choice([0.0, 1.0, self.chance.random()])}
        if kind < 0.45 and self.answers:  # again, or another value for the same id
            line, _ = self.chance.choice(self.answers[-WINDOW:])
            if "reward" in line:
                if self.chance.random() < 0.5:
                    return line
                return {**line, "reward": line["reward"] + 1.0}
        context = {
            "age": self.chance.gauss(40.0, 10.0),
            "device": self.chance.choice(["phone", "desk", "tv"]),
        }
        own = {"id": f"own {self.sent}"} if self.chance.random() < 0.5 else {}
        return {"context": context, **own}

    def take(self, answer: Line) -> None:
        """Take the answer of the oldest line that waits."""
        line = self.waiting.popleft()
        if "error" in answer and answer.get("status") != "conflict":
            raise SystemExit(f"{line} was answered by {answer}")
        self.answers.append((line, answer))
        if "reward" not in line:
            self.unrewarded = [*self.unrewarded[-WINDOW:], answer["id"]]


class Life:
    """One process from its start to its end, or to its kill."""

    def __init__(self, folder: Path, name: str, options: list[str]) -> None:
        program = [sys.executable, "-c", "import sys; from credo.cli import main; sys.exit(main())"]
        files = [f"{name}.credo", "-", "--log", f"{name}.jsonl", "--checkpoint", "0.2"]
        new = ["--arms", "red,green,blue", "--window", str(WINDOW), "--on-missing", "0", *options]
        rest = [] if (folder / f"{name}.credo").exists() else new
        self.killed = False
        self.process = subprocess.Popen(
            [*program, "bandit", "decide", *files, *rest],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def ask(self, lines: list[Line]) -> Iterator[Line]:
        """The answers to lines, as far as they come."""
        process = self.process
        assert process.stdin is not None and process.stdout is not None
        with contextlib.suppress(OSError):  # it was killed; what it answered before is still there to be read
            process.stdin.write("".join(json.dumps(line) + "\n" for line in lines).encode())
            process.stdin.flush()
        for _ in lines:
            answer = process.stdout.readline()
            if not answer.endswith(b"\n"):
                return
            yield json.loads(answer)

    def lead(self, writer: Writer, chance: random.Random | None) -> int:
        """Write and read until a kill, in the first seconds or after some answers, or for a while: how many
        answers came.
        """
        before = len(writer.answers)
        limit = 200 if chance is None else chance.randint(1, 250)
        killer: threading.Timer | None = None
        if chance is not None and chance.random() < 0.2:
            killer = self._kill_after(chance.uniform(0.5, 5.0))
        while self.process.poll() is None:
            if len(writer.answers) - before >= limit:
                if chance is None:
                    break
                killer = killer or self._kill_after(chance.uniform(0.0, 0.1))
            for answer in self.ask(writer.burst()):
                writer.take(answer)
        if killer is not None:
            killer.join()
        self.end()
        return len(writer.answers) - before

    def _kill_after(self, seconds: float) -> threading.Timer:
        timer = threading.Timer(seconds, self._kill)
        timer.start()
        return timer

    def _kill(self) -> None:
        self.killed = True
        self.process.kill()

    def end(self) -> None:
        """Let it come to its end."""
        assert self.process.stdin is not None
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        status = self.process.wait()
        if status and not self.killed:
            raise SystemExit(f"the process ended with {status}")


def replay(folder: Path, events: list[Line], options: list[str]) -> list[Line]:
    """The answers of a process that is left alone to the lines that a log stands for."""
    lines: list[Line] = []
    for event in events:
        if event["kind"] == "decision":
            own = {"id": event["id"]} if event["id"].startswith("own") else {}
            lines.append({"context": event["context"], **own})
        elif event["kind"] == "reward" and not event.get("imputed"):
            lines.append({"id": bare(event["id"]), "reward": event["value"]})
    life = Life(folder, "alone", options)
    answers = [answer for line in lines for answer in life.ask([line])]
    life.end()
    return answers


def bare(id: str) -> str:
    """An id without the random part that it has where the first start of all was killed."""
    return re.sub(r"^(\d+)\.\w+-", r"\1-", id)


def differences(folder: Path, writer: Writer, events: list[Line], replayed: list[Line]) -> list[str]:
    """What is wrong, in words."""
    wrong: list[str] = []
    learned = {bare(event["id"]): event["value"] for event in events if event["kind"] == "reward"}
    decided = {bare(answer["id"]): answer for answer in replayed if "arm" in answer}
    seen: dict[str, None] = {}
    for line, answer in writer.answers:
        id = bare(answer["id"])
        if "reward" not in line:
            if id in seen:
                wrong.append(f"the id {id} was given twice")
            seen[id] = None
            if {**answer, "id": id} != decided.get(id):
                wrong.append(f"the decision {id}: {answer} and {decided.get(id)}")
        elif answer["status"] in ("learned", "duplicate") and learned.get(id) != line["reward"]:
            wrong.append(f"the reward {line} was {answer['status']}, and the log has {learned.get(id)}")
        elif answer["status"] in ("unknown", "expired", "refused") and id in list(seen)[-RECENT:]:
            wrong.append(f"the reward {line} was {answer['status']}")
    alone = [json.loads(line) for line in (folder / "alone.jsonl").read_bytes().splitlines()]
    if [timeless(event) for event in events] != [timeless(event) for event in alone]:
        wrong.append(f"the logs: {len(events)} and {len(alone)} lines")
    one = checkpoint.read(folder / "disturbed.credo", kind=Agent)
    other = checkpoint.read(folder / "alone.credo", kind=Agent)
    if one.belief != other.belief or one.learner != other.learner:
        wrong.append("the belief")
    for part in ("count", "version", "inputs", "arms"):
        if one.meta[part] != other.meta[part]:
            wrong.append(f"{part}: {one.meta[part]} and {other.meta[part]}")
    return wrong


def timeless(event: Line) -> Line:
    """A line of a log without its time."""
    return {**event, "id": bare(event["id"]), "time": None}


if __name__ == "__main__":
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    start = time.monotonic()
    status = main()
    print(f"{time.monotonic() - start:.0f} s")
    sys.exit(status)
