"""A grid of settings times seeds: the seeds of a setting vmapped in one compiled program, in pieces.

    results = sweep("name", settings, build, seeds, shared, cells=cells, progress=progress)

`build(program)` makes a function of one seed, `one(values, seed, shared) -> {name: array}`. It is vmapped
over the seeds and compiled once for all settings that share their `program`. Seeds are taken `chunk` at a
time, so memory is bounded; each piece (a setting times a chunk of seeds) is a cell that is kept when it is
done.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.errors import CredoError, require_integer
from credo.core.verbs import verb
from credo.experiments.cells import Arrays, Cells
from credo.experiments.records import Progress

__all__ = ["Build", "One", "Setting", "portion", "sweep"]

One = Callable[[dict[str, jax.Array], Any, Any], Mapping[str, jax.Array]]
"""`one(values, seed, shared)`: traced; the arrays of one seed under one setting."""

Build = Callable[[Mapping[str, Any]], One]
"""`build(program)`: the function of one seed, for all settings that have this program. Write it as a
function of a module whose result depends on `program` alone, since what it makes is kept."""


@dataclass(frozen=True)
class Setting:
    """One setting of a grid, in plain JSON values.

    Args:
        name: What results are found by; no two settings of a sweep share it.
        program: What the compiled program depends on: names, ranks, numbers of iterations.
        values: Numbers, or lists of them, that are arguments of the program: variances, learning rates.
            Settings that differ only in these are compiled once.
    """

    name: str
    program: Mapping[str, Any] = field(default_factory=dict)
    values: Mapping[str, float | Sequence[float]] = field(default_factory=dict)


def sweep(
    experiment: str,
    settings: Sequence[Setting],
    build: Build,
    seeds: Any,
    shared: Any = None,
    *,
    given: Mapping[str, Any],
    chunk: int = 20,
    cells: Cells | None = None,
    progress: Progress = lambda done, text: None,
) -> dict[str, Arrays]:
    """Run every setting on every seed.

    Args:
        experiment: Its name, which begins the names of the files.
        settings: The grid.
        build: See `Build`.
        seeds: A tree of arrays with a leading axis of seeds: data orders, initial parameters, keys.
        shared: A tree of arrays that all seeds share, such as images and test rows, or None.
        given: Everything else that results depend on, in plain JSON values: the data set, the seed, sizes,
            and a `version` that changes when the code does.
        chunk: How many seeds run side by side at most.
        cells: Where finished pieces are kept and looked for; None keeps none.
        progress: Told after each piece, from 0 to 1.

    Returns:
        For each setting, by name, the arrays of `one` with a leading axis of seeds.

    Raises:
        CredoError: two settings share a name, or `seeds` has no common leading axis.

    Example:
        >>> def build(program):
        ...     return lambda values, seed, shared: {"value": values["scale"] * seed ** program["power"]}
        >>> grid = [Setting("cubes", {"power": 3}, {"scale": 2.0})]
        >>> sweep("doc", grid, build, np.arange(3.0), given={})["cubes"]["value"].tolist()
        [0.0, 2.0, 16.0]
    """
    cells = Cells() if cells is None else cells
    require_integer("chunk", chunk, 1)
    names = [setting.name for setting in settings]
    if repeated := {name for name in names if names.count(name) > 1}:
        raise CredoError(f"settings must have different names; got {sorted(repeated)[0]!r} more than once.")
    count = _count(seeds)
    pieces = math.ceil(count / chunk)
    width = math.ceil(count / pieces)
    pieces = math.ceil(count / width)
    results: dict[str, Arrays] = {}
    for i, setting in enumerate(settings):
        parts = []
        for k in range(pieces):
            progress((i * pieces + k) / (len(settings) * pieces), _label(setting.name, k, pieces))
            first, last = k * width, min((k + 1) * width, count)
            described = {
                "given": dict(given),
                "program": dict(setting.program),
                "values": dict(setting.values),
                "seeds": [first, last, count],
            }

            def compute(setting: Setting = setting, first: int = first, last: int = last) -> Arrays:
                program = _compiled(build, json.dumps(dict(setting.program), sort_keys=True))
                rows = np.minimum(np.arange(first, first + width), count - 1)
                some = jax.tree.map(lambda leaf: leaf[rows], seeds)
                values = {key: jnp.asarray(value, float) for key, value in setting.values.items()}
                made = program(values, some, shared)
                return {key: np.asarray(leaf)[: last - first] for key, leaf in made.items()}

            parts.append(cells.get(f"{experiment}-{setting.name}", described, compute))
        results[setting.name] = {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}
    progress(1.0, "done")
    return results


def portion(progress: Progress, start: float, end: float, prefix: str = "") -> Progress:
    """A progress function for a part of the work: 0 to 1 of it is `start` to `end` of the whole.

    >>> portion(lambda done, text: print(f"{done:.2f}", text), 0.5, 1.0, "second: ")(0.5, "halfway")
    0.75 second: halfway
    """
    return lambda done, text: progress(start + (end - start) * done, prefix + text)


@functools.lru_cache(maxsize=64)
def _compiled(build: Build, program: str) -> Any:
    """The function of many seeds; kept, so that a second sweep compiles it only for new shapes."""
    return verb(jax.vmap(build(json.loads(program)), in_axes=(None, 0, None)))


def _label(name: str, k: int, pieces: int) -> str:
    return name if pieces == 1 else f"{name} ({k + 1} of {pieces})"


def _count(seeds: Any) -> int:
    lengths = {np.shape(leaf)[:1] for leaf in jax.tree.leaves(seeds)}
    if len(lengths) != 1 or lengths == {()} or lengths == {(0,)}:
        raise CredoError(f"seeds must have one common leading axis, at least 1; got {sorted(lengths)}.")
    return int(lengths.pop()[0])
