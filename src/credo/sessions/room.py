"""Where a chunk begins anew: at a new class, and once the first targets have said what their units are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from credo.adapt import Bank
from credo.beliefs import embed
from credo.core.errors import CredoError
from credo.core.records import replace
from credo.sessions import defaults, passes
from credo.sessions.assembly import build, members
from credo.sessions.encoding import Encoding, TableEncoding
from credo.sessions.growth import slots
from credo.sessions.networks import count_parameters, outputs_of
from credo.sessions.posterior import Posterior
from credo.sessions.resolution import require_memory
from credo.sessions.settings import Settings
from credo.sessions.targets import WARMUP
from credo.tables.infer import MOST_CLASSES

if TYPE_CHECKING:
    from credo.sessions.session import Session

__all__ = ["limit", "starts", "widen"]


def limit(settings: Settings, encoding: Encoding) -> None:
    """Tell an encoding how many classes there may be: 1000 at most, and as many as fit in memory."""
    if isinstance(encoding, TableEncoding) and encoding.first:
        encoding.admit = lambda classes: _fits(settings, encoding, classes)


def starts(session: Session, y: np.ndarray) -> list[int]:
    """The rows at which a chunk begins: the first of each new class, the first number after the warm-up.

    Arguments:
        session: the session before these rows.
        y: their targets (n,).
    """
    if session.known is not None:
        return passes.arrivals(y, session.known)
    return [WARMUP - int(session.scaler.count[0])]


def widen(session: Session, classes: int) -> None:
    """Make room for so many classes, where there are fewer: a new class begins at the prior.

    Arguments:
        session: the session, whose learner, belief and tally are changed.
        classes: the number of classes.
    """
    before = session.known
    if before is None or classes <= before:
        return
    settings, shape, first = session.settings, session.encoding.shape, session.encoding.first
    session.learner, fresh = build(settings, shape, classes, first)
    session.tally.widen(classes)
    if slots(first, before) == slots(first, classes):
        return
    session.belief = embed(session.belief, fresh)
    if isinstance(session.belief, Bank) and isinstance(fresh, Bank) and settings.model.banked:
        # a member that fails begins again from the first weights of the wider network
        session.belief = replace(session.belief, priors=fresh.priors)


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
