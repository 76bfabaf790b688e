"""What was asked of a bandit under an id, in a few letters, so that other content under the id is noticed."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

import jax
import numpy as np

__all__ = ["content_of"]


def content_of(context: Any, arms: Iterable[str] | None) -> str:
    """Letters that stand for a context and the arms that were asked for (None: all): the same ones whenever
    values are the same, in any order of names, as whole numbers or not, and from a log.
    """
    asked = {"context": _plain(context), "arms": None if arms is None else sorted(set(map(str, arms)))}
    text = json.dumps(asked, sort_keys=True, default=repr)
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def _plain(value: Any) -> Any:
    value = value.tolist() if isinstance(value, np.generic | np.ndarray | jax.Array) else value
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            return float(value) + 0.0 if math.isfinite(value) else None  # -0 is 0
        except OverflowError:
            return repr(value)
    return value
