"""The importance of columns against rows that are shuffled by hand and scored again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from credo.core.errors import CredoError, DataError
from credo.sessions import Images, Session, permutation_importance
from credo.tables import Chunk

RNG = np.random.default_rng(3)
COLOURS = ("red", "green", "blue")


def rows_of(count: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for a, b, c in zip(
        RNG.normal(size=count), RNG.normal(size=count), RNG.integers(3, size=count), strict=True
    ):
        y = 2.0 * a + (COLOURS[c] == "red") + 0.1 * float(RNG.normal())
        rows.append({"a": float(a), "b": None if b > 1.5 else float(b), "colour": COLOURS[c], "y": float(y)})
    return rows


ROWS = rows_of(160)


@pytest.fixture(scope="module", params=["regression", "classification"])
def session(request: pytest.FixtureRequest) -> Session:
    rows = [judged(row, request.param) for row in ROWS[:80]]
    made = Session.from_rows(rows, "y", task=request.param, model="linear")
    made.learn(rows)
    return made


def judged(row: dict[str, Any], task: str) -> dict[str, Any]:
    return row if task == "regression" else {**row, "y": "up" if row["y"] > 0.4 else "down"}


def scores(session: Session, rows: list[dict[str, Any]]) -> np.ndarray:
    """NLPD and loss of each row, scored one by one."""
    tallies = [session.test([row]) for row in rows]
    return np.array([[tally.latest("nlpd"), tally.latest("loss")] for tally in tallies])


@pytest.mark.slow
def test_it_is_what_shuffled_rows_lose(session: Session) -> None:
    rows = [judged(row, session.settings.task) for row in ROWS[80:120]]
    before = {name: array.copy() for name, array in session.encoding.arrays().items()}
    found = permutation_importance(session, rows, repeats=2, seed=7)
    own, random = scores(session, rows), np.random.default_rng(7)
    power = 2 if session.regression else 1
    for name in ("a", "b", "colour"):
        after = np.zeros((len(rows), 2))
        for _ in range(2):
            order = random.permutation(len(rows)).tolist()
            donors = dict(zip(order, [*order[1:], order[0]], strict=True))
            shuffled = [{**row, name: rows[donors[k]][name]} for k, row in enumerate(rows)]
            after += scores(session, shuffled) ** (1, power) / 2
        rises, place = after[:, 0] - own[:, 0], found.columns.index(name)
        np.testing.assert_allclose(found.nlpd[place], rises.mean(), rtol=1e-4, atol=1e-6)
        error = rises.std(ddof=1) / np.sqrt(len(rows))
        np.testing.assert_allclose(found.nlpd_se[place], error, rtol=1e-4)
        loss = after[:, 1].mean() ** (1 / power) - (own[:, 1] ** power).mean() ** (1 / power)
        np.testing.assert_allclose(found.loss[place], loss, rtol=1e-4, atol=1e-6)
    assert found.columns[0] == "a" and found.rows == 40
    for name, array in before.items():
        np.testing.assert_array_equal(session.encoding.arrays()[name], array)


@pytest.mark.slow
def test_a_column_that_came_late_is_compared_and_rows_are_spread() -> None:
    rows = [{"a": row["a"], "y": row["y"]} for row in ROWS[:60]]
    late = [{**row, "late": 3.0 * row["y"]} for row in ROWS[60:]]
    session = Session.from_rows(rows, "y", model="linear")
    session.learn(rows)
    session.learn([{name: row[name] for name in ("a", "late", "y")} for row in late])
    found = permutation_importance(session, [*ROWS[:20], *late], most=50)
    assert found.rows == 50 and found.columns == ("a", "late")
    assert (found.nlpd > 2 * found.nlpd_se).all()
    names = ["a", "late", "y"]
    tables = [Chunk({n: [row[n] for row in part] for n in names}, np.arange(1, 51)) for part in (late[:50],)]
    once, twice = (permutation_importance(session, some) for some in (tables, late[:50]))
    np.testing.assert_array_equal(once.nlpd, twice.nlpd)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"repeats": 0}, "repeats must be at least 1; got 0"),
        ({"rows": []}, "rows must be at least 20 that can be scored; got 0"),
        (
            {"rows": Images(np.zeros((1, 2, 2), np.float32), np.zeros(1), np.ones(1, int))},
            "this data is images",
        ),
    ],
)
def test_bad_input_is_refused(session: Session, change: dict[str, Any], words: str) -> None:
    arguments: dict[str, Any] = {"rows": [judged(row, session.settings.task) for row in ROWS[:30]]} | change
    with pytest.raises((CredoError, DataError), match=words):
        permutation_importance(session, **arguments)
