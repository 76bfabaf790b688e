"""The linear dynamical systems of a published benchmark, which are shipped with credo."""

from __future__ import annotations

import numpy as np

from credo.core.errors import CredoError, DataError
from credo.datasets.dataset import Array
from credo.datasets.finder import package_file

__all__ = ["linear_system"]


def linear_system(dim: int) -> tuple[Array, Array]:
    """The matrices A and B of a benchmark of particle filters (Chen, Dai & Song 2019).

        x_t = A x_{t-1} + N(0, I),    y_t = B x_t + N(0, I),    x_0 ~ N(0, I)

    They were published with the code of the paper, under the MIT licence. They are not what the sampler in
    that code draws, so the files are needed to compare with the published numbers.

    Arguments:
        dim: the dimension of x and of y, 2 or 10.

    Returns:
        A and B, each float32 of shape `(dim, dim)`.

    Raises:
        CredoError: there is no system of this dimension.
        DataError: the file, which is a part of credo, is missing.

    Example:
        >>> transition, observation = linear_system(10)
        >>> round(float(abs(np.linalg.eigvals(transition)).max()), 4)
        0.9887
    """
    if dim not in (2, 10):
        raise CredoError(f"dim must be 2 or 10; got {dim!r}.", field="dim")
    path = package_file("credo", "datasets/linear_systems.npz")
    if path is None:
        raise DataError("datasets/linear_systems.npz is missing from the installed credo; install it again.")
    with np.load(path, allow_pickle=False) as stored:
        return stored[f"A_{dim}"], stored[f"B_{dim}"]
