"""The operator of credo.flows: its determinant, its inverse, its base, and what it does not notice."""

from __future__ import annotations

import math
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from safetensors.numpy import save_file

import credo
from credo.core.errors import CredoError, DataError, FormatError
from credo.core.types import Array
from credo.flows import Operator, load_operator, save_operator
from credo.flows.densities import standard
from credo.flows.fields import log_det_of_stack, log_det_of_update
from credo.flows.frames import moved_inputs, posterior_frame
from credo.flows.operator import Map

EQUAL = jnp.full(40, -jnp.log(40.0))


def bent(**fields: object) -> Operator:
    """An operator of some parameters that do bend."""
    operator = Operator(**{"dim": 3, "width": 5, "hidden": 8, "embedding": 4, "steps": 2} | fields)  # type: ignore[arg-type]
    params = operator.start(0)
    leaves, tree = jax.tree.flatten(params)
    keys = jax.random.split(jax.random.key(3), len(leaves))
    moved = [
        leaf + 0.2 * jax.random.normal(key, leaf.shape, leaf.dtype)
        for leaf, key in zip(leaves, keys, strict=True)
    ]
    return credo.replace(operator, params=jax.tree.unflatten(tree, moved))


def heavy(value: Array) -> Array:
    """A log-likelihood with heavy tails, which sees the axes unequally."""
    scales = jnp.arange(1.0, value.shape[0] + 1, dtype=value.dtype)
    return -2 * jnp.sum(jnp.log1p((value - 1.0) ** 2 / scales))


def values(count: int = 40, dim: int = 3) -> Array:
    return 0.4 + jax.random.normal(jax.random.key(1), (count, dim)) @ jnp.diag(jnp.arange(1.0, dim + 1))


def transport(operator: Operator, points: Array, log_weights: Array = EQUAL) -> Map:
    return operator.transport(operator.params, points, log_weights, heavy, None, None)


def everything(operator: Operator, points: Array, log_weights: Array) -> tuple[Array, ...]:
    """What the map does to points, its determinants, those of automatic differentiation, and the way back."""
    bayes = transport(operator, points, log_weights)
    after, log_det = bayes.forward_density(points)
    jacobians = jax.vmap(jax.jacfwd(lambda point: bayes.forward(point[None])[0]))(points)
    return after, bayes.forward(points), log_det, *jnp.linalg.slogdet(jacobians), *bayes.backward(after)


@pytest.mark.slow
@pytest.mark.parametrize(
    "fields",
    [
        {"gradients": "along", "reweighted": True, "residual": "convex"},
        pytest.param({"base": None, "width": 2, "steps": 1}, marks=pytest.mark.thorough),
    ],
)
def test_the_log_determinant_is_that_of_the_discrete_map_and_the_inverse_inverts(
    fields: dict[str, object],
) -> None:
    points = values()
    after, same, log_det, sign, exact, origins, again = jax.jit(everything)(bent(**fields), points, EQUAL)
    assert jnp.all(sign > 0)
    assert jnp.max(jnp.abs(exact - log_det)) < 1e-10
    assert jnp.allclose(after, same, rtol=1e-12)
    assert jnp.max(jnp.abs(origins - points)) < 1e-10
    assert jnp.max(jnp.abs(again - log_det)) < 1e-10


@pytest.mark.slow
def test_the_log_determinant_in_single_precision_is_good_to_five_digits() -> None:
    single = jnp.float32
    results = jax.jit(everything)(bent(), values().astype(single), EQUAL.astype(single))
    assert all(result.dtype == single for result in results)
    assert jnp.max(jnp.abs(results[2] - results[4])) < 1e-5


