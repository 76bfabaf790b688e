"""Numbers, names and tables as the command line writes them."""

from __future__ import annotations

import numpy as np

from credo.bandits import EpsilonGreedy
from credo.bandits.named_agents import policy_of
from credo.cli.class_plot import select_classes
from credo.cli.progress import duration
from credo.cli.request import slug
from credo.sessions.forecast_table import as_csv, as_json_lines, heads
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
