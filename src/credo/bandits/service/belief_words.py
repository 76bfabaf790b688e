"""Beliefs as words, and how the part of one arm is replaced where all arms lie in large arrays.

To copy the arrays of all arms costs a hundred times what an arm learns. So there are two of them: one is what
the bandit believes, and the other lags behind by one reward. The next reward is written into the latter, with
the one that it lacks, and the two change places. A belief is never written into while anybody looks at it,
and nothing is lost where a reward fails on the way.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import jax
import numpy as np

from credo.bandits.one_arm import put_arm
from credo.core.kept_programs import program
from credo.core.types import Array
from credo.programs.words import Parts

__all__ = ["Copies", "Held"]

Arrays: TypeAlias = tuple[Array, ...]
"""The large arrays that have a part of every arm."""

Patch: TypeAlias = tuple[np.int32, Arrays]
"""An arm, and its parts of all of them."""


Kinds: TypeAlias = tuple[tuple[tuple[int, ...], np.dtype], ...]
"""Shapes and dtypes."""


class Held:
    """A belief as words, which is never changed. Its owner, if any, may write into its arrays once nobody
    holds it any more.
    """

    __slots__ = ("__weakref__", "owner", "parts")

    def __init__(self, parts: Parts, owner: Copies | None = None) -> None:
        self.parts = parts
        self.owner = owner


class _Spare(NamedTuple):
    """The arrays of an earlier belief, and what they lack of a later one."""

    earlier: weakref.ref[Held]
    arrays: Arrays
    later: weakref.ref[Held]
    patch: Patch


class Copies:
    """The two copies of a bandit's large arrays: those in `places` among them have the arms along `axes`.
    Those in `timed` are written as a whole by every reward, and have no copy.
    """

    def __init__(self, places: tuple[int, ...], axes: tuple[int, ...], timed: tuple[int, ...] = ()) -> None:
        self._places = places
        self._axes = axes
        self._timed = timed
        self._writers: dict[tuple[int, bool], Callable[..., Any]] = {}
        self._spares: list[_Spare] = []

    def with_arm(self, held: Held, words: Array, patch: Patch, moved: Arrays = (), *, private: bool) -> Held:
        """The belief with other words, another part of one arm, and the arrays that time has moved. Where it
        is private, nobody else will look at it again, and its own arrays are used.
        """
        spare = self._spares.pop() if self._spares else None
        old = self._arrays(held)
        if private:
            arrays = self.writer(old, (patch,))(old, (patch,))
        elif spare is not None and spare.later() is held and spare.earlier() is None:
            patches = spare.patch, patch
            arrays = self.writer(spare.arrays, patches)(spare.arrays, patches)
        else:
            arrays = self.writer(old, (patch,), anew=True)(old, (patch,))
        new = Held((words, self._with(held, arrays, moved)), self)
        if held.owner is self and not private:
            self._spares = [_Spare(weakref.ref(held), old, weakref.ref(new), patch)]
        return new

    def writer(self, arrays: Arrays, patches: tuple[Patch, ...], anew: bool = False) -> Callable[..., Any]:
        """The program that writes patches into arrays, or into copies of them."""
        found = self._writers.get((len(patches), anew))
        if found is None:
            kinds = _kinds(arrays), _kinds(patches[0][1])
            found = self._writers[len(patches), anew] = _writer(self._axes, kinds, len(patches), anew)
        return found

    def _arrays(self, held: Held) -> Arrays:
        return tuple([held.parts[1][place] for place in self._places])

    def _with(self, held: Held, arrays: Arrays, moved: Arrays) -> Arrays:
        others = list(held.parts[1])
        for place, array in zip(self._places + self._timed, arrays + moved, strict=True):
            others[place] = array
        return tuple(others)


@functools.lru_cache(maxsize=256)
def _writer(
    axes: tuple[int, ...], kinds: tuple[Kinds, Kinds], patches: int, anew: bool
) -> Callable[..., Any]:
    """A program that writes parts of arms into arrays that are given away for it, or into copies; `kinds` are
    the shapes and dtypes of the arrays and of the parts.
    """

    def write(arrays: Arrays, patches: tuple[Patch, ...]) -> Arrays:
        for arm, parts in patches:
            trios = zip(axes, arrays, parts, strict=True)
            arrays = tuple(put_arm(axis, array, part, arm) for axis, array, part in trios)
        return arrays

    arrays, parts = (tuple(jax.ShapeDtypeStruct(*kind) for kind in every) for every in kinds)
    patch = jax.ShapeDtypeStruct((), np.int32), parts
    name = "put_arm_anew" if anew else "put_arm"
    given = () if anew else (0,)
    return program(name, (axes,), lambda: (write, None), (arrays, (patch,) * patches), donate=given)[0]


def _kinds(arrays: Arrays) -> Kinds:
    return tuple((array.shape, array.dtype) for array in arrays)
