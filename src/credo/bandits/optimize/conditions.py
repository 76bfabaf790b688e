"""Variables that are there only where a choice has some options: conditional search spaces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp

from credo.bandits.optimize.variables import Choices, Option, Range
from credo.core.errors import CredoError
from credo.core.types import Array

__all__ = ["Condition", "Given", "given", "read_condition"]


@dataclass(frozen=True)
class Given:
    """The bounds of a variable, and the options of a choice with which it is there; see `given`."""

    bounds: Sequence[object]
    choice: str
    options: tuple[Option, ...]


def given(bounds: Sequence[object], **choice: object) -> Given:
    """A variable that is there only where a choice has one of some options.

    Arguments:
        bounds: the bounds of the variable, as for `Optimizer`.
        choice: the name of a choice that stands before it in the bounds, with one option or a list of them.

    Returns:
        What `Optimizer` takes in the place of the bounds. Points without one of the options lack the
        variable, and a learner sees the middle of its range there.

    Raises:
        CredoError: not exactly one choice is named; or (later) there is no such choice or option.

    Example:
        >>> from credo import bandits
        >>> bounds = {"kind": ["tree", "net"], "rate": bandits.optimize.given((1e-4, 1.0, "log"), kind="net")}
        >>> space = bandits.Space.read(bounds)
        >>> space.decode(space.encode({"kind": "tree"}))
        {'kind': 'tree'}
    """
    if len(choice) != 1:
        raise CredoError(f"given must name one choice; got {list(choice)}.", field="bounds")
    ((name, options),) = choice.items()
    every: Any = tuple(options) if isinstance(options, list | tuple) else (options,)
    return Given(bounds, name, every)


@dataclass(frozen=True)
class Condition:
    """The place of a choice among the variables, and the places of its options that count."""

    choice: int
    options: tuple[int, ...]

    def met(self, part: Array) -> Array:
        """Whether the part of a row that belongs to the choice is one of the options."""
        place = jnp.argmax(part)
        return jnp.any(jnp.stack([place == option for option in self.options]))


def read_condition(name: str, one: Given, before: Mapping[str, Range | Choices]) -> Condition:
    """The condition of a variable, by the variables before it."""
    parent = before.get(one.choice)
    if not isinstance(parent, Choices):
        names = ", ".join(key for key, value in before.items() if isinstance(value, Choices)) or "none"
        raise CredoError(
            f"the bounds of {name} must be given by a choice that stands before it ({names}); "
            f"got {one.choice!r}.",
            field="bounds",
        )
    places = []
    for option in one.options:
        same = [
            i for i, other in enumerate(parent.options) if type(other) is type(option) and other == option
        ]
        if not same:
            raise CredoError(
                f"the bounds of {name} must be given by options of {one.choice}; got {option!r}.",
                field="bounds",
            )
        places += same
    return Condition(list(before).index(one.choice), tuple(places))
