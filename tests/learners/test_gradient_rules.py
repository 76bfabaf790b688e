"""BOG and BBB are gradient steps on the ELBO in each family's own parameters, and what keeps them safe."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.learners.grid_reference import FAMILIES, Problem, compiled, elbo_steps
from tests.learners.reference import close, linear
from tests.tiers import few

import credo

SIZE, NOISE = 6, 0.7
RNG = np.random.default_rng(3)
ROWS, TARGET, START = RNG.normal(size=(2, SIZE)), RNG.normal(size=2), RNG.normal(size=SIZE)
HALF = RNG.normal(size=(SIZE, SIZE))
COV = HALF @ HALF.T / SIZE + 0.4 * np.eye(SIZE)
VAR = np.linspace(0.5, 1.5, SIZE)
MODEL = credo.Model(linear, credo.Normal(NOISE))
PROBLEM = Problem(SIZE, 4)


def expected_fit(m: Any, s: Any, at: Any) -> Any:
    """The closed form of E log p of the linear model, but for a constant."""
    gap = TARGET - ROWS @ m
    return -0.5 / NOISE * (gap @ gap + jnp.trace(ROWS @ s @ ROWS.T))


def softmax_fit(m: jax.Array, s: jax.Array, at: jax.Array) -> jax.Array:
    """What LIN-HESS makes of the softmax at a mean: a quadratic with its gradient and expected Hessian."""
    rows = PROBLEM.x * (1.0 - jnp.tanh(at) ** 2)[None, :]
    probs = jax.nn.softmax(PROBLEM.x @ jnp.tanh(at))
    bend = -rows.T @ (jnp.diag(probs) - jnp.outer(probs, probs)) @ rows
    result: jax.Array = (PROBLEM.y - probs) @ rows @ m + 0.5 * jnp.trace(bend @ s)
    return result


def natural_full(psi: Any) -> tuple[Any, ...]:
    """Of (L mu, -L / 2); the matrix counts by its symmetric part, so its derivative is symmetric."""
    cov = jnp.linalg.inv(-(psi[1] + psi[1].T))
    return cov @ psi[0], cov


def natural_diagonal(psi: Any) -> tuple[Any, ...]:
    """Of (lam mu, -lam / 2)."""
    return -0.5 * psi[0] / psi[1], jnp.diag(-0.5 / psi[1])


def low_rank(psi: Any) -> tuple[Any, ...]:
    """Of (mu, y, W); y may be one number."""
    mean, base, factor = psi
    return mean, jnp.linalg.inv(jnp.diag(jnp.broadcast_to(base, mean.shape)) + factor.T @ factor)


def parameters(family: Any, kind: str, cov: Any, start: np.ndarray) -> tuple[Any, Callable[..., Any]]:
    """The family's own parameters psi of a belief, and the moments of psi."""
    mean = jnp.asarray(start)
    if isinstance(family, credo.LowRank):
        base = cov.base[0] if family.base == "spherical" else cov.base
        return (mean, base, cov.factor), low_rank
    dense = cov.dense()
    if isinstance(family, credo.Diagonal):
        if kind == "moment":
            return (mean, jnp.diag(dense)), lambda psi: (psi[0], jnp.diag(psi[1]))
        lam = 1.0 / jnp.diag(dense)
        return (lam * mean, -0.5 * lam), natural_diagonal
    if kind == "moment":
        return (mean, dense), lambda psi: (psi[0], 0.5 * (psi[1] + psi[1].T))
    precision = jnp.linalg.inv(dense)
    return (precision @ mean, -0.5 * precision), natural_full


CASES = {
    "full-natural": (credo.Full(), "natural", 0.01),
    "full-moment": (credo.Full(), "moment", 0.01),
    "dense-natural": (credo.Full("dense"), "natural", 0.01),
    "dense-moment": (credo.Full("dense"), "moment", 0.01),
    "diagonal-natural": (credo.Diagonal(), "natural", 0.02),
    "diagonal-moment": (credo.Diagonal(), "moment", 0.01),
    "low-rank": (credo.LowRank(2, random=0.3), None, 0.1),
    "spherical": (credo.LowRank(2, "spherical", random=0.3), None, 0.02),
}


