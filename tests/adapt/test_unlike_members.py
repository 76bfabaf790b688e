"""Learners of unlike kinds stand in one bank."""

from __future__ import annotations

from typing import Any

import credo
from credo.adapt.banks import banks
from credo.adapt.questions import ChosenFunction
from credo.core.groups import Groups


def test_learners_of_one_kind_share_a_bank() -> None:
    coins = [credo.BetaBernoulli(a=a) for a in (1.0, 2.0)]
    members: list[credo.Learner[Any]] = [coins[0], credo.GammaPoisson(), coins[1]]
    both = banks(members)
    assert isinstance(both, Groups)
    assert both.places == ((0, 2), (1,))


def test_the_function_of_one_of_several_experts_is_chosen() -> None:
    members: list[credo.Learner[Any]] = [credo.BetaBernoulli(), credo.GammaPoisson()]
    learner = credo.Experts(members)
    function = learner.sample_function(learner.init(), key=0)
    assert isinstance(function, ChosenFunction)
    assert len(function.functions) == 2
    assert function(None).shape == ()
