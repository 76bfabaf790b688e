"""`--resume`: continue a saved session with the learner that was saved in it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from credo.cli.request import Request
from credo.core.errors import CredoError
from credo.sessions import Drift, Network, Posterior, Progress, RowSource, Session, after_line

__all__ = ["resume", "skip_known"]


def resume(request: Request, path: Path) -> Session:
    """The saved session.

    Raises:
        DataError: there is no such file.
        CredoError: a flag asks for another learner, or for other columns.
    """
    session = Session.load(path)
    saved = _saved(session)
    for name, choice in _choices(request).items():
        present = saved.get(name)
        if not _same(name, choice, present):
            option = "--" + name.replace("_", "-")
            value = "its own" if present is None else present
            raise CredoError(
                f"{path} was saved with {option} {value}, which cannot be changed to {choice} when "
                f"resuming; leave {option} out."
            )
    return session


def _choices(request: Request) -> dict[str, object]:
    """The flags that were given."""
    options, columns = request.options, request.columns
    learner: dict[str, object] = {
        "model": options.model,
        "posterior": options.posterior,
        "method": options.method,
        "curvature": options.curvature,
        "drift": options.drift,
        "prior_var": options.prior_var,
        "noise_var": options.noise_var,
        "learning_rate": options.learning_rate,
        "iterations": options.iterations,
        "seed": options.seed,
    }
    table: dict[str, object] = {
        "target": columns.target,
        "task": columns.task,
        "classes": columns.classes,
        "drop": columns.drop,
        "categorical": columns.categorical,
    }
    named = {name: value for name, value in table.items() if value}
    return {name: value for name, value in learner.items() if value is not None} | named


def _saved(session: Session) -> Mapping[str, object]:
    return {**session.settings.to_dict(), "target": session.encoding.target}


def _same(name: str, choice: object, present: object) -> bool:
    """Whether a flag says what was saved, however it is spelled."""
    if choice == present or not (isinstance(choice, str) and isinstance(present, str)):
        return choice == present
    if name == "model":
        return Network.parse(choice) == Network.parse(present)
    if name == "posterior" and present != "none":
        return Posterior.parse(choice) == Posterior.parse(present)
    return name == "drift" and Drift.parse(choice) == Drift.parse(present)


def skip_known(source: RowSource, progress: Progress, name: str) -> None:
    """Leave out the rows that an interrupted run over the same source has learned from.

    Arguments:
        source: the source, which is changed in place.
        progress: the progress of the earlier run.
        name: the SOURCE of the present run.
    """
    if not progress.interrupted or progress.source != name or name == "-":
        return
    line = progress.line
    source.rows = after_line(source.rows, line)
    source.sentences.append(f"going on after row {line:,} of {name}, where the earlier run was stopped")
    source.total = None if source.total is None else max(source.total - line, 1)