@pytest.mark.slow
@pytest.mark.table
@pytest.mark.parametrize("name", list(CASES))
def test_bog_and_bbb_are_gradient_steps_in_the_familys_own_parameters(name: str) -> None:
    """Against automatic differentiation of a closed form: the expected log-likelihood (BOG), the ELBO at the
    prior (one iteration: the same) and away from it (three). Also of a softmax, measured anew each time.
    """
    family, kind, rate = CASES[name]
    init = {"cov": COV} if name.startswith(("full", "dense")) else {"var": VAR}
    given: dict[str, Any] = {"learning_rate": rate, "retraction": "exact"} | (
        {"parameters": kind} if kind else {}
    )

    def program(x: jax.Array, start: jax.Array, other: jax.Array) -> tuple[Any, ...]:
        made, priors = [], []
        one = (start, jnp.asarray(ROWS), jnp.asarray(TARGET))
        for learner, begin, x_here, y in (
            (credo.bog(MODEL, family, **given), *one),
            (credo.bbb(MODEL, family, iterations=1, **given), *one),
            (credo.bbb(MODEL, family, iterations=3, **given), *one),
            (credo.bbb(PROBLEM.model, family, iterations=3, **given), other, x, PROBLEM.label),
        ):
            belief = learner.init(begin, **init)
            after, info = learner.update(belief, x_here, y)
            priors.append(belief.cov)
            made.append((after.mean, after.cov.dense(), info.ok))
        return made, priors

    made, priors = compiled(program, *map(jnp.asarray, (PROBLEM.x, START, PROBLEM.mean)))
    wanted = (
        (START, False, expected_fit, 1),
        (START, True, expected_fit, 1),
        (START, True, expected_fit, 3),
        (PROBLEM.mean, True, softmax_fit, 3),
    )
    for (mean, cov, ok), held, (start, elbo, fit, iterations) in zip(made, priors, wanted, strict=True):
        psi, moments = parameters(family, kind or "", held, start)
        prior = (start, np.asarray(held.dense())) if elbo else None
        want, spread = elbo_steps(psi, moments, prior, fit, rate, iterations)
        assert bool(ok)
        close(mean, want)
        close(cov, spread)
        assert np.abs(want - start).max() > 1e-3 and np.abs(spread - held.dense()).max() > 1e-3


def test_the_familys_own_parameters_are_the_natural_ones() -> None:
    for family in (credo.Full(), credo.Diagonal()):
        own, named = PROBLEM.updates(
            [credo.bog(PROBLEM.model, family), credo.bog(PROBLEM.model, family, parameters="natural")],
            var=VAR,
        )
        np.testing.assert_array_equal(own[0].mean, named[0].mean)


@pytest.mark.parametrize("size", [4, SIZE])
def test_the_low_rank_form_of_the_natural_step_is_the_dense_one(size: int) -> None:
    """Two rows and two arms: fewer than six parameters, as many as four."""
    rows, start, cov = ROWS[:, :size], START[:size], COV[:size, :size]
    learner = credo.bog(MODEL, credo.Full(), learning_rate=0.01, retraction="exact")
    belief, info = learner.update(learner.init(jnp.asarray(start), cov=cov), jnp.asarray(rows), TARGET)
    g, bend = rows.T @ (TARGET - rows @ start) / NOISE, -rows.T @ rows / NOISE
    pushed, old = cov @ g, np.linalg.inv(cov)
    arms = np.outer(pushed, start)
    precision = old - 0.02 * (arms + arms.T + cov @ bend @ cov)
    assert bool(info.ok)
    close(belief.cov.dense(), np.linalg.inv(precision))
    close(belief.mean, np.linalg.solve(precision, old @ start + 0.01 * pushed))


@pytest.mark.slow
@pytest.mark.table
@pytest.mark.parametrize("rule", ["bog", "bbb", "blr", "bong"])
@pytest.mark.parametrize("family", ["full", "low-rank"])
def test_mc_hess_is_lin_hess_on_a_linear_gaussian_model(family: str, rule: str) -> None:
    """The Hessian is constant, and antithetic draws cancel in the gradient; in every iteration."""
    kept = credo.LowRank(2) if family == "low-rank" else credo.Full()
    more = {} if rule == "bong" else {"learning_rate": 0.02}
    more |= {"iterations": 3} if rule in ("bbb", "blr") else {}
    sampled = credo.MonteCarloHessian(4, antithetic=True, rank=2)
    make = getattr(credo, rule)

    def program(x: jax.Array, y: jax.Array) -> list[Any]:
        made = []
        for learner in (make(MODEL, kept, **more), make(MODEL, kept, sampled, **more)):
            belief, _ = learner.update(learner.init(jnp.asarray(START), var=VAR), x, y, key=jax.random.key(1))
            made.append((belief.mean, belief.cov.dense()))
        return made

    lin, sampled_too = compiled(program, jnp.asarray(ROWS), jnp.asarray(TARGET))
    close(lin[0], sampled_too[0])
    close(lin[1], sampled_too[1])
    assert np.abs(lin[0] - START).max() > 1e-3


