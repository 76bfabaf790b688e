"""The matrices that users give: what is no covariance is refused, and a start that is known is exact."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import credo
from credo.core.errors import CredoError

RNG = np.random.default_rng(0)
ROOT = np.tril(RNG.normal(size=(3, 3))) + 2.0 * np.eye(3)
COV = ROOT @ ROOT.T

BAD: dict[str, tuple[Any, str]] = {
    "a lower root": (ROOT, r"must be symmetric; .* It is triangular: a root L must be given as L L'"),
    "an upper root": (ROOT.T, "must be symmetric"),
    "not symmetric": (COV + np.asarray([[0, 0.1, 0], [0, 0, 0], [0, 0, 0]]), "must be symmetric"),
    "negative": (-COV, "its least eigenvalue is -"),
    "indefinite": (np.asarray([[1.0, 2.0, 0.0], [2.0, 1.0, 0.0], [0.0, 0.0, 1.0]]), "least eigenvalue is -1"),
    "NaN": (np.where(np.eye(3, dtype=bool), np.nan, 0.0), "must be finite"),
    "infinite": (np.diag([1.0, np.inf, 1.0]), "must be finite"),
    "not square": (np.ones((3, 2)), r"must be a square matrix; got shape \(3, 2\)"),
    "a negative variance": (np.asarray([1.0, -1.0, 1.0]), "must be finite and"),
}

EYE = np.eye(3)
TAKERS: dict[str, Callable[[Any], Any]] = {
    "Normal": lambda cov: credo.Normal(jnp.asarray(cov)),
    "kalman R": lambda cov: credo.kalman(EYE, EYE, EYE, cov),
    "kalman Q": lambda cov: credo.kalman(EYE, EYE, cov, EYE),
    "LinearGaussian": lambda cov: credo.LinearGaussian(EYE, cov=cov),
    "LinearGaussian, continuous": lambda cov: credo.LinearGaussian(EYE, cov=cov, continuous=True),
}


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("taker", TAKERS)
def test_what_is_no_covariance_is_refused(taker: str, bad: str) -> None:
    cov, words = BAD[bad]
    with pytest.raises(CredoError, match=words):
        TAKERS[taker](cov)


@pytest.mark.parametrize("bad", [name for name in BAD if name not in ("not square", "a negative variance")])
@pytest.mark.parametrize("family", [credo.Full(), credo.Full("dense"), credo.Diagonal(), credo.LowRank(2)])
def test_a_prior_that_is_no_covariance_is_refused(family: Any, bad: str) -> None:
    learner = credo.bong(credo.Model(lambda w, x: x @ w, credo.Normal(0.1)), family)
    with pytest.raises(CredoError, match=BAD[bad][1]) as refusal:
        learner.init(jnp.zeros(3), cov=jnp.asarray(BAD[bad][0]))
    assert refusal.value.field == "cov"


@pytest.mark.parametrize("make", [credo.enkf, credo.particle_filter])
def test_ensembles_and_particles_refuse_the_same(make: Any) -> None:
    learner = make(credo.Model(lambda w, x: x @ w, credo.Normal(0.1)), 8)
    with pytest.raises(CredoError, match="cov must be symmetric"):
        learner.init(jnp.zeros(3), cov=jnp.asarray(ROOT))


def test_dynamics_that_are_not_finite_are_refused() -> None:
    with pytest.raises(CredoError, match="transition must be finite"):
        credo.LinearGaussian(np.where(EYE > 0, np.nan, 0.0))
    with pytest.raises(CredoError, match="offset must be finite"):
        credo.LinearGaussian(EYE, np.inf)


KNOWN: dict[str, np.ndarray] = {
    "all": np.zeros((3, 3)),
    "one": np.diag([0.0, 1.0, 2.0]),
    "a line": np.outer([1.0, -2.0, 0.5], [1.0, -2.0, 0.5]),
    "a plane": COV - COV[:, :1] @ COV[:1, :] / COV[0, 0],
}


@pytest.mark.parametrize("form", ["root", "dense"])
@pytest.mark.parametrize("known", KNOWN)
def test_a_start_that_is_known_in_part_is_filtered_exactly(known: str, form: Any) -> None:
    turn = np.asarray([[0.9, 0.2, 0.0], [-0.2, 0.9, 0.1], [0.0, 0.0, 1.0]])
    look, noise, drift = RNG.normal(size=(2, 3)), np.diag([0.5, 2.0]), np.diag([0.1, 0.0, 0.0])
    learner = credo.kalman(turn, look, drift, noise, form=form)
    cov, mean = KNOWN[known].copy(), np.asarray([1.0, 0.0, -1.0])
    belief = learner.init(jnp.asarray(mean), cov=jnp.asarray(cov))
    for y in np.random.default_rng(1).normal(size=(6, 2)):
        belief, info = learner.step(belief, None, jnp.asarray(y))
        mean, cov = turn @ mean, turn @ cov @ turn.T + drift
        inner = look @ cov @ look.T + noise
        gain = np.linalg.solve(inner, look @ cov).T
        gap = y - look @ mean
        evidence = -0.5 * (gap @ np.linalg.solve(inner, gap) + np.linalg.slogdet(2 * np.pi * inner)[1])
        mean, cov = mean + gain @ gap, cov - gain @ look @ cov
        assert bool(info.ok)
        np.testing.assert_allclose(info.log_evidence, evidence, atol=1e-10)
        np.testing.assert_allclose(belief.mean, mean, atol=1e-10)
        np.testing.assert_allclose(belief.cov.dense(), cov, atol=1e-10)


def test_a_family_of_precisions_says_that_it_knows_nothing_exactly() -> None:
    learner = credo.lofi(credo.Model(lambda w, x: x @ w, credo.Normal(0.1)), 2)
    for known in ("all", "one"):
        with pytest.raises(CredoError, match=r"cov must be positive definite for this family.*Full\(\)"):
            learner.init(jnp.zeros(3), cov=jnp.asarray(KNOWN[known]))


def test_a_covariance_of_single_precision_is_none_the_worse_for_its_rounding() -> None:
    rounded = np.asarray(COV, np.float32)
    rounded[0, 1] *= np.float32(1 + 1e-6)
    credo.Normal(rounded)
    learner = credo.kalman(EYE, EYE, np.asarray(KNOWN["a plane"], np.float32), rounded)
    assert bool(learner.step(learner.init(jnp.zeros(3)), None, jnp.ones(3))[1].ok)
