"""Parts that other distributions bring: entry points say where they are, and they load when asked for.

    credo.reproduce        a module with `names` and `reproduce`: experiments
    credo.records          a module whose import defines records, so that files can name them
    credo.flows.tasks      tasks that a training of a flow can name as their `kind`
    credo.flows.operators  operators, in the same way

The experiments on papers, and the agents and flows that only these need, are such a distribution. Nothing of
credo imports it.
"""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points

__all__ = ["PAPERS", "extensions", "extra", "missing"]

PAPERS = "pip install -e papers in a checkout of credo"
"""The command that installs the distribution of the experiments; nothing is published yet."""


def extra(name: str) -> str:
    """The command that installs the packages of an extra; nothing is published yet."""
    return f"pip install -e '.[{name}]' in a checkout of credo"


def extensions(group: str) -> dict[str, EntryPoint]:
    """The entry points of a group in the installed distributions, by name; `load()` gives what one names."""
    return {entry.name: entry for entry in entry_points(group=group)}


def missing(group: str) -> str:
    """The words that the refusal of an unknown name adds if nothing is installed that could bring it."""
    if extensions(group):
        return ""
    return f"; if it is of credo-papers: {PAPERS}"
