"""Where the learner of a session must change: at a new class, and at the first count that is learned."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax
import numpy as np

from credo.core.errors import CredoError
from credo.core.types import PyTree
from credo.sessions import passes
from credo.sessions.assembly import build
from credo.sessions.encoding import Encoding, TableEncoding
from credo.sessions.growth import embed, positions, slots
from credo.sessions.resolution import count_parameters, network, outputs_of, require_memory
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
    """The rows at which a chunk begins: the first of each new class, and the first count that is learned.

    Arguments:
        session: the session before these rows.
        y: their targets (n,).
    """
    if session.known is not None:
        return passes.arrivals(y, session.known)
    return [WARMUP - int(session.scaler.count[0])] if session.settings.task == "count" else []


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

    def parameters(number: int) -> PyTree:
        net = network(settings.model, outputs_of(settings.task, number, first), shape)
        return jax.eval_shape(lambda: net.init(jax.random.key(0), shape))

    session.belief = embed(session.belief, fresh, positions(parameters(before), parameters(classes)))


def _fits(settings: Settings, encoding: Encoding, classes: int) -> bool:
    """Whether a network with room for so many classes fits in memory, and there are not too many of them."""
    first = encoding.first
    outputs = outputs_of(settings.task, classes, first, settings.noise_var)
    if classes > MOST_CLASSES:
        return False
    if slots(first, classes) == slots(first, classes - 1):
        return True
    try:
        require_memory(
            settings.posterior,
            count_parameters(settings.model, outputs, encoding.shape),
            settings.drift,
            outputs=outputs,
            method=settings.method,
        )
    except CredoError:
        return False
    return True
