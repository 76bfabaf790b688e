"""`credo bandit decide`: contexts and rewards come as JSON lines, and every line is answered by one."""

from __future__ import annotations

import contextlib
import io
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from credo.bandits import Bandit
from credo.bandits.logs.json_lines import json_line
from credo.bandits.named_agents import BanditProblem, policy_of, prepare
from credo.bandits.named_bandits import SLOTS, start_bandit
from credo.cli.bandit_lines import answer_of, id_of, is_reward, parse_line
from credo.cli.interrupt import Interruptible
from credo.cli.output import require_writable_file
from credo.cli.progress import note
from credo.core import locking
from credo.core.errors import CredoError, DataError, require_integer, require_nonnegative

__all__ = ["Decider", "decide_lines"]

GROUP = 1 << 16
"""Of how many bytes the lines may wait together."""


class Decider(NamedTuple):
    """The words of `credo bandit decide`. Those from `arms` to `seed` are for a new agent.

    `features` are the places of a context by name, `window` is how many decisions are remembered, `timeout`
    for how many seconds, and `on_missing` the reward learned where none comes. To `log`, decisions and
    rewards are appended; every `checkpoint` seconds the agent is saved again.
    """

    saved: Path
    source: str
    arms: str | None
    agent: str | None
    policy: str | None
    features: int | None
    window: int | None
    timeout: float | None
    on_missing: float | None
    seed: int | None
    log: Path | None
    checkpoint: float
    strict: bool


def decide_lines(words: Decider) -> int:
    """Answer every line, and save the agent at the end, whatever ends the run; the exit status."""
    require_nonnegative("--checkpoint", words.checkpoint)
    require_writable_file(words.saved, "AGENT")
    if words.log is not None:
        require_writable_file(words.log, "--log")
    with _locked(words.saved), Interruptible() as interrupt, _groups(words.source) as groups:
        service = _Service(words)
        try:
            _answer_all(service, groups, interrupt)
        except KeyboardInterrupt:
            interrupt.stopped = True
        finally:
            interrupt.busy = True  # a second request must not cut the saving short
            service.save()
            interrupt.busy = False
        service.say()
    return interrupt.status if interrupt.stopped else 0


def _answer_all(service: _Service, groups: Iterator[list[str]], interrupt: Interruptible) -> None:
    """Answer groups of lines, each as soon as everything that it says is on the disk."""
    number = 0
    for lines in groups:
        interrupt.busy = True
        answers, refusal = [], None
        with service.together():
            for line in lines:
                number += 1
                if not line.strip():
                    continue
                try:
                    answers.append(service.answer(line))
                except CredoError as error:
                    if service.words.strict:
                        refusal = f"line {number} of {service.words.source}: {error} (--strict stops here.)"
                        break
                    answers.append({"error": str(error), "line": number})
                    service.bad += 1
        try:
            sys.stdout.write("".join(json_line(answer).decode() for answer in answers))
            sys.stdout.flush()
        except BrokenPipeError:
            interrupt.stop_quietly()
        if refusal is not None:
            raise DataError(refusal)
        service.tick()
        interrupt.busy = False
        if interrupt.stopped:
            return


