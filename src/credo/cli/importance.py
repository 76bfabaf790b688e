"""What `credo learn` says of how much each column matters: the rows, a sentence, a table and a picture."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from credo.cli.html_report import Grid, Line, Picture, Section
from credo.cli.request import Request
from credo.core.errors import CredoError
from credo.live.encoding import Images
from credo.plots import COMPACT_PALETTE, compact_figure, shortened
from credo.sessions import RowSource, Session, TableEncoding, permutation_importance
from credo.sessions.importance import no_table
from credo.sessions.run_summary import ImportanceSummary
from credo.tables import Chunk

__all__ = ["Comparison", "draw", "measure", "section", "sentence"]

# The most rows that are forecast for each column; if there are many columns, so many rows and columns
# together, and at least `FEWEST` rows.
MOST = 400
FEWEST = 50
CELLS = 40_000

WIDE = 200
"""From more columns on they are compared only if that is asked for, since each is forecast again."""

# The most columns in the picture and in the sentence, and the longest name in the picture.
SHOWN = 20
NAMED = 5
LONGEST = 30

HELD_OUT = "held-out rows"
LATEST = "latest rows, after they were learned from"


class Comparison:
    """What measures how much each column matters, on the held-out rows of a run, or else on its latest rows,
    which are noted as they pass.

    Raises:
        CredoError: it was asked for, and there are no columns to compare.
    """

    def __init__(self, request: Request, session: Session, source: RowSource) -> None:
        encoding = session.encoding
        asked = request.run.importance
        what = no_table(encoding)
        if asked and what:
            raise CredoError(f"--importance is for the columns of a table; got {what}.")
        self._session = session
        self._latest = list[Chunk | Images]()
        self._held_out = bool(source.test) or request.data.test is not None
        few = isinstance(encoding, TableEncoding) and len(encoding.schema.columns) <= WIDE
        self._wanted = not what and (self._held_out and few if asked is None else asked)
        if self._wanted and not self._held_out:
            source.rows = self._noted(source.rows)

    def _noted(self, rows: Iterable[Chunk | Images]) -> Iterator[Chunk | Images]:
        """The chunks of a source; the latest, with at least `MOST` rows if so many have come, are kept."""
        for chunk in rows:
            self._latest.append(chunk)
            while sum(map(len, self._latest[1:])) >= MOST:
                del self._latest[0]
            yield chunk

    def finish(self, held_out: list[Chunk | Images], sentences: list[str]) -> ImportanceSummary | None:
        """How much each column matters, if that is wanted; if it cannot be measured, a sentence says why."""
        if not self._wanted:
            return None
        rows = held_out if self._held_out else self._latest
        found, why = measure(self._session, rows, held_out=self._held_out)
        sentences += [why] if why else []
        return found


def measure(
    session: Session, chunks: Iterable[Chunk | Images], *, held_out: bool
) -> tuple[ImportanceSummary | None, str]:
    """How much each column matters, over at most `MOST` of some rows; or None, and why."""
    tables = [chunk for chunk in chunks if isinstance(chunk, Chunk) and len(chunk)]
    if not tables:
        return None, ""
    most = max(FEWEST, min(MOST, CELLS // len(session.encoding.features)))
    try:
        found = permutation_importance(session, tables if held_out else _latest(tables, most), most=most)
    except CredoError as error:
        return None, f"importance of the columns: {error}"
    loss = "rmse" if session.regression else "error"
    numbers = zip(found.columns, *(found.nlpd, found.nlpd_se, found.loss), strict=True)
    return {
        "rows": found.rows,
        "of": HELD_OUT if held_out else LATEST,
        "columns": {
            name: {"nlpd": float(nlpd), "nlpd_se": float(error), loss: float(rise)}
            for name, nlpd, error, rise in numbers
        },
    }, ""


def _latest(tables: list[Chunk], most: int) -> list[Chunk]:
    """The latest rows, so many or all."""
    extra = sum(map(len, tables)) - most
    if extra <= 0:
        return tables
    return [tables[0].part(extra, len(tables[0])), *tables[1:]]


def _matters(column: dict[str, float]) -> bool:
    return column["nlpd"] > 2 * column["nlpd_se"]


def sentence(found: ImportanceSummary) -> str:
    """The columns that matter most."""
    most = [(name, one) for name, one in found["columns"].items() if _matters(one)]
    if not most:
        return (
            "Forecasts do not get clearly worse if the cells of any one column are shuffled over the "
            f"{found['rows']} {found['of']}."
        )
    shown = ", ".join(f"{name} {one['nlpd']:.3g}" for name, one in most[:NAMED])
    rest = len(found["columns"]) - min(len(most), NAMED)
    others = f" (of {len(found['columns'])} columns)" if rest else ""
    return (
        "What matters most, by the rise of the NLPD in nats a row if a column is shuffled over the "
        f"{found['rows']} {found['of']}: {shown}{others}."
    )


def section(found: ImportanceSummary) -> Section:
    """The table of all columns."""
    loss = "RMSE" if any("rmse" in one for one in found["columns"].values()) else "error"
    lines = [
        Line(name, (f"{one['nlpd']:+.4f}", f"{one['nlpd_se']:.4f}", f"{one[loss.lower()]:+.4g}"))
        for name, one in found["columns"].items()
    ]
    heads = ("rise of NLPD (nats a row)", "standard error", f"rise of {loss}")
    return Section("Importance of the columns", [_meaning(found)], Grid(heads, lines), "column")


def _meaning(found: ImportanceSummary) -> str:
    return (
        f"How much worse forecasts get if the cells of a column are shuffled over the {found['rows']} "
        f"{found['of']}. Columns that say the same share what they say, so that each can look unimportant."
    )


def draw(found: ImportanceSummary) -> Picture:
    """The columns that matter most, with bars of two standard errors to each side."""
    names = list(found["columns"])[:SHOWN][::-1]
    columns = [found["columns"][name] for name in names]
    rise, error = (np.array([one[key] for one in columns]) for key in ("nlpd", "nlpd_se"))
    matter = np.array([_matters(one) for one in columns])
    colours = np.where(matter, COMPACT_PALETTE["blue"], COMPACT_PALETTE["grey"])
    with compact_figure() as drawing:
        drawing.figure.set_size_inches(7.2, 1.3 + 0.27 * max(len(names), 4))
        axes = drawing.panels[0]
        places = np.arange(len(names))
        axes.barh(places, rise, xerr=2 * error, height=0.6, color=colours, ecolor="black", capsize=2)
        axes.axvline(0.0, color=COMPACT_PALETTE["grey"], linewidth=1.0)
        axes.set_yticks(places, [shortened(name, LONGEST) for name in names], fontsize=9)
        axes.set_ylim(-0.7, len(names) - 0.3)
        axes.set_xlabel("rise of the NLPD if the column is shuffled (nats a row)")
        axes.grid(visible=False, axis="y")
    return Picture(
        drawing.png,
        f"{_meaning(found)} Lines are two standard errors to each side; grey is no clear difference.",
    )
