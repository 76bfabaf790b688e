"""Several decisions at once, by one belief and in one compiled program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from credo.bandits.service.casting import Asked, Names, as_names
from credo.bandits.service.content import content_of, require_same
from credo.bandits.service.decision import ArmDecision
from credo.bandits.service.engine import Engine
from credo.bandits.service.window import Entry
from credo.core.errors import CredoError

__all__ = ["decide_many"]


def decide_many(
    engine: Engine, contexts: Sequence[Any], names: Names, ids: Sequence[str | None]
) -> list[ArmDecision]:
    """The decisions for several contexts, or those that were made under their ids; all of them or none."""
    now = engine.now()
    engine.expire(now)
    names = as_names(names)
    with engine.writing, engine.books:  # neither arms nor belief change meanwhile
        first = {id: place for place, id in reversed(list(enumerate(ids))) if id is not None}
        places = [first.get(id, place) if id is not None else place for place, id in enumerate(ids)]
        if len(contexts) > engine.window.size:
            raise CredoError(
                f"contexts must be at most {engine.window.size}, which is `window`; got {len(contexts)}.",
                field="contexts",
            )
        asked = [content_of(context, names) for context in contexts]
        known = [engine.known(id, content) for id, content in zip(ids, asked, strict=True)]
        for place, earlier in enumerate(places):
            require_same(ids[place], asked[place], asked[earlier])
        fresh = [place for place in range(len(contexts)) if known[place] is None and places[place] == place]
        if not isinstance(names, Mapping):
            engine.state.arms.limits(names)  # which refuses them, even if all decisions are known
        engine.say()
        before, number = engine.inputs.mark(features=isinstance(names, Mapping)), engine.count
        try:
            taken = [engine.take_in(contexts[place], names, len(contexts)) for place in fresh]
            engine.expire(now, room=len(fresh))
            state = engine.state
            xs = [engine.inputs.of(vector, cast.arms, cast.rows) for cast, vector, _ in taken]
            engine.count += len(fresh)
            answers = []
            if taken:
                limits = taken[0][0].arms.limits(None if isinstance(names, Mapping) else names)
                answers = engine.programs.decide_many(state.words, xs, limits, number)
            new: list[tuple[Entry, Asked]] = []
            for step, (place, answer) in enumerate(zip(fresh, answers, strict=True)):
                cast, vector, said = taken[step]
                about = answer, xs[step] if cast.rows is None else vector, cast, state.version, now
                known[place] = entry = engine.entry(ids[place], number + step, *about, asked[place])
                new.append((entry, said))
            engine.record(new)
        except BaseException:
            engine.inputs.back(before)
            engine.count = number
            raise
        entries = [known[place] or known[first] for place, first in enumerate(places)]
    engine.sync()
    return [engine.answer(entry) for entry in entries if entry is not None]
