"""The features of boolean and categorical columns."""

from __future__ import annotations

import numpy as np

from credo.tables.cells import Cells, cell_text, is_missing, to_list, truth
from credo.tables.hashing import slot_of
from credo.tables.schema import ColumnSpec

__all__ = ["one_hot"]


def one_hot(column: ColumnSpec, cells: Cells, x: np.ndarray, at: int) -> tuple[np.ndarray, np.ndarray]:
    """Fill a boolean or categorical column's features in `x`; which cells are missing, and unknown (n,)."""
    cells = to_list(cells)
    if column.kind == "boolean":
        signs = {True: 1, False: -1, None: 0}
        codes = np.array([signs[truth(cell)] for cell in cells], np.int64).reshape(len(cells))
        lost = np.zeros(len(cells), bool)
        for row in np.flatnonzero(codes == 0).tolist():
            lost[row] = is_missing(cells[row])
        x[:, at] = codes
        return lost, (codes == 0) & ~lost
    index = {category: slot for slot, category in enumerate(column.categories)}
    other = len(index)
    codes = np.array([index.get(cell, -1) if isinstance(cell, str) else -1 for cell in cells], np.int64)
    codes = codes.reshape(len(cells))
    for row in np.flatnonzero(codes < 0).tolist():
        if not is_missing(cells[row]):
            text = cell_text(cells[row])
            code = index.get(text, other)
            codes[row] = code + slot_of(text, column.slots) if code == other and column.slots else code
    present = np.flatnonzero(codes >= 0)
    x[present, at + codes[present]] = 1.0
    return codes < 0, (codes == other) & (column.slots == 0)
