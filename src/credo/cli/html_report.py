"""The report: one HTML file with everything inside, readable on a phone, dark or light as the device is."""

from __future__ import annotations

import base64
import html
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from credo.core.text import visible
from credo.sessions.run_summary import RowCounts, Summary

__all__ = ["Grid", "Line", "Picture", "Section", "document", "page"]

CLASSES = (
    "Each class against all others. By chance the AUC is 0.5, and the average precision is the share of the "
    "class; the log loss is the NLPD of the rows of the class. AUC and average precision are computed from "
    "bins of the probability; ± is the most by which the AUC can be wrong."
)


class Line(NamedTuple):
    """A line of a table, as text: its name, its numbers, and what it means."""

    name: str
    numbers: tuple[str, ...]
    meaning: str = ""


class Grid(NamedTuple):
    """A table: the heads of its columns of numbers, and its lines."""

    heads: tuple[str, ...]
    lines: list[Line]


class Picture(NamedTuple):
    """A plot, and its caption."""

    png: bytes
    caption: str


class Section(NamedTuple):
    """A part of a page: its title, its sentences, and a table whose first column is called `first`."""

    title: str
    sentences: list[str]
    grid: Grid
    first: str


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


def page(
    data: Summary,
    scores: Grid,
    classes: Grid | None,
    pictures: dict[str, Picture],
    hints: list[str],
    sections: Sequence[Section] = (),
) -> str:
    """The page of what metrics.json holds: verdict, plots, scores, and all other tables folded."""
    target = escape(data["target"])
    rows = data["rows"]
    verdict = data["verdict"][0].upper() + data["verdict"][1:] + "."
    speed = (
        f"{rows['learned']:,} rows learned in all; this run took {data['seconds']:.1f} s "
        f"({data['rows_per_second']:,.0f} rows/s)"
    )
    parts = [
        f'<p class="soft">{data["task"].capitalize()} of <code>{target}</code>: {speed}.</p>',
        f'<p class="verdict">{escape(verdict)}</p>',
        *(f"<p>{escape(sentence)}</p>" for sentence in (data["bank"]["short"] if "bank" in data else [])),
        _gallery(pictures),
    ]
    table = "<p>Every row was predicted before it was learned from: these numbers are about unseen rows.</p>"
    table += _table(scores, "metric", "meaning")
    if "last_value_baseline" in data:
        word, value = next(iter(data["last_value_baseline"].items()))
        if value == value:
            table += f'<p class="soft">For information: repeating the last value has {word} {value:.4g}.</p>'
    parts.append(_fold("Scores", table, shown=True))
    if classes is not None:
        parts.append(_fold("Classes", f"<p>{escape(CLASSES)}</p>" + _table(classes, "class")))
    if "changes" in data:
        parts.append(_list("Changes", data["changes"]["sentences"]))
    parts += [_section(section) for section in sections]
    parts.append(_list("Notes", [*hints, *data["notes"]]))
    parts.append(_list("Rows", _row_sentences(rows)))
    parts.append(_settings(data["settings"]))
    return _whole(data["source"], parts, "credo learn", data["versions"])


def document(
    title: str,
    sentence: str,
    verdict: str,
    scores: Grid,
    pictures: dict[str, Picture],
    notes: list[str],
    settings: Mapping[str, object],
    command: str,
    versions: Mapping[str, str],
) -> str:
    """A page about something else than rows that were learned; settings that are None are left out."""
    parts = [
        f'<p class="soft">{escape(sentence)}</p>',
        f'<p class="verdict">{escape(verdict)}</p>',
        _table(scores, "", "meaning"),
        _gallery(pictures),
        _list("Notes", notes),
        _settings(settings),
    ]
    return _whole(title, parts, command, versions)


def _whole(title: str, parts: list[str], command: str, versions: Mapping[str, str]) -> str:
    """The HTML around the parts of a page."""
    name = escape(title)
    top = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{name}: credo</title><style>{_STYLE}</style></head><body><main>",
        f"<h1>{name}</h1>",
    ]
    programs = ", ".join(f"{escape(program)} {escape(value)}" for program, value in versions.items())
    end = f"<footer>Made by {command} with {programs}.</footer></main></body></html>"
    return "\n".join(part for part in [*top, *parts, end] if part) + "\n"


def _settings(settings: Mapping[str, object]) -> str:
    lines = "".join(
        f"<tr><td>{escape(name.replace('_', ' '))}</td><td><code>{escape(str(value))}</code></td></tr>"
        for name, value in settings.items()
        if value is not None
    )
    return _fold("Settings", f'<div class="wide"><table>{lines}</table></div>')


def _fold(title: str, content: str, *, shown: bool = False) -> str:
    """A part of a page that can be folded, and is so unless it is `shown`."""
    mark = " open" if shown else ""
    return f"<details{mark}><summary><h2>{escape(title)}</h2></summary>{content}</details>"


def _gallery(pictures: dict[str, Picture]) -> str:
    if not pictures:
        return ""
    parts = ['<h2>Plots</h2><div class="plots">']
    for name, picture in pictures.items():
        coded = base64.b64encode(picture.png).decode()
        parts.append(
            f'<figure><img alt="{escape(name)} plot" src="data:image/png;base64,{coded}">'
            f"<figcaption>{escape(picture.caption)}</figcaption></figure>"
        )
    return "\n".join([*parts, "</div>"])


def _table(grid: Grid, first: str, last: str = "") -> str:
    heads = "".join(f'<th class="n">{escape(head)}</th>' for head in grid.heads)
    top = f"<th>{escape(first)}</th>{heads}" + (f"<th>{escape(last)}</th>" if last else "")
    body = ""
    for line in grid.lines:
        numbers = "".join(f'<td class="n">{escape(cell)}</td>' for cell in line.numbers)
        meaning = f"<td>{escape(line.meaning)}</td>" if last else ""
        body += f"<tr><td><code>{escape(line.name)}</code></td>{numbers}{meaning}</tr>"
    kind = ' class="told"' if last else ""
    return f'<div class="wide"><table{kind}><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'


def _section(section: Section) -> str:
    text = "".join(f"<p>{escape(sentence)}</p>" for sentence in section.sentences)
    return _fold(section.title, text + _table(section.grid, section.first))


def _list(title: str, sentences: list[str]) -> str:
    items = "".join(f"<li>{escape(sentence)}</li>" for sentence in sentences if sentence)
    if items:
        return f"<h2>{title}</h2><ul>{items}</ul>"
    return ""


def _row_sentences(rows: RowCounts) -> list[str]:
    sentences = [f"{rows['read']:,} read, {rows['learned']:,} learned from, {rows['scored']:,} scored"]
    sentences += rows["bad"]
    if rows["refused"]:
        sentences.append(f"{rows['refused']:,} rows would have made the belief infinite and were left out")
    if rows["restarts"]:
        at = ", ".join(f"{row:,}" for row in rows["restarts"][:5])
        sentences.append(
            f"the belief began again from the prior {len(rows['restarts']):,} times, first after rows {at}"
        )
    for cells, words in (
        (rows["missing_cells"], "missing or infinite cells"),
        (rows["unseen_categories"], "cells of an unseen category"),
    ):
        if cells:
            counts = ", ".join(f"{column} {count:,}" for column, count in cells.items())
            sentences.append(f"{words}: {counts}")
    return sentences
