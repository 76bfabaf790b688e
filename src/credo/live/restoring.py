"""Encodings are put together again from what was saved of them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from credo.core.errors import FormatError
from credo.core.forms import require_form
from credo.core.names import Task
from credo.live.encoding import ImageEncoding, SavedImages, SavedTable, TableEncoding
from credo.live.series import SeriesEncoding
from credo.tables import EncoderState, Schema

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
        require_form(saved["task"], Task, "encoding.task")
        return ImageEncoding(tuple(saved["shape"]), tuple(saved["classes"]), saved["task"])
    raise FormatError(f"the saved encoding is of another version of credo; got kind {saved['kind']!r}.")
