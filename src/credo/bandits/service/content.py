"""The content that callers send under an id: a few letters that stand for it, and what is refused."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import jax
import numpy as np

from credo.bandits.logs.json_lines import plain
from credo.core.errors import CredoError, shown

__all__ = ["RewardRange", "content_of", "require_range", "require_reward", "require_same", "require_within"]

RewardRange: TypeAlias = tuple[float, float]
"""The least and the greatest reward that there may be."""


# How deep objects and lists of a context may be nested, how many entries they may have together, and how
# many characters a text: what is said of a decision is kept until its reward comes, and logged.
DEEPEST = 8
MOST = 10_000
LONGEST = 10_000

_LETTERS = json.JSONEncoder(sort_keys=True, default=repr).encode


def content_of(context: Any, arms: Iterable[str] | None, **more: Any) -> str:
    """Letters that stand for a context, the arms that were asked for (None: all) and what else was said: the
    same ones whenever values are the same, in any order of names, as whole numbers or not, and from a log.
    """
    if type(context) is not np.ndarray:
        _require_modest(context)
    table = None if isinstance(context, Mapping) else _table(context)
    letters = ""
    if table is None or arms is not None or more:
        asked: dict[str, Any] = {"arms": None if arms is None else sorted(set(map(str, arms)))}
        if table is None:
            asked["context"] = _spelled(context)
        if more:
            asked |= _spelled(more)
        letters = _LETTERS(asked)
    digest = hashlib.blake2b(letters.encode(), digest_size=8)
    if table is not None:
        digest.update(str(table.shape).encode())
        digest.update(np.ascontiguousarray(_numbers(table), "<f8").tobytes())
    return digest.hexdigest()


def _spelled(value: Any) -> Any:
    """A value as JSON has it, in which numbers that are equal are the same, whole or not."""
    if not isinstance(value, Mapping):
        return plain(value, _number, _numbers)
    spelled: dict[str, Any] = {}
    for name, item in value.items():
        if type(item) is float and math.isfinite(item):
            spelled[str(name)] = item + 0.0  # -0 is 0
        elif item is None or type(item) is str or type(item) is bool:
            spelled[str(name)] = item
        else:
            spelled[str(name)] = _spelled(item)
    return spelled


def _require_modest(context: Any) -> None:
    """Refuse a context that is so deep, or so long, that it can only be a mistake."""
    entries = 0
    inside = [(context, 0)]
    while inside:
        value, depth = inside.pop()
        if isinstance(value, str) and len(value) > LONGEST:
            raise CredoError(
                f"a text in context must have at most {LONGEST:,} characters; got {len(value):,}.",
                field="context",
            )
        if not isinstance(value, Mapping | list | tuple):
            continue
        entries += len(value)
        if entries > MOST or depth == DEEPEST:
            what = f"at most {MOST:,} entries" if entries > MOST else f"at most {DEEPEST} levels"
            got = f"; got {len(value):,} in one list or object" if entries > MOST else ", one in another"
            raise CredoError(f"context must have {what}{got}.", field="context")
        for part in value.values() if isinstance(value, Mapping) else value:
            if type(part) is not float:  # as most are
                inside.append((part, depth + 1))


def _table(context: Any) -> np.ndarray | None:
    """A context of finite numbers as an array (n, ...), whether it is an array or lists; else None."""
    if type(context) is not np.ndarray and not isinstance(context, list | tuple | jax.Array):
        return None
    try:
        array = np.asarray(context)
        array = array.astype(np.float64) if array.dtype.kind == "V" else array  # bfloat16, for one
    except (TypeError, ValueError, OverflowError):  # rows of several lengths, numbers beyond all floats
        return None
    numbers = array.dtype.kind in "iuf" and array.ndim > 0 and array.size > 0
    if numbers and np.isfinite(array).all():
        return array
    return None


def _number(value: Any) -> Any:
    """A number as one that stands for all that are equal, whole or not."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            # -0 is 0
            if math.isfinite(value):
                return float(value) + 0.0
            return None
        except OverflowError:
            return repr(value)
    return value


def _numbers(array: np.ndarray) -> np.ndarray:
    """The same for an array of finite numbers."""
    if array.dtype.kind == "b":
        return array
    return array.astype(np.float64) + 0.0


def require_same(id: str | None, content: str, before: str) -> None:
    """Refuse an id that is repeated with other content."""
    if content != before:
        raise CredoError(
            f"id must be a new one for another context or other arms; the decision {id!r} was taken for "
            "others, and stays.",
            field="id",
        )


def require_reward(value: object) -> None:
    """Refuse a reward that is no finite number."""
    number = isinstance(value, int | float | np.number | np.bool_) or getattr(value, "shape", None) == ()
    try:
        finite = number and math.isfinite(float(value))  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        finite = False
    if not finite:
        raise CredoError(f"reward must be a finite number; got {shown(value)}.", field="reward")


def require_range(reward_range: object) -> RewardRange | None:
    """The range of rewards as two numbers, or None; a CredoError if it is none."""
    if reward_range is None:
        return None
    try:
        low, high = (float(bound) for bound in reward_range)  # type: ignore[attr-defined]
    except (TypeError, ValueError, OverflowError):
        low = high = math.nan
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise CredoError(
            f"reward_range must be two numbers, the least reward and the greatest; got {reward_range!r}.",
            field="reward_range",
        )
    return low, high


def require_within(
    reward: float, reward_range: RewardRange | None, field: str = "reward", *, parts: bool = False
) -> None:
    """Refuse a reward that is outside the range; `parts` says that it is a sum."""
    if reward_range is not None and not reward_range[0] <= reward <= reward_range[1]:
        low, high = reward_range
        raise CredoError(
            f"{field} must be from {low:g} to {high:g}, which is the reward_range; got {reward:g}"
            f"{' with the parts before it' if parts else ''}.",
            field=field,
        )
