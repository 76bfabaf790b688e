"""What a learner cannot do it refuses in a sentence with the field, the value and what is allowed."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.learners.reference import linear, regression

import credo
from credo.core.errors import CredoError

UNTYPED: Any = credo
"""For calls that a type checker would refuse, too."""

MODEL = regression(0.1)
EKF = credo.extended_kalman(MODEL)
TREE = {"w": jnp.zeros((2, 3)), "b": jnp.zeros(3)}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: UNTYPED.bong(MODEL, credo.Full(), "lin-hes"),
            "curvature must be one of lin-hess, lin-ef, mc-hess, mc-ef; got 'lin-hes' .did you mean 'lin-",
        ),
        (
            lambda: UNTYPED.bong(MODEL, credo.Full(), gain="joined"),
            "gain must be one of joint, kept; got 'joined'",
        ),
        (
            lambda: credo.bong(MODEL, credo.Full(), iterations=0),
            "iterations must be a whole number at least 1; got 0",
        ),
        (
            lambda: UNTYPED.bong(MODEL, "full"),
            r"family must be credo.Full\(\), credo.Diagonal\(\).*got 'full'",
        ),
        (lambda: credo.lofi(MODEL, 0), "rank must be a whole number at least 1; got 0"),
        (
            lambda: credo.lofi(MODEL, 4).init(jnp.zeros(3)),
            "rank must be at most the number of parameters P = 3; got 4",
        ),
        (
            lambda: UNTYPED.extended_kalman(MODEL, form="roots"),
            "form must be one of root, dense; got 'roots' .did you mean 'root'",
        ),
        (
            lambda: credo.normal_inverse_gamma(credo.Model(linear, credo.Poisson())),
            "needs a Normal likelihood",
        ),
        (lambda: credo.normal_inverse_gamma(MODEL, shape=0.0), "shape must be finite and above 0"),
        (
            lambda: UNTYPED.extended_kalman(linear).init(jnp.zeros(2)),
            r"model must be a credo.Model\(apply, likelihood\); got function",
        ),
        (
            lambda: UNTYPED.extended_kalman(UNTYPED.Model(linear, 0.1)).init(jnp.zeros(2)),
            r"model.likelihood must be a credo.Likelihood.*got 0.1",
        ),
        (
            lambda: UNTYPED.Model(linear, lambda eta, y: eta),
            "likelihood must be a Likelihood; wrap a function",
        ),
        (lambda: UNTYPED.Model(3, credo.Normal()), r"apply must be a function of \(params, x\); got 3"),
        (lambda: credo.joint(credo.joint(MODEL)), "this model is joint already"),
        (
            lambda: UNTYPED.GradientLearner(MODEL, optimizer="adams"),
            "optimizer must be one of sgd, momentum, adam; got 'adams' .did you mean 'adam'",
        ),
        (lambda: credo.sgd(MODEL, -0.1), "learning_rate must be finite and above 0"),
        (lambda: credo.replay(MODEL, steps=0), "steps must be a whole number at least 1"),
        (lambda: credo.replay(MODEL, capacity=0), "capacity must be a whole number at least 1"),
        (lambda: credo.replay(MODEL).init(jnp.zeros(2)), r"pass example=\(x, y\), one observation, to init"),
        (lambda: credo.sgd(MODEL).init(), "params is missing"),
        (
            lambda: credo.InverseGamma(2.0, 1.0, forgetting=1.5),
            r"forgetting must be in \[1e-06, 1\]; got 1\.5",
        ),
    ],
)
def test_impossible_learners_are_refused(make: Any, message: str) -> None:
    with pytest.raises(CredoError, match=message):
        make()


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"params": None}, "params is missing: pass the prior mean"),
        ({"params": jnp.arange(3)}, "params must be floating-point arrays; the array has dtype int"),
        ({"params": {"w": jnp.arange(3)}}, r"\['w'\] has dtype int"),
        ({"params": {}}, "params must hold at least one array"),
        ({"params": TREE, "var": -1.0}, "var must be finite and above 0; got -1.0"),
        ({"params": TREE, "var": 0.0}, "var must be finite and above 0"),
        ({"params": TREE, "var": {"w": 1.0, "b": -1.0}}, "var must be finite and above 0"),
        (
            {"params": TREE, "var": jnp.ones(4)},
            r"var must be a number, an array \(9,\) or a tree .*got shape \(4,\)",
        ),
        (
            {"params": TREE, "var": {"w": 1.0}},
            r"var must be a number, an array \(9,\) or a tree of params' structure",
        ),
        ({"params": TREE, "var": {"w": jnp.ones(2), "b": 1.0}}, "var must have leaves that broadcast"),
        ({"params": TREE, "cov": jnp.eye(4)}, r"cov must be \(P, P\) = \(9, 9\); got shape \(4, 4\)"),
    ],
)
def test_impossible_beliefs_are_refused(kwargs: Any, message: str) -> None:
    with pytest.raises(CredoError, match=message):
        EKF.init(**kwargs)


def test_outputs_and_observations_of_the_wrong_shape_are_refused() -> None:
    def learner(apply: Any, likelihood: Any) -> Any:
        return credo.extended_kalman(credo.Model(apply, likelihood))

    two = jnp.zeros(2)
    for made, x, y, message in [
        (
            learner(lambda w, x: w * x, credo.Categorical(3)),
            1.0,
            0,
            r"Categorical\(3\) needs a model with 3 outputs",
        ),
        (
            learner(lambda w, x: w * x, credo.Bernoulli()),
            1.0,
            0,
            "Bernoulli needs a model with 1 output; this one has 2",
        ),
        (
            learner(lambda w, x: w * x, credo.Normal(jnp.ones(3))),
            1.0,
            two,
            r"var must be a number, \(2,\) or \(2, 2\)",
        ),
        (
            learner(lambda w, x: jnp.outer(w, w), credo.Normal()),
            1.0,
            two,
            r"apply must return a scalar or a vector",
        ),
        (learner(lambda w, x: w * x, credo.Normal()), 1.0, jnp.zeros(3), "y must have 2 entries"),
        (learner(lambda w, x: w @ w, credo.Bernoulli()), 1.0, two, "y must be one number"),
        (learner(lambda w, x: w * x, credo.Categorical(2)), 1.0, two, "y must be one class label"),
    ]:
        with pytest.raises((CredoError, TypeError), match=message):
            made.step(made.init(two), x, y)


LABELS = credo.extended_kalman(credo.Model(credo.Linear(3), credo.Categorical(3)))
THREE = jnp.ones(3)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: UNTYPED.RunLength("x", 0.01), "learner must be a credo.Learner, such as .*; got 'x'"),
        (lambda: UNTYPED.SoftReset(MODEL), "learner must be a credo.Learner"),
        (lambda: UNTYPED.Experts(["x"]), r"learners\[0\] must be a credo.Learner"),
        (lambda: UNTYPED.run("x", None, THREE, THREE), "learner must be a credo.Learner"),
        (lambda: UNTYPED.evaluate("x", None, (THREE, THREE)), "learner must be a credo.Learner"),
        (
            lambda: UNTYPED.bong(MODEL, credo.Full(), dynamics=3).init(THREE),
            "dynamics must be credo.Dynamics",
        ),
        (
            lambda: EKF.step(EKF.init(THREE), jnp.ones(5), 1.0),
            r"fails for x of shape \(5,\) and params .*\(3,\)",
        ),
        (lambda: EKF.forecast(EKF.init(THREE), jnp.ones(5)), r"fails for x of shape \(5,\)"),
        (lambda: EKF.step(EKF.init(THREE), [1.0, 2.0, 3.0], 1.0), r"x of shape \[\(\), \(\), \(\)\]"),
        (lambda: UNTYPED.run(EKF, EKF.init(THREE), [[1.0]], THREE), "xs must be an array; got a list: pass"),
        (lambda: EKF.step(EKF.init(THREE), THREE, None), "y is missing: pass the observation, or NaN"),
        (
            lambda: EKF.step(EKF.init(THREE), THREE, "cat"),
            "y must be a number; got 'cat': number the classes",
        ),
        (lambda: EKF.step(EKF.init(THREE), np.array(["a"]), 1.0), "x must be an array of numbers; got text"),
        (
            lambda: EKF.step(EKF.init(THREE), np.array([None]), 1.0),
            "x must be an array of numbers; got dtype ob",
        ),
        (lambda: UNTYPED.run(EKF, EKF.init(THREE), THREE, ["a"] * 3), r"ys\[0\] must be a number; got 'a'"),
        (lambda: EKF.init(["a"]), r"params\[0\] must be a number; got 'a'"),
        (lambda: EKF.init(THREE, var="a"), "var must be a number; got 'a'"),
    ],
)
def test_what_is_no_number_no_learner_or_too_wide_is_refused_in_a_sentence(make: Any, message: str) -> None:
    with pytest.raises(CredoError, match=message):
        make()


def test_frames_of_pandas_are_refused_with_what_to_pass() -> None:
    pandas = pytest.importorskip("pandas")
    frame, belief = pandas.DataFrame(np.ones((2, 3))), EKF.init(THREE)
    with pytest.raises(CredoError, match=r"x must be an array; got a pandas.Series: pass x.to_numpy\(\)"):
        EKF.step(belief, frame.iloc[0], 1.0)
    with pytest.raises(CredoError, match=r"xs must be an array; got a pandas.DataFrame: pass xs.to_numpy"):
        credo.run(EKF, belief, frame, np.ones(2))


def test_a_label_that_is_no_whole_number_counts_as_missing() -> None:
    belief = LABELS.init(credo.Linear(3).init(0, (3,)))
    oks = [bool(LABELS.step(belief, THREE, jnp.asarray(y))[1].ok) for y in (1.0, 1.5, 3.0, -1.0)]
    assert oks == [True, False, False, False]


def test_a_gradient_learner_forecasts_at_its_point_only() -> None:
    learner = credo.sgd(MODEL, 0.1)
    belief, _ = learner.step(learner.init(jnp.zeros(2)), jnp.ones(2), 1.0)
    assert jnp.allclose(belief.params, 0.1 * 1.0 / 0.1)  # learning rate times the score, (y - eta) / var
    assert learner.forecast(belief, jnp.ones(2)).var == pytest.approx(0.1)
    assert learner.sample(belief, 0, (3,)).shape == (3, 2)
    with pytest.raises(CredoError, match="method must be 'plugin'; got 'mc'"):
        learner.forecast(belief, jnp.ones(2), method="mc")


def test_replay_averages_over_the_observations_it_holds() -> None:
    learner = credo.replay(MODEL, 0.01, capacity=3)
    xs, ys = jnp.eye(5), jnp.arange(1.0, 6.0)
    belief, mean = learner.init(jnp.zeros(5), example=(xs[0], ys[0])), jnp.zeros(5)
    for t in range(5):
        belief, _ = learner.step(belief, xs[t], ys[t])
        held = slice(max(0, t - 2), t + 1)
        gap = ys[held] - xs[held] @ mean
        mean = mean + 0.01 * (gap @ xs[held]) / 0.1 / min(t + 1, 3)
        assert jnp.allclose(belief.params, mean, atol=1e-12)


def test_the_public_names_are_all_there() -> None:
    for name in dir(credo):
        assert getattr(credo, name) is not None, name
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = UNTYPED.nothing
    assert jax.tree.leaves(credo.RandomWalk(0.5)) == [0.5]
