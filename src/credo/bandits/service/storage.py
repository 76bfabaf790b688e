"""A bandit in one file: agent, belief and prior, the window, the arms, the encoders and the counts."""

from __future__ import annotations

import hashlib
import itertools
import os
from collections import Counter
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypedDict

import numpy as np

from credo.bandits.agent import Agent, AgentBelief
from credo.bandits.default import DefaultAgent, agent_of
from credo.bandits.service.arms import Arms
from credo.bandits.service.asked_arms import Cast
from credo.bandits.service.content import require_range
from credo.bandits.service.decision import RewardStatus
from credo.bandits.service.engine import Engine, OnMissing, Service, State
from credo.bandits.service.features import Features
from credo.bandits.service.inputs import Inputs
from credo.bandits.service.programs import Programs
from credo.bandits.service.replay import Start
from credo.bandits.service.starting import require_options
from credo.bandits.service.window import Clock, Entry, Time, Window
from credo.core.archive import join, leaves_of, refill, refusing, split
from credo.core.constraints import require_possible
from credo.core.errors import FormatError
from credo.core.forms import Seed, require_form
from credo.live.journal import Mark
from credo.streams import checkpoint

__all__ = ["read", "write"]


class SavedArms(TypedDict):
    """The arms by slot, and those that stood there before."""

    slots: list[str | None]
    former: list[str | None]
    forbidden: list[str]
    shares: dict[str, list[float]]


class SavedCast(SavedArms):
    """Arms of decisions, and which of the tables has their features."""

    table: int | None


class SavedEntry(NamedTuple):
    """A decision of the window."""

    id: str
    number: int
    slot: int
    arms: int
    version: int
    time: float
    expires: float | None
    content: str
    status: str | None
    reward: float | None
    parts: dict[str, float]
    observed: bool