@pytest.mark.slow
def test_stacks_of_any_size_have_their_determinants() -> None:
    keys = jax.random.split(jax.random.key(0), 3)
    for size in (2, 20):
        stack = jnp.eye(size)[None] + 0.1 * jax.random.normal(keys[0], (4, size, size))
        logs = log_det_of_stack(jnp.moveaxis(stack, 0, -1))
        assert jnp.allclose(logs, jnp.linalg.slogdet(stack)[1], atol=1e-12)
    outer, inner = 0.2 * jax.random.normal(keys[1], (4, 2)), jax.random.normal(keys[2], (2, 4))
    slopes = jnp.array([[0.3, 0.9]])
    exact = jnp.linalg.slogdet(jnp.eye(4) + outer @ jnp.diag(slopes[0]) @ inner)[1]
    assert jnp.allclose(log_det_of_update(outer, slopes, inner)[0], exact, atol=1e-12)


@pytest.mark.slow
def test_the_derivative_of_the_inverse_is_that_of_the_map() -> None:
    points = values()
    operator = bent()

    def origin(shift: Array) -> Array:
        params = jax.tree.map(lambda leaf: leaf.astype(shift.dtype) + shift, operator.params)
        bayes = operator.transport(params, points, EQUAL, heavy, None, None)
        return bayes.backward(points[:2])[0].sum()

    step = 1e-5
    slope = jax.jit(jax.grad(origin))(jnp.zeros(()))
    ends = jax.jit(jax.vmap(origin))(jnp.array([step, -step]))
    finite = (ends[0] - ends[1]) / (2 * step)
    assert abs(slope - finite) < 1e-6 * abs(finite)


def test_an_affine_map_of_the_state_is_followed() -> None:
    points, operator = values(), bent(gradients="along", reweighted=True)
    stretch = jnp.array([[2.0, 0.3, 0.0], [-1.0, 0.5, 0.2], [0.4, 0.0, 30.0]])
    shift = jnp.array([5.0, -1.0, 100.0])

    @jax.jit
    def follow(points: Array, back: Array, shift: Array) -> tuple[Array, Array]:
        bayes = operator.transport(
            operator.params, points, EQUAL, lambda z: heavy(back @ (z - shift)), None, None
        )
        return bayes.forward_density(points)

    here, log_det = follow(points, jnp.eye(3), jnp.zeros(3))
    there, same = follow(points @ stretch.T + shift[None], jnp.linalg.inv(stretch), shift)
    assert jnp.allclose(there, here @ stretch.T + shift[None], rtol=1e-8, atol=1e-8)
    assert jnp.allclose(same, log_det, atol=1e-8)


LOOK = jnp.array([[1.0, 0.5, 0.0], [0.0, 1.0, -1.0]])
KALMAN = Operator(dim=3, width=2, hidden=4, embedding=0).begin()


@jax.jit
def kalman(points: Array, y: Array) -> tuple[Array, Array]:
    """Where the base takes a set, and the moments that Kalman's update has."""
    equal = jnp.full(points.shape[0], -math.log(points.shape[0]))
    bayes = KALMAN.transport(
        KALMAN.params, points, equal, lambda z: -jnp.sum((y - LOOK @ z) ** 2) / 0.5, None, y
    )
    mean, cov = points.mean(axis=0), jnp.cov(points.T)
    gain = jnp.linalg.solve(LOOK @ cov @ LOOK.T + 0.25 * jnp.eye(2), LOOK @ cov).T
    after = bayes.forward(points)
    gaps = after.mean(axis=0) - mean - gain @ (y - LOOK @ mean)
    return gaps, jnp.cov(after.T) - cov + gain @ LOOK @ cov


def test_where_the_base_is_right_nothing_is_left_of_the_score_and_elsewhere_something_is() -> None:
    points = values(dim=2)

    @jax.jit
    def left(bend: Array) -> Array:
        def log_likelihood(z: Array) -> Array:
            return -jnp.sum((z - 1.0) ** 2 / jnp.array([1.0, 3.0])) - bend * z[0] ** 4

        frame = posterior_frame(points, EQUAL, log_likelihood)
        rows = moved_inputs(frame, 0.5 + frame.units, frame.target, frame.scales, log_likelihood)
        return jnp.max(jnp.abs(rows[:, 2:4]))

    assert left(jnp.zeros(())) < 1e-10
    assert left(jnp.ones(())) > 0.1


