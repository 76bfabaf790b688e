"""The plan of `lofi-uci`: learners, sizes, what is searched, and the published test errors.

Published numbers: Chang et al. 2023 (LOFI, arXiv 2305.19535).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, TypedDict

from credo_papers.engine.experiment import Size

__all__ = [
    "FILTERS",
    "FILTER_SEARCH",
    "LEARNERS",
    "PLANS",
    "PUBLISHED",
    "REPLAY_SEARCH",
    "TUNING_ROWS",
    "MethodName",
    "Published",
    "Search",
    "UCIPlan",
]

MethodName: TypeAlias = Literal["full", "fd-ekf", "vd-ekf", "lofi", "spherical", "lrvga", "replay"]
"""The methods that are compared."""


class Published(TypedDict):
    """Published facts about a data set: its number of training rows, and the test RMSE of each learner."""

    rows: int
    rmse: dict[str, float]


class Search(TypedDict):
    """The start of a search, and its stages: parallel lists of values, of which the best are kept."""

    start: dict[str, float]
    stages: list[dict[str, list[float]]]


TUNING_ROWS = 1000
"""On how many training rows the settings are tuned."""

FILTER_SEARCH: Search = {
    "start": {"init_var": 1.0, "prior_var": 3.0},
    "stages": [
        {"noise_var": [0.002, 0.008, 0.03, 0.12, 0.5]},
        {"init_var": [0.3, 1.0, 3.0] * 3, "prior_var": [1.0] * 3 + [3.0] * 3 + [10.0] * 3},
    ],
}
REPLAY_SEARCH: Search = {
    "start": {"init_var": 1.0},
    "stages": [
        {"learning_rate": [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0]},
        {"init_var": [0.3, 1.0, 3.0]},
    ],
}
"""First the noise variance or the learning rate is chosen, then the variances of the prior."""

LEARNERS: dict[str, tuple[MethodName, int]] = {
    "full EKF": ("full", 0),
    "fd-ekf": ("fd-ekf", 0),
    "vd-ekf": ("vd-ekf", 0),
    **{f"LOFI-{rank}": ("lofi", rank) for rank in (1, 10, 50)},
    **{f"LOFI spherical-{rank}": ("spherical", rank) for rank in (1, 10, 50)},
    **{f"LRVGA-{rank}": ("lrvga", rank) for rank in (1, 10, 50)},
    **{f"replay SGD-{rank}": ("replay", rank) for rank in (1, 10, 50)},
}
"""By label: the method, and its rank (for replay the size of the buffer)."""

FILTERS = [label for label, (method, _) in LEARNERS.items() if method in ("full", "lofi", "spherical")]
"""The labels of the full filter and of LOFI."""

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

PUBLISHED: dict[str, Published] = {
    name: {"rows": _ROWS[name], "rmse": dict(zip(_COLUMNS, map(float, numbers.split()), strict=True))}
    for name, numbers in _NUMBERS.items()
}
"""Test errors by data set: test RMSE after one pass, one hidden layer of 50 units."""


@dataclass(frozen=True)
class UCIPlan:
    """The plan of a run: data sets, how many divisions of each, and learners."""

    sets: tuple[str, ...]
    splits: int
    learners: tuple[str, ...]


_FEW = ("full EKF", "fd-ekf", "vd-ekf", "LOFI-1", "LOFI-10", "replay SGD-10")
PLANS: dict[Size, UCIPlan] = {
    "quick": UCIPlan(("yacht",), 4, _FEW),
    "full": UCIPlan(tuple(PUBLISHED), 20, tuple(LEARNERS)),
}
