"""A wrapper of one's own: what its base does for it, and what it may change."""

from __future__ import annotations

from typing import Generic

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.adapt.setups import INNER, XS, YS, P
from tests.streams.setups import bitwise

import credo
from credo.adapt import Around, Changes, Proposal, RunLength, Wrapper, alarms, segmentation
from credo.adapt.nested import B
from credo.beliefs import Gaussian
from credo.core.records import record
from credo.core.types import Array, ArrayLike, Key, PyTree
from credo.learners import Learner


@record
class Counted(Around[B], Generic[B]):
    belief: B
    count: Array
    t: Array


@record
class Counting(Wrapper[Counted[B], B], Generic[B]):
    """Counts what it learned, and refuses what is above a limit."""

    limit: ArrayLike = 10.0

    def wrap(self, prior: B) -> Counted[B]:
        return Counted(prior, jnp.zeros((), jnp.int32), prior.t)

    def propose(
        self, belief: Counted[B], x: PyTree, y: PyTree, weight: ArrayLike, key: Key | None
    ) -> Proposal[Counted[B]]:
        inner, info = self.learner.measurement_update(belief.belief, x, y, weight, key)
        new = credo.replace(belief, belief=inner, count=belief.count + 1)
        return Proposal(new, info.log_evidence, info.ok & (y < self.limit), {"inner": info})


LEARNER = Counting(INNER)


def test_a_wrapper_writes_its_own_idea_only() -> None:
    inner, trace = credo.run(INNER, INNER.init(jnp.zeros(P), var=1.5), XS, YS)
    belief, outer = credo.run(LEARNER, LEARNER.init(jnp.zeros(P), var=1.5), XS, YS)
    assert int(belief.count) == int(belief.t) == int(belief.belief.t) == len(YS)
    np.testing.assert_allclose(belief.mean, inner.mean, rtol=1e-12)
    np.testing.assert_allclose(outer.log_evidence, trace.log_evidence, rtol=1e-12)
    predicted, expected = LEARNER.predict(belief, 2.0), INNER.predict(inner, 2.0)
    np.testing.assert_allclose(LEARNER.forecast(predicted, XS[0]).mean, INNER.forecast(expected, XS[0]).mean)
    assert LEARNER.sample(predicted, jax.random.key(0), (3,)).shape == (3, P)


@pytest.mark.parametrize(("y", "weight", "ok"), [(jnp.nan, 1.0, False), (1.0, 0.0, True), (11.0, 1.0, False)])
def test_what_is_refused_leaves_the_belief_bit_by_bit(y: float, weight: float, ok: bool) -> None:
    belief = LEARNER.predict(LEARNER.init(jnp.zeros(P)))
    after, info = LEARNER.update(belief, XS[0], jnp.asarray(y), weight=weight)
    bitwise(after, belief)
    assert bool(info.ok) == ok and float(info.log_evidence) == 0


def test_further_arguments_of_init_reach_the_learner_inside() -> None:
    belief = LEARNER.init(jnp.zeros(P), cov=jnp.diag(jnp.array([2.0, 3.0])))
    np.testing.assert_allclose(belief.var, [2.0, 3.0])


def test_a_learner_that_lacks_a_function_cannot_be_made() -> None:
    class Nothing(Learner[Gaussian]):
        pass

    with pytest.raises(TypeError, match="abstract"):
        Nothing()  # type: ignore[abstract]  # this is what is tested


def test_changes_are_found_in_the_report_of_a_wrapper_around_run_lengths() -> None:
    ys = jnp.concatenate([jnp.zeros(20), jnp.full(20, 8.0)])
    inner = RunLength(INNER, 0.01, 4)
    around = Counting(inner)
    _, trace = credo.run(around, around.init(jnp.zeros(P)), jnp.ones((40, P)), ys)
    assert isinstance(trace.extras["inner"].extras, Changes)
    assert segmentation(trace) == [0, 20] and len(alarms(trace)) == 1


def test_a_trace_without_changes_is_refused_in_a_sentence() -> None:
    _, trace = credo.run(INNER, INNER.init(jnp.zeros(P)), XS, YS)
    for ask in (segmentation, alarms):
        with pytest.raises(credo.CredoError, match="reports no changes"):
            ask(trace)


def test_a_member_that_has_run_away_does_not_spoil_the_mixture() -> None:
    inner = credo.extended_kalman(credo.Model(lambda w, x: x @ w, credo.Normal(0.1)))
    experts = credo.Experts([inner, inner])
    belief = experts.predict(experts.init(jnp.zeros(2)))
    sick = credo.replace(belief.beliefs, mean=belief.beliefs.mean.at[1].set(jnp.inf))
    belief = credo.replace(belief, beliefs=sick)
    sound = inner.forecast(inner.init(jnp.zeros(2)), jnp.ones(2))
    forecast = experts.forecast(belief, jnp.ones(2))
    np.testing.assert_allclose(forecast.mean, sound.mean)
    np.testing.assert_allclose(forecast.log_prob(0.3), sound.log_prob(0.3), rtol=1e-6)
    after, info = experts.update(belief, jnp.ones(2), 0.3)
    assert bool(info.ok) and info.extras.tolist() == [1.0, 0.0]
    np.testing.assert_array_equal(after.beliefs.mean[1], 0.0)  # it began again from its prior
    assert bool(jnp.all(jnp.isfinite(belief.collapse().mean))) is False
    assert bool(jnp.all(jnp.isfinite(after.collapse().mean)))
