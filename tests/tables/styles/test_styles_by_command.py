"""Tables as people have them, through the command."""

from __future__ import annotations

import csv
import datetime as dt
import io
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from credo.cli import main

LINEAR = ("--model", "linear", "--drift", "none")
DAYS = [dt.date(2023, 1, 5) + dt.timedelta(days=day) for day in range(40)]


def learned(path: Path, names: list[str], rows: list[list[str]], *words: str) -> str:
    """What the command says on standard error while it learns the rows."""
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([names, *rows])
    err = io.StringIO()
    with redirect_stderr(err), redirect_stdout(io.StringIO()):
        status = main(
            ["learn", str(path), "--target", "y", *LINEAR, "--out", str(path.parent / "run"), *words]
        )
    assert status == 0, err.getvalue()
    return err.getvalue()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("form", "following"),
    [
        ("%Y%m%d", ["20230214", "20230215"]),
        ("%d.%m.%Y", ["14.02.2023", "15.02.2023"]),
        ("%b %d, %Y", ["Feb 14, 2023", "Feb 15, 2023"]),
    ],
)
def test_the_steps_to_come_are_written_as_the_file_writes_its_times(
    form: str, following: list[str], tmp_path: Path
) -> None:
    rows = [[day.strftime(form), f"{day.weekday() + 0.5}"] for day in DAYS]
    err = learned(tmp_path / "s.csv", ["day", "y"], rows, "--time", "day", "--horizon", "2", "--paths", "10")
    assert "series every day by 'day'" in err and "column 'day' holds dates" in err
    with (tmp_path / "run" / "forecast.csv").open(newline="") as file:
        assert [line["time"] for line in csv.DictReader(file)] == following
