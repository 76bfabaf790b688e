"""Options for keeping the models of a service. Nothing here uses JAX, or a package of the extra "serve"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from credo.core.errors import CredoError, Named
from credo.core.setting import Setting, require_settings

__all__ = ["ServiceOptions"]


@dataclass(frozen=True)
class ServiceOptions:
    """Options for saving the models of a service.

    Arguments:
        snapshot_rows: after how many lines a model is saved.
        snapshot_seconds: after how many seconds with new lines it is saved.
        remember: for how many days ids are known; None for as long as their lines are in the journal.
        keep: how many days of lines stay in the journal, at least as many as ids are remembered; older ones
            move to files of Parquet. None keeps all.
        strict: whether rows must have the columns that a model began with, and no others.
        max_columns: the most columns of a row; a row with more is refused before it is written.

    Raises:
        CredoError: a number is not above 0, or ids are to be remembered for longer than lines are kept.

    Example:
        >>> ServiceOptions(snapshot_rows=1000).snapshot_seconds
        60.0
    """

    snapshot_rows: Annotated[int, Setting("Save a model after so many lines.", low=1)] = 10_000
    snapshot_seconds: Annotated[
        float, Setting("Save a model with new lines after so many seconds.", positive=True)
    ] = 60.0
    remember: Annotated[
        float | None,
        Setting(
            "Remember ids for this many days; by default as long as their rows are in the journal.",
            positive=True,
        ),
    ] = None
    keep: Annotated[
        float | None,
        Setting(
            "Keep this many days of rows in the journal, and move older ones to files of Parquet; by default "
            "all.",
            positive=True,
        ),
    ] = None
    strict: Annotated[
        bool,
        Setting("Refuse rows that lack a column with which their model began, or bring another one."),
    ] = False
    max_columns: Annotated[int, Setting("Refuse rows with more columns than this.", low=1)] = 4_096

    def __post_init__(self) -> None:
        require_settings(self)
        if self.keep is not None and (self.remember or 0.0) > self.keep:
            raise CredoError(
                f"remember must be at most as many days as {Named('keep')}, {self.keep:g}; "
                f"got {self.remember:g}.",
                field="remember",
            )
