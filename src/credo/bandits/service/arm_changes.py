"""Arms that come and go while a bandit runs, and what that does to its belief."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from credo.bandits.agent import AgentBelief
from credo.bandits.service.arms import Arms
from credo.bandits.service.engine import Engine, State
from credo.bandits.service.programs import with_prior_arm
from credo.core.errors import CredoError

__all__ = ["apply"]


def apply(
    engine: Engine,
    prior: AgentBelief[Any] | None,
    change: str,
    name: str,
    features: Mapping[str, object] | None = None,
    inherit: str | None = None,
    share: object = None,
) -> None:
    """Add, remove, forbid, allow or bound an arm, and write it into the log; see `Bandit.add_arm`."""
    with engine.writing, engine.books:
        state = engine.state
        details = {"features": features, "inherit": inherit, "share": share}
        if change == "add":
            new = _added(engine, prior, name, features, inherit)
        elif change == "share":
            new = state._replace(arms=state.arms.share(name, share))
        else:
            changes = {"remove": state.arms.remove, "forbid": state.arms.forbid, "allow": state.arms.allow}
            new = state._replace(arms=changes[change](name))
        if engine.ledger is not None:
            given = {key: told for key, told in details.items() if told is not None}
            engine.ledger.change(change, name, given)
        engine.state = new
    engine.sync()


def _added(
    engine: Engine,
    prior: AgentBelief[Any] | None,
    name: str,
    features: Mapping[str, object] | None,
    inherit: str | None,
) -> State:
    """The state with another arm."""
    state = engine.state
    arms = state.arms
    words = state.words
    version = state.version
    rows = state.rows
    arms.require_new(name)
    slot = _free_slot(engine, arms, prior, inherit)
    row = engine.inputs.features(name, features)
    if rows is not None and row is not None:
        rows = rows.copy()
        rows[slot] = row
    fresh = inherit is None and arms.former[slot] is not None
    if fresh and engine.agent.design == "arms" and prior is not None:
        words = engine.programs.pack(with_prior_arm(engine.programs.unpack(words), prior, slot))
        version += 1
    return state._replace(words=words, version=version, arms=arms.put(name, slot), rows=rows)


def _free_slot(engine: Engine, arms: Arms, prior: AgentBelief[Any] | None, inherit: str | None) -> int:
    """The slot of a new arm; a CredoError if there is none."""
    design = engine.agent.design
    waiting = engine.window.waiting
    free = [slot for slot, name in enumerate(arms.slots) if name is None]
    if inherit is not None:
        if design == "actions":
            raise CredoError(
                "inherit needs a belief for each arm, which the design 'actions' does not have.",
                field="inherit",
            )
        found = [slot for slot in free if arms.former[slot] == inherit]
        if not found:
            raise CredoError(
                f"inherit must be the name of a removed arm whose slot is free; got {inherit!r}.",
                field="inherit",
            )
        if waiting[found[0]]:
            raise CredoError(
                f"inherit names {inherit!r}, which still waits for {waiting[found[0]]} rewards.",
                field="inherit",
            )
        return found[0]
    new = [slot for slot in free if arms.former[slot] is None]
    settled = [slot for slot in free if arms.former[slot] is not None and not waiting[slot]]
    shared = design in ("outputs", "pairs")
    if shared or (design == "arms" and prior is None):
        why = "the prior is not known, as the bandit began with `belief` and without `params`"
        if shared:
            place = "output" if design == "outputs" else "slot"
            why = f"no {place} is left that no arm has had"
        if not new and settled:
            raise CredoError(f"arms cannot have another: {why}; let it `inherit`.", field="arms")
        settled = []
    if not new and not settled:
        many = sum(waiting[slot] > 0 for slot in free)
        wait = f", and {many} that were removed wait for rewards" if many else ""
        raise CredoError(
            f"arms must be at most {len(arms.slots)}, as the agent has; there are {len(arms.names)}{wait}.",
            field="arms",
        )
    return (new + settled)[0]
