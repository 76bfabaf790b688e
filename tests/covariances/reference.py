"""Covariances from the definition of each form, in NumPy."""

from __future__ import annotations

import jax
import numpy as np

from credo.covariances import (
    Covariance,
    DenseCovariance,
    DiagonalCovariance,
    LowRankCovariance,
    RootCovariance,
)


def dense(cov: Covariance) -> np.ndarray:
    """S from the definition of each form."""
    if isinstance(cov, RootCovariance):
        result: np.ndarray = np.asarray(cov.root) @ np.asarray(cov.root).T
        return result
    if isinstance(cov, DenseCovariance):
        return np.asarray(cov.matrix)
    if isinstance(cov, DiagonalCovariance):
        return np.diag(cov.var)
    assert isinstance(cov, LowRankCovariance)
    return np.linalg.inv(np.diag(cov.base) + np.asarray(cov.factor).T @ np.asarray(cov.factor))


def close(got: object, want: object) -> None:
    np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=1e-10, atol=1e-10)


def alike(one: object, other: object) -> bool:
    """Whether two trees have the same structure."""
    structure: object = jax.tree.structure(one)
    return structure == jax.tree.structure(other)
