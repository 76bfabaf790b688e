"""Room for classes that come while a session learns."""

from __future__ import annotations

from credo.core.errors import CredoError
from credo.live.encoding import Encoding, TableEncoding
from credo.recipes import defaults
from credo.recipes.assembly import members
from credo.recipes.growth import slots
from credo.recipes.networks import count_parameters, outputs_of
from credo.recipes.posterior import Posterior
from credo.recipes.resolution import require_memory
from credo.recipes.settings import Settings
from credo.tables.infer import MOST_CLASSES

__all__ = ["limit"]


def limit(settings: Settings, encoding: Encoding) -> None:
    """Tell an encoding how many classes there may be: 1000 at most, and as many as fit in memory."""
    if isinstance(encoding, TableEncoding) and encoding.first:
        encoding.admit = lambda classes: _fits(settings, encoding, classes)


def _fits(settings: Settings, encoding: Encoding, classes: int) -> bool:
    """Whether a network with room for so many classes fits in memory, and there are not too many of them."""
    first = encoding.first
    outputs = outputs_of(settings.task, classes, first, settings.noise_var)
    if classes > MOST_CLASSES:
        return False
    if slots(first, classes) == slots(first, classes - 1):
        return True
    networks = {member.network for member in members(settings, encoding.shape, classes, first)}
    posterior = Posterior("low-rank", defaults.BANK_RANK) if networks else settings.posterior
    try:
        for model in networks or {settings.model}:
            size = count_parameters(model, outputs, encoding.shape)
            require_memory(posterior, size, settings.drift, outputs=outputs, method=settings.method)
    except CredoError:
        return False
    return True
