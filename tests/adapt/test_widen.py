"""A widened belief is the one that a learner would have that began with all parameters."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.adapt.setups import linear

import credo
from credo.adapt import Calibrated, ChangeProbability, Standardized, StudentTNoise, WeightedPast
from credo.beliefs import Dirichlet, widen_belief
from credo.covariances import widen_covariance
from credo.covariances.low_rank import LowRankCovariance

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(10, 4))
ROWS[:5, 2:] = 0.0
XS, YS = jnp.asarray(ROWS), jnp.asarray(ROWS @ [1.0, -1.0, 0.5, 2.0] + 0.1 * RNG.normal(size=10))
NARROW, WIDE = jnp.asarray([0.1, -0.2]), jnp.asarray([0.1, -0.2, 0.3, 0.4])
VARS = jnp.asarray([2.0, 1.5, 0.7, 0.9])

MODEL = credo.Model(linear, credo.Normal(0.2))
LEARNED = credo.Model(linear, credo.Normal(credo.InverseGamma(2.0, 1.0)))
FULL = credo.extended_kalman(MODEL)
RETURNING = credo.OrnsteinUhlenbeck(0.9)

MEMBERS: dict[str, Any] = {
    "full": FULL,
    "dense, noise learned": credo.bong(LEARNED, credo.Full("dense")),
    "returning to the prior": credo.bong(MODEL, credo.Full("dense"), dynamics=RETURNING),
    "diagonal precision, walking": credo.bong(
        MODEL, credo.Diagonal(), dynamics=credo.PriorBound(credo.RandomWalk(0.1))
    ),
    "diagonal covariance": credo.bong(MODEL, credo.Diagonal("covariance")),
    "low rank": credo.bong(MODEL, credo.LowRank(1)),
    "rank as large as the belief": credo.bong(MODEL, credo.LowRank(2), dynamics=RETURNING),
    "adam, returning": credo.GradientLearner(MODEL, 0.1, "adam", dynamics=RETURNING),
    "momentum": credo.GradientLearner(MODEL, 0.1, "momentum"),
    "as many slots as parameters": credo.RunLength(Calibrated(FULL, (0.0, 1.0)), 0.1, 1),
    "soft reset of a robust one": credo.SoftReset(StudentTNoise(credo.vd_ekf(MODEL), 4.0, 1), 0.1),
    "forgetting": ChangeProbability(credo.vd_ekf(MODEL), (1.0, 0.5)),
    "like the first": credo.bong(MODEL, credo.Full(), dynamics=credo.Static()),
}

run: Callable[..., Any] = credo.run


def gram(belief: Any) -> Any:
    """The belief with W'W in place of the directions W of low-rank covariances."""

    def square(part: Any) -> Any:
        low = isinstance(part, LowRankCovariance)
        return [part.base, np.swapaxes(part.factor, -1, -2) @ np.asarray(part.factor)] if low else part

    return jax.tree.map(square, belief, is_leaf=lambda part: isinstance(part, LowRankCovariance))


def alike(one: Any, other: Any, tolerance: float = 1e-10) -> None:
    """Every leaf of two beliefs is the same, but for the signs of the directions of low-rank covariances."""
    one, other = gram(one), gram(other)
    kinds: list[object] = [jax.tree.structure(one), jax.tree.structure(other)]
    assert kinds[0] == kinds[1]
    for (path, left), right in zip(
        jax.tree_util.tree_leaves_with_path(one), jax.tree.leaves(other), strict=True
    ):
        assert left.dtype == right.dtype
        np.testing.assert_allclose(left, right, atol=tolerance, err_msg=jax.tree_util.keystr(path))


def compare(learner: Any, more: Callable[[int], dict[str, Any]], absent: float = 0.0) -> None:
    """Learn with half of the inputs, widen and go on; and learn with all of them from the start."""
    early = XS[:5].at[:, 2:].set(absent)
    half, _ = run(learner, learner.init(NARROW, var=VARS[:2], **more(2)), XS[:5, :2], YS[:5])
    start, _ = run(learner, learner.init(WIDE, var=VARS, **more(4)), early, YS[:5])
    widened = learner.widen(half, WIDE, var=VARS, **more(4))
    alike(widened, start)
    mine, theirs = (run(learner, belief, XS[5:], YS[5:]) for belief in (widened, start))
    alike(mine[0], theirs[0])
    np.testing.assert_allclose(mine[1].log_evidence, theirs[1].log_evidence, atol=1e-10)


@pytest.mark.slow
def test_every_family_and_wrapper_goes_on_as_if_it_had_begun_with_all_inputs() -> None:
    compare(credo.Experts(list(MEMBERS.values()), switching=[0.0, 0.1]), lambda size: {})


@pytest.mark.slow
@pytest.mark.parametrize(
    "learner", [credo.replay(MODEL, 0.1, capacity=2), WeightedPast(FULL, 2)], ids=["replay", "memory"]
)
def test_remembered_rows_get_zeros_for_the_new_inputs(learner: Any) -> None:
    compare(learner, lambda size: {"example": (jnp.zeros(size), jnp.zeros(()))})


