"""`credo bandit decide`: contexts and rewards come as JSON lines, and every line is answered by one."""

from __future__ import annotations

import contextlib
import io
import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from credo.bandits import ArmDecision, Bandit
from credo.bandits.logs.json_lines import json_line
from credo.bandits.named_agents import BanditProblem, policy_of, prepare
from credo.bandits.named_bandits import SLOTS, start_bandit
from credo.bandits.service import RewardStatus
from credo.cli.interrupt import Interruptible
from credo.cli.output import require_writable_file
from credo.cli.progress import note
from credo.core import locking
from credo.core.errors import CredoError, DataError, marked

__all__ = ["Decider", "decide_lines"]


_KEYS = {
    "context": ("context", "id", "arms", "size"),
    "reward": ("id", "reward", "part"),
    "rewards": ("id", "rewards", "seen"),
    "arm": ("context", "arm", "reward", "propensity", "arms", "id"),
}
"""The keys of lines, by the key that says what a line is."""

CONFLICT = "reward must be the one that was learned for this decision, which stays; it is another one."


def is_reward(request: Mapping[str, Any]) -> bool:
    """Whether a line is the reward of a decision, or those of a slate."""
    return "rewards" in request or ("reward" in request and "arm" not in request)


def answer_of(bandit: Bandit | None, request: Mapping[str, Any], id: str | None) -> dict[str, Any]:
    """The answer of a bandit to a line; a reward needs no bandit."""
    if not is_reward(request):
        assert bandit is not None
        if "arm" in request:
            return _observed(bandit, request, id)
        return _decided(bandit, request, id)
    if id is None:
        raise CredoError("a reward must have the id of its decision.")
    values = request.get("rewards", [])
    if not isinstance(values, list):
        raise CredoError(f"rewards must be a list, with a reward for each place; got {values!r:.60}.")
    if bandit is None:
        return _unknown(request, id)
    return _rewarded(bandit, request, id)


def _unknown(request: Mapping[str, Any], id: str) -> dict[str, Any]:
    """The answer to a reward while there is no decision."""
    if "rewards" in request:
        return {"id": id, "statuses": ["unknown"] * len(request["rewards"])}
    return {"id": id, "status": "unknown"}


def _rewarded(bandit: Bandit, request: Mapping[str, Any], id: str) -> dict[str, Any]:
    """The answer to a reward, or to those of the places of a slate."""
    if "rewards" not in request:
        statuses: list[RewardStatus | None] = [bandit.reward(id, request["reward"], part=request.get("part"))]
    else:
        statuses = bandit.reward_slate(id, request["rewards"], seen=request.get("seen", "cascade"))
    said = {"error": CONFLICT} if RewardStatus.CONFLICT in statuses else {}
    names = [None if status is None else status.value for status in statuses]
    return {"id": id} | ({"statuses": names} if "rewards" in request else {"status": names[0]}) | said


def _decided(bandit: Bandit, request: Mapping[str, Any], id: str | None) -> dict[str, Any]:
    about = (request.get("context"), request.get("arms"))
    size = request.get("size")
    if size is None:
        return _place(bandit.decide(*about, id=id))
    slate = bandit.decide_slate(*about, size=size, id=id)
    return {
        "id": slate.id,
        "arms": slate.arms,
        "propensity": slate.propensity,
        "places": list(map(_place, slate.decisions)),
    }


def _place(decision: ArmDecision) -> dict[str, Any]:
    """A decision as it is answered, or a place of a slate."""
    return {name: value for name, value in decision._asdict().items() if value is not None}


def _observed(bandit: Bandit, request: Mapping[str, Any], id: str | None) -> dict[str, Any]:
    asked = {name: request.get(name) for name in ("reward", "propensity", "arms")}
    said = bandit.observe(request.get("context"), request["arm"], id=id, **asked)
    error = {"error": CONFLICT} if said.status is RewardStatus.CONFLICT else {}
    return {"id": said.id, "status": "pending" if said.status is None else said.status.value} | error


def id_of(request: Mapping[str, Any]) -> str | None:
    """The id of a line, if it has one; a whole number is the text of its digits."""
    id = request.get("id")
    if isinstance(id, int) and not isinstance(id, bool):
        return str(id)
    if id is not None and not isinstance(id, str):
        raise CredoError(f"id must be a text; got {id!r}.")
    return id


def parse_line(line: str) -> dict[str, Any]:
    """The request that a line holds; a CredoError if it holds none."""
    try:
        request = json.loads(line)
    except (ValueError, RecursionError):
        request = None
    if not isinstance(request, dict):
        raise CredoError("a line must be a JSON object with a context, or with an id and a reward.")
    kind = next((name for name in ("rewards", "arm", "reward") if name in request), "context")
    others = sorted(request.keys() - set(_KEYS[kind]))
    if others:
        every = "; or ".join(f"{', '.join(keys[:-1])} and {keys[-1]}" for keys in _KEYS.values())
        beside = {"arm": "an arm", "reward": "a reward"}.get(kind, kind) if kind in request else "a request"
        raise CredoError(f"a line must have the keys {every}; got {others[0]!r} beside {beside}.")
    if not request:
        raise CredoError("a line must have a context (null if there is none), or an id and a reward.")
    return request


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
    if interrupt.stopped:
        return interrupt.status
    return 0


def _answer_all(service: _Service, groups: Iterator[list[str]], interrupt: Interruptible) -> None:
    """Answer groups of lines, each as soon as everything that it says is on the disk."""
    number = 0
    for lines in groups:
        interrupt.busy = True
        answers = []
        refusal = None
        with service.together():
            for line in lines:
                number += 1
                if not line.strip():
                    continue
                try:
                    answers.append(service.answer(line))
                except CredoError as error:
                    if service.words.strict:
                        said = f"line {number} of {service.words.source}: {marked(error.sentence)}"
                        refusal = DataError(f"{said} (--strict stops here.)")
                        break
                    answers.append({"error": str(error), "line": number})
                    service.bad += 1
        try:
            sys.stdout.write("".join(json_line(answer).decode() for answer in answers))
            sys.stdout.flush()
        except BrokenPipeError:
            interrupt.stop_quietly()
        if refusal is not None:
            raise refusal
        service.tick()
        interrupt.busy = False
        if interrupt.stopped:
            return


class _Service:
    """The bandit behind the lines, which a new one becomes at the first decision."""

    def __init__(self, words: Decider) -> None:
        self.words = words
        self.bad = 0
        self.bandit: Bandit | None = None
        self.changed = False
        self.saved = time.monotonic()
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
                raise CredoError(
                    f"{name} is for a new agent; {words.saved} exists, with its own.", field=name
                )
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

    def _start(self, context: Any) -> Bandit:
        """A new bandit, for contexts like the first one."""
        words = self.words
        slots = self.words.features or SLOTS
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
        if ledger is None:
            return contextlib.nullcontext()
        return ledger.together()

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
