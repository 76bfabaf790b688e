"""Encodings are put together again from what was saved of them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from credo.core.errors import FormatError
from credo.live.encoding import ImageEncoding, SavedImages, SavedTable, TableEncoding
from credo.live.series import SeriesEncoding
from credo.recipes.settings import one_of
from credo.tables import EncoderState, Schema
from credo.tables.tasks import TARGET_KINDS

__all__ = ["restore"]


def restore(
    saved: SavedTable | SavedImages, arrays: Mapping[str, np.ndarray]
) -> TableEncoding | ImageEncoding:
    """The encoding that `to_dict` and `arrays` described; a FormatError if another version wrote it."""
    if saved["kind"] == "series":
        return SeriesEncoding.restored(saved, arrays)
    if saved["kind"] == "table":
        state = EncoderState.from_arrays(arrays)
        return TableEncoding(Schema.from_dict(saved["schema"]), state, float(saved["clip"]))
    if saved["kind"] == "images":
        task = one_of(saved, "task", TARGET_KINDS)
        return ImageEncoding(tuple(saved["shape"]), tuple(saved["classes"]), task)
    raise FormatError(f"the saved encoding is of another version of credo; got kind {saved['kind']!r}.")
