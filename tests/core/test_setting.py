"""A setting is declared once: what it may be, how a text spells it, and what is said where it may not be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest

from credo.core.errors import CredoError
from credo.core.setting import Setting, require_settings, settings_of


@dataclass(frozen=True)
class Oven:
    """Settings of each kind, and a field that is none."""

    size: Annotated[int, Setting("How large.", low=1, high=9)] = 3
    heat: Annotated[float | Literal["auto"] | None, Setting(positive=True, high=300, choices=("auto",))] = (
        None
    )
    fan: Annotated[bool, Setting("Whether it blows.")] = False
    mode: Annotated[Literal["top", "bottom"] | str | None, Setting(choices=("top", "bottom"))] = None
    book: Annotated[Path | None, Setting()] = None
    cakes: Annotated[Sequence[str], Setting()] = ()
    times: Annotated[Sequence[int] | None, Setting(low=2)] = None
    wait: Annotated[float, Setting()] = 1.0
    owner: str = ""


SETTINGS = settings_of(Oven)


def test_the_kind_of_a_setting_is_that_of_its_annotation() -> None:
    found = {name: setting.kind for name, setting in SETTINGS.items()}
    lists = {"cakes": Sequence[str], "times": Sequence[int]}
    plain = {"size": int, "heat": float, "fan": bool, "mode": str, "book": Path, "wait": float}
    assert found == plain | lists


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("size", "9", 9),
        ("size", "5e0", 5),
        ("heat", "1e2", 100.0),
        ("heat", " Auto", "auto"),
        ("mode", "top", "top"),
        ("book", "a/b", Path("a/b")),
        ("cakes", "plum, apple,", ["plum", "apple"]),
        ("times", "2,1e3", [2, 1000]),
        ("wait", "0", 0.0),
    ],
)
def test_a_text_spells_a_value(name: str, text: str, value: object) -> None:
    assert SETTINGS[name].read(name, text) == value


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("size", "two", "size must be a whole number; got 'two'."),
        ("size", "10", "size must be a whole number in 1..9; got 10."),
        ("heat", "hot", "heat must be a number, or auto; got 'hot'."),
        ("heat", "0", "heat must be finite and above 0; got 0.0."),
        ("heat", "301", "heat must be in 0..300; got 301.0."),
        ("mode", "tap", "mode must be one of top, bottom; got 'tap' (did you mean 'top'?)."),
        ("times", "2,x", "times must be whole numbers separated by commas; got '2,x'."),
        ("times", "1", "times must be a whole number at least 2; got 1."),
        ("wait", "-1", "wait must be finite and at least 0; got -1.0."),
    ],
)
def test_a_text_that_spells_none_is_refused(name: str, text: str, sentence: str) -> None:
    with pytest.raises(CredoError) as caught:
        SETTINGS[name].read(name, text)
    assert str(caught.value) == sentence and caught.value.field == name


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"size": 2.0}, "size must be a whole number in 1..9; got 2.0."),
        ({"heat": "hot"}, "heat must be a number, or auto; got 'hot'."),
        ({"cakes": "plum"}, "cakes must be a list of names; got 'plum'."),
        ({"times": 3}, "times must be a list of whole numbers; got 3."),
        ({"times": [3, 0]}, "times must be a whole number at least 2; got 0."),
        ({"mode": "side"}, "mode must be one of top, bottom; got 'side'."),
    ],
)
def test_a_record_with_a_value_that_may_not_be_is_refused(values: dict[str, Any], sentence: str) -> None:
    require_settings(Oven(heat="auto", mode="top", times=[2], owner="anybody"))
    with pytest.raises(CredoError) as caught:
        require_settings(Oven(**values))
    assert str(caught.value) == sentence
