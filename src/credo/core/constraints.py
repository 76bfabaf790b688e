"""Whether the numbers of a belief can be: finite, and what their fields say."""

from __future__ import annotations

from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.errors import FormatError
from credo.core.fields import Constraint, Declaration, declarations
from credo.core.forms import require_bounded
from credo.core.groups import Groups

__all__ = ["require_possible"]


def require_possible(
    value: object, path: str, weights: np.ndarray | None = None, *, raw: bool = False
) -> None:
    """Refuse numbers that no belief holds, by what the fields of its records say (`credo.field`).

    `weights` (K,) are those of the parts of a mixture that are stacked in the arrays; parts of weight 0 are
    not looked at. Numbers of `raw` data must be finite, and others in bounds; a `FormatError` names the
    place.
    """
    said = declarations(value)
    if said is not None:
        _require_record(value, said, path, weights)
    elif isinstance(value, dict):
        for name, child in value.items():
            require_possible(child, f"{path}.{name}", weights, raw=raw)
    elif isinstance(value, list | tuple):
        for place, child in enumerate(value):
            require_possible(child, f"{path}.{place}", weights, raw=raw)
    elif isinstance(value, jax.Array | np.ndarray | float):
        _require_finite(value, path, weights, raw)


def _require_record(
    value: object, said: Mapping[str, Declaration], path: str, weights: np.ndarray | None
) -> None:
    weighed = {one.weighs: name for name, one in said.items() if one.weighs is not None}
    for name, one in said.items():
        child = getattr(value, name)
        place = f"{path}.{name}"
        inner = weights
        if name in weighed:
            inner = np.exp(np.asarray(getattr(value, weighed[name]), float))
        if one.constraint is not None:
            _require_rule(child, one.constraint, place, weights)
            if not one.constraint.finite:
                continue
        if isinstance(child, Groups) and name in weighed and inner is not None:
            for number, (part, members) in enumerate(zip(child.parts, child.places, strict=True)):
                require_possible(part, f"{place}.parts.{number}", inner[..., list(members)])
        else:
            require_possible(child, place, inner, raw=one.raw)


def _require_rule(child: object, rule: Constraint, path: str, weights: np.ndarray | None) -> None:
    for leaf in jax.tree.leaves(child, is_leaf=lambda one: declarations(one) is not None):
        if isinstance(leaf, jax.Array | np.ndarray | int | float):
            kept = _kept(np.asarray(leaf), weights)
            if not rule.test(kept.astype(float)):
                raise FormatError(f"{path} {rule.words}.", field=path)


def _require_finite(
    value: jax.Array | np.ndarray | float, path: str, weights: np.ndarray | None, raw: bool
) -> None:
    if not jnp.issubdtype(jnp.asarray(value).dtype, jnp.floating):
        return
    kept = _kept(np.asarray(value), weights)
    if not raw and not isinstance(value, float):
        require_bounded(kept, path)
    elif not np.isfinite(kept).all():
        raise FormatError(f"{path} must be finite.", field=path)


def _kept(array: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """The entries of an array that have a probability above 0."""
    if weights is None or array.shape[: weights.ndim] != weights.shape:
        return array
    return array[weights > 0]
