"""Covariances of a Gaussian over P parameters: families, and one protocol.

A *family* (`Full()`, `Diagonal()`, `LowRank(rank)`) says what is kept. Its `init` makes a *covariance*, which
is the state that learners carry. Every covariance S has the roles of `credo.covariances.roles`, and each
family has its own costs:

| method | result | full | diagonal | low rank |
|---|---|---|---|---|
| `couple(J)` | J S and J S J' | k P^2 | k^2 P | k P (k + R) |
| `mv`, `push` | one of the two | | | |
| `condition(B)` | inv(inv(S) + B' B) | k P^2 | k P | P (R + k)^2 |
| `affine(a, d)` | a^2 S + diag(d) | P^3 (root), P (dense) | P | P R^2 |
| `linear(F, Q)` | F S F' + Q | P^3 | P^2 | P^3 |
| `sample`, `logdet`, `diag`, `dense`, `scale`, `add_precision` | | | | |

`condition` is where a family decides what to forget: `Full` is exact, `Diagonal` keeps the diagonal of the
precision (or of the covariance), `LowRank` keeps the leading R directions and, exactly, the diagonal of the
precision. `Blocks` keeps a family for each named part of the parameters, and `UnitBlocks` a full covariance
for each unit of each layer. Factors are stored by rows (k, P), so `B' B` is a precision. Rows may be an array
or any `credo.linalg.jacobians.Rows`. To add a family, see `Covariance`.
"""

from credo.covariances.block_covariance import BlockCovariance, Blocks, PlacedBlocks
from credo.covariances.diagonal import Diagonal, DiagonalCovariance
from credo.covariances.divergence import divergence, precision_trace
from credo.covariances.ensemble import EnsembleCovariance
from credo.covariances.full import DenseCovariance, Full, FullCovariance, RootCovariance
from credo.covariances.low_rank import LowRank, LowRankCovariance
from credo.covariances.roles import (
    Collapsible,
    Covariance,
    Family,
    HessianForms,
    Invertible,
    Movable,
    Readable,
    Updatable,
    collapse_mixture,
    inverse_of,
)
from credo.covariances.unit_covariance import PlacedUnitBlocks, UnitBlocks, UnitCovariance
from credo.covariances.widening import widen_covariance

__all__ = [
    "BlockCovariance",
    "Blocks",
    "Collapsible",
    "Covariance",
    "DenseCovariance",
    "Diagonal",
    "DiagonalCovariance",
    "EnsembleCovariance",
    "Family",
    "Full",
    "FullCovariance",
    "HessianForms",
    "Invertible",
    "LowRank",
    "LowRankCovariance",
    "Movable",
    "PlacedBlocks",
    "PlacedUnitBlocks",
    "Readable",
    "RootCovariance",
    "UnitBlocks",
    "UnitCovariance",
    "Updatable",
    "collapse_mixture",
    "divergence",
    "inverse_of",
    "precision_trace",
    "widen_covariance",
]
