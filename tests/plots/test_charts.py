"""Charts: what is drawn stands where its numbers say, in SVG that every reader takes."""

from __future__ import annotations

import base64
import io
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from credo.plots import RAMPS, Chart, Legend, Mark, Panel, Pen, number_marks, shade, stepped, time_marks

BLUE = Pen("#0072B2")


def paths(chart: Chart, color: str) -> list[str]:
    """The paths of a colour, in the order of drawing."""
    root = ET.fromstring(chart.svg())
    drawn = root.iter("{http://www.w3.org/2000/svg}path")
    return [one.attrib["d"] for one in drawn if color in (one.get("stroke"), one.get("fill"))]


def points(path: str) -> np.ndarray:
    """The points of a path of straight lines."""
    return np.array([[float(number) for number in pair.split()] for pair in re.split("[ML]", path)[1:]])


def texts(chart: Chart) -> list[str]:
    """What is written, in the order of drawing."""
    return [one.text or "" for one in ET.fromstring(chart.svg()).iter("{http://www.w3.org/2000/svg}text")]


def everything(panel: Panel) -> None:
    """Draw one of each kind."""
    panel.line([1, 2, np.nan, 4], [1, 2, 3, np.inf], BLUE, name="a < b & c")
    panel.dots([1, 2], [2, np.nan], "#111111", size=[3.0, 4.0], shape="square", name="dots")
    for shape in ("circle", "cross", "triangle"):
        panel.dots([1], [2], "#222222", shape=shape, opacity=0.5)
    panel.band([1, 2, 3], 0.0, [1, np.nan, 2], "#333333", opacity=0.5, name="band")
    panel.bars([1, 2], [3, 4], 0.5, "#444444", name="bars")
    panel.lying_bar(1.0, 2.0, 0.5, "#555555")
    panel.whiskers([1, 2], [1, 2], 0.5, BLUE, upright=True)
    panel.whiskers([1, 2], [1, 2], 0.5, BLUE, upright=False)
    panel.across(1.0, BLUE, name="across")
    panel.upright([1.0], BLUE)
    panel.strip(1.0, 2.0, "#666666", 0.5)
    panel.flags([1.0], "#777777", "flags")
    panel.words(1.0, 2.0, "words")
    panel.heat((0.0, 4.0), (0.0, 4.0), np.array([[0.0, np.nan], [0.5, 1.0]]), "blue")


@pytest.mark.parametrize("place", ["above", "below", "right"])
def test_all_kinds_are_written_as_xml_without_missing_numbers(place: str) -> None:
    chart = Chart((2, 1), label="x", scale="probability")
    for panel in chart.panels:
        everything(panel)
        panel.title = "title"
        panel.label = "y"
    chart.panels[0].legend = Legend(place, columns=2, title="names")  # type: ignore[arg-type]
    svg = chart.svg()
    assert chart.svg() == svg and not re.search(rb"nan|inf[^o]", svg.split(b"base64,")[0])
    found = texts(chart)
    assert {"a < b & c", "dots", "band", "bars", "across", "flags", "words", "title", "x", "y"} <= set(found)


def test_an_empty_chart_and_one_of_a_single_point_have_axes() -> None:
    assert "0.5" in " ".join(texts(Chart()))
    chart = Chart()
    chart.panels[0].dots([3.0], [5.0], "#111111")
    assert len(texts(chart)) > 3


def test_a_line_goes_through_its_points_and_panels_share_their_axis() -> None:
    chart = Chart((3, 1), low=0.0, high=4.0)
    upper, lower = chart.panels
    upper.low = 0.0
    upper.high = 2.0
    upper.line([0, 2, 4], [0, 2, 1], Pen("#123456"))
    lower.line([0, 4], [1, 1], Pen("#654321"))
    first = points(paths(chart, "#123456")[0])
    x, y = first.T
    assert x[1] - x[0] == pytest.approx(x[2] - x[1], abs=0.2)
    assert y[0] - y[1] == pytest.approx(2 * (y[2] - y[1]), abs=0.3)
    below = points(paths(chart, "#654321")[0])
    assert below[:, 0].tolist() == [x[0], x[2]] and (below[:, 1] > y.max()).all()


def test_a_gap_begins_a_new_part() -> None:
    chart = Chart()
    chart.panels[0].line([1, 2, 3, 4, 5], [1, 2, np.nan, 4, 5], Pen("#123456"))
    assert paths(chart, "#123456")[0].count("M") == 2


