"""A finished experiment: its table, and where its files lie."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from credo.core.files import json_bytes
from credo_papers.engine.experiment import Size
from credo_papers.engine.plain_data import Json
from credo_papers.engine.printing import print_table
from credo_papers.engine.quantities import Row

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["Result"]


@dataclass(frozen=True)
class Result:
    """A finished experiment: its table, and where its files lie.

    Arguments:
        name, title, source: the name, the title and the source of the experiment.
        size, seed: with which it ran.
        rows: the table.
        settings, seeds: see `Outcome`.
        versions: of credo, JAX, NumPy and Python.
        device: what JAX computed on.
        seconds: wall time of the computation, with compilation and without drawing; for pieces that an
            earlier run finished, the time that they took then.
        folder: where the files lie.
        files: their names, `results.json` last.
        messages: sentences for the reader, such as why there is no figure.

    Example:
        >>> from credo_papers import reproduce
        >>> reproduce("kf-tracking", progress=False).files
        ('data.csv', 'data.npz', 'kf-tracking.png', 'results.json')
    """

    name: str
    title: str
    source: str
    size: Size
    seed: int
    rows: tuple[Row, ...]
    settings: Mapping[str, Json]
    seeds: Mapping[str, Json]
    versions: Mapping[str, str]
    device: str
    seconds: float
    folder: Path
    files: tuple[str, ...]
    messages: tuple[str, ...] = field(default=())

    def show(self, console: Console | None = None) -> None:
        """Print the table, where the files lie, and any message.

        Arguments:
            console: a rich console; None means standard output.
        """
        run = f"{self.size} size, seed {self.seed}, {self.seconds:.1f} s on {self.device}"
        place = f"Wrote {', '.join(self.files)} to {self.folder}"
        caption = f"{self.source}; {run}"
        print_table(self.name, self.title, caption, self.rows, (place, *self.messages), console)

    def json(self) -> bytes:
        """Return the contents of `results.json`."""
        fields = asdict(self)
        fields["folder"] = str(self.folder)
        return json_bytes(fields)
