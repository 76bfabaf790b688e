"""Iterates of an inner loop: each holds (1 - a) L + a L0 + B' B, however it is kept."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.covariances.reference import close, dense

from credo.covariances import Diagonal, Full, LowRank, LowRankCovariance
from credo.learners.rules import (
    BlendedIterate,
    StackedCovariance,
    StackedIterate,
    WhitenedIterate,
    start_iterate,
)
from credo.linalg.jacobians import as_rows

P, K, STEPS, SHARE = 7, 2, 3, 0.3
RNG = np.random.default_rng(9)
HALF = RNG.normal(size=(P, P))
COV = HALF @ HALF.T / P + 0.3 * np.eye(P)
FACTORS = RNG.normal(size=(STEPS, K, P))
LEVEL = RNG.uniform(0.1, 1.0, P)
PRIORS = {
    "root": Full().from_dense(jnp.asarray(COV)),
    "dense": Full("dense").from_dense(jnp.asarray(COV)),
    "diagonal": Diagonal().init(jnp.asarray(np.diag(COV))),
    "low-rank": LowRankCovariance(jnp.asarray(LEVEL), jnp.asarray(RNG.normal(size=(P, P)))),
}


def start(prior: Any, kind: str, rows: int) -> Any:
    if kind == "stacked":
        return StackedIterate.start(prior, rows, jnp.float64)
    return WhitenedIterate.start(prior.as_root(), prior)


def through(iterate: Any, diagonal: Any, factors: Any) -> tuple[list[Any], list[Any], Any]:
    """The blended and the advanced covariance of each step, and what is kept in the end."""
    blends, afters = [], []
    for factor in factors:
        blended = iterate.blend(jnp.asarray(SHARE))
        iterate = iterate.advance(blended, jnp.asarray(SHARE), as_rows(factor), diagonal)
        blends.append(blended.dense())
        afters.append(iterate.cov.dense())
    return blends, afters, iterate.finish()


@pytest.mark.parametrize("kind", ["stacked", "whitened"])
@pytest.mark.parametrize("form", ["root", "dense"])
@pytest.mark.parametrize("level", [None, LEVEL], ids=["rows", "rows-and-diagonal"])
def test_full_iterates_blend_and_advance_exactly(kind: str, form: str, level: Any) -> None:
    prior, diagonal = PRIORS[form], None if level is None else jnp.asarray(level)
    rows = STEPS * (K + (0 if level is None else P))
    blends, afters, kept = jax.jit(lambda f: through(start(prior, kind, rows), diagonal, f))(
        jnp.asarray(FACTORS)
    )
    old, here = np.linalg.inv(COV), np.linalg.inv(COV)
    for blended, after, factor in zip(blends, afters, FACTORS, strict=True):
        here = (1 - SHARE) * here + SHARE * old
        close(blended, np.linalg.inv(here))
        here = here + factor.T @ factor + (0 if level is None else np.diag(level))
        close(after, np.linalg.inv(here))
    assert type(kept) is type(prior)
    close(dense(kept), np.linalg.inv(here))


@pytest.mark.parametrize("name", ["diagonal", "low-rank"])
def test_blended_iterates_mix_precisions(name: str) -> None:
    prior = PRIORS[name]
    iterate = start_iterate(prior, STEPS * K)
    assert isinstance(iterate, BlendedIterate)
    blends, afters, kept = jax.jit(lambda f: through(iterate, jnp.asarray(LEVEL), f))(jnp.asarray(FACTORS))
    old = here = np.linalg.inv(dense(prior))
    for blended, after, factor in zip(blends, afters, FACTORS, strict=True):
        here = (1 - SHARE) * here + SHARE * old
        close(blended, np.linalg.inv(here))
        here = here + factor.T @ factor + np.diag(LEVEL)
        if name == "diagonal":  # which keeps the diagonal of the precision
            here = np.diag(np.diag(here))
        close(after, np.linalg.inv(here))
    close(dense(kept), np.linalg.inv(here))
    vector = np.linspace(-1.0, 2.0, P)
    close(BlendedIterate(prior, kept).dual(jnp.asarray(vector), jnp.zeros(P)), here @ vector)


def test_full_iterates_are_held_by_rows_while_those_are_few() -> None:
    prior = PRIORS["root"]
    assert isinstance(start_iterate(prior, P - 1), StackedIterate)
    assert isinstance(start_iterate(prior, P), WhitenedIterate)
    given = jnp.arange(float(P))
    for rows in (P - 1, P):
        np.testing.assert_array_equal(start_iterate(prior, rows).dual(jnp.zeros(P), given), given)


def stacked(rows: np.ndarray, prior: Any) -> StackedCovariance:
    cross, inner = prior.couple(jnp.asarray(rows))
    return StackedCovariance(prior, jnp.asarray(rows), cross.dense(), inner)


@pytest.mark.table
@pytest.mark.parametrize("name", list(PRIORS))
def test_a_stacked_covariance_is_the_conditioned_prior(name: str) -> None:
    rng = np.random.default_rng(1)
    prior, rows, more = PRIORS[name], rng.normal(size=(3, P)), rng.normal(size=(2, P))
    cov = stacked(np.concatenate([rows, np.zeros((2, P))]), prior)
    exact = np.linalg.inv(np.linalg.inv(dense(prior)) + rows.T @ rows)
    cross, inner = cov.couple(jnp.asarray(more))
    for got, want in (
        (cov.dense(), exact),
        (cov.diag(), np.diag(exact)),
        (cross.dense(), more @ exact),
        (cov.logdet(), np.linalg.slogdet(exact)[1]),
        (inner, more @ exact @ more.T),
        (cov.mv(jnp.asarray(more[0])), exact @ more[0]),
    ):
        close(got, want)
    assert cov.size == P


@pytest.mark.table
@pytest.mark.parametrize("name", list(PRIORS))
def test_draws_of_a_stacked_covariance_have_it_and_depend_on_nothing_else(name: str) -> None:
    """The map from the prior's draw x is linear; its square with S0 is S. Turned or padded rows are the same
    precision and give the same draws, and none gives x.
    """
    rng, prior, key = np.random.default_rng(2), PRIORS[name], jax.random.key(2)
    rows = rng.normal(size=(3, P))
    turned = np.linalg.qr(rng.normal(size=(5, 5)))[0][:, :3] @ rows
    plain = stacked(rows, prior)
    draws = np.asarray(plain.sample(key, (2, P)))
    assert draws.shape == (2, P, P) and plain.sample(key).shape == (P,)
    for other in (turned, np.concatenate([np.zeros((4, P)), rows])):
        close(stacked(other, prior).sample(key, (2, P)), draws)
    begin = np.asarray(prior.sample(key, (2, P)))
    close(stacked(np.zeros((3, P)), prior).sample(key, (2, P)), begin)
    # P draws x in general position determine the map M from x to the draw
    moved = np.linalg.solve(begin[0], draws[0])
    close(begin[1] @ moved, draws[1])
    spread = dense(prior)
    close(moved.T @ spread @ moved, np.linalg.inv(np.linalg.inv(spread) + rows.T @ rows))


@pytest.mark.slow
def test_a_low_rank_iterate_forgets_at_every_step() -> None:
    prior = LowRank(2).init(jnp.asarray(1 / LEVEL))
    _, afters, kept = through(start_iterate(prior, STEPS * K), None, jnp.asarray(FACTORS[:, :1]))
    exact = np.diag(LEVEL)
    for factor in FACTORS[:, :1]:
        exact = (1 - SHARE) * exact + SHARE * np.diag(LEVEL) + factor.T @ factor
    assert kept.factor.shape == (2, P) and len(afters) == STEPS
    close(np.diag(kept.precision()), np.diag(exact))
    assert np.abs(kept.precision() - exact).max() > 1e-3


def test_draws_of_a_low_rank_covariance_do_not_depend_on_how_its_directions_are_arranged() -> None:
    rng, key = np.random.default_rng(3), jax.random.key(2)
    base, rows = jnp.asarray(LEVEL), rng.normal(size=(2, P))
    turned = np.linalg.qr(rng.normal(size=(3, 3)))[0][:, :2] @ rows
    draws = LowRankCovariance(base, jnp.asarray(rows)).sample(key, (2, P))
    for other in (-rows, rows[::-1], turned):
        close(LowRankCovariance(base, jnp.asarray(other)).sample(key, (2, P)), draws)
    begin = LowRankCovariance(base, jnp.zeros((2, P))).sample(key, (2, P))
    moved = np.linalg.solve(begin[0], draws[0])
    close(begin[1] @ moved, draws[1])
    close(moved.T @ np.diag(1 / LEVEL) @ moved, np.linalg.inv(np.diag(LEVEL) + rows.T @ rows))
