"""Rules: how far a belief moves for one observation.

| rule | gradient | objective | steps |
|---|---|---|---|
| `BONGRule` | natural | E log p(y given theta) | 1 |
| `BLRRule` | natural | ELBO | I |
| `BOGRule` | plain | E log p(y given theta) | 1 |
| `BBBRule` | plain | ELBO | I |

A rule relies only on the roles of a family's covariance and on the `Local` model of a curvature. Where a rule
takes steps in a family's own parameters, those steps are registered here, beside the rule and not in the
covariance, by the class of the covariance:

- `start_iterate`, `blend_precisions` and `temper` for BLR (and `start_row_space`, a shortcut),
- `ascend` for BOG and BBB.

A family that registers none of them works with BONG. Equations: Jones, Chang & Murphy 2024 (BONG, arXiv
2405.19681); docs/explanation/rules.md derives them.
"""

from credo.learners.rules.base import Measure, Rate, Rule, Schedule, Step
from credo.learners.rules.batch import Batch, iterate_batch
from credo.learners.rules.blr import BLRRule, BONGRule
from credo.learners.rules.iterates import (
    BlendedIterate,
    Iterate,
    RowSpace,
    StackedCovariance,
    StackedIterate,
    WhitenedIterate,
    blend_precisions,
    start_iterate,
    start_row_space,
    temper,
)
from credo.learners.rules.plain_gradient import Ascent, BBBRule, BOGRule, ascend

__all__ = [
    "Ascent",
    "BBBRule",
    "BLRRule",
    "BOGRule",
    "BONGRule",
    "Batch",
    "BlendedIterate",
    "Iterate",
    "Measure",
    "Rate",
    "RowSpace",
    "Rule",
    "Schedule",
    "StackedCovariance",
    "StackedIterate",
    "Step",
    "WhitenedIterate",
    "ascend",
    "blend_precisions",
    "iterate_batch",
    "start_iterate",
    "start_row_space",
    "temper",
]
