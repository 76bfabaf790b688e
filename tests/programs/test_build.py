"""Programs of steps and questions: one row or many, and what is refused while one is built."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.streams.setups import bitwise

import credo
from credo.core.errors import CredoError
from credo.programs.build import REPORT, asking, changing, learning, learning_in_place
from credo.programs.packed import PackedBelief
from credo.programs.words import NEVER, WordLayout, WordReader

RNG = np.random.default_rng(0)
XS = RNG.normal(size=(11, 3)).astype(np.float32)
YS = RNG.normal(size=11).astype(np.float32)


def line(params: Any, x: Any) -> Any:
    """A linear function of a row."""
    return x @ params


LEARNER = credo.extended_kalman(credo.Model(line, credo.Normal(0.1)), dynamics=credo.RandomWalk(0.01))
START = LEARNER.init(jnp.zeros(3, jnp.float32))
ROW = WordLayout.of((jax.ShapeDtypeStruct((3,), np.float32), jax.ShapeDtypeStruct((), np.float32)), NEVER)


def step(learner: Any, belief: Any, key: Any, row: Any) -> Any:
    """Learn a row, and report all of its info."""
    return learner.step(belief, *row)


def scaled_mean(learner: Any, belief: Any, key: Any, row: Any, factor: Any) -> Any:
    """The mean of a forecast, times a number."""
    return factor * learner.forecast(belief, row[0]).mean


def later(learner: Any, belief: Any, key: Any) -> Any:
    """The belief at the next row."""
    return learner.predict(belief)


def drawn(learner: Any, belief: Any, key: Any, row: Any) -> Any:
    """A number of the key of the setting."""
    return jax.random.uniform(jax.random.fold_in(key, row[1].astype(jnp.int32)))


def long_report(learner: Any, belief: Any, key: Any, row: Any) -> Any:
    """More words than stand behind those of a belief."""
    after, info = learner.step(belief, *row)
    return after, (info.ok, jnp.arange(REPORT + 1, dtype=row[1].dtype) + row[1])


def other_belief(learner: Any, belief: Any, key: Any, row: Any) -> Any:
    """No belief of this learner."""
    after, info = learner.step(belief, *row)
    return (after, after), info


def mean_alone(learner: Any, belief: Any, key: Any, row: Any) -> Any:
    """The mean after a step, without the rest of the belief."""
    after, info = learner.step(belief, *row)
    return {"mean": after.mean}, (info.log_evidence, info.ok)


def by_hand() -> tuple[Any, list[Any]]:
    """The belief after all rows, and their infos, by a loop of `learner.step`."""
    belief, infos = START, []
    for x, y in zip(XS, YS, strict=True):
        belief, info = LEARNER.step(belief, x, y)
        infos.append(info)
    return belief, infos


@pytest.mark.parametrize("cuts", [(11,), (4, 7), (1,) * 11])
def test_rows_are_learned_with_the_bits_of_a_loop_however_they_are_cut(cuts: tuple[int, ...]) -> None:
    expected, infos = by_hand()
    packed, start = PackedBelief.of(LEARNER, START), 0
    for count in cuts:
        rows = XS[start : start + count], YS[start : start + count]
        packed, told = packed.learn("test_rows", step, rows, 16)
        assert len(told.ok) == count
        bitwise(jax.tree.map(lambda leaf: leaf[-1], told), infos[start + count - 1])
        start += count
    bitwise(packed.tree, expected)


def test_one_row_is_learned_with_the_same_bits_in_place_and_beside_the_old_belief() -> None:
    packed = PackedBelief.of(LEARNER, START)
    expected, info = LEARNER.step(START, XS[0], YS[0])
    words = np.asarray(ROW.give((XS[0], YS[0]))[0])
    compiled, layout = learning("test_row", packed.form, ROW, step)
    state, report = compiled(packed.setting, packed.state, words)
    bitwise(packed.form.state.take(state), expected)
    bitwise(layout.take_rows(np.asarray(report)[None]).log_evidence[0], info.log_evidence)
    room = jnp.zeros(REPORT, jnp.uint32)
    for act, own in ((step, 0), (long_report, 1)):
        compiled, layout = learning_in_place("test_in_place", packed.form, ROW, act)
        grown = jnp.concatenate([packed.state[0], room])
        after, others, reports = compiled(packed.setting, grown, packed.state[1], words)
        bitwise(packed.form.state.take((after, others)), expected)
        assert len(reports) == own  # a report that is too long has an array of its own
        place = (reports[0], 0) if reports else (after, packed.form.state.size)
        told = WordReader(layout)(*place)
        assert told[0] if reports else told.ok
        if reports:
            np.testing.assert_array_equal(told[1], np.arange(REPORT + 1, dtype=np.float32) + YS[0])


def test_a_step_may_give_only_what_changes_beside_its_report() -> None:
    packed = PackedBelief.of(LEARNER, START)
    expected, info = LEARNER.step(START, XS[0], YS[0])
    compiled, layout = changing("test_changes", packed.form, ROW, mean_alone)
    changes, report = compiled(packed.setting, packed.state, np.asarray(ROW.give((XS[0], YS[0]))[0]))
    bitwise(changes, {"mean": expected.mean})
    evidence, ok = WordReader(layout)(report)
    assert ok and evidence == float(info.log_evidence)


def test_questions_get_what_is_the_same_for_all_rows_and_what_is_done_before_the_first() -> None:
    packed = PackedBelief.of(LEARNER, by_hand()[0])
    factor = np.array(2.0, np.float32)
    now = packed.ask("test_ask", scaled_mean, (XS, YS), 16, factor)
    for x, mean in zip(XS, now, strict=True):
        np.testing.assert_allclose(mean, 2.0 * LEARNER.forecast(packed.tree, x).mean, rtol=1e-6)
    tiles = packed.ask("test_tiles", scaled_mean, (XS, YS), 16, factor, tile=4)
    np.testing.assert_allclose(tiles, now, rtol=1e-6)
    np.testing.assert_array_equal(
        packed.ask("test_tiles", scaled_mean, (XS[:5], YS[:5]), 16, factor, tile=4), tiles[:5]
    )
    moved = credo.LinearGaussian(0.5 * jnp.eye(3, dtype=jnp.float32))
    half = credo.extended_kalman(LEARNER.model, dynamics=moved)
    fading = PackedBelief.of(half, half.init(jnp.ones(3, jnp.float32)))
    ahead = fading.ask("test_before", scaled_mean, (XS, YS), 16, factor, before=later)
    whole = fading.ask("test_before", scaled_mean, (XS, YS), 16, factor)
    np.testing.assert_allclose(ahead, 0.5 * whole, rtol=1e-5)


def test_the_key_of_a_setting_comes_back_in_a_program() -> None:
    key = jax.random.key(3)
    packed = PackedBelief.of(LEARNER, START, key)
    numbers = packed.ask("test_draws", drawn, (XS[:3], np.arange(3, dtype=np.float32)), 4)
    expected = [jax.random.uniform(jax.random.fold_in(key, number)) for number in range(3)]
    np.testing.assert_array_equal(numbers, np.asarray(expected))


def test_forms_of_equal_layouts_are_one_and_a_step_that_gives_another_belief_is_refused() -> None:
    packed, other = PackedBelief.of(LEARNER, START), PackedBelief.of(LEARNER, by_hand()[0])
    assert packed.form is other.form and packed.form.kind is type(START)
    for build in (learning, learning_in_place):
        with pytest.raises(CredoError, match="belief must keep its structure"):
            build("test_other", packed.form, ROW, other_belief)
    assert asking("test_draws", packed.form, ROW, scaled_mean, more=(jax.ShapeDtypeStruct((), np.float32),))