@pytest.mark.slow
def test_moments_of_new_inputs_begin_empty() -> None:
    learner = Standardized(credo.vd_ekf(MODEL), targets=True, warmup=3)
    compare(learner, lambda size: {"size": size}, absent=np.nan)


@pytest.mark.thorough
def test_new_classes_and_inputs_of_a_network_whose_first_weights_hold_the_old_ones() -> None:
    def bank(slots: int, known: int) -> Any:
        model = credo.Model(credo.MLP(slots, (2,)), credo.OpenCategorical(slots, known))
        blocks = credo.Blocks({"1": credo.Full("dense"), "*": credo.Diagonal()})
        learners: list[Any] = [
            credo.bong(model, blocks),
            credo.bong(model, credo.LowRank(3)),
            credo.bong(model, credo.UnitBlocks()),
            credo.GradientLearner(model, 0.1, "momentum"),
        ]
        return credo.Experts(learners)

    def corner(leaf: Any) -> Any:
        return leaf[:2, :2] if leaf.shape == (4, 2) else leaf[..., :3] if leaf.shape[-1] == 5 else leaf

    wide = jax.tree.map(lambda leaf: leaf.astype(float), credo.MLP(5, (2,)).init(1, (4,)))
    labels = jnp.asarray([0, 1, 1, 0, 1])
    later = jnp.asarray([3, 2, 0, 3, 1])
    small, large = bank(3, 2), bank(5, 2)
    half, _ = run(small, small.init(jax.tree.map(corner, wide)), XS[:5, :2], labels)
    start, _ = run(large, large.init(wide), XS[:5], labels)
    widened = large.widen(half, wide)
    # the weights differ by the nodes at which the evidence of five and of three outputs is computed
    alike(widened.beliefs, start.beliefs)
    mine, theirs = (run(bank(5, 4), belief, XS[5:], later) for belief in (widened, start))
    alike(mine[0].beliefs, theirs[0].beliefs)
    assert bool(jnp.all(mine[1].ok))


@pytest.mark.slow
def test_what_is_new_is_at_the_prior_and_independent_of_what_is_old() -> None:
    rng = np.random.default_rng(3)
    root = rng.normal(size=(2, 2))
    prior = rng.normal(size=(4, 4))
    dense = jnp.asarray(prior @ prior.T + np.eye(4))
    for form in ("root", "dense"):
        family = credo.Full(form)
        learner = credo.bong(credo.Model(linear, credo.Normal(0.2)), family)
        belief = credo.replace(
            learner.init(NARROW), cov=family.from_dense(jnp.asarray(root @ root.T + np.eye(2)))
        )
        wide = learner.widen(belief, WIDE, cov=dense)
        expected = np.zeros((4, 4))
        expected[:2, :2], expected[2:, 2:] = belief.cov.dense(), dense[2:, 2:]
        np.testing.assert_allclose(wide.cov.dense(), expected, atol=1e-12)
        np.testing.assert_array_equal(wide.mean, WIDE)
    # random directions of a low-rank prior reach no new parameter, whose variances stay
    learner = credo.RecursiveLearner(MODEL, credo.LowRank(1, random=0.5))
    belief, first = learner.init(NARROW), learner.init(WIDE, var=VARS)
    spread = learner.widen(belief, WIDE, var=VARS)
    np.testing.assert_allclose(spread.sd, [*belief.sd, *first.sd[2:]], atol=1e-12)
    assert not np.any(spread.cov.dense()[:2, 2:]) and abs(float(belief.cov.dense()[0, 1])) > 1e-3
    np.testing.assert_allclose(spread.cov.dense()[:2, :2], belief.cov.dense(), atol=1e-12)


def test_a_second_widening_and_none_at_all() -> None:
    params = {"b": jnp.zeros(1), "w": jnp.zeros((2, 1))}
    model = credo.Model(lambda p, x: x @ p["w"] + p["b"], credo.Normal(0.1))
    learner = credo.extended_kalman(model, dynamics=RETURNING)
    belief = learner.init(params, var=jnp.asarray([1.0, 2.0, 3.0]))
    alike(learner.widen(belief, params), belief, 0.0)
    wider = learner.widen(belief, {"b": jnp.zeros(2), "w": jnp.zeros((2, 2))}, var=9.0)
    np.testing.assert_allclose(wider.var, [1, 9, 2, 9, 3, 9])
    widest = learner.widen(wider, {"b": jnp.zeros(2), "w": jnp.ones((3, 2))}, var=4.0)
    np.testing.assert_allclose(widest.var, [1, 9, 2, 9, 3, 9, 4, 4])
    assert widest.params["w"].tolist() == [[0.0, 0.0], [0.0, 0.0], [1.0, 1.0]]
    # what it returns to is the prior of each parameter when that began
    assert widest.anchor is not None and widest.anchor.cov is not None
    np.testing.assert_array_equal(widest.anchor.mean, widest.mean)
    np.testing.assert_allclose(widest.anchor.cov.diag(), widest.var)