@pytest.mark.slow
def test_gradients_along_the_flow_change_the_map_and_need_two_steps() -> None:
    operator, points = bent(gradients="along"), values()
    assert operator.params["along"]["weights"].shape == (7, 4)
    still = jax.tree.map(jnp.zeros_like, operator.params["along"])
    blind = credo.replace(operator, params=operator.params | {"along": still})
    gap = transport(operator, points).forward(points) - transport(blind, points).forward(points)
    assert jnp.max(jnp.abs(gap)) > 1e-3
    with pytest.raises(CredoError, match="at least two steps and an embedding; got steps=1"):
        Operator(dim=2, gradients="along")
    with pytest.raises(CredoError, match="at least 1 for a set that is reweighted"):
        Operator(dim=2, embedding=0, reweighted=True)


@pytest.mark.slow
def test_a_proportionate_operator_moves_nothing_where_an_observation_says_nothing() -> None:
    points = values()

    @jax.jit
    def apart(share: Array) -> Array:
        moves = [
            operator.transport(operator.params, points, EQUAL, lambda z: share * heavy(z), None, None)
            for operator in (bent(proportionate=True), bent(proportionate=True, base=None), bent())
        ]
        return jnp.stack([jnp.max(jnp.abs(bayes.forward(points) - points)) for bayes in moves])

    still, little = apart(jnp.zeros(())), apart(jnp.asarray(1e-3))
    assert jnp.all(still[:2] < 1e-12) and still[2] > 0.1
    assert jnp.all(little[:2] < 0.1)


@pytest.mark.parametrize("count", [40, 2])
def test_the_base_is_the_kalman_update_of_the_moments_of_the_set(count: int) -> None:
    # two particles in three dimensions have a singular covariance, which is nudged by some roundings
    for gap in kalman(values(count), jnp.array([0.3, -2.0])):
        assert jnp.max(jnp.abs(gap)) < (1e-10 if count == 40 else 1e-6)


@pytest.mark.slow
def test_particles_that_are_all_alike_stay_where_they_are() -> None:
    points = jnp.broadcast_to(jnp.array([1.0, 2.0, 3.0]), (40, 3))
    after, _, log_det, *_ = jax.jit(everything)(bent(), points, EQUAL)
    assert jnp.allclose(after, points, atol=1e-6)
    assert jnp.all(jnp.isfinite(log_det))


def test_a_file_of_another_architecture_or_dimension_is_refused_in_a_sentence(tmp_path: Path) -> None:
    operator = bent(base=None)
    path = save_operator(tmp_path / "three.flow", operator, notes={"steps": 10})
    assert load_operator(path, dim=3) == operator
    with pytest.raises(FormatError, match="dimension 3; 2 is asked for"):
        load_operator(path, dim=2)
    with pytest.raises(DataError, match="no operator at"):
        load_operator(tmp_path / "none.flow")
    save_file({"a": jnp.ones(2).__array__()}, tmp_path / "other.flow")
    with pytest.raises(FormatError, match="but no operator of credo"):
        load_operator(tmp_path / "other.flow")
    raw = path.read_bytes()
    path.write_bytes(raw[:-4] + bytes(4))
    with pytest.raises(FormatError, match="checksum"):
        load_operator(path)
    wide = credo.replace(operator, width=9)
    save_operator(path, wide)
    with pytest.raises(FormatError, match="another architecture"):
        load_operator(path)
    with pytest.raises(CredoError, match="must be trained"):
        save_operator(path, Operator(dim=3))


