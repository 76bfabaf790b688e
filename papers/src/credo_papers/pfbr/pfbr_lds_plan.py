"""The plan of `pfbr-lds`: sizes, methods and published numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from credo_papers.engine.experiment import Size
from credo_papers.pfbr.pfbr_methods import STATE_SPACE

__all__ = ["PLANS", "PUBLISHED", "PUBLISHED_SECONDS", "SCORES", "LinearPlan"]


@dataclass(frozen=True)
class LinearPlan:
    """The plan of a run.

    Arguments:
        dims: 2, 10 or both.
        sequences: how many are scored.
        particles: the number of particles of the table.
        numbers: of particles, for the curve of Fig. 4 at the smallest of the dimensions.
        draws: from the posterior, for a cross-entropy.
        methods: the methods of the table.
        curve: methods of the curve.
        steps: of training, by the name of the method.
        large: methods of the published table, which has d = 10 only.
        brief: whether the run is so short that programs are compiled in haste, and not timed.
    """

    dims: tuple[int, ...]
    sequences: int
    particles: int
    numbers: tuple[int, ...]
    draws: int
    methods: tuple[str, ...]
    curve: tuple[str, ...]
    steps: Mapping[str, int]
    large: tuple[str, ...] = ()
    brief: bool = False

    def names(self, dim: int) -> tuple[str, ...]:
        """Return the names of the methods for a dimension."""
        if dim == 10:
            return (*self.methods, *self.large)
        return self.methods


_FEW = ("exact draws", "affine map", "bootstrap")
PLANS: dict[Size, LinearPlan] = {
    "quick": LinearPlan((10,), 3, 256, (64, 256), 1000, (*_FEW, "PFBR, shipped"), _FEW[:1], {}, brief=True),
    "full": LinearPlan(
        (10, 2),
        25,
        256,
        (64, 128, 256, 512, 1024),
        5000,
        STATE_SPACE,
        ("exact draws", "affine map", "PFBR, ours", "PFBR, published", "bootstrap", "KBR"),
        {
            "PFBR, ours": 3000,
            "PFBR, ours, no base": 3000,
            "PFBR, published": 2000,
            "AESMC, mlp": 5000,
            "AESMC, gru": 5000,
        },
        ("bootstrap, 8192",),
    ),
}

SCORES = {
    "KDE": "KDE",
    "Gaussian": "Gaussian",
    "old KDE": "un-reset KDE",
    "old Gaussian": "un-reset Gaussian",
    "MMD2": "MMD2",
    "mean": "error of the mean",
    "covariance": "error of the covariance",
    "x'AAx": "error of x'AAx",
    "product": "error of (Ax+a)'(Bx+b)",
    "W2": "sliced W2",
    "forecast": "log score",
}
"""The scores of the table, and what they are called there. The cross-entropies are in nats."""

PUBLISHED: dict[str, float] = {
    "PFBR, published": 16.56,
    "bootstrap": 26.78,
    "bootstrap, 8192": 17.60,
    "AESMC, mlp": 19.66,
    "AESMC, gru": 19.38,
}
"""Table 1, d = 10, 256 particles: cross-entropies against the truth that is not set back."""

PUBLISHED_SECONDS: dict[str, float] = {
    "PFBR, published": 0.23,
    "bootstrap": 0.07,
    "bootstrap, 8192": 3.87,
    "AESMC, mlp": 0.17,
    "AESMC, gru": 0.18,
}
"""Table 1: CPU seconds, by the code of a sequence of 25 observations."""
