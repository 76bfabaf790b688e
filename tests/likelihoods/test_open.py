"""Classes that are met one after another."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from credo.core.errors import CredoError
from credo.likelihoods import Bernoulli, Categorical, OpenCategorical

ETA = jnp.array([0.3, -1.2, 0.8, 40.0])


@pytest.mark.slow
@pytest.mark.parametrize("reference", [False, True])
def test_the_known_classes_are_those_of_a_categorical(reference: bool) -> None:
    size = 3 if reference else 4
    likelihood = OpenCategorical(4, known=3, reference=reference)
    likelihood.check(size)
    eta = ETA[1:] if reference else ETA
    full = jnp.concatenate([jnp.zeros(1), eta]) if reference else eta
    plain, seen = Categorical(3), 2 if reference else 3
    np.testing.assert_allclose(likelihood.probs(eta), np.append(plain.probs(full[:3]), 0.0))
    for label in range(3):
        np.testing.assert_allclose(likelihood.log_prob(eta, label), plain.log_prob(full[:3], label))
        slope = jax.grad(likelihood.log_prob)(eta, label)
        np.testing.assert_allclose(likelihood.score(eta, label), slope, atol=1e-14)
        assert not np.asarray(slope)[seen:].any()
    root = likelihood.fisher_root(eta, 0)
    hessian = -jax.hessian(likelihood.log_prob)(eta, 0)
    np.testing.assert_allclose(root @ root.T, hessian, atol=1e-12)
    assert likelihood.observed(2) and not likelihood.observed(3) and not likelihood.observed(-1)
    with pytest.raises(CredoError, match="outputs"):
        likelihood.check(size + 1)


def test_two_known_classes_with_a_reference_are_a_bernoulli() -> None:
    likelihood = OpenCategorical(4, known=2, reference=True)
    np.testing.assert_allclose(likelihood.probs(ETA[:3])[:2], Bernoulli().probs(ETA[:1]), rtol=1e-12)