def whole(value: object) -> int:
    """A whole number of at least 0."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise FormatError(f"counts must be whole numbers of at least 0; got {value!r}.")
    return value


def arms_json(arms: Arms) -> dict[str, Any]:
    """Arms as JSON data."""
    shares = {name: list(share) for name, share in arms.shares.items()}
    names = {"slots": list(arms.slots), "former": list(arms.former), "forbidden": sorted(arms.forbidden)}
    return names | {"shares": shares}


def arms_of(saved: dict[str, Any], capacity: int) -> Arms:
    """The arms that `arms_json` described; a FormatError if they cannot be."""
    slots = tuple(saved["slots"])
    former = tuple(saved["former"])
    names = [name for name in slots if name is not None]
    if len(slots) != capacity or len(former) != capacity or len(set(names)) != len(names):
        raise FormatError(f"arms must have different names in {capacity} slots; got {slots!r}.", field="arms")
    arms = Arms(slots, former, frozenset(saved["forbidden"]))
    if saved["shares"]:
        return arms.with_shares(saved["shares"])
    return arms


def casts_json(casts: list[Cast]) -> list[dict[str, Any]]:
    """The arms of decisions, and the place of their features among those of all."""
    place = itertools.count()
    tables = [None if cast.rows is None else next(place) for cast in casts]
    return [arms_json(cast.arms) | {"table": table} for cast, table in zip(casts, tables, strict=True)]


def casts_of(saved: list[dict[str, Any]], tables: np.ndarray | None, capacity: int) -> list[Cast]:
    """The arms of decisions with their features, (n, K, e) of all."""
    many = 0 if tables is None else len(tables)
    if tables is not None and (tables.ndim != 3 or tables.shape[1] != capacity):
        raise FormatError(
            f"tables must have the shape (n, {capacity}, e); got {tables.shape}.", field="tables"
        )
    casts = []
    for one in saved:
        place = one["table"]
        if place is not None and place >= many:
            raise FormatError(f"table must be one of the {many} tables; got {place}.", field="table")
        rows = None if place is None or tables is None else tables[place]
        casts.append(Cast(arms_of(one, capacity), rows))
    return casts


def entries_json(window: Window, casts: list[Cast]) -> list[list[Any]]:
    """The decisions of the window: id, number, slot, arms, version, time, end, content, status, reward, its
    parts and whether observed, of each.
    """
    rows: list[list[Any]] = []
    cast = 0
    for entry in window:
        cast += casts[cast].arms is not entry.arms
        status = None if entry.status is None else entry.status.value
        what = [entry.id, entry.number, entry.slot, cast, entry.version]
        told = [entry.content, status, entry.reward, dict(entry.parts), entry.observed]
        rows.append([*what, entry.time, entry.expires, *told])
    return rows


def entry_arrays(window: Window) -> dict[str, np.ndarray]:
    """The arrays of the decisions of a window."""
    entries = list(window)
    if not entries:
        return {}
    arrays = {"numbers": np.stack([entry.numbers for entry in entries])}
    if entries[0].x is not None:
        arrays["xs"] = np.stack([entry.x for entry in entries if entry.x is not None])
    return arrays


def refill_window(
    window: Window, rows: list[list[Any]], casts: list[Cast], arrays: dict[str, np.ndarray], arms: int
) -> None:
    """Put decisions back into a window."""
    if not rows:
        return
    numbers = arrays["numbers"]
    xs = arrays.get("xs")
    if numbers.shape != (len(rows), 4, arms) or (xs is not None and len(xs) != len(rows)):
        raise FormatError(f"numbers must have the shape {(len(rows), 4, arms)}; got {numbers.shape}.")
    for place, (id, number, slot, cast, version, *more) in enumerate(rows):
        time, expires, content, status, reward, parts, observed = more
        x = None if xs is None else xs[place]
        told = None if status is None else RewardStatus(status)
        own, table = casts[cast]
        what = str(id), whole(number), slot, own, x, numbers[place], version
        entry = Entry(*what, time, expires, str(content), told, reward, dict(parts), observed, table)
        if own.slots[slot] is None:
            raise FormatError(f"the decision {id!r} must have chosen an arm; slot {slot} has none.")
        window.add(entry)


LARGEST_WINDOW = 2**31 - 1
"""The largest window of a file."""

FORMAT = 1
"""The number of the format; it grows when older readers could misread a file."""


class _SavedWindow(TypedDict):
    """The number of decisions that are remembered, and for how long."""

    size: Annotated[int, LARGEST_WINDOW]
    timeout: float | None
    gone: list[str]


class _SavedFeatures(TypedDict):
    """The saved form of an encoder of features, which checks its own places."""

    settings: Features
    used: int
    known: dict[str, list[Any]]


class _SavedInputs(TypedDict):
    """The result of `Inputs.to_dict`."""

    contexts: _SavedFeatures
    actions: _SavedFeatures | None
    products: bool
    shape: list[int | Literal[-1]] | None


class _SavedMark(TypedDict):
    """A place in a log."""

    at: int
    digest: str


class _Saved(TypedDict):
    """The notes of `write`, by whose form they are checked."""

    seed: Seed
    count: int
    epoch: str
    log: _SavedMark | None
    version: int
    time: dict[str, Any]
    tally: dict[str, int]
    arms: SavedArms
    inputs: _SavedInputs
    window: _SavedWindow
    on_missing: float | Literal["drop"]
    reward_range: list[float] | None
    entries: list[SavedEntry]
    casts: list[SavedCast]


def write(path: str | os.PathLike[str], engine: Engine, prior: AgentBelief[Any] | None) -> Path:
    """Write a bandit to a file; a CredoError if something in the agent cannot be saved."""
    with engine.still():
        state = engine.state
        window = engine.window
        casts: list[Cast] = []
        for entry in window:
            if not casts or casts[-1].arms is not entry.arms:
                casts.append(Cast(entry.arms, entry.rows))
        meta = {
            "bandit": FORMAT,
            "seed": engine.seed,
            "count": engine.count,
            "epoch": engine.epoch,
            "log": None if engine.ledger is None else engine.ledger.mark(),
            "version": state.version,
            "time": engine.time.to_dict(),
            "tally": dict(engine.tally),
            "arms": arms_json(state.arms),
            "inputs": engine.inputs.to_dict(),
            "window": {"size": window.size, "timeout": window.timeout, "gone": list(window.gone)},
            "on_missing": engine.on_missing,
            "reward_range": None if engine.reward_range is None else list(engine.reward_range),
            "entries": entries_json(window, casts),
            "casts": casts_json(casts),
        }
        arrays = entry_arrays(window)
        tables = [cast.rows for cast in casts if cast.rows is not None]
        if tables:
            arrays["tables"] = np.stack(tables)
        if state.rows is not None:
            arrays["rows"] = state.rows
        if prior is not None:
            arrays |= join({"prior": leaves_of(prior)})
        belief = engine.programs.unpack(state.words)
    return checkpoint.save(path, engine.agent, belief, meta=meta, arrays=arrays)


def read(
    path: str | os.PathLike[str], agent: Agent | DefaultAgent | None, seed: int | None, clock: Clock | None
) -> tuple[Service, Start]:
    """Read a bandit back, and what it starts from. `agent` lends its functions where the saved one has some;
    a `seed` of None is the saved one. Refusals are those of `Bandit.load`.
    """
    saved = checkpoint.read(path, None if agent is None else agent_of(agent), object)
    meta = saved.meta
    if not isinstance(saved.learner, Agent) or meta.get("bandit") != FORMAT:
        kind = "by another version of credo" if "bandit" in meta else "by a program that kept no bandit"
        raise FormatError(f"{path} was saved {kind}; only a bandit of this version can be loaded.")
    with refusing(path, "bandit"):
        require_form(meta, _Saved, "bandit")
        service = _rebuilt(saved.learner, saved.belief, meta, saved.arrays, seed, clock)
        mark = meta["log"]
        digest = hashlib.sha256(Path(path).read_bytes()).hexdigest()
        if seed is not None:
            return service, Start(False, f"{digest} {seed}")
        place = None if mark is None else Mark(at=whole(mark["at"]), digest=str(mark["digest"]))
        return service, Start(False, digest, place)


def _rebuilt(
    agent: Agent,
    belief: AgentBelief[Any],
    meta: dict[str, Any],
    arrays: dict[str, np.ndarray],
    seed: int | None,
    clock: Clock | None,
) -> Service:
    number = int(meta["seed"]) if seed is None else seed
    programs = Programs(agent, belief, number)
    settings = meta["window"]
    on_missing = meta["on_missing"]
    require_options(agent, settings["size"], settings["timeout"], on_missing, meta["reward_range"])
    window = Window(settings["size"], settings["timeout"], agent.arms)
    casts = casts_of(meta["casts"], arrays.get("tables"), agent.arms)
    refill_window(window, meta["entries"], casts, arrays, agent.arms)
    window.forget(tuple(map(str, settings["gone"])))
    arms = arms_of(meta["arms"], agent.arms)
    rows = arrays.get("rows")
    if casts and casts[-1].arms == arms and np.array_equal(casts[-1].rows, rows):  # type: ignore[arg-type]
        arms = casts[-1].arms  # one object, so that the next file has them once, too
    inputs = Inputs.restore(agent.design, meta["inputs"])
    if (rows is None) != (inputs.actions is None) or (rows is not None and len(rows) != agent.arms):
        raise FormatError("rows must be the features of the arms, one row a slot.", field="rows")
    state = State(programs.pack(belief), whole(meta["version"]), arms, rows)
    time = Time.restore(meta["time"], clock)
    bounds = require_range(meta["reward_range"])
    engine = Engine(agent, programs, state, inputs, window, _number(on_missing), number, time, bounds)
    engine.count = whole(meta["count"])
    engine.epoch = str(meta["epoch"])
    engine.tally = Counter({str(name): whole(count) for name, count in meta["tally"].items()})
    return Service(engine, _prior(belief, arrays))


def _number(value: Any) -> OnMissing:
    if value == "drop":
        return "drop"
    return float(value)


def _prior(belief: AgentBelief[Any], arrays: dict[str, np.ndarray]) -> AgentBelief[Any] | None:
    stored = split(arrays, ("prior",))["prior"]
    if not stored:
        return None
    prior = refill(belief, stored, "prior")
    require_possible(prior, "prior")
    return prior
