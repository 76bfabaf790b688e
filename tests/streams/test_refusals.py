"""What was refused is told in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

import credo
from credo.metrics import Scores
from credo.streams.annotations import misfit
from credo.streams.evaluate import count_refusals, sentence

Bound = TypeVar("Bound", bound=int | str)
Free = TypeVar("Free")


@dataclass
class Holder(Generic[Bound, Free]):
    """A class of a user's own, whose fields are of any type."""

    part: Bound
    other: Free
    parts: tuple[Bound, ...] = ()


def test_rows_are_counted_by_the_reason_of_their_refusal() -> None:
    one, ok = np.ones(3), np.array([True, False, False])
    scores = Scores(one, one, one, one, None, None, {}, one, ok)
    xs, ys = np.array([1.0, np.inf, 1.0]), np.array([1.0, 1.0, np.nan])
    assert count_refusals(xs, ys, None, ok, scores) == {"inputs": 1}


def test_the_first_and_the_last_class_are_labels() -> None:
    one, ok = np.ones(4), np.zeros(4, bool)
    scores = Scores(one, one, one, one, None, np.full((4, 3), 1 / 3), {}, one, ok)
    labels = np.array([0.0, 2.0, -1.0, 3.0])
    assert count_refusals(one, labels, None, ok, scores) == {"labels": 2, "update": 2}


def test_of_several_outputs_the_infinite_ones_are_told() -> None:
    one, ok = np.ones((3, 2)), np.array([True, False, False])
    scores = Scores(one, one, one, one[:, 0], None, None, {}, one[:, 0], ok)
    ys = one.copy()
    ys[1, 1] = np.inf
    assert count_refusals(one, ys, None, ok, scores) == {"targets": 1, "update": 1}
    assert count_refusals(one, (one, ys[:, 1]), None, ok, scores) == {"targets": 1, "update": 1}


def test_refusals_are_told_in_a_sentence() -> None:
    words = "2 of 100 rows were refused and not learned from: 2 with inputs that are not finite."
    assert sentence({"inputs": 2}, 100) == words


def test_a_value_that_does_not_fit_its_field_is_told_the_type() -> None:
    assert misfit(credo.Categorical, "classes", "three") == "int"
    assert misfit(credo.Categorical, "classes", 3) == ""
    assert misfit(Holder, "part", 3) == misfit(Holder, "part", "three") == misfit(Holder, "other", 0.5) == ""
    assert (
        misfit(Holder, "part", 0.5)
        and misfit(Holder, "parts", (1, 0.5))
        and not misfit(Holder, "parts", (1,))
    )
