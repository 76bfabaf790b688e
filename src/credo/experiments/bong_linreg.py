"""Online linear regression: how far each cell stays from the exact posterior; see `bong_exact`."""

from __future__ import annotations

from credo.experiments import bong_exact
from credo.experiments.cells import Cells
from credo.experiments.records import Outcome, Progress, Size

__all__ = ["run"]


def run(size: Size, seed: int, progress: Progress, cells: Cells | None = None) -> Outcome:
    """Run the grid on linear regression.

    Args:
        size, seed, progress, cells: as in `bong_exact.run`.
    """
    return bong_exact.run("linreg", size, seed, progress, cells)
