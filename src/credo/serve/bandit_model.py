"""A bandit behind the service: decisions and rewards of the journal in order, at the journal's time."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import numpy as np

from credo.bandits import Agent, ArmDecision, Bandit
from credo.bandits.named_bandits import start_bandit
from credo.core.errors import CredoError
from credo.serve.contents import Decide, Observe, Reward
from credo.serve.journal_lines import Event
from credo.serve.requests import as_context
from credo.serve.specs import BanditSpec
from credo.serve.table_model import Answer, Given
from credo.streams import checkpoint

__all__ = ["BanditModel"]


class BanditModel:
    """A `Bandit` that takes the lines of a journal, whose time is that of the latest line."""

    def __init__(self, bandit: Bandit, spec: BanditSpec, time: _JournalTime) -> None:
        self.bandit, self.spec, self._time = bandit, spec, time
        self.columns = None

    @property
    def latest(self) -> float:
        """The time of the latest line."""
        return self._time.latest

    @classmethod
    def start(cls, spec: BanditSpec) -> BanditModel:
        """A new bandit."""
        time = _JournalTime()
        named = spec.inputs is None
        bandit, _ = start_bandit(
            spec.arms,
            (spec.features or None) if named else spec.inputs,
            named=named,
            agent=spec.agent,
            policy=spec.policy,
            window=spec.window,
            timeout=spec.timeout,
            on_missing=spec.on_missing,
            seed=spec.seed,
            clock=time,
            brought=spec.brought,
            arm_features=spec.arm_features,
        )
        return cls(bandit, spec, time)

    @classmethod
    def load(cls, path: Path, spec: BanditSpec) -> BanditModel:
        """A bandit from a snapshot."""
        time = _JournalTime()
        return cls(Bandit.load(path, clock=time), spec, time)

    @property
    def rows(self) -> int:
        """How many rewards were learned."""
        return self.bandit.counts.learned

    def prepare(self) -> None:
        """Compile all that a decision and a reward need, with a copy that is thrown away."""
        copy = self.bandit.fork(self.spec.seed + 1)
        spec = self.spec
        named = {"a": 0.0} if spec.features else None
        context = named if spec.inputs is None else np.zeros(spec.inputs, np.float32)
        brought = None if spec.brought is None else {"a": {"a": 0.0}, "b": {"a": 1.0}}
        copy.reward(copy.decide(context, brought).id, 0.0)

    def apply(self, events: Sequence[Event], given: Given) -> list[Answer]:
        """Decide and learn in order; the answers."""
        return [self._one(event) for event in events]

    def _one(self, event: Event) -> Answer:
        self._time.latest = event.time
        content = event.content
        try:
            if isinstance(content, Decide):
                about = as_context(content.context), content.arms
                if content.size is msgspec.UNSET:
                    made = self.bandit.decide(*about, id=event.id)
                    return {**_place(made), "version": made.version}
                slate = self.bandit.decide_slate(*about, size=content.size, id=event.id)
                return {
                    "arms": slate.arms,
                    "propensity": slate.propensity,
                    "places": list(map(_place, slate.decisions)),
                    "version": slate.decisions[0].version,
                }
            if isinstance(content, Observe):
                seen = self.bandit.observe(
                    as_context(content.context),
                    content.arm,
                    content.reward,
                    propensity=content.propensity,
                    arms=content.arms,
                    id=event.id,
                )
                return {"status": None if seen.status is None else seen.status.value}
            assert isinstance(content, Reward)
            statuses = self._rewarded(event.id, content)
        except CredoError as error:
            return {"reason": str(error), "refused": 422}
        if statuses[0] == "expired":
            return {"reason": f"id must be in the window; that of {event.id!r} is over.", "refused": 410}
        return {"status": statuses[0]} if content.values is None else {"statuses": statuses}

    def _rewarded(self, id: str, content: Reward) -> list[str | None]:
        """What became of the reward of a decision, or of those of the places of a slate."""
        if content.values is None:
            assert content.value is not None
            return [self.bandit.reward(id, content.value, part=content.part).value]
        statuses = self.bandit.reward_slate(id, content.values, seen=content.seen or "cascade")
        return [None if status is None else status.value for status in statuses]

    def freeze(self, path: Path) -> Callable[[], None]:
        """What writes the bandit as it is now into a file: it is written at once."""
        self.bandit.save(path)
        return lambda: None

    def digest(self, path: Path) -> str:
        """The SHA-256 of the bandit, by way of a file, but for what differs in every process."""
        self.bandit.save(path)
        saved = checkpoint.read(path, kind=Agent)
        meta = {name: value for name, value in saved.meta.items() if name not in ("epoch", "log")}
        digest = hashlib.sha256(msgspec.json.encode(meta, order="deterministic"))
        for name, array in sorted(saved.arrays.items()):
            digest.update(name.encode() + np.ascontiguousarray(array).tobytes())
        for leaf in _leaves(saved.belief):
            digest.update(np.ascontiguousarray(leaf).tobytes())
        return digest.hexdigest()

    def view(self) -> Answer:
        """What there is to see."""
        counts = self.bandit.counts
        return {
            "rows": counts.learned,
            "refused": counts.refused,
            "counts": counts._asdict(),
            "task": "bandit",
        }


class _JournalTime:
    """A clock that stands at the time of the latest line."""

    def __init__(self) -> None:
        self.latest = 0.0

    def __call__(self) -> float:
        return self.latest


def _leaves(belief: object) -> list[np.ndarray]:
    import jax

    return [np.asarray(leaf) for leaf in jax.tree.leaves(belief)]


def _place(made: ArmDecision) -> Answer:
    """A decision as it is answered, or a place of a slate."""
    pmf = {name: p for name, p in made.pmf.items() if p > 0}
    return {"arm": made.arm, "propensity": made.propensity, "pmf": pmf}
