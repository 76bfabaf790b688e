"""Variations of the default: what they leave out, and that all is as before afterwards."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

from credo.core.program_folder import folder
from credo.recipes import defaults
from credo.recipes.members import Member, NearMember, NormalMember, members_of
from credo.recipes.tasks import RECIPES

assembly: Any = importlib.import_module("credo.recipes.assembly")
BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def ablation(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("default_ablation")


def test_a_variation_changes_the_members_while_it_lasts_and_takes_no_kept_program(ablation: Any) -> None:
    kept, usual, combined = folder(), members_of("classification", 4, 1), assembly.combined
    for name in ablation.VARIATIONS:
        recipes = dict(RECIPES), defaults.SWITCHING, defaults.SHARPNESS, defaults.FULL_COST
        with ablation.varied(name):
            assert folder() is None
            varied = assembly.members_of("classification", 4, 1)
            changed = dict(RECIPES), defaults.SWITCHING, defaults.SHARPNESS, defaults.FULL_COST
            if name not in ("no noise by the inputs", "one forgetting of the noise (0.99)", "one clip (3)"):
                assert varied != usual or changed != recipes or assembly.combined is not combined, name
        assert folder() == kept and assembly.members_of is members_of and assembly.combined is combined
        assert (dict(RECIPES), defaults.SWITCHING, defaults.SHARPNESS, defaults.FULL_COST) == recipes


def test_members_without_a_network_are_left_out_by_their_kind(ablation: Any) -> None:
    def of(name: str) -> Any:
        with ablation.varied(name):
            return assembly.members_of("classification", 4, 1)

    assert all(isinstance(member, Member) for member in of("networks only"))
    assert not any(isinstance(member, NearMember) for member in of("no nearest rows"))
    assert [str(m) for m in of("no normal columns") if isinstance(m, NormalMember)] == ["base rates"]
    assert "base rates" not in map(str, of("no base rates"))
