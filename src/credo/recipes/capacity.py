"""Whether a learner of so many inputs and classes fits in memory."""

from __future__ import annotations

import math

from credo.core.errors import CredoError
from credo.recipes.assembly import members
from credo.recipes.bank_family import family_of, numbers_of
from credo.recipes.image_members import ImageMember
from credo.recipes.members import Member
from credo.recipes.networks import Origin, count_parameters, outputs_of
from credo.recipes.posterior import Posterior
from credo.recipes.resolution import require_memory
from credo.recipes.settings import Settings
from credo.recipes.tasks import slots
from credo.tables.infer import MOST_CLASSES

__all__ = ["fits", "inputs_fit", "require_room"]


def require_room(
    settings: Settings, shape: tuple[int, ...], classes: int, first: int = 0, origin: Origin | None = None
) -> None:
    """Refuse more inputs or classes than fit in memory, by a CredoError; the arguments are `build`'s."""
    outputs = outputs_of(settings.task, classes, first, settings.noise_var)
    begun = shape if origin is None else (origin.inputs,)
    bank = members(settings, begun, classes, first)
    if not bank:
        size = count_parameters(settings.model, outputs, shape)
        require_memory(
            settings.posterior, size, settings.drift, model=settings.model, outputs=outputs,
            method=settings.method,
        )  # fmt: skip
        return
    start = outputs_of(settings.task, first or classes, first)
    networks = {one.network: one for one in bank if isinstance(one, Member | ImageMember)}
    for member in networks.values():
        net = member.network
        size = count_parameters(member.network, outputs, shape)
        if isinstance(member, ImageMember):
            kept = Posterior("low-rank", member.rank).numbers(size)
        else:
            inputs = math.prod(shape)
            kept = numbers_of(family_of(net, start, math.prod(begun)), net, outputs, inputs)
        require_memory(None, size, settings.drift, model=net, outputs=outputs, kept=kept)


def fits(
    settings: Settings, shape: tuple[int, ...], classes: int, first: int = 0, origin: Origin | None = None
) -> bool:
    """Whether one more class fits: there are 1,000 at most, and as many as memory holds."""
    if classes > MOST_CLASSES:
        return False
    same = slots(first, classes) == slots(first, classes - 1)
    return same or inputs_fit(settings, shape, classes, first, origin)


def inputs_fit(
    settings: Settings, shape: tuple[int, ...], classes: int, first: int = 0, origin: Origin | None = None
) -> bool:
    """Whether so many inputs fit in memory."""
    try:
        require_room(settings, shape, classes, first, origin)
    except CredoError:
        return False
    return True
