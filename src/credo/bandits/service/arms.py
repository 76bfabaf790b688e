"""Arms by name, in the slots of an agent."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from credo.core.errors import CredoError, require_interval, suggest

__all__ = ["Arms", "Limits", "Share"]

Share: TypeAlias = tuple[float, float]
"""The least and the largest probability of an arm."""


class Limits(NamedTuple):
    """The limits of the choice of a decision: which slots are allowed (K,), and the least and the largest
    probability of each (2, K), None if they are not bounded.
    """

    allowed: np.ndarray
    bounds: np.ndarray | None


@dataclass(frozen=True)
class Arms:
    """Which arm stands in each slot: `slots` (K,), and `former` (K,) stood there before, None for none;
    `forbidden` ones must not be chosen, and `shares` bound the probabilities of arms by name. Nothing is
    mutated: every change gives new `Arms`.
    """

    slots: tuple[str | None, ...]
    former: tuple[str | None, ...]
    forbidden: frozenset[str] = frozenset()
    shares: Mapping[str, Share] = field(default_factory=dict)
    _where: Mapping[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        where = {name: slot for slot, name in enumerate(self.slots) if name is not None}
        object.__setattr__(self, "_where", where)

    @classmethod
    def of(cls, names: Iterable[str] | None, capacity: int) -> Arms:
        """The first arms in K slots, by names or as "0" to "K-1"; a CredoError if they cannot be."""
        if isinstance(names, str):
            raise CredoError(f"arms must be a list of names; got {names!r}.", field="arms")
        chosen = [str(slot) for slot in range(capacity)] if names is None else list(names)
        least = 0 if isinstance(names, Mapping) else 1  # arms with features may all come with the calls
        if not least <= len(chosen) <= capacity:
            raise CredoError(
                f"arms must be 1 to {capacity} names, as the agent has {capacity} arms; got {len(chosen)}.",
                field="arms",
            )
        free = (None,) * capacity
        for name in chosen:
            if not isinstance(name, str) or not name:
                raise CredoError(f"arms must have texts for names; got {name!r}.", field="arms")
        if len(set(chosen)) < len(chosen):
            twice = next(name for place, name in enumerate(chosen) if name in chosen[:place])
            raise CredoError(f"arms must have different names; there is a {twice!r}.", field="arms")
        return cls((*chosen, *free[len(chosen) :]), free)

    def brought(self, names: Mapping[str, Any]) -> Arms:
        """The arms of one decision, which it brings itself; those that are forbidden or have shares here are
        and have so there, too.
        """
        if not names:
            raise CredoError("arms must have one that may be chosen; got no arm.", field="arms")
        arms = Arms.of(names, len(self.slots))
        shares = {name: share for name, share in self.shares.items() if name in names}
        return replace(arms, forbidden=self.forbidden & names.keys(), shares=shares)

    @functools.cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the arms, in the order of their slots."""
        return tuple(name for name in self.slots if name is not None)

    @functools.cached_property
    def named(self) -> np.ndarray | None:
        """Which slots have an arm, (K,) bool; None if all have."""
        if len(self.names) == len(self.slots):
            return None
        return np.array([name is not None for name in self.slots])

    @functools.cached_property
    def order(self) -> np.ndarray | None:
        """The slots of the arms, in the order of `names`; None if every slot has one."""
        if len(self.names) == len(self.slots):
            return None
        return np.fromiter(self._where.values(), np.intp)

    @functools.cached_property
    def _every(self) -> np.ndarray:
        """`mask` of all arms."""
        mask = np.array([name is not None and name not in self.forbidden for name in self.slots])
        mask.flags.writeable = False
        return mask

    def slot(self, name: object) -> int:
        """The slot of an arm; a CredoError if there is no such arm."""
        if isinstance(name, str) and name in self._where:
            return self._where[name]
        hint = suggest(str(name), self._where)
        known = ", ".join(map(repr, self.names[:20])) or "none"
        tail = f" ({hint})" if hint else ""
        raise CredoError(f"arm must be one of the arms, {known}; got {name!r}{tail}.", field="arm")

    def require_new(self, name: object) -> str:
        """The name of a new arm; a CredoError if it is no text, or there is such an arm."""
        if not isinstance(name, str) or not name:
            raise CredoError(f"arms must have texts for names; got {name!r}.", field="arms")
        if name in self._where:
            raise CredoError(f"arms must have different names; there is a {name!r}.", field="arms")
        return name

    def put(self, name: str, slot: int) -> Arms:
        """With an arm in a free slot."""
        return replace(self, slots=_with(self.slots, slot, name))

    def remove(self, name: str) -> Arms:
        """Without an arm."""
        slot = self.slot(name)
        return replace(
            self,
            slots=_with(self.slots, slot, None),
            former=_with(self.former, slot, name),
            forbidden=self.forbidden - {name},
            shares={other: share for other, share in self.shares.items() if other != name},
        )

    def share(self, name: str, share: object) -> Arms:
        """With bounds of the probability of an arm, None for none; a CredoError if not all can be met."""
        self.slot(name)
        shares = {other: bounds for other, bounds in self.shares.items() if other != name}
        return self.with_shares(shares if share is None else shares | {name: share})

    def with_shares(self, shares: Mapping[str, Any]) -> Arms:
        """The same for all arms: other ones have none. Forbidden arms have no part in what must be met."""
        new = {name: _share_of(name, share) for name, share in shares.items() if self.slot(name) >= 0}
        met = [new.get(name, (0.0, 1.0)) for name in self.names if name not in self.forbidden]
        least, largest = (math.fsum(bounds) for bounds in zip(*met, strict=True)) if met else (0.0, 1.0)
        if least > 1.0 + 1e-9:
            raise CredoError(
                f"shares must have least probabilities that sum to at most 1; they sum to {least:g}.",
                field="shares",
            )
        if largest < 1.0 - 1e-9:
            raise CredoError(
                f"shares must have largest probabilities that sum to at least 1; they sum to {largest:g}.",
                field="shares",
            )
        return replace(self, shares=new)

    @functools.cached_property
    def bounds(self) -> np.ndarray | None:
        """The least and the largest probability by slot (2, K); None if no arm has any."""
        if not self.shares:
            return None
        bounds = np.stack([np.zeros(len(self.slots)), np.ones(len(self.slots))])
        for name, share in self.shares.items():
            bounds[:, self.slot(name)] = share
        bounds.flags.writeable = False
        return bounds

    def limits(self, names: Iterable[str] | None = None) -> Limits:
        """The limits of a choice among arms of these names; a CredoError if none may be chosen."""
        if names is None:
            return self.usual
        return Limits(self.mask(names), self.bounds)

    @functools.cached_property
    def usual(self) -> Limits:
        """`limits` of all arms."""
        return Limits(self.mask(), self.bounds)

    def forbid(self, name: str) -> Arms:
        """With an arm that must not be chosen."""
        self.slot(name)
        return replace(self, forbidden=self.forbidden | {name})

    def allow(self, name: str) -> Arms:
        """With an arm that may be chosen again."""
        self.slot(name)
        return replace(self, forbidden=self.forbidden - {name})

    def mask(self, names: Iterable[str] | None = None, *, forbidden: bool = False) -> np.ndarray:
        """Which slots may be chosen, (K,) bool, among arms of these names; a CredoError if none may.
        `forbidden` arms may be among them, where somebody else chose.
        """
        if isinstance(names, str):
            raise CredoError(f"arms must be a list of names; got {names!r}.", field="arms")
        barred = frozenset[str]() if forbidden else self.forbidden
        if names is None:
            same = barred == self.forbidden
            mask = self._every if same else np.array([name is not None for name in self.slots])
        else:
            mask = np.zeros(len(self.slots), bool)
            for name in names:
                mask[self.slot(name)] = name not in barred
        if not mask.any():
            among = "there is no arm" if not self._where else "all arms are forbidden"
            among = among if names is None else f"{list(names)!r} names none that is allowed"
            raise CredoError(f"arms must have one that may be chosen; {among}.", field="arms")
        return mask

    def by_name(self, values: Any) -> dict[str, float]:
        """The values (K,) of the slots as numbers by the names of the arms."""
        own = values if self.order is None else values[self.order]
        return dict(zip(self.names, own.tolist(), strict=True))


def _with(values: tuple[str | None, ...], slot: int, value: str | None) -> tuple[str | None, ...]:
    return (*values[:slot], value, *values[slot + 1 :])


def _share_of(name: str, share: Any) -> Share:
    """Bounds as two numbers; a CredoError if they are none."""
    try:
        low, high = map(float, share)
    except (TypeError, ValueError):
        raise CredoError(
            f"shares must be the least and the largest probability of an arm; got {share!r} for {name!r}.",
            field="shares",
        ) from None
    for bound in (low, high):
        require_interval("shares", bound, 0.0, 1.0)
    if low > high or high == 0.0:
        raise CredoError(
            f"shares must have a largest probability above 0, and not below the least; got {share!r} for "
            f"{name!r}.",
            field="shares",
        )
    return low, high
