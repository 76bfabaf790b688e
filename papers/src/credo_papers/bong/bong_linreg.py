"""Online linear regression: how far each cell of the grid stays from the exact posterior.

`bong_exact` has the parts that it shares.
"""

from __future__ import annotations

from credo_papers.bong.bong_exact import run_task
from credo_papers.engine.cell_folder import Cells
from credo_papers.engine.experiment import Outcome, Size
from credo_papers.engine.portions import Progress

__all__ = ["run"]


def run(size: Size, seed: int, progress: Progress, cells: Cells | None = None) -> Outcome:
    """Run the grid on linear regression."""
    return run_task("linreg", size, seed, progress, cells)
