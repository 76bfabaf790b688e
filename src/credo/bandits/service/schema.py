"""The knowledge of a bandit about its contexts, to be read by people and programs."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import NamedTuple

from credo.bandits.service.content import RewardRange
from credo.bandits.service.features import ContextFeature
from credo.bandits.service.inputs import FeatureEncoder, Inputs
from credo.core.text import aligned

__all__ = ["ContextSchema", "schema_of", "shared_in"]


class ContextSchema(NamedTuple):
    """The form of contexts, as far as a `Bandit` has seen them.

    Attributes:
        shape: the shape of a context as an array; None before the first, and () for a number. That of no
            context is (-1,).
        features: the names of contexts by name, in the order in which they came.
        arm_features: the same for the features of arms.
        places: how many places the vector of a context by name has, the first of which says that something
            is missing.
        free: how many of them are left for new names.
        shared: the names and values that share a place, by place; of at most 1,000 that came without one.
        reward_range: the least and the greatest reward that there may be, or None.

    `str` of it is a table.

    Example:
        >>> import credo
        >>> from credo import bandits
        >>> learner = credo.extended_kalman(credo.Model(credo.Linear(), credo.Normal(0.1)))
        >>> bandit = bandits.Bandit(bandits.Agent(learner, 2, "arms"), features=8)
        >>> _ = bandit.decide({"user": {"age": 31.0}, "tags": ["new", "mobile"]})
        >>> print(bandit.schema)
        name      kind    places  values
        user.age  number  1       1 number, mean 31, sd 0
        tags      text    2-4     new, mobile
        3 of 8 places are free
    """

    shape: tuple[int, ...] | None
    features: tuple[ContextFeature, ...]
    arm_features: tuple[ContextFeature, ...]
    places: int
    free: int
    shared: dict[int, tuple[str, ...]]
    reward_range: RewardRange | None

    def __str__(self) -> str:
        if not self.features and self.shape is not None:
            if self.shape != (-1,):
                return f"contexts of the shape {self.shape}"
            return "no contexts"
        seen = [(one.name, one) for one in self.features]
        seen += [(f"arm: {one.name}", one) for one in self.arm_features]
        rows = [("name", "kind", "places", "values"), *((name, *_told(one)) for name, one in seen)]
        lines = aligned(rows, words=4)
        lines.append(f"{self.free:,} of {self.places:,} places are free")
        lines += [f"place {place} is shared by {', '.join(names)}" for place, names in self.shared.items()]
        return "\n".join(lines)


def schema_of(inputs: Inputs, reward_range: RewardRange | None) -> ContextSchema:
    """The schema of contexts that came so far."""
    contexts = inputs.contexts
    actions = inputs.actions
    arms = () if actions is None else actions.seen
    about = contexts.size, contexts.free, contexts.shared
    return ContextSchema(inputs.shape, contexts.seen, arms, *about, reward_range)


def shared_in(encoder: FeatureEncoder, vector: list[float]) -> tuple[tuple[str, ...], ...]:
    """The names that share a place at which a context has something."""
    return tuple(names for place, names in encoder.shared.items() if vector[place] != 0.0 and len(names) > 1)


def _told(one: ContextFeature) -> tuple[str, str, str]:
    first = one.places[0]
    last = one.places[-1]
    run = one.places == tuple(range(first, last + 1))
    places = f"{first}-{last}" if run and last > first else ", ".join(map(str, one.places))
    told = ", ".join(one.values)
    if one.numbers:
        several = "s" if one.numbers > 1 else ""
        told = f"{one.numbers:,} {one.kind}{several}, mean {one.mean:.4g}, sd {one.sd:.4g}"
        if one.kind == "time":
            mean = datetime.fromtimestamp(one.mean, UTC).strftime("%Y-%m-%d %H:%M")
            told = f"{one.numbers:,} time{several}, mean {mean}, sd {one.sd / 3600.0:.4g} hours"
    return one.kind, places, told
