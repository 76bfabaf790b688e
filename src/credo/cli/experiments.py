"""The interface of `credo reproduce` to the distribution that has the experiments."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, Protocol, cast

from credo.core.errors import CredoError
from credo.core.extensions import PAPERS, extensions

__all__ = ["Experiments", "Reproduction", "load_experiments"]


class Reproduction(Protocol):
    """A finished experiment."""

    def show(self) -> None:
        """Print its table, and where its files lie."""
        ...


class Experiments(Protocol):
    """A module that knows experiments by name; the entry point `credo.reproduce` says where it is."""

    def names(self) -> dict[str, str]:
        """The name of every experiment with one line about it."""
        ...

    def reproduce(
        self,
        name: str,
        *,
        size: Literal["quick", "full"],
        seed: int,
        out: Path | None,
        jobs: int | None,
        ray: str | None,
    ) -> Reproduction:
        """Run an experiment and write its files."""
        ...


def load_experiments() -> Experiments:
    """The experiments of the distribution that is installed."""
    for entry in extensions("credo.reproduce").values():
        return cast(Experiments, entry.load())
    raise CredoError(f"the experiments are a distribution of their own, which is not installed: {PAPERS}.")
