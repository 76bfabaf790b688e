"""Rows of Jacobians: what covariances and rules ask of them, in whichever form they are kept.

Rows J (k, P) are the derivatives of k outputs by P parameters. `DenseRows` keeps them as an array.
`OuterRows` keeps the rows of a network of dense layers as outer products, layer by layer, and never writes J.
Both implement `Rows`, so nothing outside this room needs to know which of the two it has.

A covariance asks for the products that it needs: J diag(v) J' for a diagonal one (`couple_diagonal`), the
same for a diagonal plus low-rank precision (`couple_ridge`), the leading directions of such a precision when
rows are added to it (`leading`). Each kind of rows answers at its own cost.
"""

from credo.linalg.jacobians.outer import OuterRows
from credo.linalg.jacobians.rows import Crossed, DenseRows, Rows, as_rows

__all__ = ["Crossed", "DenseRows", "OuterRows", "Rows", "as_rows"]
