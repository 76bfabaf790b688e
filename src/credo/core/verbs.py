"""Verbs, which are public functions that are compiled once per structure of their arguments."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import ParamSpec, TypeVar, cast, overload

import jax
import numpy as np

from credo.core.errors import CredoError
from credo.core.forks import require_threads
from credo.core.inputs import require_narrow, require_numbers
from credo.core.kept_programs import Kept

__all__ = ["traced_once", "verb"]

P = ParamSpec("P")
R = TypeVar("R")


@overload
def verb(function: Callable[P, R]) -> Callable[P, R]: ...


@overload
def verb(*, static: tuple[str, ...], kept: bool = False) -> Callable[[Callable[P, R]], Callable[P, R]]: ...


def verb(
    function: Callable[P, R] | None = None, *, static: tuple[str, ...] = (), kept: bool = False
) -> Callable[P, R] | Callable[[Callable[P, R]], Callable[P, R]]:
    """Compile a public verb once per structure, with matrix products in full precision on every backend.

    Programs that are `kept` are found again in other processes; see `credo.core.kept_programs`.
    """
    if function is None:
        return functools.partial(_compiled, static=static, kept=kept)
    return _compiled(function, static, kept)


def _compiled(function: Callable[P, R], static: tuple[str, ...], kept: bool) -> Callable[P, R]:
    @functools.wraps(function)
    def precise(*args: P.args, **kwargs: P.kwargs) -> R:
        with jax.default_matmul_precision("highest"):
            return function(*args, **kwargs)

    compiled = cast(
        Callable[P, R], (Kept(precise, static) if kept else jax.jit(precise, static_argnames=static))
    )

    names = tuple(inspect.signature(function).parameters)

    @functools.wraps(function)
    def explained(*args: P.args, **kwargs: P.kwargs) -> R:
        require_threads()
        for name, value in zip(names, args, strict=False):
            if isinstance(value, np.generic | np.ndarray):
                require_narrow(name, value)
        try:
            return compiled(*args, **kwargs)
        except (TypeError, ValueError, OverflowError) as error:
            if not isinstance(error, CredoError):
                bound = inspect.signature(function).bind(*args, **kwargs).arguments
                _explain({name: value for name, value in bound.items() if name not in static}, error)
            raise

    return explained


def traced_once(function: Callable[P, R], *, static: tuple[str, ...] = ()) -> Callable[P, R]:
    """A function that JAX traces and lowers once a program, however often the program calls it.

    A forecast is asked for by the score of a row, by what watches the losses, and by each mixture around. The
    compiler finds that they are one; without this, each would be traced anew, and a bank of learners would
    take twice as long to trace. Below `jax.vmap` it spares more, since there every operation costs more.

    Arguments:
        function: a function of trees of arrays, at the top of its module: JAX knows it by its identity.
        static: the names of arguments that are no trees of arrays.
    """
    return cast(Callable[P, R], jax.jit(function, static_argnames=static))


def _explain(arguments: Mapping[str, object], cause: Exception) -> None:
    """Refuse what JAX could not take for an array, in a sentence; JAX's own error is its cause."""
    try:
        for field, value in arguments.items():
            require_numbers(field, value)
    except CredoError as refusal:
        raise refusal from cause
    if arguments.get("y", 0) is None:
        raise CredoError("y is missing: pass the observation, or NaN where there is none.") from cause
