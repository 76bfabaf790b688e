"""The common prior of the weights of tasks, fitted to tasks of the training digits."""

from __future__ import annotations

import numpy as np

from credo_papers.engine.purposes import TUNING
from credo_papers.pfbr.pfbr_logistic_oracle import Prior, static_weights
from credo_papers.pfbr.pfbr_logistic_world import Digits, Kind, vary

__all__ = ["TASKS", "fit_prior"]

TASKS = 64
"""Training tasks behind a prior."""

SHARE = 0.25
"""The share of the original digits that a training task has: as many as there are for scoring."""


def fit_prior(data: Digits, kind: Kind, seed: int, copies: int, count: int = TASKS) -> Prior:
    """Return the normal distribution, without correlations, of the weights that fit tasks of this kind.

    Every task has a random part of the training digits with all their copies, and its weights are the mode of
    the posterior under N(0, I).

    Arguments:
        data: the digits, of which the first part is used.
        kind: the kind of the tasks.
        seed: the seed of the tasks.
        copies: how many copies of a digit there are, which come one round after the other.
        count: how many tasks.
    """
    originals = len(data.train_x) // copies
    modes = []
    for number in range(count):
        rng = np.random.default_rng([seed, TUNING, number])
        chosen = rng.choice(originals, round(SHARE * originals), replace=False)
        rows = np.concatenate([chosen + originals * copy for copy in range(copies)])
        modes.append(static_weights(vary(data.train_x[rows], kind, rng), data.train_y[rows]))
    table = np.stack(modes)
    return Prior(table.mean(axis=0), np.maximum(table.var(axis=0, ddof=1), 1e-3))
