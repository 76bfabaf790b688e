"""Small linear algebra against NumPy, and its derivatives against finite differences."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import jax.test_util
import numpy as np
import pytest

from credo.core.verbs import verb
from credo.linalg.matrices import (
    cholesky,
    diagonal,
    eigh,
    on_diagonal,
    psd_root,
    raised,
    safe_sqrt,
    solve,
    solve_lower,
    symmetric,
    triangularize,
)

RNG = np.random.default_rng(0)


def test_triangularize_is_a_root_of_the_sum_of_blocks() -> None:
    a, b = RNG.normal(size=(4, 2)), RNG.normal(size=(4, 5))
    lower = triangularize(jnp.asarray(a), jnp.asarray(b))
    np.testing.assert_allclose(lower @ lower.T, a @ a.T + b @ b.T, atol=1e-12)
    np.testing.assert_array_equal(np.triu(lower, 1), np.zeros((4, 4)))


def test_psd_root_squares_to_the_projection() -> None:
    vectors = np.linalg.qr(RNG.normal(size=(3, 3)))[0]
    matrix = vectors @ np.diag([2.0, 0.5, -1.0]) @ vectors.T
    root = psd_root(jnp.asarray(matrix))
    np.testing.assert_allclose(root @ root.T, vectors @ np.diag([2.0, 0.5, 0.0]) @ vectors.T, atol=1e-12)


def test_solve_lower_solves_both_ways() -> None:
    lower = jnp.asarray(np.tril(RNG.normal(size=(3, 3))) + 3 * np.eye(3))
    rows = jnp.asarray(RNG.normal(size=(3, 2)))
    np.testing.assert_allclose(solve_lower(lower, rows), np.linalg.solve(lower, rows), atol=1e-12)
    np.testing.assert_allclose(
        solve_lower(lower, rows, transpose=True), np.linalg.solve(lower.T, rows), atol=1e-12
    )


@pytest.mark.parametrize("size", [1, 2, 5, 64, 65])
def test_a_system_is_solved_whatever_its_size_and_the_sizes_of_its_equations(size: int) -> None:
    matrix = RNG.normal(size=(size, size)) + size * np.eye(size)
    right = RNG.normal(size=(size, 2))
    level = 10.0 ** np.linspace(-6, 6, size)[:, None]
    for one in (right, right[:, 0]):
        exact = np.linalg.solve(matrix, one)
        scaled = one * level.reshape(level.shape[: one.ndim])
        found = solve(jnp.asarray(matrix * level), jnp.asarray(scaled))
        np.testing.assert_allclose(found, exact, atol=1e-12)


@pytest.mark.slow
def test_a_solution_is_differentiated_both_ways() -> None:
    matrix, right = jnp.asarray(RNG.normal(size=(3, 3))), jnp.asarray(RNG.normal(size=3))
    jax.test_util.check_grads(solve, (matrix, right), order=2, modes=("fwd", "rev"), rtol=1e-5)


@pytest.mark.parametrize("size", [1, 3, 64, 65])
def test_parts_of_a_matrix_are_exact_whatever_its_size(size: int) -> None:
    half = RNG.normal(size=(size, size + 2))
    matrix = half @ half.T
    lower = np.asarray(cholesky(jnp.asarray(matrix)))
    np.testing.assert_allclose(lower, np.linalg.cholesky(matrix), atol=1e-10)
    np.testing.assert_array_equal(diagonal(jnp.asarray(matrix)), np.diagonal(matrix))
    noise = RNG.normal(size=size)
    np.testing.assert_array_equal(raised(jnp.asarray(matrix), jnp.asarray(noise)), matrix + np.diag(noise))
    np.testing.assert_array_equal(raised(jnp.asarray(matrix), jnp.asarray(2.0)), matrix + 2.0 * np.eye(size))
    assert np.isnan(cholesky(jnp.asarray(-matrix))).any()
    stack = np.stack([noise, np.full(size, np.inf)])
    np.testing.assert_array_equal(on_diagonal(jnp.asarray(stack)), np.stack([np.diag(one) for one in stack]))


def test_safe_sqrt_has_derivative_zero_at_zero_and_below() -> None:
    assert [float(jax.grad(safe_sqrt)(v)) for v in (0.0, -1.0, 4.0)] == [0.0, 0.0, 0.25]
    assert float(safe_sqrt(-1e-20)) == 0.0


@pytest.mark.parametrize("spectrum", [[0.3, 1.0, 2.0, 5.0], [1.0, 1.0, 1.0, 3.0], [0.0, 0.0, 2.0, 2.0]])
def test_what_does_not_depend_on_the_basis_is_differentiated_exactly(spectrum: list[float]) -> None:
    vectors = np.linalg.qr(np.random.default_rng(1).normal(size=(4, 4)))[0]
    matrix = jnp.asarray(vectors @ np.diag(spectrum) @ vectors.T)
    bump = symmetric(jnp.asarray(np.random.default_rng(2).normal(size=(4, 4))))

    def function(t: jax.Array) -> jax.Array:  # tr f(M) depends on the spectrum alone
        values, _ = eigh(matrix + t * bump)
        return jnp.sum(jnp.sin(values))

    h = 1e-5
    slope = (function(jnp.asarray(h)) - function(jnp.asarray(-h))) / (2 * h)
    np.testing.assert_allclose(jax.grad(function)(0.0), slope, atol=1e-8)


def test_a_projector_on_a_whole_eigenspace_is_differentiated_through_equal_eigenvalues() -> None:
    vectors = np.linalg.qr(np.random.default_rng(3).normal(size=(4, 4)))[0]
    matrix = jnp.asarray(vectors @ np.diag([0.5, 0.5, 2.0, 2.0]) @ vectors.T)
    bump = symmetric(jnp.asarray(np.random.default_rng(4).normal(size=(4, 4))))
    probe = jnp.asarray(np.random.default_rng(5).normal(size=(4, 4)))

    def function(t: jax.Array) -> jax.Array:
        _, basis = eigh(matrix + t * bump)
        return jnp.sum(probe * (basis[:, 2:] @ basis[:, 2:].T))

    h = 1e-5
    slope = (function(jnp.asarray(h)) - function(jnp.asarray(-h))) / (2 * h)
    np.testing.assert_allclose(jax.grad(function)(0.0), slope, atol=1e-8)


def test_a_verb_multiplies_in_full_precision_and_compiles_once() -> None:
    traced = []

    @verb
    def product(a: jax.Array) -> jax.Array:
        traced.append(1)
        return a @ a

    assert "HIGHEST" in str(jax.make_jaxpr(product)(jnp.eye(2)))
    for matrix in (jnp.eye(2), jnp.ones((2, 2))):
        product(matrix)
    assert len(traced) == 1
