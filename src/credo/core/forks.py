"""Processes that were forked after JAX had begun to compute, and in which its threads are not."""

from __future__ import annotations

import os
import sys

from credo.core.errors import CredoError

__all__ = ["require_threads"]

forked = False
"""Whether this process was forked from one in which JAX had computed."""


def require_threads() -> None:
    """Refuse, in a sentence, to compute where JAX would wait for its threads forever."""
    if forked:
        raise CredoError(
            "this process was forked after JAX had begun to compute, and would wait for JAX's threads for "
            'ever: begin it by multiprocessing.get_context("spawn"), or fork before the first computation.'
        )


def _note() -> None:
    """Note in a child whether its parent had begun to compute."""
    global forked
    bridge = sys.modules.get("jax._src.xla_bridge")
    forked = bool(getattr(bridge, "_backends", None))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note)
