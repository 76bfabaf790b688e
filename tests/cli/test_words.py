"""Numbers, names and tables as the command line writes them."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from rich.table import Table

from credo.bandits.named_agents import policy_of
from credo.bandits.policies import EpsilonGreedy
from credo.cli.learn_report import select_classes
from credo.cli.progress import Screen, duration, write_out
from credo.cli.report import escape
from credo.cli.request import slug
from credo.core.errors import DataError
from credo.core.text import visible
from credo.sessions import Forecasts
from credo.sessions.forecast_table import as_csv, as_json_lines, as_words, heads, rows_as_text
from credo.sessions.run_summary import number


def test_the_columns_of_forecasts_depend_on_what_is_forecast() -> None:
    assert heads(["no", "yes"], target=True) == ["row", "target", "prediction", "p(no)", "p(yes)"]
    assert heads([], target=False) == ["row", "mean", "sd", "lower", "upper"]


def test_rows_are_written_as_csv_and_as_json_lines() -> None:
    assert as_csv([["row", "mean"], ["2", ""]]) == "row,mean\n2,\n"
    lines = as_json_lines(["row", "mean"], [[2, 0.5], [3, None]])
    assert lines == '{"row": 2, "mean": 0.5}\n{"row": 3, "mean": null}\n'


def test_numbers_times_and_folders_have_short_names() -> None:
    assert [duration(seconds) for seconds in (42.4, 600.0, 7500.0)] == ["42 s", "10 min", "2 h 5 min"]
    assert [number(value) for value in (0.12345, 4321.0, 1e9)] == ["0.1235", "4,321.0", "1.00e+09"]
    assert [slug(source) for source in ("data/prices.csv.gz", "-")] == ["prices", "stdin"]


def test_a_policy_may_have_a_number_behind_a_colon() -> None:
    policy = policy_of("egreedy:.1")
    assert isinstance(policy, EpsilonGreedy)
    assert policy.epsilon == 0.1


def test_of_many_classes_the_most_frequent_and_the_rarest_are_shown() -> None:
    assert select_classes(np.array([5, 0, 9, 7]), 2) == [2, 0]


ODD = "a\x1b[31m\x9b\r\x07\u202eb\ud800"
SPELLED = r"a\x1b[31m\x9b\r\x07\u202eb\ud800"


def test_control_characters_are_spelled_wherever_text_is_shown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert visible(ODD) == escape(ODD) == str(DataError(ODD)) == SPELLED
    assert visible("Zoë\t[b]\n") == "Zoë\t[b]\n"
    screen, table = Screen(width=200), Table()
    table.add_column(f"[bold]{ODD}")
    table.add_row(ODD)
    screen.print(f"[red]{ODD}")
    screen.print(table)
    out = capsys.readouterr().out
    assert out.count(SPELLED) == 3 and f"[red]{SPELLED}" in out and f"[bold]{SPELLED}" in out
    assert not set(out) & set("\x1b\x9b\r\x07\u202e")
    write_out("a\x1b")  # a file or a pipe gets what there is
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    write_out("a\x1b")
    assert capsys.readouterr().out == "a\x1ba\\x1b"


def test_a_spreadsheet_takes_no_label_for_a_formula() -> None:
    labels = ("=1+1", "+x", "-y", "@z", "\tt", "-1.5", "+2", "a=b", "'", "-1,5")
    plain = [as_words(label) for label in labels]
    assert plain == ["'=1+1", "'+x", "'-y", "'@z", "'\tt", "-1.5", "+2", "a=b", "'", "'-1,5"]
    probs = np.eye(2)
    forecasts = Forecasts(np.array([2, 3]), probs=probs, classes=("=1,1", "-1.5"), targets=np.array([1, 0]))
    names = heads(forecasts.classes, target=True)
    assert rows_as_text(forecasts, names, "csv").splitlines()[0] == '2,-1.5,"=1,1",1,0'
    safe = rows_as_text(forecasts, names, "csv", spreadsheet=True).splitlines()
    assert safe == ['2,-1.5,"\'=1,1",1,0', '3,"\'=1,1",-1.5,0,1']
