"""Models and networks: outputs, Jacobians, gradients, initial values, prior variances, adapters."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import credo
from credo.core.errors import CredoError
from credo.core.trees import ravel

NET = credo.MLP(3, (4,), "tanh")
PARAMS = jax.tree.map(lambda v: v.astype(jnp.float64), NET.init(0, (2,)))
XS = jnp.asarray(np.random.default_rng(0).normal(size=(5, 2)))
YS = jnp.asarray([0, 1, 2, 1, 0])


@pytest.mark.slow
def test_jacobians_and_gradients_are_those_of_autodiff() -> None:
    vector, unravel = ravel(PARAMS)
    model = credo.Model(NET, credo.Categorical(3))
    eta, rows = model.jacobian(vector, unravel, XS[0])
    np.testing.assert_allclose(eta, NET(PARAMS, XS[0]), atol=1e-12)
    np.testing.assert_allclose(rows, jax.jacfwd(lambda v: NET(unravel(v), XS[0]))(vector), atol=1e-12)

    def log_prob(v: jax.Array, x: jax.Array, y: jax.Array) -> jax.Array:
        result: jax.Array = model.likelihood.log_prob(NET(unravel(v), x), y)
        return result

    _, value, gradient = model.gradients(vector, unravel, XS[0], YS[0], model.likelihood)
    np.testing.assert_allclose(value, log_prob(vector, XS[0], YS[0]), atol=1e-12)
    np.testing.assert_allclose(gradient[0], jax.grad(log_prob)(vector, XS[0], YS[0]), atol=1e-12)


@pytest.mark.slow
def test_a_joint_model_stacks_its_rows() -> None:
    vector, unravel = ravel(PARAMS)
    single, joint = (
        credo.Model(NET, credo.Categorical(3)),
        credo.joint(credo.Model(NET, credo.Categorical(3))),
    )
    eta, rows = joint.jacobian(vector, unravel, XS)
    each = [single.jacobian(vector, unravel, x) for x in XS]
    np.testing.assert_allclose(eta, np.concatenate([e for e, _ in each]), atol=1e-12)
    np.testing.assert_allclose(rows, np.concatenate([r for _, r in each]), atol=1e-12)
    _, value, gradients = joint.gradients(vector, unravel, XS, YS, joint.likelihood)
    alone = [single.gradients(vector, unravel, x, y, single.likelihood) for x, y in zip(XS, YS, strict=True)]
    np.testing.assert_allclose(value, sum(v for _, v, _ in alone), atol=1e-12)
    np.testing.assert_allclose(gradients, np.concatenate([g for *_, g in alone]), atol=1e-12)
    with pytest.raises(CredoError, match=r"x must have a row for each row of y.*got None"):
        joint.outputs(vector, unravel, None)


@pytest.mark.table
@pytest.mark.parametrize("activation", ["relu", "tanh", "gelu", "silu", "elu", "sin"])
def test_a_perceptron_is_its_layers(activation: Any) -> None:
    net = credo.MLP(2, (5, 4), activation)
    params, x = net.init(0, (3, 2)), jnp.linspace(-1.0, 1.0, 6, dtype=jnp.float32).reshape(3, 2)
    act = {"sin": jnp.sin, "tanh": jnp.tanh}.get(activation) or getattr(jax.nn, activation)
    h = x.reshape(-1)
    for layer in params[:-1]:
        h = act(h @ layer["w"] + layer["b"])
    np.testing.assert_allclose(net(params, x), h @ params[-1]["w"] + params[-1]["b"], atol=1e-6)
    assert [p["w"].shape for p in params] == [(6, 5), (5, 4), (4, 2)]
    assert all(bool(jnp.all(p["b"] == 0)) for p in params)


def test_a_blend_has_its_share_of_each_activation_and_a_clipped_network_its_limits() -> None:
    net = credo.models.BlendedMLP(1, (2,), "elu", "tanh", share=0.3)
    h = jnp.asarray([-1.5, 0.7])
    expected = 0.7 * np.where(h > 0, h, np.exp(h) - 1) + 0.3 * np.tanh(h)
    np.testing.assert_allclose(net.bend(h), expected, atol=1e-12)
    seen = credo.models.Clipped(credo.Linear(1), jnp.asarray([1.0, 2.0, 3.0])).see(
        jnp.asarray([-5.0, 5.0, 0.5])
    )
    np.testing.assert_array_equal(seen, [-1.0, 2.0, 0.5])


def test_initial_weights_have_their_variances_and_prior_variances_their_fan_in() -> None:
    net = credo.MLP(50, (400,))
    first, last = net.init(0, (300,))
    assert np.var(first["w"]) == pytest.approx(2 / 300, rel=0.05)
    assert np.var(last["w"]) <= 1.05 / 400
    assert net.prior_var([first, last], 2.0) == [{"w": 2 / 300, "b": 2.0}, {"w": 2 / 400, "b": 2.0}]
    assert net.prior_var([first, last]) == net.prior_var([first, last], 1.0)
    learner = credo.vd_ekf(credo.Model(NET, credo.Categorical(3)))
    belief = learner.init(PARAMS, var=NET.prior_var(PARAMS, 0.5))
    assert sorted(set(np.asarray(belief.var).tolist())) == [0.125, 0.25, 0.5]


def test_a_linear_model_starts_at_zero() -> None:
    net = credo.Linear(3)
    params = net.init(0, (4,))
    assert all(bool(jnp.all(leaf == 0)) for leaf in jax.tree.leaves(params))
    np.testing.assert_array_equal(net(params, jnp.ones(4)), np.zeros(3))


@pytest.mark.slow
def test_a_convolutional_network_has_its_documented_size_and_pools() -> None:
    net = credo.CNN()
    params = net.init(0, (28, 28))
    assert ravel(params)[1].size == 57_722
    out = jax.jit(net)(params, jnp.ones((28, 28), jnp.float32))
    assert out.shape == (10,) and bool(jnp.all(jnp.isfinite(out)))
    small = credo.CNN(2, (3, 4), 5, "tanh")
    colours = small.init(1, (9, 8, 3))
    assert small(colours, jnp.ones((9, 8, 3), jnp.float32)).shape == (2,)
    with pytest.raises(CredoError, match=r"CNN needs images \(H, W\).*got shape \(7, 28\)"):
        net.init(0, (7, 28))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: credo.MLP(0), "outputs must be a whole number at least 1; got 0"),
        (lambda: credo.MLP(1, (5, 0)), "hidden must be a whole number at least 1; got 0"),
        (lambda: credo.MLP(1, (5,), cast(Any, "relus")), r"activation must be one of .*did you mean 'relu'"),
        (lambda: NET(PARAMS, jnp.ones(3)), "x has 3 features where the network was made for 2"),
        (lambda: credo.Linear(0), "outputs must be a whole number at least 1"),
        (lambda: credo.CNN(dense=0), "dense must be a whole number at least 1; got 0"),
        (lambda: credo.CNN(channels=cast(Any, (3,))), "channels must be a pair of numbers of channels"),
        (lambda: credo.CNN(channels=(3, 0)), "channels must be a whole number at least 1; got 0"),
    ],
)
def test_impossible_networks_are_refused(make: Any, message: str) -> None:
    with pytest.raises(CredoError, match=message):
        make()


def test_any_callable_is_a_model_and_a_record_keeps_its_arrays() -> None:
    class MLP:  # the name of one of credo's records, and none of them
        def __call__(self, params: jax.Array, x: jax.Array) -> jax.Array:
            return params @ x

    learner = credo.extended_kalman(credo.Model(MLP(), credo.Normal(0.1)))
    _, info = learner.step(learner.init(jnp.zeros(2)), jnp.ones(2), 1.0)
    assert bool(info.ok)

    @credo.record
    class Scaled:
        scale: Any

        def __call__(self, params: jax.Array, x: jax.Array) -> jax.Array:
            result: jax.Array = self.scale * (params @ x)
            return result

    def total(scale: jax.Array) -> jax.Array:
        model: Any = Scaled
        made = credo.extended_kalman(credo.Model(model(scale), credo.Normal(0.1)))
        result: jax.Array = made.step(made.init(jnp.zeros(2)), jnp.ones(2), 1.0)[1].log_evidence
        return result

    slope = (total(jnp.asarray(1.0 + 1e-6)) - total(jnp.asarray(1.0 - 1e-6))) / 2e-6
    np.testing.assert_allclose(jax.grad(total)(1.0), slope, rtol=1e-6)


def test_equinox_modules_are_adapted_and_lend_their_structure_to_a_saved_belief(tmp_path: Path) -> None:
    eqx = pytest.importorskip("equinox")
    apply, params = credo.from_equinox(eqx.nn.MLP(2, 1, 4, 1, key=jax.random.key(0)))
    learner = credo.lofi(credo.Model(apply, credo.Normal(0.1)), 2)
    belief, info = learner.step(learner.init(params), XS[0], 1.0)
    assert bool(info.ok)
    path = credo.save(tmp_path / "equinox.credo", learner, belief)
    another, _ = credo.from_equinox(eqx.nn.MLP(2, 1, 4, 1, key=jax.random.key(1)))
    _, again = credo.load(path, credo.lofi(credo.Model(another, credo.Normal(1.0)), 2))
    assert again == belief


def test_flax_modules_are_adapted() -> None:
    nn = pytest.importorskip("flax.linen")
    module = nn.Dense(1)
    apply, params = credo.from_flax(module, module.init(jax.random.key(0), XS[0]))
    learner = credo.lofi(credo.Model(apply, credo.Normal(0.1)), 2)
    _, info = learner.step(learner.init(params), XS[0], 1.0)
    assert bool(info.ok)