@pytest.mark.thorough
def test_the_operators_that_are_shipped_are_right_on_the_problems_they_are_named_after() -> None:
    names = credo.flows.operator_names()
    assert {"linear-2", "linear-10"} <= set(names)
    matrices = [jnp.asarray(matrix) for matrix in credo.datasets.linear_system(2)]
    tasks = credo.flows.LinearGaussianTasks(matrices[0], 1.0, matrices[1], 1.0, particles=64)
    task, stage = tasks.observe(tasks.begin(jax.random.key(5)), jax.random.key(6))
    operator = load_operator("linear-2", dim=2)
    bayes = operator.transport(
        operator.params,
        stage.values,
        stage.log_weights,
        lambda z: tasks.log_likelihood(z, None, stage.y),
        None,
        stage.y,
    )
    after = bayes.forward(stage.values)
    assert jnp.max(jnp.abs(after.mean(axis=0) - task.mean)) < 0.02
    assert jnp.max(jnp.abs(jnp.cov(after.T) - task.cov)) < 0.02
    with pytest.raises(DataError, match="those that credo ships are linear-10, linear-2"):
        load_operator("linear-3")


@pytest.mark.slow
def test_repeated_linearisations_of_a_heavy_tail_settle() -> None:
    points = standard(jax.random.key(0), 200, 2, jnp.zeros(()).dtype)
    noise = credo.StudentT(3.0, 0.3, "weighted")

    def moved(iterations: int) -> Array:
        weights = jnp.full(200, -jnp.log(200.0))
        frame = posterior_frame(
            points, weights, lambda z: noise.log_prob(z[:1], jnp.asarray(3.0)), iterations
        )
        return jnp.max(jnp.abs(frame.target))

    # without damping they swing between 2.1 and 2.6
    assert abs(moved(9) - moved(8)) < 0.1


def test_settings_and_particles_that_do_not_fit_are_refused() -> None:
    with pytest.raises(CredoError, match="base must be one of affine"):
        Operator(dim=2, base="linear")  # type: ignore[arg-type]
    with pytest.raises(CredoError, match="width must be a whole number"):
        Operator(dim=2, width=0)
    with pytest.raises(CredoError, match="residual must be one of bounded, convex"):
        Operator(dim=2, residual="wide")  # type: ignore[arg-type]
    with pytest.raises(CredoError, match="embedding must be at least 1 for a set that is reweighted"):
        Operator(dim=2, reweighted=True, embedding=0)
    with pytest.raises(CredoError, match="dim must be that of the particles, 2; the operator has 3"):
        transport(bent(), values(dim=2))


def test_damping_keeps_linearisations_from_overshooting_in_turns() -> None:
    # four labels that a line divides, under a wide prior: the likelihood bends where the prior is, and is
    # flat where one linearisation leads
    x, y = jnp.array([[3.0, 1.0], [2.0, -1.0], [-2.5, 0.5], [1.0, 2.0]]), jnp.array([1.0, 1.0, 0.0, 1.0])
    prior = 10 * standard(jax.random.key(0), 200, 2, x.dtype)

    def labels(weights: Array) -> Array:
        return jnp.sum(y * (x @ weights) - jax.nn.softplus(x @ weights))

    def mean(iterations: int, damping: float) -> Array:
        frame = posterior_frame(prior, jnp.full(200, -jnp.log(200.0)), labels, iterations, damping)
        return frame.outside(frame.target[None, :])[0]

    line = jnp.linspace(-60.0, 60.0, 241)
    grid = jnp.stack(jnp.meshgrid(line, line), axis=-1).reshape(-1, 2)
    exact = jax.nn.softmax(jax.vmap(labels)(grid) - jnp.sum(grid**2, axis=1) / 200) @ grid
    assert float(jnp.linalg.norm(mean(2, 0.0))) < 0.1  # the observation is lost
    assert float(jnp.linalg.norm(mean(6, 0.5) - exact)) < 0.2 * float(jnp.linalg.norm(exact))
    with pytest.raises(CredoError, match=r"damping must be in \[0, 1\]; got 1.5"):
        Operator(dim=1, damping=1.5)
