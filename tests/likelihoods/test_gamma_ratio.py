"""Log densities with many degrees of freedom keep their digits in single precision, and tails theirs."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special as ss
import scipy.stats as st

from credo.learners.conjugate import NegativeBinomialPredictive
from credo.likelihoods import StudentTPredictive
from credo.likelihoods.quantiles import log_gamma_ratio, student_cdf


def test_the_ratio_is_that_of_scipy() -> None:
    a = np.concatenate([np.geomspace(0.01, 1e7, 60), [15.99, 16.0, 16.01]])
    for step in (0.0, 0.5, 1.0, 3.0, 40.0):
        exact = np.log(ss.poch(a, step)) if step < 40 else ss.gammaln(a + step) - ss.gammaln(a)
        np.testing.assert_allclose(
            log_gamma_ratio(jnp.asarray(a), jnp.asarray(step)), exact, rtol=1e-9, atol=1e-9
        )


@pytest.mark.parametrize("df", [4.0, 33.0, 1e3, 1e5, 1e6])
def test_student_densities_in_single_precision(df: float) -> None:
    ours = StudentTPredictive(jnp.float32(df), jnp.zeros(1, jnp.float32), jnp.eye(1, dtype=jnp.float32))
    for y in (0.1, 2.0, 5.0):
        np.testing.assert_allclose(ours.log_prob(jnp.float32(y)), st.t.logpdf(y, df), atol=2e-5)


@pytest.mark.parametrize("shape", [2.0, 1e3, 1e6])
def test_counts_in_single_precision(shape: float) -> None:
    per = shape / 3.0
    ours = NegativeBinomialPredictive(jnp.float32(shape), jnp.float32(per))
    for y in (0.0, 3.0, 12.0):
        exact = st.nbinom.logpmf(y, shape, per / (1 + per))
        np.testing.assert_allclose(ours.log_prob(jnp.float32(y)), exact, atol=5e-5)


def test_both_tails_of_a_student_keep_their_digits() -> None:
    df, z = np.meshgrid(
        [0.3, 1.0, 2.5, 4.0, 15.0, 100.0, 1e6], np.concatenate([np.linspace(0, 8, 41), [1e3, 1e6]])
    )
    tail = st.t.sf(z, df)
    np.testing.assert_allclose(student_cdf(jnp.asarray(-z), jnp.asarray(df)), tail, rtol=1e-10)
    np.testing.assert_allclose(student_cdf(jnp.asarray(z), jnp.asarray(df)), 1 - tail, rtol=1e-11)
    single = student_cdf(jnp.asarray(-z, jnp.float32), jnp.asarray(df, jnp.float32))
    exact = st.t.sf(z.astype(np.float32).astype(float), df.astype(np.float32).astype(float))
    np.testing.assert_allclose(single, exact, rtol=1e-5, atol=1e-30)
    ends = student_cdf(jnp.asarray([-jnp.inf, jnp.inf, jnp.nan]), jnp.asarray(3.0))
    np.testing.assert_array_equal(ends, [0.0, 1.0, np.nan])
