"""Methods on one problem: every trial is a finished piece that an interrupted run need not repeat."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import jax
import numpy as np

from credo.core.types import PyTree
from credo_papers.engine.cell_folder import Cells
from credo_papers.engine.plain_data import Arrays, Json
from credo_papers.engine.portions import Progress
from credo_papers.engine.quantities import Row, mean_se
from credo_papers.pfbr.pfbr_following import Judge, follow
from credo_papers.pfbr.pfbr_problem import Method, Problem
from credo_papers.pfbr.pfbr_timing import seconds_per_update

__all__ = ["Trial", "rows_of"]

VERSION = 1
"""Of the code behind finished pieces."""


@dataclass(frozen=True)
class Trial:
    """A problem with its sequences, its truth and its judge.

    Arguments:
        name: the name of the trial, such as "pfbr-lds d=10".
        problem: what learners are told.
        observations: (n, T, ...).
        truth: a tree of arrays with leading axes (n, T).
        judge: scores a set.
        context: whatever else the results depend on, in plain JSON values.
        seed: the seed of the methods' draws.
        inputs: a tree of arrays with leading axes (n, T), or None.
        starts: prior means (n, d), or None.
        before: scores the predicted belief, or None.
        few: the number of sequences of methods that are too slow for all, by name: the first ones.
        haste: whether programs need not be fast but quickly compiled; those that are timed are fast anyway.
    """

    name: str
    problem: Problem
    observations: np.ndarray
    truth: PyTree
    judge: Judge
    context: Mapping[str, Json]
    seed: int
    inputs: PyTree = None
    starts: np.ndarray | None = None
    before: Judge | None = None
    few: Mapping[str, int] = field(default_factory=dict)
    haste: bool = False

    def scores(
        self,
        methods: Sequence[Method],
        count: int,
        cells: Cells | None,
        progress: Progress,
        timed: bool = False,
    ) -> dict[str, Arrays]:
        """Return the scores of every method by name: arrays (n, T), and "seconds" () if it is timed.

        A method of `few` has fewer rows than n.

        Arguments:
            methods: the methods of the table.
            count: the number of particles, where a method has none of its own.
            cells: where finished pieces are kept; None keeps none.
            progress: is called before each method.
            timed: whether to measure the seconds of an update.
        """
        cells = Cells() if cells is None else cells

        def score(number: int) -> Arrays:
            method = methods[number]
            progress(number / len(methods), f"{method.name}, {self.name}")
            settings: dict[str, Json] = {
                **self.context,
                "method": method.name,
                "particles": count if method.particles is None else method.particles,
                "seed": self.seed,
                "shape": [self._size(method), *self.observations.shape[1:]],
                "timed": timed,
                "version": VERSION,
            }
            if method.name in self.problem.training:
                settings["training"] = self.problem.training[method.name]
            compute = functools.partial(self._score, method, count, timed)
            return cells.get(f"{self.name}-{method.name}", settings, compute, here=timed)

        found = cells.each(score, range(len(methods)))
        return {method.name: scores for method, scores in zip(methods, found, strict=True)}

    def _size(self, method: Method) -> int:
        """The number of sequences that a method goes through."""
        return min(self.few.get(method.name, len(self.observations)), len(self.observations))

    def _score(self, method: Method, count: int, timed: bool) -> Arrays:
        observations, truth, inputs, starts = jax.tree.map(
            lambda leaf: leaf[: self._size(method)],
            (self.observations, self.truth, self.inputs, self.starts),
        )
        scores = follow(
            method,
            self.problem,
            count,
            observations,
            truth,
            self.judge,
            seed=self.seed,
            inputs=inputs,
            starts=starts,
            before=self.before,
            haste=self.haste,
        )
        if timed:
            first = None if inputs is None else jax.tree.map(lambda leaf: leaf[0], inputs)
            start = None if starts is None else starts[0]
            seconds = seconds_per_update(method, self.problem, count, observations[0], first, start)
            scores["seconds"] = np.asarray(seconds)
        return scores


def rows_of(
    prefix: str,
    score: str,
    results: Mapping[str, Arrays],
    published: Mapping[str, float | str] | None = None,
    notes: Mapping[str, str] | None = None,
) -> tuple[Row, ...]:
    """Return a row for each method: the mean of a score over steps, then over sequences.

    Arguments:
        prefix: the words before the method's name.
        score: the name of the score.
        results: as `Trial.scores` returns them.
        published: numbers by method.
        notes: by method.
    """
    published = published or {}
    notes = notes or {}
    return tuple(
        Row(
            f"{prefix}, {name}",
            *mean_se(scores[score].mean(axis=1)),
            published.get(name),
            None,
            notes.get(name, ""),
            name,
        )
        for name, scores in results.items()
    )
