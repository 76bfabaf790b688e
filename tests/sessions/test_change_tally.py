"""What a drift reports of changes, gathered in bounded memory."""

from __future__ import annotations

import jax
import numpy as np

from credo.live.change_steps import join
from credo.sessions import ChangeTally, Steps
from credo.sessions.change_tally import ALARMS, BINS, LONGEST


def _steps(start: int, count: int) -> Steps:
    """A world that changes every 1,000 rows, seen with one hypothesis that is right and one of 0.25."""
    rows = np.arange(start, start + count)
    length = rows % 1000
    alarm = (length == 3) & (rows > 1000)
    share = (1 + rows % 7) / 8.3  # sums of such numbers are rounded
    probs = np.stack([share, 1 - share, np.zeros(count)], axis=1)
    lengths = np.stack([length, rows, np.full(count, 10**9)], axis=1)
    return Steps(probs, lengths, 0.5 * (length == 3), alarm, np.where(alarm, 3, 0))


def test_a_tally_of_changes_keeps_all_probability_in_bounded_memory_however_it_is_fed() -> None:
    whole = ChangeTally("run-length")
    parts: ChangeTally | None = ChangeTally("run-length")
    total = 12_345
    whole.add(_steps(0, total))
    for start in range(0, total, 97):
        assert parts is not None
        parts.add(_steps(start, min(97, total - start)))
        parts = ChangeTally.from_arrays("run-length", parts.arrays())  # as when resumed
    assert parts is not None
    for name, array in whole.arrays().items():
        np.testing.assert_array_equal(array, parts.arrays()[name], err_msg=name)
    assert whole.grid.shape[0] <= LONGEST and whole.grid.shape[1] == BINS and len(whole.alarms) <= ALARMS
    np.testing.assert_allclose(whole.grid.sum(axis=1), whole.counts)
    assert whole.counts.sum() == total
    summary = whole.summary()
    assert summary.get("reported") == 12 and summary.get("rows", [])[:2] == [1004, 2004]
    assert summary.get("began", [])[:2] == [1001, 2001] and summary.get("largest_at") == 4
    assert whole.sentences()[0] == (
        "12 changes were reported, at rows 1004, 2004, 3004, 4004, 5004 and 7 more, of segments that "
        "began at rows 1001, 2001, 3001, 4001, 5001 and 7 more."
    )


def test_steps_of_chunks_are_joined() -> None:
    outcome = join([_steps(0, 3), _steps(3, 4)])
    assert jax.tree.all(jax.tree.map(lambda a, b: bool(np.all(a == b)), outcome, _steps(0, 7)))


def test_a_mixture_tells_its_weights_and_where_an_expert_began_again() -> None:
    tally = ChangeTally("mixture")
    count = len(tally.experts)
    probs = np.full((9, count), 1.0 / count)
    lengths, flags = np.tile(np.arange(count), (9, 1)), np.isin(np.arange(9), [2, 6])
    lengths[flags, 0] = -1
    tally.add(Steps(probs, lengths, np.zeros(9), np.zeros(9, bool), np.zeros(9)))
    weights, failed = tally.sentences()
    assert (
        weights.startswith("Weights of the experts at the end: ") and f"{1 / count:.3f} no drift" in weights
    )
    assert failed == "An expert ran away and began again from its prior at rows 3 and 7."
    assert tally.failures[0] == 2 and tally.summary().get("failed") == [3, 7]