@pytest.mark.table
@pytest.mark.parametrize("rule", ["bog", "bbb"])
def test_the_directions_of_a_low_rank_belief_move(rule: str) -> None:
    """At W = 0 the gradient by W vanishes: without a random start the method is silently diagonal."""
    make = getattr(credo, rule)
    for random, moves in ((None, True), (0.3, True), (0.0, False)):
        learner = make(PROBLEM.model, credo.LowRank(2, random=random), learning_rate=0.1)
        start = learner.init(jnp.asarray(PROBLEM.mean), var=VAR)
        belief, info = learner.update(start, jnp.asarray(PROBLEM.x), PROBLEM.label)
        moved = float(jnp.abs(belief.cov.factor - start.cov.factor).max())
        assert bool(info.ok) and (moved > 1e-4 if moves else moved == 0.0), (random, moved)
        assert float(jnp.abs(belief.cov.base - start.cov.base).max()) > 1e-4
        assert bool(jnp.any(start.cov.factor != 0)) == moves
    for natural in (credo.bong, credo.blr):
        learner = natural(PROBLEM.model, credo.LowRank(2))
        assert not jnp.any(cast(Any, learner.init(jnp.asarray(PROBLEM.mean), var=VAR).cov).factor)


SAFE = {
    **{f"{rule}-{name}": (rule, *CASES[name][:2]) for rule in ("bog", "bbb") for name in CASES},
    "blr-full": ("blr", credo.Full(), "moment"),
    "blr-diagonal": ("blr", credo.Diagonal(), "moment"),
}


@pytest.mark.table
@pytest.mark.parametrize("name", list(SAFE))
def test_a_huge_rate_is_safe_and_an_exact_step_beyond_the_covariances_is_rejected(name: str) -> None:
    """Safe beliefs stay finite and positive definite; rejected ones stay as they were, bit by bit."""
    rule, family, kind = SAFE[name]
    more = ({"parameters": kind} if kind else {}) | ({} if rule == "bog" else {"iterations": 2})
    low_rank = isinstance(family, credo.LowRank)
    # a second step of BBB pulls y back to the prior by more than the first has added
    rate, weight = (1.0, 9.0) if rule == "blr" else (40.0, 0.003) if low_rank else (1e3, 9.0)
    # by squares of 1e6 a dense matrix is no longer positive definite in 16 digits
    huge = rate if rule == "blr" or family == credo.Full("dense") else 1e3 * rate

    def program(x: jax.Array, y: jax.Array, start: jax.Array) -> list[Any]:
        made = []
        for retraction, size in (("safe", rate), ("safe", huge), ("exact", rate)):
            learner = getattr(credo, rule)(MODEL, family, learning_rate=size, retraction=retraction, **more)
            begin = learner.init(start, var=VAR)
            after, info = learner.update(begin, x, y, weight=weight)
            made.append((begin, after, after.cov.dense(), info))
        return made

    *safe, (begin, after, _, info) = compiled(program, *map(jnp.asarray, (ROWS, TARGET, START)))
    if low_rank and rule == "bog":  # y only grows, and W' W is never negative: nothing to reject
        assert bool(info.ok)
    else:
        assert not bool(info.ok) and float(info.log_evidence) == 0.0
        jax.tree.map(np.testing.assert_array_equal, after, begin)
    for _, after, dense, info in safe:
        assert bool(info.ok) and np.all(np.isfinite(after.mean))
        values = np.linalg.eigvalsh(dense)
        assert values[0] > -1e-9 * values[-1] and np.all(np.diag(dense) > 0)


@pytest.mark.parametrize("name", few(FAMILIES, "full"))
def test_small_steps_do_not_depend_on_the_retraction_to_first_order(name: str) -> None:
    gaps = []
    for rate in (1e-2, 5e-3):
        learners = [
            credo.bbb(PROBLEM.model, FAMILIES[name], learning_rate=rate, iterations=2, retraction=how)
            for how in ("safe", "exact")
        ]
        (safe, _), (exact, told) = PROBLEM.updates(learners, var=VAR)
        assert bool(told.ok)
        gaps.append(np.abs(np.asarray(safe.cov.dense()) - np.asarray(exact.cov.dense())).max())
    assert gaps[1] <= 0.3 * gaps[0] or gaps[0] < 1e-14, gaps