def test_ensembles_and_particles_draw_their_new_parameters() -> None:
    particles = credo.particle_filter(MODEL, particles=50)
    belief = particles.init(NARROW, var=VARS[:2], key=1)
    belief = credo.replace(
        belief, log_weights=jnp.log(jnp.arange(1.0, 51.0) / 1275.0), t=belief.t + 3, parents=-belief.values
    )
    wide: Any = particles.widen(belief, WIDE, var=VARS, key=2)
    fresh = particles.init(WIDE, var=VARS, key=2)
    np.testing.assert_array_equal(wide.values[:, :2], belief.values)
    np.testing.assert_array_equal(wide.values[:, 2:], fresh.values[:, 2:])
    np.testing.assert_array_equal(wide.parents[:, :2], belief.parents)
    np.testing.assert_array_equal(wide.parents[:, 2:], wide.values[:, 2:])
    np.testing.assert_array_equal(wide.log_weights, belief.log_weights)
    np.testing.assert_array_equal(wide.source.cov.diag(), VARS)
    assert int(wide.t) == 3 and wide.params.shape == (4,)
    ensemble = credo.enkf(MODEL, members=20)
    few = ensemble.init(NARROW, key=1)
    more = ensemble.widen(few, WIDE, var=100.0, key=2)
    np.testing.assert_array_equal(more.members[:, :2], few.members)
    assert 5.0 < float(more.sd[2]) < 15.0 and float(more.mean[3]) == 0.4


def test_classes_that_were_never_counted_get_the_prior_counts() -> None:
    learner = credo.DirichletCategorical(3)
    belief = learner.widen(Dirichlet(jnp.asarray([3.0, 2.0]), jnp.asarray(3, jnp.int32)))
    assert belief.counts.tolist() == [3.0, 2.0, 1.0] and int(belief.t) == 3


def pair(
    learner: Any, wide: Any, narrow: Any = NARROW, other: Any = None, **others: Any
) -> Callable[[], Any]:
    return lambda: learner.widen((other or learner).init(narrow, **others), wide)


TREE = {"w": jnp.zeros((2, 3))}
LOW = credo.bong(MODEL, credo.LowRank(2))

REFUSALS: dict[str, Callable[[], Any]] = {
    "every leaf of the belief as a corner; w has shape (2, 3) in the belief and (3, 2) in params.": pair(
        FULL, {"w": jnp.zeros((3, 2))}, TREE
    ),
    "params must have the leaves of the belief, which are w; got b, w": pair(
        FULL, TREE | {"b": jnp.zeros(1)}, TREE
    ),
    "as a corner; w has shape (2, 3) in the belief and (6,) in params": pair(FULL, {"w": jnp.zeros(6)}, TREE),
    "dtypes of the belief; w is float64 in the belief and float32": pair(
        FULL, {"w": jnp.zeros((2, 3), jnp.float32)}, TREE
    ),
    "belief must be one of this learner, a Gaussian; got a Point": pair(FULL, WIDE, other=credo.sgd(MODEL)),
    "a DiagonalCovariance, and the wider one a RootCovariance": pair(FULL, WIDE, other=credo.vd_ekf(MODEL)),
    "a LowRankCovariance, and the wider one a LowRankCovariance": pair(
        credo.bong(MODEL, credo.LowRank(1)), WIDE, other=LOW
    ),
    "the anchor is kept by one of them": pair(
        FULL, WIDE, other=credo.extended_kalman(MODEL, dynamics=RETURNING)
    ),
    "noise has another structure": pair(FULL, WIDE, other=credo.extended_kalman(LEARNED)),
    "the optimisers differ": pair(credo.adam(MODEL), WIDE, other=credo.sgd(MODEL)),
    "the axes before them have lengths (2,) in the belief and (3,)": pair(
        credo.RunLength(FULL, 0.1, 2), WIDE, other=credo.RunLength(FULL, 0.1, 1)
    ),
    "this Bank has another structure": pair(
        credo.Experts([FULL, credo.vd_ekf(MODEL)]), WIDE, other=credo.Experts([FULL])
    ),
    "log_weights has shape (2,) in the belief and (1,) in the wider one": pair(
        Calibrated(FULL, (0.0,)), WIDE, other=Calibrated(FULL, (0.0, 1.0))
    ),
}


@pytest.mark.parametrize("message", REFUSALS)
def test_what_cannot_be_widened_is_refused_in_a_sentence(message: str) -> None:
    with pytest.raises(credo.CredoError, match=re.escape(message)):
        REFUSALS[message]()


def test_what_has_no_layout_is_refused() -> None:
    with pytest.raises(credo.CredoError, match="a float cannot be widened: it is not laid out by parameters"):
        widen_belief(1.0, 2.0)
    with pytest.raises(credo.CredoError, match="EnsembleCovariance cannot be widened; register a function"):
        cov = credo.enkf(MODEL, members=3).init(WIDE).cov
        widen_covariance(cov, cov, np.arange(4))
    kept = credo.replace(credo.particle_filter(MODEL, particles=3).init(WIDE), state=jnp.zeros(3))
    with pytest.raises(credo.CredoError, match="keeps a density or a state of its own"):
        widen_belief(kept, kept)
