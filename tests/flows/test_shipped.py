"""The operators that credo ships: what they do, number by number, and on systems that they never saw."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import credo
from credo.core.types import Array, ArrayLike
from credo.flows import load_operator, operator_names, pfbr
from credo.flows.settings import read_settings

GOLDEN: dict[str, tuple[list[float], list[float]]] = {
    "linear-10": (
        [0.335343, 0.355402, 1.152214, 1.276716, 0.62521, -0.05453],
        [-2.392025, -2.334807, -2.326059],
    ),
    "linear-2": (
        [0.360861, 0.389634, 1.281156, 1.379426, 0.597245, -0.032249],
        [-0.776098, -0.770923, -0.792528],
    ),
    "two-modes": (
        [1.238913, 0.911313, 5.480651, 5.030152, 3.269346, -2.047782],
        [2.283276, 3.236467, 2.962362],
    ),
}
"""What becomes of the first coordinates of three particles, and their log-determinants."""


def placed(dim: int) -> Array:
    """Forty particles that no generator draws."""
    places = jnp.arange(40.0)[:, None] * jnp.sqrt(jnp.arange(2.0, dim + 2.0))[None, :]
    return 1.5 * jnp.sin(places) + 0.3 * jnp.cos(2 * places) ** 2


def looked(value: Array) -> Array:
    """A log-likelihood with heavy tails, that sees the axes unequally."""
    scales = jnp.arange(2.0, value.shape[0] + 2, dtype=value.dtype)
    return -2 * jnp.sum(jnp.log1p((value - 0.5) ** 2 / scales))


@pytest.mark.slow
@pytest.mark.parametrize("name", operator_names())
def test_a_shipped_operator_gives_the_numbers_that_it_gave_when_it_was_shipped(name: str) -> None:
    operator = load_operator(name)
    values = placed(operator.dim)
    weights = jax.nn.log_softmax(jnp.cos(jnp.arange(40.0)))
    bayes = operator.transport(operator.params, values, weights, looked, None, None)
    after, log_det = jax.jit(bayes.forward_density)(values)
    places, dets = GOLDEN[name]
    np.testing.assert_allclose(after[:3, :2].reshape(-1), places, rtol=0, atol=1e-5)
    np.testing.assert_allclose(log_det[:3], dets, rtol=0, atol=1e-5)


class System(NamedTuple):
    """z' = A z + N(0, q), y = B z + N(0, r), from N(m, p)."""

    move: Array
    look: Array
    noise: ArrayLike = 1.0
    blur: ArrayLike = 1.0
    mean: ArrayLike = 0.0
    var: ArrayLike = 1.0


def systems(dim: int) -> dict[str, System]:
    """The system of the training, and what it is changed to."""
    move, look = (jnp.asarray(matrix) for matrix in credo.datasets.linear_system(dim))
    rng = np.random.default_rng(7)
    other = rng.normal(size=(dim, dim))
    other *= 0.9 / np.abs(np.linalg.eigvals(other)).max()
    home = System(move, look)
    return {
        "home": home,
        "R .01": home._replace(blur=0.01),
        "R 25": home._replace(blur=25.0),
        "prior N(5, 25)": home._replace(mean=5.0, var=25.0),
        "other A, B": System(jnp.asarray(other), jnp.asarray(rng.normal(size=(dim, dim)))),
        "Q .01": home._replace(noise=0.01),
    }


@pytest.mark.parametrize("name", ["linear-2", "linear-10"])
def test_the_settings_beside_a_shipped_operator_describe_it(name: str) -> None:
    file = Path(credo.flows.__file__).parent / "operators" / f"{name}.toml"
    settings = read_settings(tomllib.loads(file.read_text(encoding="utf-8")), file.parent)
    assert settings.operator == credo.replace(load_operator(name), params=None)
    assert settings.tasks.dim == settings.operator.dim


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "alone"),
    [
        pytest.param("linear-2", False, marks=pytest.mark.thorough),
        ("linear-2", True),
        pytest.param("linear-10", False, marks=pytest.mark.thorough),
    ],
)
def test_a_shipped_operator_is_as_good_as_exact_draws_on_systems_that_it_never_saw(
    name: str, alone: bool
) -> None:
    operator = load_operator(name)
    dim, count = operator.dim, 64

    def follow(system: System, key: Array) -> tuple[Array, ...]:
        """The forecast's loss beside Kalman's, errors in posterior sd and what is ok, of five steps."""
        model = credo.Model(lambda z, x: system.look @ z, credo.Normal(system.blur))
        walk = credo.LinearGaussian(system.move, cov=system.noise)
        learner = pfbr(model, operator, count, walk, fallback=not alone)
        exact = credo.extended_kalman(model, dynamics=walk)
        keys = jax.random.split(key, 4)
        mean, var = jnp.full(dim, system.mean), jnp.asarray(system.var)
        start = (
            learner.init(mean, var=system.var, key=keys[0]),
            exact.init(mean, var=system.var),
            mean + jnp.sqrt(var) * jax.random.normal(keys[1], (dim,)),
        )

        def step(carry: tuple[Any, Any, Array], key: Array) -> tuple[Any, Any]:
            belief, truth, z = carry
            first, second, third = jax.random.split(key, 3)
            z = system.move @ z + jnp.sqrt(system.noise) * jax.random.normal(first, (dim,))
            y = system.look @ z + jnp.sqrt(system.blur) * jax.random.normal(second, (dim,))
            belief, truth = learner.predict(belief), exact.predict(truth)
            forecast = learner.forecast(belief, None, method="linearized").log_prob(y)
            gap = exact.forecast(truth, None).log_prob(y) - forecast
            belief, info = learner.update(belief, None, y)
            truth, _ = exact.update(truth, None, y)
            root = jnp.linalg.cholesky(truth.cov.dense())

            def off(values: Array) -> Array:
                white = jax.scipy.linalg.solve_triangular(root, (values - truth.mean[None, :]).T, lower=True)
                return jnp.sqrt(jnp.mean(white.mean(axis=1) ** 2))

            draws = truth.mean[None, :] + jax.random.normal(third, (count, dim)) @ root.T
            return (belief, truth, z), (gap, off(belief.values), off(draws), info.ok)

        scores: tuple[Array, ...] = jax.lax.scan(step, start, jax.random.split(keys[2], 5))[1]
        return scores

    program = jax.jit(lambda system, keys: jax.lax.map(lambda key: follow(system, key), keys))
    for words, system in systems(dim).items():
        system = System(*(jnp.asarray(part, float) for part in system))
        gaps, ours, drawn, ok = program(system, jax.random.split(jax.random.key(0), 3))
        assert jnp.all(ok), words
        assert jnp.mean(gaps) < 0.1, words
        assert jnp.mean(ours) < jnp.mean(drawn) + 0.1, words
