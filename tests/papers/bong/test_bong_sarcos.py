"""The simulated arm against mechanics, and the experiment at a tiny size."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from credo_papers.bong import bong_sarcos
from credo_papers.bong.bong_sarcos_plan import LEARNERS, Entry
from credo_papers.bong.robot_arm import (
    _LENGTHS,
    _MASSES,
    JOINTS,
    _lagrangian,
    _positions,
    motions,
    torque,
)
from credo_papers.engine.portions import silent


def test_an_arm_at_rest_and_level_carries_its_weights() -> None:
    level = jnp.zeros(JOINTS).at[0].set(jnp.pi / 2)
    zero = jnp.zeros(JOINTS)
    reach = np.cumsum(_LENGTHS)
    np.testing.assert_allclose(torque(level, zero, zero)[0], -9.81 * (_MASSES * reach).sum(), rtol=1e-10)


@pytest.mark.slow
def test_torques_are_linear_in_accelerations_by_a_positive_definite_mass_matrix() -> None:
    q, v = jnp.linspace(-1, 1, JOINTS), jnp.linspace(0.5, -0.5, JOINTS)
    mass = jax.jacfwd(lambda a: torque(q, v, a))(jnp.zeros(JOINTS))
    np.testing.assert_allclose(mass, mass.T, atol=1e-10)
    assert np.linalg.eigvalsh(mass).min() > 0
    at_rest = torque(q, v, jnp.zeros(JOINTS))
    np.testing.assert_allclose(torque(q, v, 2 * q), at_rest + mass @ (2 * q), atol=1e-9)


def test_power_of_the_torques_is_the_change_of_energy() -> None:
    """d/dt (kinetic + potential) = v . tau, by finite differences along a motion."""
    q, v, a = (jnp.asarray(np.random.default_rng(k).normal(size=JOINTS)) for k in range(3))

    def energy(t: float) -> jax.Array:
        place, speed = q + v * t + 0.5 * a * t**2, v + a * t
        height = jnp.sum(jnp.asarray(_MASSES) * 9.81 * _positions(place)[:, 1])
        return _lagrangian(place, speed) + 2 * height

    h = 1e-5
    np.testing.assert_allclose((energy(h) - energy(-h)) / (2 * h), v @ torque(q, v, a), rtol=1e-7)


@pytest.mark.slow
def test_the_learner_beats_what_it_knew_before_any_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bong_sarcos, "VARS", (0.1,))
    monkeypatch.setattr(bong_sarcos, "CHECKS", (60,))
    monkeypatch.setitem(LEARNERS, "blr lin-hess, I = 1", Entry("blr", "lin-hess", 1, (0.5,), 3.28))
    outcome = bong_sarcos.run("quick", 0, silent)
    for name in ("bong lin-hess", "blr lin-hess, I = 1"):
        assert outcome.series[name][-1] < outcome.series[name][0] - 0.1
    assert "simulated arm" in str(outcome.settings["source"]) or "SARCOS" in str(outcome.settings["source"])
    outcome.figure()


def test_motions_are_those_of_their_seed() -> None:
    np.testing.assert_array_equal(motions(3, 4)[0], motions(3, 4)[0])
    assert motions(3, 4)[0].shape == (4, 21) and not np.array_equal(motions(3, 4)[0], motions(4, 4)[0])
