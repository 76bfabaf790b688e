"""Sentences of the library in the words of the command line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.cli.conftest import Command

from credo.cli import examples
from credo.cli.flags import in_flags, refusal
from credo.core.errors import CredoError

ROOM = Path(__file__).resolve().parents[2] / "src" / "credo"


@pytest.mark.parametrize(
    ("sentence", "words"),
    [
        ("`curvature='mc-ef'` does not fit `method='sgd'`", "--curvature mc-ef does not fit --method sgd"),
        ("60 rows; `limit=0` for all", "60 rows; --limit 0 for all"),
        ("give all classes with `classes`", "give all classes with --classes"),
        ("`credo datasets` lists the names", "`credo datasets` lists the names"),
        ("line 3 holds 'model=3'", "line 3 holds 'model=3'"),
    ],
)
def test_settings_in_backquotes_become_flags(sentence: str, words: str) -> None:
    assert in_flags(sentence) == words


def test_the_field_of_an_error_becomes_a_flag_where_its_sentence_begins_with_it() -> None:
    assert (
        refusal(CredoError("noise_var must be above 0.", field="noise_var")) == "--noise-var must be above 0."
    )
    assert refusal(CredoError("the model is odd.", field="model")) == "the model is odd."
    assert refusal(CredoError("x must be finite.", field="x")) == "x must be finite."
    assert refusal(CredoError("task forces differ.")) == "task forces differ."


def test_below_the_command_line_nobody_speaks_of_flags() -> None:
    flag = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
    files = [file for file in ROOM.rglob("*.py") if file.parts[len(ROOM.parts)] != "cli"]
    words = [f"{file.name}: {match[0]}" for file in files for match in flag.finditer(file.read_text())]
    assert not words


@pytest.mark.table
@pytest.mark.parametrize("command", examples._EXAMPLES)
def test_the_help_of_each_command_has_examples_of_it(credo: Command, command: str) -> None:
    lines = examples.of(command).strip().splitlines()[2:]
    assert lines and all(len(line) <= 78 for line in lines) and f"credo {command}" in lines[0]
    assert lines[0] in credo(*command.split(), "--help").out


LEAST = {
    "--limit": 0,
    "--seed": 0,
    "--chunk": 1,
    "--test-rows": -1,
    "--horizon": 1,
    "--every": 1,
    "--paths": 2,
}


@pytest.mark.parametrize("option", LEAST)
def test_a_number_below_the_least_is_refused_and_the_least_is_not(credo: Command, option: str) -> None:
    sentence = f"{option} must be a whole number"
    below = credo("learn", "no-such-file.csv", f"{option}={LEAST[option] - 1}")
    assert below.status == 2 and sentence in below.err
    least = credo("learn", "no-such-file.csv", f"{option}={LEAST[option]}")
    assert least.status == 2 and sentence not in least.err
