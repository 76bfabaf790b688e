"""The plan of `bong-sarcos`: learners, grids, sizes, and the published numbers."""

from __future__ import annotations

from dataclasses import dataclass

from credo.core.names import CurvatureName, RuleName
from credo_papers.engine.experiment import Size

__all__ = [
    "CHECKS",
    "LEARNERS",
    "NOISE_SHARE",
    "PLANS",
    "RANK",
    "SAMPLED_VARS",
    "SAMPLES",
    "VARS",
    "VERSION",
    "Entry",
    "SarcosPlan",
]

RANK = 10
SAMPLES = 100
NOISE_SHARE = 0.1
"""The variance of the noise, in units of the variance of the targets."""

CHECKS = (50, 100, 200, 400, 800, 1200, 1600, 2000)
"""After how many rows the test rows are scored."""

VARS = (0.03, 0.1, 0.3, 1.0)
"""Prior variances to choose from."""

SAMPLED_VARS = VARS[:3]
"""The same for learners that draw, which are slow."""

VERSION = 1
"""Of the code behind finished cells."""


@dataclass(frozen=True)
class Entry:
    """A learner of the table.

    Arguments:
        rule, curvature: its names.
        iterations: of BLR and BBB.
        rates: learning rates to choose from.
        published: the published plug-in NLPD at the end, in nats.
    """

    rule: RuleName
    curvature: CurvatureName
    iterations: int
    rates: tuple[float, ...]
    published: float


_BLR = (0.1, 0.3, 0.5, 1.0)
_BBB = (1e-4, 1e-3, 1e-2, 1e-1)
LEARNERS: dict[str, Entry] = {
    "bong lin-hess": Entry("bong", "lin-hess", 1, (1.0,), 3.32),
    "blr lin-hess, I = 10": Entry("blr", "lin-hess", 10, _BLR, 3.29),
    "blr lin-hess, I = 1": Entry("blr", "lin-hess", 1, (0.25, 0.5, 1.0), 3.28),
    "bbb lin-hess, I = 10": Entry("bbb", "lin-hess", 10, _BBB, 3.50),
    "bong mc-ef": Entry("bong", "mc-ef", 1, (1.0,), 4.12),
    "blr mc-ef, I = 10": Entry("blr", "mc-ef", 10, (0.1, 0.5), 3.45),
}


@dataclass(frozen=True)
class SarcosPlan:
    """The plan of a run: learners, the rows of a pass, and how many orders are scored and are for tuning."""

    learners: tuple[str, ...]
    length: int
    orders: int
    tuning_orders: int


PLANS: dict[Size, SarcosPlan] = {
    "quick": SarcosPlan(("bong lin-hess", "blr lin-hess, I = 1"), 200, 3, 2),
    "full": SarcosPlan(tuple(LEARNERS), 2000, 10, 2),
}
