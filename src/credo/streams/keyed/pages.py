"""Checkpoints of keyed learners: files of pages of 1,024 slots, and a manifest that says which page is where.

The words of the beliefs, and the numbers and times of their latest rows, change with every row, but the names
of the keys with new ones only: these are two kinds of pages. A checkpoint writes the pages that changed, many
to a file, because a file costs as much as a page, and straight from the memory in which they are. Of an older
file some pages are then out of date; where most are, the others are written again, and the file goes.
"""

from __future__ import annotations

import dataclasses
import warnings
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from credo.core import archive
from credo.core.errors import DataError, FormatError
from credo.core.files import replacing
from credo.core.places import Place, fetched
from credo.learners import Learner
from credo.streams import checkpoint
from credo.streams.keyed.away import Away
from credo.streams.keyed.engine import Engine
from credo.streams.keyed.naming import KeyName, from_text, to_text
from credo.streams.keyed.programs import Prior
from credo.streams.keyed.table import PAGE

__all__ = ["Saved", "latest", "read", "write"]

FORMAT = 2
"""The number of the format of pages."""

# How many manifests are kept, and the most pages of a file.
_KEPT = 2
_TOGETHER = 128

Kind: TypeAlias = Literal["rows", "keys"]
"""The content of a page."""

_KINDS: tuple[Kind, ...] = ("rows", "keys")


class PageFile(NamedTuple):
    """A file of pages: by which checkpoint and in which place it was written, its pages in their order, how
    many slots they have together, and its checksum.
    """

    kind: Kind
    epoch: int
    group: int
    pages: tuple[int, ...]
    slots: int
    crc: int

    def path(self, folder: Place) -> Place:
        """The place of the page in a folder."""
        return folder / f"{self.kind}-{self.epoch:08d}-{self.group:06d}.pages"


@dataclasses.dataclass
class Saved:
    """The folder of the latest checkpoint, and in which file each of its pages is, by kind."""

    folder: Place
    files: dict[Kind, dict[int, PageFile]]

    def all(self) -> set[PageFile]:
        """All files."""
        return {file for pages in self.files.values() for file in pages.values()}


def latest(folder: Place) -> list[int]:
    """The numbers of the manifests in a folder, the latest first."""
    found = (path.stem.partition("-")[2] for path in folder.glob("manifest-*.credo"))
    return sorted((int(number) for number in found if number.isdecimal()), reverse=True)


def _manifest(folder: Place, epoch: int) -> Place:
    return folder / f"manifest-{epoch:08d}.credo"


def write(engine: Engine, folder: Place, offset: int) -> Place:
    """Write a checkpoint, and take away what no kept manifest needs."""
    stack = engine.stack
    table = engine.stack.table
    pages = -(-table.end // PAGE)
    if engine.saved is None or folder != engine.saved.folder:
        before = latest(folder)
        stack.epoch = max([stack.epoch, *(number + 1 for number in before)])
        engine.saved = Saved(folder, _no_files())
        table.changed.update(range(pages))
        table.renamed.update(range(pages))
    epoch = stack.epoch
    before_it = engine.saved
    files: dict[Kind, dict[int, PageFile]] = {kind: dict(before_it.files[kind]) for kind in _KINDS}
    for kind, fresh in zip(_KINDS, (table.changed, table.renamed), strict=True):
        changed = [number for number in sorted(fresh | _sparse(files[kind])) if number < pages]
        for group, start in enumerate(range(0, len(changed), _TOGETHER)):
            file = _write(engine, folder, kind, group, tuple(changed[start : start + _TOGETHER]))
            files[kind] |= dict.fromkeys(file.pages, file)
    saved = Saved(folder, files)
    if stack.away is not None:
        stack.away.settle(folder / "away.sqlite")
    path = _manifest(folder, epoch)
    checkpoint.write(
        path,
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
            "files": sorted(saved.all()),
        },
        arrays={
            "prior": engine.prior_words,
            **({} if engine.random is None else {"random": np.asarray(jax.random.key_data(engine.random))}),
        },
    )
    engine.saved = saved
    table.changed.clear()
    table.renamed.clear()
    stack.epoch += 1
    _clean(folder, epoch, [saved, before_it])
    if stack.away is not None:
        stack.away.prune(epoch - 1)
    return path


def _no_files() -> dict[Kind, dict[int, PageFile]]:
    return {"rows": {}, "keys": {}}


def _sparse(files: dict[int, PageFile]) -> set[int]:
    """The pages that are up to date in files of which most pages are not."""
    live = Counter(files.values())
    return {number for number, file in files.items() if 2 * live[file] < len(file.pages)}


def _write(engine: Engine, folder: Place, kind: Kind, group: int, pages: tuple[int, ...]) -> PageFile:
    """Write pages, which are not empty, into a file."""
    stack = engine.stack
    table = engine.stack.table
    runs = [(number * PAGE, min((number + 1) * PAGE, stack.capacity)) for number in pages]
    slots = sum(stop - start for start, stop in runs)
    parts: Iterable[Any]
    if kind == "keys":
        parts = [to_text(table.names(np.concatenate([np.arange(*run) for run in runs])))]
    else:
        words = [stack.rows(start, stop) for start, stop in _joined(runs)]
        parts = [*words, *(one[slice(*run)] for one in (table.seen, table.times) for run in runs)]
    file = PageFile(kind, stack.epoch, group, pages, slots, 0)
    crc = 0
    with replacing(file.path(folder)) as path, path.open("wb", buffering=0) as target:
        for part in parts:
            memory = memoryview(part).cast("B")
            crc = zlib.crc32(memory, crc)
            while memory:
                memory = memory[target.write(memory) :]
    return file._replace(crc=crc)


