"""Classes that the first rows did not show are learned from the row on in which they come."""

from __future__ import annotations

from pathlib import Path

import jax
import numpy as np
import pytest

from credo.sessions import Session

Row = dict[str, object]


def stream(first: int, count: int = 90) -> list[Row]:
    """Rows of one more class than the first two thirds show."""
    rng = np.random.default_rng(first)
    x = rng.normal(size=(count, 2))
    scores = np.stack([x[:, 0], -x[:, 0], x[:, 1], -x[:, 1]], axis=1)[:, : first + 1]
    scores[: 2 * count // 3, first] = -9.0
    return [{"a": a, "b": b, "y": f"c{k}"} for (a, b), k in zip(x, scores.argmax(axis=1), strict=True)]


def learned(rows: list[Row], pieces: int, **options: str) -> Session:
    session = Session.from_rows(rows[:60], "y", model="linear", chunk=30, **options)  # type: ignore[arg-type]
    for part in np.array_split(np.arange(len(rows)), pieces):
        session.learn([rows[i] for i in part])
    return session


@pytest.mark.slow
@pytest.mark.table
@pytest.mark.parametrize(("first", "options"), [(2, {}), (3, {"posterior": "low-rank:2"})])
def test_a_new_class_is_learned_however_the_rows_are_cut(
    first: int, options: dict[str, str], tmp_path: Path
) -> None:
    rows = stream(first)
    session, other = learned(rows, 1, **options), learned(rows, 7, **options)
    assert session.encoding.classes == tuple(f"c{k}" for k in range(first + 1))
    assert session.rows_used == session.tally.scored == 90 and np.isfinite(session.metrics()["nlpd"])
    assert session.tally.counts[-1] > 3 and session.tally.counts.sum() == 90
    for mine, theirs in zip(jax.tree.leaves(session.belief), jax.tree.leaves(other.belief), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-4)  # a hasty compiler, two chunk layouts
    extreme: list[Row] = [{"a": 0.0, "b": 3.0}] if first == 2 else [{"a": 0.0, "b": -3.0}]
    forecasts = session.predict(extreme)
    assert forecasts.labels == [f"c{first}"] and forecasts.probs is not None
    assert forecasts.probs.shape == (1, first + 1) and forecasts.probs.sum() == pytest.approx(1, abs=1e-5)
    again = Session.load(session.save(tmp_path / "s.credo"))
    more: list[Row] = [{"a": 1.0, "b": 1.0, "y": "later"}]
    for one in (session, again):
        one.learn(more)
        assert one.encoding.classes[-1] == "later"
    np.testing.assert_array_equal(session.belief.mean, again.belief.mean)


def test_a_stream_without_new_classes_has_the_learner_of_before() -> None:
    session = learned(stream(3)[:60], 1)
    assert repr(session.learner.model.likelihood) == "Categorical(classes=3)"  # type: ignore[attr-defined]


@pytest.mark.slow
def test_where_the_classes_are_fixed_or_numbers_other_labels_are_bad_rows() -> None:
    rows = [{"a": float(i), "y": i % 3} for i in range(60)]
    numbers = Session.from_rows(rows, "y", model="linear", task="classification")
    numbers.learn([*rows, {"a": 1.0, "y": 7}, {"a": 1.0, "y": "seven"}])
    assert numbers.encoding.classes == ("0", "1", "2", "7") and numbers.rows_used == 61
    fixed = Session.from_rows(rows, "y", model="linear", classes=["0", "1", "2"])
    fixed.learn([{"a": 1.0, "y": 7}])
    assert fixed.rows_used == 0 and fixed.encoding.classes == ("0", "1", "2")
