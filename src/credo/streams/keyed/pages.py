"""Checkpoints of keyed learners: files of pages of 1,024 slots, and a manifest that says which page is where.

A checkpoint writes the pages that changed, many to a file, because a file costs as much as a page. Of an
older file some pages are then out of date; where most are, the others are written again, and the file goes.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credo.core import archive
from credo.core.errors import DataError, FormatError
from credo.learners import Learner
from credo.streams import checkpoint
from credo.streams.keyed.away import Away
from credo.streams.keyed.engine import Engine
from credo.streams.keyed.naming import KeyName, from_text, to_text
from credo.streams.keyed.programs import Prior
from credo.streams.keyed.table import PAGE

__all__ = ["latest", "read", "write"]

FORMAT = 1
"""The number of the format of pages."""

_KEPT, _TOGETHER = 2, 32
"""How many manifests are kept, and the most pages of a file."""


def latest(folder: Path) -> list[int]:
    """The numbers of the manifests in a folder, the latest first."""
    found = (path.stem.partition("-")[2] for path in folder.glob("manifest-*.credo"))
    return sorted((int(number) for number in found if number.isdecimal()), reverse=True)


def _manifest(folder: Path, epoch: int) -> Path:
    return folder / f"manifest-{epoch:08d}.credo"


def _file(folder: Path, epoch: int, number: int) -> Path:
    return folder / f"pages-{epoch:08d}-{number:06d}.credo"


def write(engine: Engine, folder: Path, offset: int) -> Path:
    """Write a checkpoint, and take away what no kept manifest needs."""
    stack, table = engine.stack, engine.stack.table
    pages = -(-len(table.names) // PAGE)
    if folder != engine.folder:
        before = latest(folder)
        stack.epoch = max([stack.epoch, *(number + 1 for number in before)])
        engine.folder, engine.pages = folder, {}
        table.changed.update(range(pages))
    epoch = stack.epoch
    changed = [number for number in sorted(table.changed | _sparse(engine)) if number < pages]
    listed = dict(engine.pages)
    for group, start in enumerate(range(0, len(changed), _TOGETHER)):
        some = changed[start : start + _TOGETHER]
        _write_pages(engine, _file(folder, epoch, group), some)
        listed |= {number: (epoch, group, len(some)) for number in some}
    if stack.away is not None:
        stack.away.settle(folder / "away.sqlite")
    path = checkpoint.save(
        _manifest(folder, epoch),
        engine.learner,
        engine.first,
        meta={
            "keyed": FORMAT,
            "offset": offset,
            "rows": engine.rows,
            "tile": engine.tile,
            "capacity": stack.capacity,
            "pooled": engine.pooled,
            "evict": stack.evict,
            "absent": stack.absent,
            "timed": engine.timed,
            "function": engine.of_inputs is not None,
            "random": None if engine.random is None else str(jax.random.key_impl(engine.random)),
            "pages": [[number, *place] for number, place in sorted(listed.items())],
        },
        arrays={
            "prior": engine.prior_words,
            **({} if engine.random is None else {"random": np.asarray(jax.random.key_data(engine.random))}),
        },
    )
    engine.pages = listed
    table.changed.clear()
    stack.epoch += 1
    _clean(folder)
    if stack.away is not None:
        stack.away.prune(epoch - 1)
    return path


def _sparse(engine: Engine) -> set[int]:
    """The pages that are up to date in files of which most pages are not."""
    live = Counter(engine.pages.values())
    return {number for number, place in engine.pages.items() if 2 * live[place] < place[2]}


def _write_pages(engine: Engine, path: Path, numbers: Sequence[int]) -> None:
    table = engine.stack.table
    names: list[KeyName] = []
    parts = [np.zeros(0, np.int64)]
    for number in numbers:
        part = table.names[number * PAGE : (number + 1) * PAGE]
        own = [name for name in part if name is not None]
        whole = len(own) == len(part)
        rows = range(len(part)) if whole else [row for row, name in enumerate(part) if name is not None]
        names += own
        parts.append(number * PAGE + np.array(rows, np.int64))
    slots = np.concatenate(parts)
    arrays = {
        "slots": slots,
        "words": engine.stack.take(slots),
        "seen": table.seen[slots],
        "times": table.times[slots],
        "names": np.frombuffer(to_text(names), np.uint8),
    }
    archive.write(path, "credo-pages", {"format": FORMAT}, arrays)


def _clean(folder: Path) -> None:
    """Take away old manifests, and pages that the kept ones do not name."""
    numbers = latest(folder)
    needed: set[Path] = set()
    for epoch in numbers[:_KEPT]:
        try:
            manifest = archive.read(_manifest(folder, epoch), "credo", checkpoint.FORMAT, "checkpoint")
        except (DataError, FormatError):
            continue
        places = manifest.header["meta"]["pages"]
        needed.update(_file(folder, at, group) for _, at, group, _ in places)
    for epoch in numbers[_KEPT:]:
        _manifest(folder, epoch).unlink(missing_ok=True)
    for path in folder.glob("pages-*.credo"):
        if path not in needed:
            path.unlink(missing_ok=True)


def read(folder: Path, learner: Learner[Any] | None, prior: Prior | None) -> tuple[Engine, int]:
    """The keys of the latest checkpoint that is whole, and its offset."""
    numbers = latest(folder)
    if not numbers:
        raise DataError(f"no checkpoint of keyed learners in {folder}.")
    for epoch, before in zip(numbers, [*numbers[1:], None], strict=True):
        try:
            return _read(folder, epoch, learner, prior)
        except FormatError as error:
            if before is None or "another model" in str(error) or "upgrade" in str(error):
                raise
            warnings.warn(f"{error} The checkpoint before it is taken.", stacklevel=4)
    raise AssertionError


def _read(folder: Path, epoch: int, learner: Learner[Any] | None, prior: Prior | None) -> tuple[Engine, int]:
    path = _manifest(folder, epoch)
    saved = checkpoint.read(path, learner)
    meta = saved.meta
    with archive.refusing(path, "checkpoint"):
        if meta["keyed"] > FORMAT:
            raise FormatError(
                f"{path} has format {meta['keyed']}; this version reads up to {FORMAT}: upgrade credo."
            )
        if meta["function"] != (prior is not None):
            needed = "the function that was" if meta["function"] else "None, as the prior was"
            raise FormatError(f"prior must be {needed} the prior when {path} was saved.", field="prior")
        random = None
        if meta["random"] is not None:
            random = jax.random.wrap_key_data(jnp.asarray(saved.arrays["random"]), impl=meta["random"])
        sizes = {name: meta[name] for name in ("tile", "capacity", "pooled", "evict")}
        engine = Engine(saved.learner, prior, random=random, **sizes)
        engine.begin(saved.belief)
        engine.rows, engine.timed, engine.stack.absent = meta["rows"], meta["timed"], meta["absent"]
        engine.prior_words = saved.arrays["prior"]
        _fill(engine, folder, epoch, meta["pages"])
        return engine, meta["offset"]


def _fill(engine: Engine, folder: Path, epoch: int, pages: Sequence[Sequence[int]]) -> None:
    stack = engine.stack
    words = np.zeros((stack.capacity, stack.size), np.uint32)
    names: list[KeyName] = []
    parts: list[archive.Arrays] = []
    places = {number: (at, group, count) for number, at, group, count in pages}
    for at, group, count in sorted(set(places.values())):
        path = _file(folder, at, group)
        arrays = archive.read(path, "credo-pages", FORMAT, "file of pages of keyed learners").arrays
        slots = arrays["slots"]
        live = np.array([places.get(page) == (at, group, count) for page in (slots // PAGE).tolist()], bool)
        words[slots[live]] = arrays["words"][live]
        own = from_text(arrays["names"].tobytes())
        names += [own[row] for row in np.flatnonzero(live)]
        parts.append({name: arrays[name][live] for name in ("slots", "seen", "times")})
    stack.replace(words)
    table = stack.table
    slots = np.concatenate([np.zeros(0, np.int64), *(part["slots"] for part in parts)])
    table.restore(slots.tolist(), names)
    for part in parts:
        table.seen[part["slots"]], table.times[part["slots"]] = part["seen"], part["times"]
    stack.epoch = epoch + 1
    engine.folder, engine.pages = folder, places
    if stack.away is not None:
        stack.away.close()
        stack.away = Away(folder / "away.sqlite")
        stack.away.rewind(epoch)
