"""An option is declared once, and every door takes it."""

from __future__ import annotations

import dataclasses
import inspect

import pytest

import credo
from credo.cli.flags import LearnerFlags
from credo.recipes.options import LearnerWords, NumberWords, Options, OptionWords

OPTIONS = {field.name for field in dataclasses.fields(Options)}
ESTIMATORS = (
    (credo.OnlineClassifier, LearnerWords),
    (credo.OnlineRegressor, NumberWords),
    (credo.RiverClassifier, LearnerWords),
    (credo.RiverRegressor, NumberWords),
)


def test_flags_and_keyword_arguments_are_the_options() -> None:
    assert {field.name for field in dataclasses.fields(LearnerFlags)} == OPTIONS
    assert set(OptionWords.__annotations__) == OPTIONS


@pytest.mark.parametrize(("kind", "words"), ESTIMATORS, ids=lambda one: one.__name__)
def test_each_option_is_a_parameter_of_each_estimator(kind: type, words: type) -> None:
    known = inspect.signature(kind).parameters
    assert set(words.__annotations__) < set(known)
    assert next(iter(known)) == "model"
    assert known["drift"].annotation == "Drift | str | None"
    given = {name: object() for name in known}
    estimator = kind(**given)
    assert {name: getattr(estimator, name) for name in known} == given
    assert getattr(kind("linear", "full"), "posterior", None) == "full"
    with pytest.raises(TypeError, match=rf"{kind.__name__}\(\) got an unexpected keyword argument 'colour'"):
        kind(colour="red")
