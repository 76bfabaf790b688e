"""Kalman's update of a diagonal plus low-rank precision by dense rows, against dense algebra."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.tiers import few

from credo.core.types import Array
from credo.covariances import LowRank, LowRankCovariance
from credo.linalg.jacobians import DenseRows
from credo.linalg.jacobians.rows import Assimilated
from credo.linalg.matrices import kalman_weights

P, RANK, OUTPUTS = 30, 3, 4


class Case(NamedTuple):
    """y (P,), W (R, P), J (k, P), e (k,) and A."""

    base: np.ndarray
    factor: np.ndarray
    rows: np.ndarray
    residual: np.ndarray
    root: np.ndarray


def case(scale: float, *, diagonal: bool, within: bool = False, seed: int = 0) -> Case:
    """W of a given length; `within` leaves little of J outside of the span of W."""
    rng = np.random.default_rng(seed)
    directions, rows = rng.normal(size=(RANK, P)), rng.normal(size=(OUTPUTS, P))
    if within:
        rows = rng.normal(size=(OUTPUTS, RANK)) @ directions + 1e-3 * rows
    chances = rng.dirichlet(np.ones(OUTPUTS))
    root = np.sqrt(chances) if diagonal else np.diag(np.sqrt(chances)) - np.outer(chances, np.sqrt(chances))
    return Case(rng.uniform(0.5, 2.0, P), scale * directions, rows, rng.normal(size=OUTPUTS), root)


def by_dense_algebra(given: Case, whitened: bool) -> dict[str, np.ndarray]:
    """S by singular values, which is right for W of any length; and what is kept of the precision."""
    base, factor, rows, residual, root = given
    root = np.diag(root) if root.ndim == 1 else root
    _, lengths, axes = np.linalg.svd(factor / np.sqrt(base))
    shrunk = axes.T / (1.0 + np.pad(lengths, (0, P - RANK)) ** 2) @ axes
    cov = shrunk / np.sqrt(base)[:, None] / np.sqrt(base)
    inner = rows @ cov @ rows.T
    shift = cov @ rows.T @ np.linalg.solve(np.eye(OUTPUTS) + root @ root.T @ inner, residual)
    stack = np.concatenate([factor, root.T @ rows])
    metric = stack / np.sqrt(base) if whitened else stack
    turned = np.linalg.svd(metric, full_matrices=False)[0].T @ stack
    kept, dropped = turned[:RANK], turned[RANK:]
    return {"shift": shift, "inner": inner, "base": base + np.sum(dropped**2, axis=0), "kept": kept.T @ kept}


@partial(jax.jit, static_argnames="whitened")
def assimilated(given: Case, whitened: bool) -> Assimilated:
    base, factor, rows, residual, root = map(jnp.asarray, given)
    return DenseRows(rows).assimilate(base, factor, residual, root, RANK, whitened)


@partial(jax.jit, static_argnames="whitened")
def one_after_the_other(given: Case, whitened: bool) -> Assimilated:
    """The same update by the products that the protocol has for each of its parts."""
    base, factor, _, residual, root = map(jnp.asarray, given)
    rows = DenseRows(jnp.asarray(given.rows))
    cross, inner = rows.couple_ridge(base, factor)
    shift = cross.pull(kalman_weights(root, residual, inner))
    return Assimilated(shift, inner, *rows.attenuate(root).leading(base, factor, RANK, whitened))


def parts(found: Assimilated) -> dict[str, Array]:
    return {
        "shift": found.shift,
        "inner": found.inner,
        "base": found.base,
        "kept": found.factor.T @ found.factor,
    }


def agree(found: dict[str, Any], wanted: dict[str, Any], tolerance: float) -> None:
    for name, want in wanted.items():
        error = np.max(np.abs(np.asarray(found[name], float) - want)) / np.max(np.abs(want))
        assert error < tolerance, (name, error)


@pytest.mark.table
@pytest.mark.parametrize("diagonal", [True, False], ids=["diagonal root", "root"])
@pytest.mark.parametrize("whitened", [True, False], ids=["whitened", "svd"])
@pytest.mark.parametrize("scale", [0.0, 1.0, 1e4])
def test_an_update_by_dense_rows_is_that_of_dense_algebra(
    scale: float, whitened: bool, diagonal: bool
) -> None:
    given = case(scale, diagonal=diagonal)
    found = parts(assimilated(given, whitened))
    agree(found, by_dense_algebra(given, whitened), 1e-10)
    agree(found, jax.tree.map(np.asarray, parts(one_after_the_other(given, whitened))), 1e-10)


@pytest.mark.parametrize("scale", [1e2, 1e4])
def test_rows_within_well_known_directions_move_the_mean_in_single_precision(scale: float) -> None:
    """A thousandth of J is outside of them, which c W must not round away."""
    for seed in range(4):
        given = case(scale, diagonal=False, within=True, seed=seed)
        short = Case(*(np.asarray(part, np.float32) for part in given))
        exact = by_dense_algebra(Case(*(np.asarray(part, float) for part in short)), False)
        found = assimilated(short, False)
        agree({"shift": found.shift, "inner": found.inner}, {n: exact[n] for n in ("shift", "inner")}, 1e-3)
        assert np.linalg.eigvalsh(np.asarray(found.inner, float)).min() > 0


@pytest.mark.slow
def test_a_spherical_family_spreads_what_is_not_kept() -> None:
    given = case(1.0, diagonal=False)
    wanted = by_dense_algebra(given._replace(base=np.full(P, 0.7)), False)
    cov = LowRankCovariance(jnp.full(P, 0.7), jnp.asarray(given.factor), LowRank(RANK, base="spherical"))
    shift, kept = cov.absorb(jnp.asarray(given.rows), jnp.asarray(given.residual), jnp.asarray(given.root))
    np.testing.assert_allclose(shift, wanted["shift"], rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(kept.base, np.full(P, np.mean(wanted["base"])), rtol=1e-10)


@pytest.mark.parametrize("whitened", [True, False], ids=["whitened", "svd"])
@pytest.mark.parametrize("name", ["base", "factor", "rows", "root"])
@pytest.mark.parametrize("value", [np.nan, np.inf, 1e200])
def test_the_mean_says_where_the_precision_is_not_finite(name: str, value: float, whitened: bool) -> None:
    """One number is too much; the square of 1e200 is, too."""
    given = case(1.0, diagonal=False)
    spoilt = getattr(given, name).copy()
    spoilt.flat[1] = value
    found = assimilated(given._replace(**{name: spoilt}), whitened)
    kept = [np.asarray(getattr(found, field.name)) for field in dataclasses.fields(found)[2:]]
    assert all(np.all(np.isfinite(part)) for part in kept) or bool(jnp.any(jnp.isnan(found.shift)))


@pytest.mark.slow
@pytest.mark.parametrize("scale", few([1.0, 1e3, 1e6], 1e6))
def test_what_a_forecast_reaches_has_the_digits_of_the_update(scale: float) -> None:
    """J S in single precision, where W is long and J lies nearly in its span."""
    given = case(scale, diagonal=True, within=True)
    small = [jnp.asarray(part, jnp.float32) for part in given]
    cross, inner = DenseRows(small[2]).couple_ridge(small[0], small[1])
    shift = cross.pull(kalman_weights(small[4], small[3], inner))
    right = by_dense_algebra(given, whitened=False)
    np.testing.assert_allclose(inner, right["inner"], rtol=3e-4, atol=3e-4 * np.abs(right["inner"]).max())
    np.testing.assert_allclose(shift, right["shift"], rtol=0, atol=7e-4 * np.abs(right["shift"]).max())
