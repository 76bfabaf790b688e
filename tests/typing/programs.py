"""Thirty programs as users write them, which type checkers must pass: README, tutorial and how-to pages."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import credo
from credo.core.types import Array, ArrayLike, PyTree
from credo.likelihoods import LikelihoodBase

X = jax.random.normal(jax.random.key(0), (20, 3))
Y = X @ jnp.array([1.0, -2.0, 0.5])
LINEAR = credo.Model(lambda w, x: x @ w, credo.Normal(0.1))


def readme() -> str:
    net = credo.MLP(outputs=1, hidden=(4,))
    model = credo.Model(net, credo.Bernoulli())
    learner = credo.bong(model, credo.Full(), dynamics=credo.RandomWalk(1e-6))
    belief = learner.init(net.init(jax.random.key(1), (3,)), var=0.3)
    labels = (X[:, 0] > 0).astype(int)
    belief, info = learner.step(belief, X[0], labels[0])
    probs: jax.Array = learner.forecast(belief, X[1]).probs
    report = credo.evaluate(learner, belief, (X[1:], labels[1:]))
    return f"{report} {probs} {info.ok}"


def one_step() -> Array:
    learner = credo.bong(LINEAR, credo.Full())
    belief = learner.init(jnp.zeros(3), var=10.0)
    belief, info = learner.step(belief, X[0], Y[0])
    return belief.mean + belief.sd + info.log_evidence


def a_stream() -> tuple[credo.Gaussian, Array]:
    learner = credo.extended_kalman(LINEAR)
    belief, trace = credo.run(learner, learner.init(jnp.zeros(3)), X, Y)
    return belief, trace.log_evidence.sum()


def a_forecast() -> tuple[float, float]:
    learner = credo.extended_kalman(LINEAR)
    forecast = learner.forecast(learner.init(jnp.zeros(3)), X[0])
    low, high = forecast.interval(0.9)
    return float(low), float(high) + float(forecast.log_prob(1.0)) + float(forecast.quantile(0.5))


def forecasts_of_many_rows() -> Array:
    learner = credo.extended_kalman(LINEAR)
    rows = learner.forecast_rows(learner.init(jnp.zeros(3)), X, method="linearized")
    return rows.mean + rows.sd


def draws_of_parameters() -> Array:
    learner = credo.extended_kalman(LINEAR)
    draws: jax.Array = learner.sample(learner.init(jnp.zeros(3)), jax.random.key(0), (5,))
    return draws


def four_rules_and_curvatures() -> list[credo.RecursiveLearner]:
    return [
        credo.bong(LINEAR, credo.Diagonal(), "lin-ef"),
        credo.blr(LINEAR, credo.LowRank(2), "mc-ef", learning_rate=0.5, iterations=2),
        credo.bog(LINEAR, credo.Full(), credo.LinearizedGaussNewton(), learning_rate=0.01),
        credo.bbb(LINEAR, credo.Diagonal(), "mc-hess", iterations=2),
    ]


def named_methods() -> list[credo.RecursiveLearner]:
    drift = credo.OrnsteinUhlenbeck(0.99)
    return [
        credo.vd_ekf(LINEAR, dynamics=drift),
        credo.fd_ekf(LINEAR),
        credo.lofi(LINEAR, rank=2, dynamics=drift),
        credo.lrvga(LINEAR, rank=2),
        credo.rvga(LINEAR, samples=10),
        credo.vogn(LINEAR, learning_rate=0.1),
        credo.slang(LINEAR, rank=2),
    ]


def kalman_filter() -> Array:
    transition, observation = jnp.array([[1.0, 1.0], [0.0, 1.0]]), jnp.array([[1.0, 0.0]])
    tracker = credo.kalman(
        transition, observation, transition_cov=jnp.array([0.0, 0.01]), observation_cov=0.25
    )
    belief, _ = credo.run(tracker, tracker.init(jnp.zeros(2)), None, jnp.ones((5, 1)))
    return belief.cov.dense()


def conjugate_pairs() -> tuple[Array, Array, Array]:
    coin, rate, classes = credo.BetaBernoulli(1.0, 1.0), credo.GammaPoisson(), credo.DirichletCategorical(3)
    normals = credo.GaussianClasses(2, credo.Categorical(3), tied=True)
    heads, _ = coin.step(coin.init(), None, 1.0)
    count, _ = rate.step(rate.init(), None, 4.0)
    label, _ = classes.step(classes.init(), None, 2)
    moments: credo.ClassNormals
    moments, _ = normals.step(normals.init(), jnp.zeros(2), 2)
    return heads.mean, count.mean, label.mean + moments.probs


def votes_of_a_memory() -> Array:
    learner = credo.NearestNeighbours(
        3, credo.Normal(credo.InverseGamma(2.0, 1.0)), size=50, neighbours=(3, 8)
    )
    belief, trace = credo.run(learner, learner.init(), X, Y)
    return learner.forecast(belief, X[0]).mean + belief.shares.sum() + trace.log_evidence.sum()


def gradient_baselines() -> list[credo.GradientLearner]:
    return [credo.sgd(LINEAR, 0.1), credo.adam(LINEAR, 1e-3), credo.ogd(LINEAR)]


def ensembles() -> Array:
    learner = credo.enkf(LINEAR, members=10, dynamics=credo.RandomWalk(1e-3))
    belief = learner.init(jnp.zeros(3))
    belief, _ = credo.run(learner, belief, X, Y, key=jax.random.key(0))
    return belief.members


def mini_batches() -> Array:
    learner = credo.extended_kalman(credo.joint(LINEAR))
    belief, trace = credo.run(learner, learner.init(jnp.zeros(3)), X.reshape(4, 5, 3), Y.reshape(4, 5))
    return trace.ok.all() & (belief.t == 4)


def missing_and_weighted() -> bool:
    learner = credo.extended_kalman(LINEAR)
    belief = learner.init(jnp.zeros(3))
    after, info = learner.update(belief, X[0], jnp.nan)
    double, _ = learner.update(belief, X[0], 1.0, weight=2.0)
    return after == belief and not bool(info.ok) and double != belief


def time_and_drift() -> list[credo.Dynamics]:
    return [
        credo.Static(),
        credo.RandomWalk(0.01),
        credo.Decay(0.999, 0.01),
        credo.OrnsteinUhlenbeck(0.99),
        credo.Inflation(0.05, "hybrid"),
        credo.LinearGaussian(jnp.eye(3), 0.0, 0.01),
        credo.ShrinkPerturb(0.999, sd=0.1),
    ]


def irregular_times() -> Array:
    learner = credo.extended_kalman(LINEAR, dynamics=credo.RandomWalk(0.01))
    belief, trace = credo.run(learner, learner.init(jnp.zeros(3)), X, Y, dts=jnp.full(20, 0.5))
    return learner.predict(belief, dt=30.0).var + trace.ok.sum()


def unknown_noise() -> Array:
    model = credo.Model(lambda w, x: x @ w, credo.Normal(credo.InverseGamma(shape=2.0, scale=1.0)))
    learner = credo.bong(model, credo.Full())
    belief, _ = credo.run(learner, learner.init(jnp.zeros(3), var=100.0), X, Y)
    assert belief.noise is not None
    return belief.noise.mean


def evaluation() -> tuple[dict[str, float], np.ndarray]:
    learner = credo.extended_kalman(LINEAR)
    belief = learner.init(jnp.zeros(3))
    report = credo.evaluate(learner, belief, (X, Y), metrics=["nlpd", "rmse"], compare=["plugin"], delay=2)
    posterior: credo.Gaussian = report.belief
    return report.metrics, report.curve("rmse", window=5) + float(posterior.mean[0])


def progress_of_an_evaluation() -> credo.Report[credo.Gaussian]:
    learner = credo.extended_kalman(LINEAR)

    def show(rows: int, total: int, scores: credo.metrics.Scores) -> None:
        assert rows <= total
        assert len(scores) > 0

    return credo.evaluate(learner, learner.init(jnp.zeros(3)), (X, Y), progress=show)


def hyper_parameters() -> tuple[dict[str, float], Array]:
    def build(var: ArrayLike, noise: ArrayLike) -> tuple[credo.RecursiveLearner, credo.Gaussian]:
        model = credo.Model(lambda w, x: x @ w, credo.Normal(noise))
        learner = credo.extended_kalman(model, dynamics=credo.RandomWalk(var))
        return learner, learner.init(jnp.zeros(3))

    grid = credo.select(build, {"var": [1e-3, 1e-1], "noise": [0.1, 1.0]}, X, Y)
    climb = credo.select(build, {"var": 1e-3, "noise": 1.0}, X, Y, method="gradient", steps=2)
    _, trace = credo.run(grid.learner, grid.belief, X, Y)
    return climb.best, trace.log_evidence.sum()


def vmap_over_hyper_parameters() -> Array:
    learner = credo.extended_kalman(LINEAR, dynamics=credo.RandomWalk(1e-3))
    belief = learner.init(jnp.zeros(3))

    def evidence(var: Array) -> Array:
        drifting = credo.replace(learner, dynamics=credo.RandomWalk(var))
        return credo.run(drifting, belief, X, Y)[1].log_evidence.sum()

    slope: Array = jax.grad(evidence)(jnp.asarray(1e-3))
    values: Array = jax.vmap(evidence)(jnp.array([1e-4, 1e-2]))
    return values + slope


def save_and_load() -> bool:
    learner = credo.BetaBernoulli()
    path: Path = credo.save(Path(tempfile.mkdtemp()) / "coin.credo", learner, learner.init())
    again, belief = credo.load(path)
    lent, same = credo.load(path, learner)
    return again == learner and belief == learner.init() and lent == learner and same == belief


def changepoints() -> list[int]:
    learner = credo.RunLength(credo.extended_kalman(LINEAR), hazard=1 / 200, capacity=4)
    _, trace = credo.run(learner, learner.init(jnp.zeros(3)), X, Y)
    return credo.segmentation(trace)


def wrappers_contain_each_other() -> Array:
    robust = credo.WoLF(credo.extended_kalman(LINEAR), 3.0)
    learner = credo.SoftReset(credo.StudentTNoise(credo.vd_ekf(LINEAR)), hazard=0.05)
    belief, _ = robust.step(robust.init(jnp.zeros(3)), X[0], Y[0])
    resettable, _ = learner.step(learner.init(jnp.zeros(3)), X[0], Y[0])
    mixture = credo.Experts([credo.WoLF(credo.extended_kalman(LINEAR), bound) for bound in (2.0, 4.0)])
    forecast = mixture.forecast(mixture.init(jnp.zeros(3)), X[0])
    means: list[Array] = [belief.mean, resettable.mean, forecast.mean]
    return sum(means, jnp.zeros(()))


def decisions() -> tuple[Array, Array]:
    counts = credo.extended_kalman(credo.Model(lambda w, x: w[0] + w[1] * x, credo.Poisson()))
    demand = counts.forecast(counts.init(jnp.zeros(2)), 1.0)

    def cost(stock: Array, sales: Array) -> Array:
        return 9.0 * jnp.maximum(sales - stock, 0) + jnp.maximum(stock - sales, 0)

    order = credo.decide(demand, cost, actions=jnp.arange(5.0), key=jax.random.key(0))
    return order, credo.decide(demand, "pinball", level=0.9)


def own_likelihood_from_a_function() -> Array:
    waiting = credo.Likelihood(
        lambda eta, y: eta - y * jnp.exp(eta),
        mean=lambda eta: jnp.exp(-eta),
        var=lambda eta: jnp.exp(-2 * eta),
        sample=lambda eta, key: jax.random.exponential(key) / jnp.exp(eta),
    )
    learner = credo.extended_kalman(credo.Model(lambda w, x: w * x, waiting))
    return learner.forecast(learner.init(jnp.zeros(())), 1.0).mean


@credo.record
class Exponential(LikelihoodBase):
    floor: ArrayLike = 0.0

    def log_prob(self, eta: Array, y: PyTree) -> Array:
        wait: Array = y - jnp.asarray(self.floor)
        return eta.sum() - wait * jnp.exp(eta.sum())

    def mean(self, eta: Array) -> Array:
        return jnp.asarray(self.floor) + jnp.exp(-eta)


def own_likelihood_as_a_class() -> Array:
    learner = credo.extended_kalman(credo.Model(lambda w, x: w * x, Exponential(floor=0.5)))
    belief, _ = learner.step(learner.init(jnp.zeros(())), 1.0, 2.0)
    return learner.forecast(belief, 1.0).mean


@credo.record
class Drift(credo.Dynamics):
    speed: ArrayLike

    def move(
        self,
        mean: Array,
        cov: credo.covariances.Covariance | None,
        anchor: credo.beliefs.Anchor | None,
        t: Array,
        dt: ArrayLike | None,
    ) -> tuple[Array, credo.covariances.Covariance | None]:
        return mean + jnp.asarray(self.speed) * (1.0 if dt is None else dt), cov


def own_dynamics() -> Array:
    learner = credo.extended_kalman(LINEAR, dynamics=Drift(0.5))
    return learner.predict(learner.init(jnp.zeros(3)), 2.0).mean


@credo.record
class Basis:
    centres: Array
    width: float = credo.static_field(default=1.0)

    def __call__(self, weights: Array, x: Array) -> Array:
        return jnp.exp(-0.5 * ((x - self.centres) / self.width) ** 2) @ weights


def own_network_and_part_of_a_model() -> list[Array]:
    model = credo.Model(Basis(jnp.linspace(-3, 3, 5)), credo.Normal(0.01))
    basis = credo.random_basis(jnp.zeros(5), 2, jax.random.key(0))
    small = credo.extended_kalman(credo.subspace(model, jnp.zeros(5), basis))
    net = credo.MLP(outputs=1, hidden=(4,))
    last = credo.last_layer(credo.Model(net, credo.Normal(0.1)), net.init(0, (3,)))
    return [small.init().mean, credo.extended_kalman(last).init().mean]


def fisher_ekf_without_a_model() -> Array:
    def log_likelihood(params: PyTree, batch: PyTree) -> tuple[Array, None]:
        x, y = batch
        return jnp.mean(-0.5 * (y - x @ params) ** 2), None

    transform = credo.ekf.diag_fisher.build(log_likelihood, lr=1.0)
    state = transform.update(transform.init(jnp.zeros(3)), (X, Y))
    dense = credo.ekf.dense_fisher.learner(credo.joint(LINEAR), lr=0.5)
    belief, _ = dense.step(dense.init(jnp.zeros(3)), X, Y)
    means: list[Array] = [state.sd_diag, belief.mean]
    return means[0] + means[1]


def data_sets_and_tables() -> tuple[int, int]:
    data = credo.datasets.load("digits", split="train", limit=10)
    chunk = credo.tables.Chunk({"a": ["1", "2", "3"], "y": ["u", "v", "u"]}, np.arange(2, 5))
    encoder = credo.tables.Encoder(credo.tables.infer_schema(chunk, "y", task="classification"))
    _, x, y, report = encoder.encode(encoder.initial(), chunk)
    return len(data), x.shape[0] + y.shape[0] + report.used


def refusals_are_one_type() -> str:
    try:
        credo.Normal(-1.0)
    except credo.CredoError as error:
        return str(error)
    return ""


PROGRAMS: list[Callable[[], object]] = [
    readme,
    one_step,
    a_stream,
    a_forecast,
    forecasts_of_many_rows,
    draws_of_parameters,
    four_rules_and_curvatures,
    named_methods,
    kalman_filter,
    conjugate_pairs,
    votes_of_a_memory,
    gradient_baselines,
    ensembles,
    mini_batches,
    missing_and_weighted,
    time_and_drift,
    irregular_times,
    unknown_noise,
    evaluation,
    progress_of_an_evaluation,
    hyper_parameters,
    vmap_over_hyper_parameters,
    save_and_load,
    changepoints,
    wrappers_contain_each_other,
    decisions,
    own_likelihood_from_a_function,
    own_likelihood_as_a_class,
    own_dynamics,
    own_network_and_part_of_a_model,
    fisher_ekf_without_a_model,
    data_sets_and_tables,
    refusals_are_one_type,
]
