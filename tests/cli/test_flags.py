"""Sentences of the library in the words of the command line."""

from __future__ import annotations

import copy
import pickle
import re
from pathlib import Path

import pytest
from tests.cli.conftest import Command

from credo.cli import command_words
from credo.cli.app import flags_of
from credo.cli.flags import in_flags, refusal
from credo.core.errors import CredoError, Named, Sentence, marked

ROOM = Path(__file__).resolve().parents[2] / "src" / "credo"


MIXED = Sentence(f"{Named('curvature', 'mc-ef')} does not fit {Named('method', 'sgd')}")
ROWS = Sentence(f"60 rows; {Named('limit', 0)} for all")
MISSING = Sentence(f"give all with {Named('on_missing')}")


@pytest.mark.parametrize(
    ("sentence", "words"),
    [
        (MIXED, "--curvature mc-ef does not fit --method sgd"),
        (ROWS, "60 rows; --limit 0 for all"),
        (Sentence(f"line 3: {marked(MISSING)}"), "line 3: give all with --on-missing"),
        (Sentence("a cell with \ufdd0 and \ufdd0"), "a cell with \ufdd0 and \ufdd0"),
        ("`credo datasets` lists the names", "`credo datasets` lists the names"),
        ("line 3 holds `model=3`", "line 3 holds `model=3`"),
    ],
)
def test_settings_that_a_sentence_names_become_flags(sentence: str, words: str) -> None:
    assert in_flags(sentence) == words


def test_a_sentence_that_was_copied_or_pickled_still_names_its_settings() -> None:
    for again in (copy.deepcopy(MIXED), pickle.loads(pickle.dumps(MIXED))):
        assert again == MIXED == "`curvature='mc-ef'` does not fit `method='sgd'`"
        assert in_flags(again) == "--curvature mc-ef does not fit --method sgd"
    error = pickle.loads(pickle.dumps(CredoError(f"{marked(MIXED)}.", field="curvature")))
    assert refusal(error, ()) == "--curvature mc-ef does not fit --method sgd." and error.field == "curvature"


def test_the_field_of_an_error_becomes_a_flag_of_the_command_where_its_sentence_begins_with_it() -> None:
    flags = flags_of(["learn", "wine", "--noise-var", "0"])
    refused = CredoError.must_be("noise_var", "above 0", 0)
    assert refusal(refused, flags) == "--noise-var must be above 0; got 0."
    assert refusal(refused, flags_of(["serve", "models"])) == "noise_var must be above 0; got 0."
    assert refusal(CredoError("the model is odd.", field="model"), flags) == "the model is odd."
    assert refusal(CredoError("x must be finite.", field="x"), flags) == "x must be finite."
    assert refusal(CredoError("task forces differ."), flags) == "task forces differ."
    assert flags_of([]) == flags_of(["lern"]) == flags_of(["bandit"]) == set()


def test_below_the_command_line_nobody_speaks_of_flags() -> None:
    flag = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
    files = [file for file in ROOM.rglob("*.py") if file.parts[len(ROOM.parts)] != "cli"]
    words = [f"{file.name}: {match[0]}" for file in files for match in flag.finditer(file.read_text())]
    assert not words


@pytest.mark.table
@pytest.mark.parametrize("command", command_words._EXAMPLES)
def test_the_help_of_each_command_has_examples_of_it(credo: Command, command: str) -> None:
    lines = command_words.examples_of(command).strip().splitlines()[2:]
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
