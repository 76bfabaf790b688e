"""Parts of chunks: the rows after a place in the source, and the first few rows."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator

import numpy as np

from credo.live.encoding import Images
from credo.tables import Chunk

__all__ = ["after_line", "at_most", "last_line"]


def last_line(rows: Chunk | Images) -> int:
    """The place of the last row of a chunk, good or bad; 0 if there is none."""
    bad = [row.line for row in rows.bad] if isinstance(rows, Chunk) else []
    return max([*bad, *rows.lines[-1:].tolist()], default=0)


def after_line(chunks: Iterable[Chunk], line: int) -> Iterator[Chunk]:
    """The chunks without the rows up to a line, from which an interrupted run continues.

    Arguments:
        chunks: the chunks of a source.
        line: the last line to leave out.

    Example:
        >>> chunk = Chunk({"a": [1, 2, 3]}, np.array([2, 3, 4]))
        >>> [rest.lines.tolist() for rest in after_line([chunk], 2)]
        [[3, 4]]
    """
    for chunk in chunks:
        if last_line(chunk) <= line:
            continue
        start = int(np.searchsorted(chunk.lines, line, side="right"))
        bad = [row for row in chunk.bad if row.line > line]
        yield dataclasses.replace(chunk.part(start, len(chunk)), bad=bad)


def at_most(chunks: Iterable[Chunk], count: int) -> Iterator[Chunk]:
    """The chunks of a source up to a number of rows, 0 for all."""
    left = count
    for chunk in chunks:
        if not count:
            yield chunk
            continue
        yield chunk.part(0, left)
        left -= min(left, len(chunk))
        if left <= 0:
            return
