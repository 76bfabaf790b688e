"""What happens to hypotheses for which there is no room."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from credo.adapt.hypotheses import normalized
from credo.adapt.priors import collapse
from credo.core.errors import CredoError
from credo.core.keys import require_key

__all__ = ["OVERFLOWS", "thin"]


def thin(
    overflow: str,
    log_weights: jax.Array,
    beliefs: Any,
    run_length: jax.Array,
    urgent: jax.Array,
    capacity: int,
    key: Any,
) -> tuple[jax.Array, Any, jax.Array]:
    """Keep at most `capacity` of M hypotheses.

    Arguments:
        overflow: "drop" keeps the heaviest; "resample" draws among the light ones so that every weight is
            right on average (Fearnhead & Liu 2007); "merge" folds the lightest into the one of the nearest
            run length, by moments (one hypothesis too many only).
        log_weights: (M,), of sum one.
        beliefs: with a leading axis M.
        run_length: (M,).
        urgent: which must be kept as long as there is room (M,).
        capacity: how many to keep.
        key: for "resample".

    Returns:
        Log weights (M,) of sum one, -inf where dropped; the beliefs; the probability that was dropped.
    """
    return OVERFLOWS[overflow](log_weights, beliefs, run_length, urgent, capacity, key)


def _heaviest(log_weights: jax.Array, urgent: jax.Array, capacity: int) -> jax.Array:
    """Which hypotheses are the heaviest, urgent ones first."""
    alive = log_weights > -jnp.inf
    rank = jnp.where(urgent & alive, log_weights + 1e6, log_weights)
    size = log_weights.shape[0]
    if size == capacity + 1:
        return jnp.arange(size) != jnp.argmin(rank)
    return jnp.zeros(size, bool).at[jax.lax.top_k(rank, capacity)[1]].set(True)


def _drop(
    log_weights: jax.Array, beliefs: Any, run_length: jax.Array, urgent: jax.Array, capacity: int, key: Any
) -> tuple[jax.Array, Any, jax.Array]:
    keep = _heaviest(log_weights, urgent, capacity)
    pruned = jnp.sum(jnp.where(keep, 0.0, jnp.exp(log_weights)))
    return normalized(jnp.where(keep, log_weights, -jnp.inf))[0], beliefs, pruned


def _resample(
    log_weights: jax.Array, beliefs: Any, run_length: jax.Array, urgent: jax.Array, capacity: int, key: Any
) -> tuple[jax.Array, Any, jax.Array]:
    """Stratified optimal resampling: with sum_k min(w_k / c, 1) = capacity, weights above c stay as they are
    and the others survive with probability w / c and weigh c.
    """
    key = require_key(key, "overflow='resample'")
    weights = jnp.exp(log_weights)
    size, dtype = weights.shape[0], weights.dtype
    falling = jnp.sort(weights)[::-1]
    # With the A heaviest kept as they are, c = (the rest's sum) / (capacity - A).
    rest = jnp.maximum(1.0 - jnp.concatenate([jnp.zeros(1, dtype), jnp.cumsum(falling)[:-1]]), 0.0)
    room = capacity - jnp.arange(size)
    level = jnp.where(room > 0, rest / jnp.maximum(room, 1).astype(dtype), jnp.inf)
    fits = (room > 0) & (falling <= level)
    threshold = jnp.where(jnp.any(fits), level[jnp.argmax(fits)], 0.0)
    light = (weights < threshold) & (weights > 0)
    chances = jnp.cumsum(jnp.where(light, weights / jnp.where(threshold > 0, threshold, 1.0), 0.0))
    start = jax.random.uniform(key, (), dtype)
    # One survivor for each whole number that u + (the running sum) passes.
    passed = jnp.floor(chances + start) > jnp.floor(
        jnp.concatenate([jnp.zeros(1, dtype), chances[:-1]]) + start
    )
    drawn = jnp.where(light & passed, jnp.log(threshold), -jnp.inf)
    kept = jnp.where(light, drawn, log_weights)
    few = jnp.sum((weights > 0).astype(jnp.int32)) <= capacity
    kept = jnp.where(few, log_weights, kept)
    # Rounding may leave one too many.
    keep = _heaviest(kept, jnp.zeros_like(urgent), capacity)
    kept = jnp.where(keep, kept, -jnp.inf)
    pruned = jnp.sum(jnp.where(kept > -jnp.inf, 0.0, weights))
    return normalized(kept)[0], beliefs, pruned


def _merge(
    log_weights: jax.Array, beliefs: Any, run_length: jax.Array, urgent: jax.Array, capacity: int, key: Any
) -> tuple[jax.Array, Any, jax.Array]:
    size = log_weights.shape[0]
    if size != capacity + 1:
        raise CredoError(
            "overflow='merge' needs run lengths with one successor (a hazard that is not learned)."
        )
    keep = _heaviest(log_weights, urgent, capacity)
    lost = jnp.argmin(keep)
    near = keep & (log_weights > -jnp.inf)
    far = jnp.iinfo(run_length.dtype).max
    host = jnp.argmin(jnp.where(near, jnp.abs(run_length - run_length[lost]), far))
    pair = jnp.stack([host, lost])
    both = jax.tree.map(lambda leaf: leaf[pair], beliefs)
    full = log_weights[lost] > -jnp.inf
    merged = collapse(log_weights[pair], both)
    beliefs = jax.tree.map(
        lambda leaf, one: leaf.at[host].set(jnp.where(full, one, leaf[host])), beliefs, merged
    )
    total = jnp.logaddexp(log_weights[host], log_weights[lost])
    kept = jnp.where(keep, log_weights, -jnp.inf).at[host].set(jnp.where(full, total, log_weights[host]))
    return kept, beliefs, jnp.zeros((), log_weights.dtype)


OVERFLOWS = {"drop": _drop, "resample": _resample, "merge": _merge}