def test_an_axis_may_be_logarithmic_beyond_a_size() -> None:
    chart = Chart()
    panel = chart.panels[0]
    panel.linear = 0.1
    panel.low = 0.0
    panel.high = 10.0
    panel.line([0, 1, 2, 3], [0, 0.1, 1, 10], Pen("#123456"))
    height = points(paths(chart, "#123456")[0])[:, 1]
    np.testing.assert_allclose(np.diff(height), np.diff(height).mean(), atol=0.2)
    assert {"0.1", "1", "10"} <= set(texts(chart))


def test_names_stand_in_columns_and_the_last_may_come_first() -> None:
    chart = Chart()
    panel = chart.panels[0]
    for name in "abc":
        panel.line([0, 1], [0, 1], BLUE, name=name)
    panel.legend = Legend("below", columns=2, backwards=True)
    assert [text for text in texts(chart) if text in set("abc")] == ["c", "b", "a"]


def test_a_grid_of_shares_is_a_picture_from_bottom_to_top() -> None:
    image = pytest.importorskip("PIL.Image")
    chart = Chart()
    chart.panels[0].heat((0, 2), (0, 2), np.array([[1.0, np.nan], [0.0, 0.5]]), "blue")
    coded = re.search(rb"base64,([^\"]*)", chart.svg())
    assert coded is not None
    cells = np.array(image.open(io.BytesIO(base64.b64decode(coded[1]))).convert("RGBA"))
    dark = [int(RAMPS["blue"][-1][k : k + 2], 16) for k in (1, 3, 5)]
    assert cells[1, 0].tolist() == [*dark, 255] and cells[1, 1, 3] == 0
    assert cells[0, 0, 0] > cells[0, 1, 0] > cells[1, 0, 0]


@pytest.mark.parametrize("low", [-3e6, -0.4, 0.0, 0.99, 1e4])
@pytest.mark.parametrize("wide", [3e-4, 0.7, 12.0, 4.5e6])
@pytest.mark.parametrize("whole", [False, True])
def test_marks_of_numbers_say_where_they_are(low: float, wide: float, whole: bool) -> None:
    marks = number_marks(low, low + wide, 8, whole)
    assert len(marks) <= 8 and (len(marks) >= 2 or whole)
    for mark in marks:
        assert low - 1e-9 * abs(low) <= mark.place <= low + wide * 1.001
        assert float(mark.label.replace(",", "")) == pytest.approx(mark.place, rel=6e-3, abs=wide * 1e-3)
    assert len({mark.label for mark in marks}) == len(marks)


@pytest.mark.parametrize(
    ("first", "last", "labels", "shared"),
    [
        ("2024-01-30", "2024-03-10", ["Feb", "8", "15", "22", "Mar", "8"], "2024-Mar"),
        (
            "2024-01-30T10",
            "2024-01-31T04",
            ["12:00", "15:00", "18:00", "21:00", "31 Jan", "03:00"],
            "2024-Jan-31",
        ),
        ("2019-01-30", "2024-03-10", ["2020", "2021", "2022", "2023", "2024"], ""),
        ("2023-10-30", "2024-09-10", ["Nov", "2024", "Mar", "May", "Jul", "Sep"], "2024"),
        (
            "2023-10-30T10:00:00",
            "2023-10-30T10:00:04",
            ["10:00:00", "10:00:01", "10:00:02", "10:00:03", "10:00:04"],
            "2023-Oct-30",
        ),
    ],
)
def test_marks_of_time_are_as_short_as_their_neighbours_allow(
    first: str, last: str, labels: list[str], shared: str
) -> None:
    low, high = (float(np.datetime64(moment, "s").astype(np.int64)) for moment in (first, last))
    marks, common = time_marks(low, high)
    assert [mark.label for mark in marks] == labels and common == shared
    assert all(low <= mark.place <= high for mark in marks)


def test_colours_lie_between_their_neighbours() -> None:
    ramp = ("#000000", "#ff0000", "#ffffff")
    assert [shade(ramp, share) for share in (0.0, 0.5, 1.0)] == list(ramp)


def test_steps_have_two_corners_at_each_edge() -> None:
    x, y = stepped(np.array([0, 2, 3]), np.array([1.0, 4.0]))
    assert list(zip(x, y, strict=True)) == [(0, 1), (2, 1), (2, 4), (3, 4)]


def test_marks_outside_of_the_axis_are_left_out() -> None:
    chart = Chart(low=0.0, high=1.0, marks=[Mark(0.5, "inside"), Mark(2.0, "outside")])
    assert "inside" in texts(chart) and "outside" not in texts(chart)
