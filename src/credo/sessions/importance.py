"""Permutation importance: how much worse the forecasts of a session get if a column is shuffled."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from credo.core.errors import CredoError, DataError
from credo.live.encoding import Block, Encoding, TableEncoding
from credo.live.intake import Rows, blocks_of
from credo.live.series import SeriesEncoding
from credo.sessions.session import Session
from credo.sessions.tally import BLOCKS
from credo.tables import Chunk, Schema

__all__ = ["Importance", "no_table", "permutation_importance"]

LEAST = 20
"""The fewest rows whose cells are worth shuffling."""


@dataclass(frozen=True)
class Importance:
    """The effect of shuffling each of D columns on the forecasts of N rows, by falling rise of the NLPD.

    Attributes:
        rows: N, the rows that were scored.
        columns: the names of the columns (D,).
        nlpd: by how much the mean NLPD rises, in nats a row (D,).
        nlpd_se: its standard error, from the N differences (D,).
        loss: by how much the share of wrong classes, or the root mean squared error, rises (D,).
        base_nlpd: the mean NLPD of the rows as they are.
        base_loss: their share of wrong classes, or root mean squared error.

    Example:
        >>> Importance(50, ("a",), np.ones(1), np.ones(1), np.ones(1), 0.5, 0.1).columns
        ('a',)
    """

    rows: int
    columns: tuple[str, ...]
    nlpd: np.ndarray
    nlpd_se: np.ndarray
    loss: np.ndarray
    base_nlpd: float
    base_loss: float


def permutation_importance(
    session: Session,
    rows: Rows | Iterable[Chunk],
    *,
    most: int | None = None,
    repeats: int = 1,
    seed: int = 0,
) -> Importance:
    """Score rows with the cells of one column given to other rows, and compare with the rows as they are.

    With pi(n) the row after row n in a random order of all N, so that no row keeps its own cell,

        rise_j = 1/N sum_n (nlpd(x_n with the cells of column j of x_pi(n)) - nlpd(x_n))

    which is Breiman, "Random forests", 2001, section 10, in the form of Fisher, Rudin and Dominici, "All
    models are wrong, but many are useful", 2019, equation 3.3. Nothing is learned. Rows that were not learned
    from give what a column is worth for new rows. Columns that say the same share what they say, so that each
    can come out low. All features of a column move together, but for the one that all columns share, which
    says that some value is missing. The standard error is over rows, for these orders.

    Arguments:
        session: a session of a table.
        rows: at least 20 rows with targets, see `Rows`, or their chunks; bad ones are left out.
        most: the most rows that are scored, evenly spread; None for all.
        repeats: how many random orders each column gets.
        seed: the seed of the orders.

    Returns:
        What each column of the schema is worth.

    Raises:
        DataError: rows are images, or fewer than 20 of them can be scored.
        CredoError: the session is one of images or of a series, or `repeats` is below 1.

    Cost: 1 + `repeats` D forecasts of N rows.

    Example:
        >>> rows = [{"a": float(i % 7), "b": float(i % 5), "y": 2.0 * (i % 7)} for i in range(120)]
        >>> session = Session.from_rows(rows[:60], "y", model="linear")
        >>> _ = session.learn(rows[:60])
        >>> found = permutation_importance(session, rows[60:])
        >>> found.columns, bool(found.nlpd[0] > 10 * abs(found.nlpd[1]))
        (('a', 'b'), True)
    """
    encoding = session.encoding
    if what := no_table(encoding):
        raise CredoError(f"the session must be one of a table; got one of {what}.", field="session")
    assert isinstance(encoding, TableEncoding)
    if repeats < 1:
        raise CredoError(f"repeats must be at least 1; got {repeats}.", field="repeats")
    block = _encoded(encoding, rows)
    if len(block) < LEAST:
        raise DataError(f"rows must be at least {LEAST} that can be scored; got {len(block)}.", field="rows")
    if most is not None and len(block) > most:
        places = np.linspace(0, len(block) - 1, max(most, LEAST)).astype(int)
        block = Block(block.x[places], block.y[places], block.lines[places], len(places))
    own = _losses(session, block)
    random = np.random.default_rng(seed)
    count = len(block)
    columns = _features(encoding.schema)
    rises = np.zeros((len(columns), count, 2))
    for rise, features in zip(rises, columns.values(), strict=True):
        for _ in range(repeats):
            order = random.permutation(count)
            x = block.x.copy()
            x[order, features] = block.x[np.roll(order, -1), features]
            rise += (_losses(session, replace(block, x=x)) - own) / repeats
    nlpd = rises[:, :, 0].mean(axis=1)
    after = (rises[:, :, 1] + own[:, 1]).mean(axis=1)
    root = np.sqrt if session.regression else np.asarray
    base = float(root(own[:, 1].mean()))
    ranked = np.argsort(-nlpd, kind="stable")
    names = list(columns)
    return Importance(
        count,
        tuple(names[place] for place in ranked),
        nlpd[ranked],
        rises[ranked, :, 0].std(axis=1, ddof=1) / np.sqrt(count),
        (root(after) - base)[ranked],
        float(own[:, 0].mean()),
        base,
    )


def no_table(encoding: Encoding) -> str:
    """The kind of rows, if they have no columns to compare; "" for those of a table."""
    if isinstance(encoding, SeriesEncoding):
        return "a series"
    if isinstance(encoding, TableEncoding):
        return ""
    return "images"


def _encoded(encoding: TableEncoding, rows: Rows | Iterable[Chunk]) -> Block:
    """All usable rows in one block."""
    chunks = isinstance(rows, Sequence) and len(rows) and isinstance(rows[0], Chunk)
    parts: Any = rows if chunks else [rows]
    blocks = [block for part in parts for block in blocks_of(part, encoding, learn=False)]
    if not blocks:
        return Block(np.zeros((0, *encoding.shape)), np.zeros(0), np.zeros(0, int), 0)
    x, y, lines = (np.concatenate([getattr(one, name) for one in blocks]) for name in ("x", "y", "lines"))
    return Block(x, y, lines, len(lines))


def _features(schema: Schema) -> dict[str, slice]:
    """The places of the features of each column in a row."""
    ends = np.cumsum([len(column.features) for column in schema.columns])
    late = schema.first_width + np.cumsum([len(column.features) for column in schema.late])
    return {
        column.name: slice(int(end) - len(column.features), int(end))
        for columns, stops in ((schema.columns, ends), (schema.late, late))
        for column, end in zip(columns, stops, strict=True)
    }


def _losses(session: Session, block: Block) -> np.ndarray:
    """NLPD, and 0/1 or squared error, of each row (N, 2)."""
    parts: list[np.ndarray] = []
    for start in range(0, len(block), BLOCKS):
        part = slice(start, start + BLOCKS)
        lines = block.lines[part]
        tally = session.test(Block(block.x[part], block.y[part], lines, len(lines)))
        parts.append(np.stack([tally.block_sums("nlpd"), tally.block_sums("loss")], axis=1))
    return np.concatenate(parts)