class _Service:
    """The bandit behind the lines, which a new one becomes at the first decision."""

    def __init__(self, words: Decider) -> None:
        self.words, self.bad = words, 0
        self.bandit: Bandit | None = None
        self.changed, self.saved = False, time.monotonic()
        self.names = None if words.arms is None else [name.strip() for name in words.arms.split(",")]
        self.policy = policy_of(words.policy)
        if words.saved.exists():
            self.bandit = self._load()
        else:
            self._require_new()

    def _load(self) -> Bandit:
        words = self.words
        for name in ("agent", "policy", "features", "window", "timeout", "on_missing", "seed"):
            if getattr(words, name) is not None:
                flag = f"--{name.replace('_', '-')}"
                raise CredoError(f"{flag} is for a new agent; {words.saved} exists, with its own.")
        bandit = Bandit.load(words.saved, log=words.log)
        if self.names is not None and tuple(self.names) != bandit.arms:
            raise CredoError(
                f"--arms must be those of {words.saved}, {','.join(bandit.arms)}, or be left out."
            )
        note(f"continuing with {words.saved}: {_counts(bandit)}")
        return bandit

    def _require_new(self) -> None:
        if self.names is None:
            raise CredoError(
                f"{self.words.saved} does not exist; give the names of the arms of a new agent by "
                "--arms, such as --arms red,blue."
            )
        if len(self.names) < 2 or len(set(self.names)) < len(self.names) or not all(self.names):
            raise CredoError(
                f"--arms must be two or more different names, with commas between; got {self.words.arms!r}."
            )
        if self.words.agent is not None:  # which refuses unknown names before any line is read
            prepare(self.words.agent, BanditProblem(len(self.names), 2, binary=True), self.policy)
        require_integer("--seed", 0 if self.words.seed is None else self.words.seed, 0)
        require_integer("--features", SLOTS if self.words.features is None else self.words.features, 2)

    def _start(self, context: Any) -> Bandit:
        """A new bandit, for contexts like the first one."""
        words, slots = self.words, self.words.features or SLOTS
        named = isinstance(context, Mapping)
        bandit, description = start_bandit(
            self.names or [],
            slots if named else _length(context),
            named=named,
            agent=words.agent,
            policy=words.policy,
            window=words.window,
            timeout=words.timeout,
            on_missing=words.on_missing,
            seed=words.seed or 0,
            log=words.log,
        )
        if words.log is None:
            note("without --log, what is answered after a save is lost if the process is killed")
        note(f"new agent: {description}")
        return bandit

    def answer(self, line: str) -> dict[str, Any]:
        """The answer to a line; where the line cannot be used, nothing changes."""
        request = parse_line(line)
        id = id_of(request)
        if is_reward(request):
            answer = answer_of(self.bandit, request, id)
            self.changed = self.bandit is not None
            return answer
        context = request.get("context")
        bandit = self.bandit or self._start(context)
        try:
            answer = answer_of(bandit, request, id)
        except CredoError:
            if self.bandit is None:
                bandit.close()
            raise
        self.changed = True
        if self.bandit is None:
            self.bandit = bandit
            self.save()  # so that a log belongs to a saved agent before anything is answered
        return answer

    def together(self) -> contextlib.AbstractContextManager[None]:
        """A context of lines whose answers wait for one flush of the log."""
        ledger = None if self.bandit is None else self.bandit._engine.ledger
        return contextlib.nullcontext() if ledger is None else ledger.together()

    def tick(self) -> None:
        """Save the agent, if it is time to."""
        if 0 < self.words.checkpoint <= time.monotonic() - self.saved:
            self.save()

    def save(self) -> None:
        """Save the agent, where anything has changed."""
        if self.bandit is not None and self.changed:
            self.bandit.save(self.words.saved)
            self.changed = False
        self.saved = time.monotonic()

    def say(self) -> None:
        """Say on standard error what was done."""
        if self.bad:
            note(f"{self.bad:,} bad line{'s'[: self.bad != 1]}, answered by an error")
        if self.bandit is not None:
            self.bandit.close()
            note(f"{_counts(self.bandit)}   saved agent: {self.words.saved}")


def _counts(bandit: Bandit) -> str:
    counts = bandit.counts
    return f"{counts.decisions:,} decisions, {counts.learned:,} rewards learned, {counts.pending:,} awaited"


def _length(context: Any) -> int | None:
    """The length of a context that is a list of numbers."""
    if context is None:
        return None
    if not isinstance(context, Sequence) or isinstance(context, str) or not context:
        raise CredoError(
            f"context must be an object of values by name, a list of numbers, or null; got {context!r}."
        )
    return len(context)


@contextlib.contextmanager
def _groups(source: str) -> Iterator[Iterator[list[str]]]:
    """The lines of a source, in groups of those that wait together."""
    if source == "-":
        stream = getattr(sys.stdin, "buffer", None)
        yield ([line] for line in sys.stdin) if stream is None else _waiting_lines(stream)
        return
    try:
        file = open(source, "rb")  # noqa: SIM115  # closed below
    except OSError as error:
        raise DataError(f"cannot read {source}: {(error.strerror or str(error)).lower()}.") from None
    with file:
        yield _waiting_lines(file)


def _waiting_lines(stream: io.BufferedReader) -> Iterator[list[str]]:
    """The lines that are there at each time, as soon as there is one."""
    parts: list[bytes] = []
    while data := stream.read1(GROUP):
        parts.append(data)
        if b"\n" in data:
            *lines, rest = b"".join(parts).split(b"\n")
            parts = [rest]
            yield [line.decode(errors="replace") for line in lines]
    yield [b"".join(parts).decode(errors="replace")]


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Keep other runs away from an agent."""
    place = path.with_name(f".{path.name}.lock")
    lock = locking.hold(place)
    if lock is None:
        raise DataError(f"another run is using {path} just now.")
    try:
        yield
    finally:
        place.unlink(missing_ok=True)
        locking.let_go(lock)
