"""The published operator: its network, its solver and both gradients, the densities and the losses."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import credo
from credo.core.errors import CredoError
from credo.flows.densities import KernelDensity
from credo_papers.published_flow import (
    DirichletMixtures,
    LinearSequences,
    PublishedOperator,
    normal_prior,
    pfbr,
    runge_kutta,
    solve,
    static_loss,
)

Array = jax.Array
DIM, COUNT = 2, 8
LOOK = jnp.array([[1.0, 0.3], [0.0, 1.0]])
MOVE = jnp.array([[0.8, 0.1], [-0.2, 0.7]])
SMALL = PublishedOperator(dim=DIM, observation=DIM, hidden=4, layers=1, gradient="direct")
PARAMS = SMALL.start(3)
VALUES = jax.random.normal(jax.random.key(1), (COUNT, DIM))
EQUAL = jnp.full(COUNT, -jnp.log(float(COUNT)))
Y = jnp.array([0.5, -1.0])


def likelihood(value: Array) -> Array:
    return -jnp.sum((LOOK @ value - Y) ** 2) / 2


def flow(params: Any = PARAMS, **settings: Any) -> Any:
    operator = credo.replace(SMALL, **settings)
    return operator.transport(params, VALUES, EQUAL, likelihood, None, Y)


def densities(params: Any = PARAMS, **settings: Any) -> tuple[Array, Array, Array]:
    """Where the flow takes the particles, its own density, and the log-determinant by derivatives."""

    @jax.jit
    def both(params: Any) -> tuple[Array, Array, Array]:
        bayes = flow(params, **settings)
        slopes = jax.vmap(jax.jacrev(lambda one: bayes.forward(one[None, :])[0]))(VALUES)
        return *bayes.forward_density(VALUES), slopes

    places, density, slopes = both(params)
    return places, density, jnp.asarray(np.linalg.slogdet(np.asarray(slopes))[1])


@pytest.mark.parametrize(("dim", "count"), [(2, 55_758), (10, 60_494)])
def test_the_network_has_as_many_parameters_as_the_published_one(dim: int, count: int) -> None:
    shapes = jax.eval_shape(PublishedOperator(dim=dim, observation=dim).start, jax.random.key(0))
    assert sum(leaf.size for leaf in jax.tree.leaves(shapes)) == count


def test_the_3_8_rule_is_of_fourth_order() -> None:
    def field(args: Array, t: Array, y: Array) -> Array:
        return args * jnp.cos(t) * y

    def error(steps: int) -> float:
        end = jnp.asarray(2.0)
        out = runge_kutta(field, steps, jnp.asarray(1.0), jnp.ones(1), jnp.asarray(0.0), end)
        return float(jnp.abs(out[0] - jnp.exp(jnp.sin(end))))

    assert 14 < error(40) / error(80) < 17


@pytest.mark.slow
@pytest.mark.parametrize("signal", ["observation", pytest.param("gradient", marks=pytest.mark.thorough)])
def test_the_divergence_is_the_trace_of_the_jacobian(signal: str) -> None:
    """With many steps, the transported density is that of the map (Liouville); discrete, it is so exactly."""
    _, density, exact = densities(signal=signal, density="discrete")
    np.testing.assert_allclose(density, exact, atol=1e-12)
    # four times the steps divide the error of the published density by about 4^4
    errors = []
    for steps in (1, 4):
        _, density, exact = densities(signal=signal, steps=steps)
        errors.append(float(jnp.max(jnp.abs(density - exact))))
    assert errors[1] < errors[0] / 64


def test_with_one_step_the_published_density_is_not_that_of_the_map() -> None:
    """The published loss can exploit the gap, which grows with the velocity: weights times 200."""
    body = [{**layer, "weights": 200 * layer["weights"]} for layer in PARAMS["velocity"]["body"]]
    steep = {**PARAMS, "velocity": {**PARAMS["velocity"], "body": body}}
    _, density, exact = densities(steep)
    assert float(jnp.max(jnp.abs(density - exact))) > 1.0


def test_going_back_undoes_the_flow() -> None:
    @jax.jit
    def there_and_back() -> tuple[Array, ...]:
        bayes = flow(density="discrete")
        places, density = bayes.forward_density(VALUES)
        return density, *bayes.backward(places)

    density, origins, again = there_and_back()
    np.testing.assert_allclose(origins, VALUES, atol=1e-10)
    np.testing.assert_allclose(again, density, atol=1e-10)


@pytest.mark.slow
def test_the_adjoint_gradient_tends_to_the_direct_one() -> None:
    outside = jnp.array([0.3, -0.2])

    def slope(gradient: Any, steps: int) -> Array:
        def loss(args: Array, state: tuple[Array, Array], end: Array, outside: Array) -> Array:
            def field(args: Array, t: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
                inner = jnp.tanh(args @ state[0] + t + outside)
                return inner, jnp.sum(inner**2) * state[1]

            settings: dict[str, Any] = {"steps": steps, "gradient": gradient}
            out, height = solve(field, args, state, jnp.asarray(0.1), end, **settings)
            total: Array = jnp.sum(jnp.sin(out)) - height
            return total

        start = (jnp.ones(2), jnp.asarray(0.5))
        slopes = jax.jit(jax.grad(loss, (0, 1, 2, 3)))(MOVE, start, jnp.asarray(1.0), outside)
        return jnp.concatenate([leaf.reshape(-1) for leaf in jax.tree.leaves(slopes)])

    errors = []
    for steps in (1, 8):
        direct = slope("direct", steps)
        errors.append(float(jnp.linalg.norm(slope("adjoint", steps) - direct) / jnp.linalg.norm(direct)))
    assert 1e-6 < errors[0] < 0.2, "with one step the adjoint is biased"
    assert errors[1] < errors[0] / 500


def test_adaptive_steps_need_diffrax_and_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "diffrax", None)
    with pytest.raises(CredoError, match="needs diffrax"):
        solve(lambda args, t, y: y, None, jnp.ones(1), jnp.zeros(()), jnp.ones(()), method="dopri5")


@pytest.mark.slow
def test_mini_batches_are_seen_without_an_order_or_in_order() -> None:
    x, y = jax.random.normal(jax.random.key(0), (5, 3)), jnp.array([0, 1, 1, 0, 1])
    turned = jnp.array([3, 1, 4, 0, 2])

    def moved(encoder: Any, x: Array, y: Array) -> Array:
        operator = PublishedOperator(dim=DIM, observation=4, hidden=4, layers=1, encoder=encoder)
        params = operator.start(0)
        moves = jax.jit(
            lambda x, y: operator.transport(params, VALUES, EQUAL, likelihood, x, y).forward(VALUES)
        )
        moved: Array = moves(x, y)
        return moved

    plain = moved("mean", x, y)
    np.testing.assert_allclose(moved("mean", x[turned], y[turned]), plain, atol=1e-12)
    gap = moved("gru", x[turned], y[turned]) - moved("gru", x, y)
    assert float(jnp.max(jnp.abs(gap))) > 1e-3
    with pytest.raises(CredoError, match="batch of rows"):
        moved("mean", x, Y)


def test_the_kernel_prior_is_the_sum_of_its_kernels() -> None:
    points = jax.random.normal(jax.random.key(2), (5, DIM))
    prior = KernelDensity.of(VALUES, EQUAL)
    factor = (4 / (DIM + 2)) ** (1 / (DIM + 4)) * COUNT ** (-1 / (DIM + 4))
    width = factor * np.std(np.asarray(VALUES), axis=0, ddof=1)
    gaps = (np.asarray(points)[:, None] - np.asarray(VALUES)[None]) / width
    naive = np.log(np.mean(np.exp(-0.5 * (gaps**2).sum(-1)), axis=1) / (2 * np.pi * width.prod()))
    np.testing.assert_allclose(prior.log_prob(points), naive, rtol=1e-10)


@pytest.mark.slow
def test_generated_priors_are_densities_of_their_draws() -> None:
    priors = DirichletMixtures(dim=1, components=6, concentration=2.0)
    grid = jnp.linspace(-30, 30, 6001)

    def check(key: Array) -> tuple[Array, Array, Array]:
        prior = priors.draw(key)
        heights = jnp.exp(prior.log_prob(grid[:, None]))
        draws = prior.draw(jax.random.fold_in(key, 1), 2000)
        return jnp.sum(heights) * 0.01, jnp.sum(heights * grid) * 0.01 - jnp.mean(draws), prior.log_weights

    mass, gap, weights = jax.jit(jax.vmap(check))(jax.random.split(jax.random.key(0), 200))
    np.testing.assert_allclose(mass, 1.0, atol=1e-2)  # the tails beyond the grid, of variances of all sizes
    assert float(jnp.sqrt(jnp.mean(gap**2))) < 4 * 1.2 / 2000**0.5
    # stick breaking: E[w_1] = 1 / (1 + alpha), with the standard error of 200 draws of Beta(1, 2)
    np.testing.assert_allclose(jnp.mean(jnp.exp(weights[:, 0])), 1 / 3, atol=3 * 0.236 / 200**0.5)
    np.testing.assert_allclose(jax.nn.logsumexp(weights, axis=1), 0, atol=1e-12)


def test_a_mixture_prior_keeps_its_exact_posterior_and_evidence() -> None:
    @jax.jit
    def both(points: Array) -> tuple[Array, Array]:
        prior = DirichletMixtures(dim=2, components=3).draw(jax.random.key(0))
        posterior, log_evidence = prior.condition(LOOK, 0.5 * jnp.eye(2), Y)
        inside = jax.vmap(lambda z: -jnp.sum((Y - LOOK @ z) ** 2) - jnp.log(jnp.pi))(points)
        return posterior.log_prob(points), prior.log_prob(points) + inside - log_evidence

    heights, expected = both(jax.random.normal(jax.random.key(1), (4, 2)))
    np.testing.assert_allclose(heights, expected, rtol=1e-10)


class Exact:
    """The operator of a static linear Gaussian model: an affine map between normal distributions."""

    dim, params = DIM, ()

    def __init__(self, tasks: LinearSequences) -> None:
        self.tasks = tasks

    def start(self, key: Any) -> tuple[()]:
        return ()

    def transport(
        self, params: Any, values: Array, log_weights: Array, log_likelihood: Any, x: Any, y: Any
    ) -> Any:
        look, blur = self.tasks.matrices
        # x - m of the set is S (z - m0) of the prior, so both distributions are known from the set
        mean, cov = jnp.mean(values, axis=0), jnp.cov(values.T, ddof=0)
        posterior, _ = normal_prior(mean, cov).condition(look, blur, y)
        before, after = jnp.linalg.cholesky(cov), jnp.linalg.cholesky(posterior.covs[0])
        root = after @ jnp.linalg.inv(before)

        class Affine:
            def forward_density(self, points: Array) -> tuple[Array, Array]:
                height = jnp.linalg.slogdet(root)[1]
                moved = posterior.means[0][None, :] + (points - mean[None, :]) @ root.T
                return moved, jnp.broadcast_to(height, points.shape[:1])

        return Affine()


def test_the_cumulative_loss_of_the_exact_flow_is_its_floor() -> None:
    tasks = LinearSequences(LOOK, 4.0, particles=64, length=6, segment=3, restart="exact")

    @jax.jit
    def both(key: Array) -> tuple[Array, ...]:
        task, stage = tasks.observe(tasks.begin(key), jax.random.fold_in(key, 1))
        # a set with exactly the moments of the prior
        white = stage.values - jnp.mean(stage.values, axis=0)[None, :]
        values = jnp.linalg.solve(jnp.linalg.cholesky(white.T @ white / 64), white.T).T
        arguments = (values, stage.prior, tasks.log_likelihood, None, stage.y)
        loss, last = static_loss(Exact(tasks), (), *arguments)
        return loss, stage.floor, jnp.mean(last, axis=0), task.exact.means[0], task.exact.covs[0]

    loss, floor, mean, exact, cov = both(jax.random.key(5))
    np.testing.assert_allclose(loss, floor, rtol=1e-10)
    np.testing.assert_allclose(mean, exact, atol=1e-10)
    np.testing.assert_allclose(cov, np.linalg.inv(np.eye(2) + 3 * np.asarray(LOOK.T @ LOOK) / 4), rtol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("transition", [MOVE, pytest.param(None, marks=pytest.mark.thorough)])
def test_the_loss_over_some_particles_is_a_share_of_the_whole(transition: Array | None) -> None:
    """Two halves of a set have the loss of the set on average, and all particles go the same way."""
    tasks = LinearSequences(LOOK, 4.0, transition, particles=COUNT, length=2)
    _, stage = tasks.observe(tasks.begin(jax.random.key(0)), jax.random.key(1))
    turned = credo.replace(stage, values=jnp.roll(stage.values, COUNT // 2, axis=0))

    @jax.jit
    def losses() -> list[tuple[Array, Array]]:
        few = credo.replace(tasks, scored=COUNT // 2)
        pairs = [(tasks, stage), (few, stage), (few, turned)]
        return [own.segment_loss(SMALL, PARAMS, seen) for own, seen in pairs]

    (whole, places), (first, same), (second, _) = losses()
    np.testing.assert_allclose((first + second) / 2, whole, rtol=1e-10)
    np.testing.assert_allclose(same, places, rtol=1e-10)


@pytest.mark.thorough
@pytest.mark.parametrize("mode", ["absorbed", pytest.param("propagated", marks=pytest.mark.thorough)])
def test_training_on_sequences_lowers_the_loss_and_stays_above_the_evidence(mode: Any) -> None:
    tasks = LinearSequences(LOOK, 1.0, MOVE, 0.5, particles=16, length=4, segment=2, mode=mode)
    plan = credo.flows.Plan(
        steps=60, every=30, batch=2, pool=2, sequences=0, learning_rate=1e-2, schedule="constant", leap=1e4
    )
    seen: list[Any] = []
    operator = PublishedOperator(dim=DIM, observation=DIM, hidden=8, layers=1)
    trained = credo.flows.train(tasks, operator, plan=plan, progress=seen.append)
    gaps = np.asarray(seen[-1].loss) - np.asarray(seen[-1].floor)
    assert np.median(gaps[-15:]) < np.median(gaps[:15])
    assert np.mean(gaps[-15:]) > -1.0
    learner = pfbr(
        credo.Model(lambda z, x: LOOK @ z, credo.Normal(1.0)),
        trained,
        COUNT,
        credo.LinearGaussian(MOVE, cov=0.5),
        absorbed=mode == "absorbed",
        density=True,
    )
    ys = jax.random.normal(jax.random.key(0), (4, DIM))
    start = learner.init(jnp.zeros(DIM))
    whole, _ = credo.run(learner, start, None, ys)
    step, _ = learner.step(start, None, ys[0])
    rest, _ = credo.run(learner, step, None, ys[1:])
    np.testing.assert_allclose(whole.values, rest.values, rtol=1e-10)
    assert whole.log_density is not None and bool(jnp.all(jnp.isfinite(whole.log_density)))
    refused, info = learner.step(start, None, jnp.full(DIM, jnp.nan))
    assert not bool(info.ok) and bool(jnp.all(jnp.isfinite(refused.values)))


def test_settings_that_do_not_fit_are_refused() -> None:
    with pytest.raises(CredoError, match="density 'discrete'"):
        PublishedOperator(dim=2, observation=2, density="discrete")
    with pytest.raises(CredoError, match="segment must divide"):
        LinearSequences(LOOK, 1.0, length=5, segment=2)
    with pytest.raises(CredoError, match="observation must be"):
        SMALL.transport(PARAMS, VALUES, EQUAL, likelihood, None, jnp.zeros(3))
