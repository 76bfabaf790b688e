"""The learners of the regressions of UCI, and the published test errors.

Chang et al. 2023 (LOFI, arXiv 2305.19535): test RMSE after one pass, one hidden layer of 50 units.
"""

from __future__ import annotations

from typing import Any

__all__ = ["LEARNERS", "PUBLISHED"]

# label -> (method, rank; for replay the size of the buffer)
LEARNERS: dict[str, tuple[str, int]] = {
    "full EKF": ("full", 0),
    "fd-ekf": ("fd-ekf", 0),
    "vd-ekf": ("vd-ekf", 0),
    **{f"LOFI-{rank}": ("lofi", rank) for rank in (1, 10, 50)},
    **{f"LOFI spherical-{rank}": ("spherical", rank) for rank in (1, 10, 50)},
    **{f"LRVGA-{rank}": ("lrvga", rank) for rank in (1, 10, 50)},
    **{f"replay SGD-{rank}": ("replay", rank) for rank in (1, 10, 50)},
}

_COLUMNS = (
    *("full EKF", "fd-ekf", "vd-ekf"),
    *("LOFI spherical-1", "LOFI spherical-10", "LOFI spherical-50", "LOFI-1", "LOFI-10", "LOFI-50"),
    *("LRVGA-1", "LRVGA-10", "LRVGA-50", "replay SGD-1", "replay SGD-10", "replay SGD-50"),
)

_NUMBERS = {
    "concrete": "6.45 8.60 16.3  8.84 7.27 6.65  9.12 7.33 6.70  7.45 7.28 6.70  9.62 8.46 7.71",
    "energy": "1.58 2.96 9.44  3.21 2.36 1.72  3.50 2.53 1.84  2.92 2.80 2.79  3.19 3.18 2.73",
    "kin8nm": ".100 .120 .141  .140 .121 .104  .142 .144 .108  .135 .119 .113  .156 .132 .119",
    "power": "4.13 4.24 4.25  4.36 4.20 4.20  5.01 4.37 4.30  4.25 4.22 4.21  4.41 4.81 4.81",
    "wine": ".657 .821 .659  .667 .650 .686  .690 .716 .642  .652 .651 .641  .662 .696 .762",
    "yacht": "3.14 5.13 5.60  5.76 4.66 2.31  5.91 4.66 4.85  5.06 3.39 3.33  9.84 7.92 6.62",
}

_ROWS = {"concrete": 927, "energy": 691, "kin8nm": 7373, "power": 8611, "wine": 1439, "yacht": 277}

PUBLISHED: dict[str, dict[str, Any]] = {
    name: {"rows": _ROWS[name], "rmse": dict(zip(_COLUMNS, map(float, numbers.split()), strict=True))}
    for name, numbers in _NUMBERS.items()
}
"""For each data set the number of training rows, and the test RMSE of each learner."""
