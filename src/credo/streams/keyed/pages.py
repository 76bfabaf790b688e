"""Checkpoints of keyed learners: pages of 1,024 slots, and a manifest that says which belong together."""

from __future__ import annotations

import warnings
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

_KEPT = 2
"""How many manifests are kept."""


def latest(folder: Path) -> list[int]:
    """The numbers of the manifests in a folder, the latest first."""
    found = (path.stem.partition("-")[2] for path in folder.glob("manifest-*.credo"))
    return sorted((int(number) for number in found if number.isdecimal()), reverse=True)


def _manifest(folder: Path, epoch: int) -> Path:
    return folder / f"manifest-{epoch:08d}.credo"


def _page(folder: Path, number: int, epoch: int) -> Path:
    return folder / f"page-{number:06d}-{epoch:08d}.credo"


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
    for number in sorted(table.changed):
        if number < pages:
            _write_page(engine, folder, number, epoch)
    listed = engine.pages | dict.fromkeys((number for number in table.changed if number < pages), epoch)
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
            "pages": [[number, at] for number, at in sorted(listed.items())],
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


def _write_page(engine: Engine, folder: Path, number: int, epoch: int) -> None:
    table = engine.stack.table
    start = number * PAGE
    part = table.names[start : start + PAGE]
    slots = np.array([slot for slot, name in enumerate(part, start) if name is not None], np.int64)
    arrays = {
        "slots": slots,
        "words": engine.stack.take(slots),
        "seen": table.seen[slots],
        "times": table.times[slots],
        "names": np.frombuffer(to_text(part), np.uint8),
    }
    archive.write(_page(folder, number, epoch), "credo-page", {"format": FORMAT}, arrays)


def _clean(folder: Path) -> None:
    """Take away old manifests, and pages that the kept ones do not name."""
    numbers = latest(folder)
    needed: set[Path] = set()
    for epoch in numbers[:_KEPT]:
        try:
            meta = archive.read(_manifest(folder, epoch), "credo", checkpoint.FORMAT, "checkpoint").header[
                "meta"
            ]
        except (DataError, FormatError):
            continue
        needed.update(_page(folder, number, at) for number, at in meta["pages"])
    for epoch in numbers[_KEPT:]:
        _manifest(folder, epoch).unlink(missing_ok=True)
    for path in folder.glob("page-*.credo"):
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
    for number, at in pages:
        arrays = archive.read(
            _page(folder, number, at), "credo-page", FORMAT, "page of keyed learners"
        ).arrays
        words[arrays["slots"]] = arrays["words"]
        names += from_text(arrays["names"].tobytes())
        parts.append({name: arrays[name] for name in ("slots", "seen", "times")})
    stack.replace(words)
    table = stack.table
    slots = np.concatenate([np.zeros(0, np.int64), *(part["slots"] for part in parts)])
    table.restore(slots.tolist(), names)
    for part in parts:
        table.seen[part["slots"]], table.times[part["slots"]] = part["seen"], part["times"]
    stack.epoch = epoch + 1
    engine.folder, engine.pages = folder, {number: at for number, at in pages}
    if stack.away is not None:
        stack.away.close()
        stack.away = Away(folder / "away.sqlite")
        stack.away.rewind(epoch)
