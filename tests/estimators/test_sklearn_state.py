"""Copies, pickles and files of the estimators of scikit-learn, and learners of one's own."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import credo
from credo.recipes import assembly

X = np.random.default_rng(0).normal(size=(40, 3))
Y = 5.0 + X @ [1.0, -2.0, 0.5]
LABELS = np.where(Y > 5.0, "up", "down")


def again_by_joblib(estimator: Any, folder: Path) -> Any:
    joblib.dump(estimator, folder / "estimator.joblib")
    return joblib.load(folder / "estimator.joblib")


def again_by_file(estimator: Any, folder: Path) -> Any:
    return type(estimator).load(estimator.save(folder / "estimator.credo"))


COPIES: dict[str, Callable[[Any, Path], Any]] = {
    "deepcopy": lambda estimator, folder: copy.deepcopy(estimator),
    "pickle": lambda estimator, folder: pickle.loads(pickle.dumps(estimator)),
    "joblib": again_by_joblib,
    "save": again_by_file,
}


def saved(estimator: Any, folder: Path) -> bytes:
    path: Path = estimator.save(folder / "state.credo")
    return path.read_bytes()


@pytest.mark.table
@pytest.mark.parametrize("way", COPIES)
def test_a_copy_continues_bit_by_bit(way: str, tmp_path: Path) -> None:
    """After few rows, some of which still wait for their units, after many, and after a fit."""
    frame = pd.DataFrame({"a": X[:, 0], "city": np.where(X[:, 1] > 0, "Oslo", "Rome")})
    begun = [
        credo.OnlineRegressor("linear").partial_fit(X[:5], Y[:5]),
        credo.OnlineRegressor("linear", random_state=3).fit(X[:20], Y[:20], sample_weight=1 + Y[:20] ** 2),
        credo.OnlineClassifier("linear").fit(frame[:20], LABELS[:20]),
    ]
    for estimator in begun:
        other = COPIES[way](estimator, tmp_path)
        assert type(other) is type(estimator) and str(other.get_params()) == str(estimator.get_params())
        assert saved(other, tmp_path) == saved(estimator, tmp_path)
        rows, targets = (frame, LABELS) if isinstance(other, credo.OnlineClassifier) else (X, Y)
        before = saved(other, tmp_path)
        estimator.partial_fit(rows[20:], targets[20:])
        assert saved(other, tmp_path) == before
        other.partial_fit(rows[20:], targets[20:])
        assert saved(other, tmp_path) == saved(estimator, tmp_path)
        np.testing.assert_array_equal(other.predict(rows), estimator.predict(rows))


def test_a_clone_has_the_parameters_and_no_state() -> None:
    learner = credo.extended_kalman(credo.Model(credo.Linear(1), credo.Normal(0.1)))
    fitted = credo.OnlineRegressor(None, learner=learner, params=credo.Linear(1).init(0, (3,))).fit(X, Y)
    fresh: Any = clone(fitted)
    assert not hasattr(fresh, "n_seen_") and fresh.learner == learner
    np.testing.assert_array_equal(fresh.fit(X, Y).predict(X), fitted.predict(X))


@pytest.mark.slow
def test_a_learner_of_ones_own_is_saved_and_continues(tmp_path: Path) -> None:
    inner = credo.bong(credo.Model(credo.Linear(1), credo.Normal(0.1)), credo.Full())
    learner = credo.RunLength(inner, 0.01, 3)
    params = credo.Linear(1).init(0, (3,))
    fitted = credo.OnlineRegressor(None, learner=learner, params=params, prior_var=4.0).fit(X, Y)
    assert fitted.score(X, Y) > 0.95 and fitted.n_parameters_ == 4
    other = credo.OnlineRegressor.load(fitted.save(tmp_path / "own.credo"))
    assert other.learner == learner
    for estimator in (fitted, other):
        estimator.partial_fit(X, Y)
    assert saved(fitted, tmp_path) == saved(other, tmp_path)
    # a function of one's own is lent by the learner that loads
    kalman = credo.extended_kalman(credo.Model(plane, credo.Normal(0.1)))
    flat = credo.OnlineRegressor(learner=kalman, params=np.zeros(3, np.float32)).fit(X, Y)
    lent = credo.OnlineRegressor.load(flat.save(tmp_path / "flat.credo"), learner=kalman)
    np.testing.assert_array_equal(lent.predict(X), flat.predict(X))
    # the prior of the first belief is what a run of refusals falls back to, also after loading
    np.testing.assert_array_equal(lent._trainer.prior.mean, flat._trainer.prior.mean)


def test_another_seed_compiles_no_program_anew() -> None:
    """As in an ensemble, which gives each of its members a seed of its own."""

    def predict(seed: int) -> np.ndarray:
        fitted = credo.OnlineRegressor("mlp:10", random_state=seed).fit(X, Y)
        return np.asarray(fitted.predict(X))

    program: Any = assembly._prior
    first = predict(1)
    before = program.cache_size()
    assert not np.array_equal(predict(2), first)
    assert program.cache_size() == before
    np.testing.assert_array_equal(predict(1), first)


def plane(params: Any, x: Any) -> Any:
    return x @ params


def test_the_estimators_say_what_to_install_where_scikit_learn_is_absent() -> None:
    code = (
        "import sys; sys.modules['sklearn'] = None; import credo\n"
        "try: credo.OnlineClassifier\n"
        "except credo.CredoError as error: print(error)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (
        run.stdout
        == "credo.OnlineClassifier needs scikit-learn: pip install -e '.[sklearn]' in a checkout of credo.\n"
    )
