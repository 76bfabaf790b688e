"""MNIST in one pass with full, diagonal and low-rank beliefs over a network of 610 parameters.

The experiment is `bong_mnist`, on images of 7 x 7 pixels: the full covariance of its networks would not fit.
"""

from __future__ import annotations

from credo_papers.bong.bong_mnist import run_plan
from credo_papers.bong.bong_mnist_plan import FAMILY_PLANS
from credo_papers.engine.cell_folder import Cells
from credo_papers.engine.experiment import Outcome, Size
from credo_papers.engine.portions import Progress

__all__ = ["run"]


def run(size: Size, seed: int, progress: Progress, cells: Cells | None = None) -> Outcome:
    """Tune and score the rules, curvatures and families at a size."""
    return run_plan(FAMILY_PLANS[size], seed, progress, cells)