def _joined(runs: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Runs of slots, of which those that follow each other are one."""
    first, last = runs[0]
    for start, stop in runs[1:]:
        if start != last:
            yield first, last
            first = start
        last = stop
    yield first, last


def _clean(folder: Place, epoch: int, known: Sequence[Saved]) -> None:
    """Take away old manifests, and files that the kept ones do not name."""
    numbers = latest(folder)
    needed = {file.path(folder) for saved in known for file in saved.all()}
    if len(known[1].all()) == 0:  # of the checkpoint before nothing is known
        for number in numbers[:_KEPT]:
            try:
                manifest = archive.read(_manifest(folder, number), "credo", checkpoint.FORMAT, "checkpoint")
                needed |= {file.path(folder) for file in _files(manifest.header["meta"])}
            except (DataError, FormatError, KeyError):
                continue
    for number in numbers[_KEPT:]:
        _manifest(folder, number).unlink(missing_ok=True)
    for path in folder.glob("*.pages"):
        if path not in needed:
            path.unlink(missing_ok=True)


def _files(meta: dict[str, Any]) -> list[PageFile]:
    """The files that a manifest names."""
    return [
        PageFile(kind, epoch, group, tuple(pages), slots, crc)
        for kind, epoch, group, pages, slots, crc in meta["files"]
    ]


def read(folder: Place, learner: Learner[Any] | None, prior: Prior | None) -> tuple[Engine, int]:
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


def _read(folder: Place, epoch: int, learner: Learner[Any] | None, prior: Prior | None) -> tuple[Engine, int]:
    path = _manifest(folder, epoch)
    saved = checkpoint.read(path, learner)
    meta = saved.meta
    with archive.refusing(path, "checkpoint"):
        if meta["keyed"] != FORMAT:
            raise FormatError(
                f"{path} has format {meta['keyed']}; this version reads {FORMAT} alone: upgrade credo."
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
        engine.rows = meta["rows"]
        engine.timed = meta["timed"]
        engine.stack.absent = meta["absent"]
        engine.prior_words = saved.arrays["prior"]
        _fill(engine, folder, epoch, _files(meta))
        return engine, meta["offset"]


def _fill(engine: Engine, folder: Place, epoch: int, files: Sequence[PageFile]) -> None:
    """Read the pages of a checkpoint, each from the latest file that has it."""
    stack = engine.stack
    saved = Saved(folder, _no_files())
    for file in sorted(files, key=lambda file: file.epoch):
        saved.files[file.kind] |= dict.fromkeys(file.pages, file)
    words = np.zeros((stack.capacity, stack.size), np.uint32)
    seen = np.zeros(stack.capacity, np.int64)
    times = np.full(stack.capacity, np.nan)
    slots = list[int]()
    names = list[KeyName]()
    for file in files:
        data = _checked(file, folder)
        own = np.concatenate([np.arange(page * PAGE, (page + 1) * PAGE) for page in file.pages])[: file.slots]
        latest_of = saved.files[file.kind]
        live = np.repeat([latest_of[page] is file for page in file.pages], PAGE)[: file.slots]
        if file.kind == "keys":
            every = from_text(data.tobytes())
            for row in np.flatnonzero(live).tolist():
                if (name := every[row]) is not None:
                    slots.append(int(own[row]))
                    names.append(name)
            continue
        ends = np.cumsum([4 * stack.size * file.slots, 8 * file.slots, 8 * file.slots])
        parts = np.split(data, ends[:2])
        if len(data) != ends[2]:
            raise FormatError(f"{file.path(folder)} must have {ends[2]:,} bytes; it has {len(data):,}.")
        words[own[live]] = parts[0].view(np.uint32).reshape(file.slots, stack.size)[live]
        seen[own[live]] = parts[1].view(np.int64)[live]
        times[own[live]] = parts[2].view(np.float64)[live]
    stack.replace(words)
    stack.table.restore(np.array(slots, np.int64), names)
    stack.table.seen[:] = seen
    stack.table.times[:] = times
    stack.epoch = epoch + 1
    engine.saved = saved
    if stack.away is not None:
        stack.away.close()
        stack.away = Away(folder / "away.sqlite")
        stack.away.rewind(epoch)


def _checked(file: PageFile, folder: Place) -> np.ndarray:
    """The bytes of a file, which are those that were written."""
    path = file.path(folder)
    try:
        with fetched(path) as local:
            data = np.fromfile(local, np.uint8)
    except OSError as error:
        raise FormatError(f"{path} cannot be read: {error.strerror or error}.") from None
    if zlib.crc32(data.data) != file.crc:
        raise FormatError(f"{path} is damaged: its contents do not match its checksum.")
    return data
