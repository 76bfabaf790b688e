"""The report of a command: it is said once, and shown in the terminal, as JSON and as a page.

The page is one HTML file with everything inside, readable on a phone, dark or light as the device is.
"""

from __future__ import annotations

import base64
import html
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich import box, table

from credo import plots
from credo.cli.progress import Screen
from credo.core.files import json_bytes, write_atomically
from credo.core.text import visible

__all__ = [
    "BLUE",
    "GREY",
    "ORANGE",
    "SKY",
    "Line",
    "Picture",
    "Report",
    "Section",
    "Table",
    "calibration_chart",
    "draw_reliability",
    "escape",
    "show",
    "write",
]

WIDE = 100
"""From how many characters on a terminal shows what the lines of a table mean."""


class Line(NamedTuple):
    """A line of a table, as text: its name, its cells, and what it means."""

    name: str
    cells: tuple[str, ...]
    meaning: str = ""


class Table(NamedTuple):
    """A table: the heads of its columns, of which the first has the names, and its lines."""

    heads: tuple[str, ...]
    lines: list[Line]

    @property
    def explained(self) -> bool:
        """Whether it says what its lines mean."""
        return any(line.meaning for line in self.lines)


class Picture(NamedTuple):
    """A plot, and its caption."""

    svg: bytes
    caption: str


class Section(NamedTuple):
    """A part of a report; a `main` one is in the terminal, too, and is not folded on the page."""

    title: str
    sentences: Sequence[str]
    table: Table | None = None
    main: bool = False


@dataclass(frozen=True)
class Report:
    """The report of a command.

    Attributes:
        title: whose report it is, such as a file or an environment.
        headline: what was done, and how long it took.
        sections: its parts; the first has the table of scores.
        verdict: what came of it, in a sentence.
        remarks: further sentences.
        subject: what the headline is about, on the page, where it follows the title.
        notes: what is said while the command runs, for the page.
        settings: with what it was run; those that are None are left out.
        command: the command that made it.
        data: what the file `file` has, as JSON; its `versions` are those of the programs.
        draw: makes the plots, by file name without suffix.
        file: the name of the file of JSON.
    """

    title: str
    headline: str
    sections: list[Section]
    verdict: str = ""
    remarks: Sequence[str] = ()
    subject: str = ""
    notes: Sequence[str] = ()
    settings: Mapping[str, object] = field(default_factory=dict)
    command: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)
    draw: Callable[[], dict[str, Picture]] = dict
    file: str = "report.json"


def show(report: Report) -> None:
    """Print a report to standard output: the table of scores, the sentences, and the other main tables."""
    screen = Screen()
    heading = f"{report.title}: {report.headline}"
    if len(heading) > screen.width:
        heading = f"{report.title}:\n{report.headline}"
    screen.print(heading, style="bold")
    first, *others = report.sections
    _print(screen, first)
    for sentence in filter(None, (report.verdict, *report.remarks)):
        screen.print(sentence)
    for section in others:
        if section.main:
            screen.print(f"\n{section.title}:", style="bold")
            _print(screen, section)


def _print(screen: Screen, section: Section) -> None:
    """Print the table of a section, with meanings where there is room."""
    if section.table is None:
        return
    name, *heads = section.table.heads
    explained = section.table.explained and screen.width >= WIDE
    printed = table.Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    printed.add_column(name, overflow="fold")
    for head in heads:
        printed.add_column(head, justify="right")
    if explained:
        printed.add_column("meaning")
    for line in section.table.lines:
        printed.add_row(line.name, *line.cells, *([line.meaning] if explained else []))
    screen.print(printed)


def write(report: Report, folder: Path, *, whole: bool = True) -> None:
    """Write the JSON and, if it is the `whole` report, the plots and the page."""
    write_atomically(folder / report.file, json_bytes(report.data))
    if not whole:
        return
    pictures = report.draw()
    for name, picture in pictures.items():
        write_atomically(folder / "plots" / f"{name}.svg", picture.svg)
    write_atomically(folder / "report.html", page(report, pictures).encode())


def escape(text: str) -> str:
    """A text as HTML, whose control characters are spelled."""
    return html.escape(visible(text))


_STYLE = """
:root { color-scheme: light dark; --ink: #1c1e21; --soft: #5c6370; --line: #d9dce1; --back: #ffffff;
  --card: #f6f7f9; --mark: #0072B2; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8eaed; --soft: #a2a9b4; --line: #3a3f47;
  --back: #16181c; --card: #202329; --mark: #56B4E9; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--ink); 
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
main { max-width: 62rem; margin: 0 auto; padding: 1.5rem 1rem 3rem; }
h1 { font-size: 1.6rem; margin: 0 0 .25rem; } h2 { font-size: 1.15rem; margin: 2rem 0 .6rem; }
p { margin: .4rem 0; } .soft { color: var(--soft); }
.verdict { border-left: 4px solid var(--mark); background: var(--card); padding: .7rem 1rem; margin: 1rem 0; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .4rem .7rem .4rem 0; border-bottom: 1px solid var(--line);
  vertical-align: top; }
th { font-weight: 600; } td.n, th.n { text-align: right; padding-right: 1.2rem; white-space: nowrap; }
details { margin: 1.4rem 0; } summary { cursor: pointer; }
summary h2 { display: inline; } details > :nth-child(2) { margin-top: .6rem; }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr)); gap: 1rem; }
figure { margin: 0; background: var(--card); border-radius: 8px; padding: .8rem; }
figure img { width: 100%; max-height: 26rem; object-fit: contain; background: #fff;
  border-radius: 4px; display: block; }
figcaption { color: var(--soft); font-size: .88rem; margin-top: .5rem; }
@media (max-width: 36rem) { .told thead th:last-child { display: none; }
  .told tr { display: flex; flex-wrap: wrap; border-bottom: 1px solid var(--line); }
  .told th, .told td { flex: 1 1 20%; border: 0; } .told td:last-child { flex-basis: 100%; padding-top: 0;
  color: var(--soft); } }
ul { padding-left: 1.2rem; } code { font-size: .92em; }
footer { margin-top: 2.5rem; color: var(--soft); font-size: .85rem;
  border-top: 1px solid var(--line); padding-top: .8rem; }
"""


