"""In place of `official_codes.py`: the published updates of BONG as they are transcribed in `published.py`.

What has no transcription is there as a call that says so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import official_codes
import published

__all__ = ["bong_full", "bong_low_rank"]


def _scan(update: Callable[..., Any], state: Any, xs: Any, ys: Any) -> official_codes.Call:
    run = published.scan(update)
    return lambda: run(jax.random.key(0), state, xs, ys)


def bong_full(
    apply: official_codes.Apply, size: int, xs: Any, ys: Any, *, alone: bool
) -> official_codes.Call:
    """The update of BONG with a full covariance, of numbers with unit noise."""
    if not alone:
        return _absent()
    problem = published.Problem(
        lambda params, x: jnp.atleast_1d(apply(params, x)),
        lambda params, x: jnp.eye(1),
        lambda mean, cov, y: -0.5 * jnp.sum((y - mean) ** 2),
    )
    start = published.Full(jnp.zeros(size), jnp.eye(size))
    return _scan(published.full_bong_lin_hess(problem), start, xs, ys)


def bong_low_rank(
    apply: official_codes.Apply, start: Any, var: float, rank: int, xs: Any, ys: Any
) -> official_codes.Call:
    """The update of BONG with a low-rank precision, projected by the Gram matrix as the public code does."""
    size = start.shape[0]
    state = published.DLR(start, jnp.full((size, 1), 1.0 / var), jnp.zeros((size, rank)))
    return _scan(published.dlr_bong_lin_hess(published.categorical(apply)), state, xs, ys)


def _absent(*_values: object, **_options: object) -> official_codes.Call:
    def call() -> None:
        raise RuntimeError("needs the official code (--codes FOLDER)")

    return call


def __getattr__(name: str) -> Callable[..., official_codes.Call]:
    if name not in official_codes.__all__:
        raise AttributeError(name)
    return _absent
