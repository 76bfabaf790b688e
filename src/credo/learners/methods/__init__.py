"""Named methods: combinations of model, family, curvature, rule and dynamics in one line, with references.

`bong`, `blr`, `bog` and `bbb` cover every cell of the grid. The others are the names that papers give to some
of its cells. All return learners. docs/explanation/named-methods.md lists them in one table.
"""

from credo.learners.methods.filters import (
    enkf,
    etkf,
    extended_kalman,
    fd_ekf,
    iterated_ekf,
    kalman,
    last_layer_ekf,
    lofi,
    lofi_spherical,
    lrvga,
    normal_inverse_gamma,
    subspace_ekf,
    vd_ekf,
)
from credo.learners.methods.four_rules import bbb, blr, bog, bong
from credo.learners.methods.variational import ivon, ogd, rvga, slang, vogn, von

__all__ = [
    "bbb",
    "blr",
    "bog",
    "bong",
    "enkf",
    "etkf",
    "extended_kalman",
    "fd_ekf",
    "iterated_ekf",
    "ivon",
    "kalman",
    "last_layer_ekf",
    "lofi",
    "lofi_spherical",
    "lrvga",
    "normal_inverse_gamma",
    "ogd",
    "rvga",
    "slang",
    "subspace_ekf",
    "vd_ekf",
    "vogn",
    "von",
]