def page(report: Report, pictures: Mapping[str, Picture]) -> str:
    """The page: verdict, plots, scores, and all other tables folded."""
    title = escape(report.title)
    versions = report.data["versions"]
    programs = ", ".join(f"{escape(program)} {escape(value)}" for program, value in versions.items())
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{title}: credo</title><style>{_STYLE}</style></head><body><main>",
        f"<h1>{title}</h1>",
        f'<p class="soft">{escape(report.subject)}: {escape(report.headline)}.</p>',
        f'<p class="verdict">{escape(report.verdict)}</p>',
        _paragraphs(report.remarks),
        _gallery(pictures),
        *map(_section, report.sections),
        _section(Section("Notes", report.notes)),
        _settings(report.settings),
        f"<footer>Made by {report.command} with {programs}.</footer></main></body></html>",
    ]
    return "\n".join(filter(None, parts)) + "\n"


def _paragraphs(sentences: Sequence[str]) -> str:
    return "".join(f"<p>{escape(sentence)}</p>" for sentence in sentences)


def _gallery(pictures: Mapping[str, Picture]) -> str:
    if not pictures:
        return ""
    parts = ['<h2>Plots</h2><div class="plots">']
    for name, picture in pictures.items():
        coded = base64.b64encode(picture.svg).decode()
        parts.append(
            f'<figure><img alt="{escape(name)} plot" src="data:image/svg+xml;base64,{coded}">'
            f"<figcaption>{escape(picture.caption)}</figcaption></figure>"
        )
    return "\n".join([*parts, "</div>"])


def _section(section: Section) -> str:
    """A part of the page, which can be folded if it has a table; without one it is a list of sentences."""
    if section.table is not None:
        content = _paragraphs(section.sentences) + _table(section.table)
        return _fold(section.title, content, shown=section.main)
    items = "".join(f"<li>{escape(sentence)}</li>" for sentence in section.sentences)
    if items:
        return f"<h2>{escape(section.title)}</h2><ul>{items}</ul>"
    return ""


def _settings(settings: Mapping[str, object]) -> str:
    lines = "".join(
        f"<tr><td>{escape(name.replace('_', ' '))}</td><td><code>{escape(str(value))}</code></td></tr>"
        for name, value in settings.items()
        if value is not None
    )
    return _fold("Settings", f'<div class="wide"><table>{lines}</table></div>')


def _fold(title: str, content: str, *, shown: bool = False) -> str:
    """A part of the page that can be folded, and is so unless it is `shown`."""
    mark = " open" if shown else ""
    return f"<details{mark}><summary><h2>{escape(title)}</h2></summary>{content}</details>"


def _table(shown: Table) -> str:
    name, *heads = shown.heads
    cells = "".join(f'<th class="n">{escape(head)}</th>' for head in heads)
    top = f"<th>{escape(name)}</th>{cells}" + "<th>meaning</th>" * shown.explained
    body = ""
    for line in shown.lines:
        cells = "".join(f'<td class="n">{escape(cell)}</td>' for cell in line.cells)
        meaning = f"<td>{escape(line.meaning)}</td>" * shown.explained
        body += f"<tr><td><code>{escape(line.name)}</code></td>{cells}{meaning}</tr>"
    kind = ' class="told"' * shown.explained
    return f'<div class="wide"><table{kind}><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'


BLUE, ORANGE, GREY, SKY = (plots.COMPACT_PALETTE[name] for name in ("blue", "orange", "grey", "sky"))


def calibration_chart(share: str, probability: str, counted: str = "rows") -> plots.Chart:
    """A chart on whose diagonal a share is what its probability says; below, how many were counted."""
    chart = plots.Chart((3, 1), (389.0, 360.0), probability, low=0.0, high=1.02)
    panel, below = chart.panels
    panel.label = share
    panel.low = -0.03
    panel.high = 1.05
    panel.line([0, 1], [0, 1], plots.Pen(GREY, 1.2, "5 3"), name="calibrated")
    panel.legend = plots.Legend(columns=3)
    below.label = counted
    below.low = 0.0
    return chart


def draw_reliability(chart: plots.Chart, bins: np.ndarray, name: str) -> None:
    """Draw what came of some forecasts by their probability: how many there were in each bin, the sum of
    their probabilities and how many came true (B, 3).
    """
    panel, below = chart.panels
    count = bins[:, 0]
    some, claimed, came = bins[count > 0].T
    panel.line(claimed / some, came / some, plots.Pen(BLUE, 1.2))
    size = np.sqrt(18 + 130 * np.sqrt(some / some.max()))
    panel.dots(claimed / some, came / some, BLUE, size=size, name=name)
    below.bars((np.arange(len(count)) + 0.5) / len(count), count, 0.9 / len(count), SKY)
