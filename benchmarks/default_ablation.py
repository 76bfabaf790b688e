"""Credo's default with one ingredient taken out at a time."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import jax

from credo.core.program_folder import folder, use
from credo.recipes import assembly, defaults
from credo.recipes.auto import combined
from credo.recipes.members import Member, NearMember, NormalMember, TableMember, members_of
from credo.recipes.tasks import RECIPES

__all__ = ["VARIATIONS", "varied"]

Change = Callable[[Member], Member | None]
"""What becomes of a member: another one, or None where it is left out."""


def _without(test: Callable[[Member], bool]) -> Change:
    return lambda member: None if test(member) else member


MEMBERS: dict[str, Change] = {
    "linear members only": _without(lambda member: member.network.kind != "linear"),
    "no linear members": _without(lambda member: member.network.kind == "linear"),
    "nothing walks": lambda member: dataclasses.replace(member, walk=0.0),
    "no fast walks (0.01, 0.1)": _without(lambda member: member.walk >= 1e-2),
    "one non-linearity (elu)": lambda member: dataclasses.replace(member, activation="elu"),
    "no noise by the inputs": _without(lambda member: member.noise == "input"),
    "one clip (3)": lambda member: dataclasses.replace(member, clip=3.0),
    "one forgetting of the noise (0.99)": lambda member: dataclasses.replace(
        member, forgetting=member.forgetting if member.noise == "input" else 0.99
    ),
    "prior variance 4": lambda member: dataclasses.replace(member, prior_var=min(member.prior_var, 4.0)),
}
"""Variations of the members."""

SETTINGS: dict[str, dict[str, Any]] = {
    "no scales (1 only)": {"SHARPNESS": ()},
    "no sharpness": {"SHARPNESS": ()},
    "no tails": {},
    "no switching between members": {"SWITCHING": 0.0},
    "one rate of switching (0.001)": {"SWITCHING": 1e-3},
    "unit blocks in place of full": {"FULL_COST": 0},
}
"""Variations of the settings that all members share."""

TASKS: dict[str, dict[str, Any]] = {"no scales (1 only)": {"scales": (1.0,)}, "no tails": {"tails": ()}}
"""Variations of the recipes of all tasks."""


def _same(member: Member) -> Member | None:
    return member


def _never(member: object) -> bool:
    return False


PLAIN: dict[str, Callable[[object], bool]] = {
    "networks only": lambda member: not isinstance(member, Member),
    "no nearest rows": lambda member: isinstance(member, NearMember),
    "no normal columns": lambda member: isinstance(member, NormalMember) and member.share > 0,
    "no base rates": lambda member: isinstance(member, NormalMember) and member.share == 0,
}
"""Members without a network that are left out."""

ALONE = "no regression on the members"
"""The variation whose forecast is the mixture of the members alone."""

VARIATIONS = (*MEMBERS, *PLAIN, ALONE, *SETTINGS)
"""The names of the variations."""


def _forget() -> None:
    """Forget the compiled programs, whose settings are the same for all variations."""
    forget: Callable[[], None] = jax.clear_caches
    forget()


def _alone(bank: Any, *_: Any) -> Any:
    """A bank without what stands around it."""
    return bank


@contextmanager
def varied(name: str) -> Iterator[None]:
    """Within this context, sessions have the default without one ingredient."""
    name_of = members_of.__name__
    saved = {key: getattr(defaults, key) for key in SETTINGS.get(name, {})}
    change = MEMBERS.get(name, _same)
    recipes = {task: dataclasses.replace(recipe, **TASKS.get(name, {})) for task, recipe in RECIPES.items()}

    def members(*arguments: Any) -> tuple[TableMember, ...]:
        left_out = PLAIN.get(name, _never)
        every = [member for member in members_of(*arguments) if not left_out(member)]
        changed = [change(member) if isinstance(member, Member) else member for member in every]
        return tuple(member for member in changed if member is not None)

    _forget()
    kept = folder()
    use(None)  # programs that are kept between processes know nothing of what is changed here
    setattr(assembly, name_of, members)
    if name == ALONE:
        setattr(assembly, combined.__name__, _alone)
    for key, value in SETTINGS.get(name, {}).items():
        setattr(defaults, key, value)
    try:
        with patch.dict(RECIPES, recipes):
            yield
    finally:
        setattr(assembly, name_of, members_of)
        setattr(assembly, combined.__name__, combined)
        use(kept)
        for key, value in saved.items():
            setattr(defaults, key, value)
        _forget()
