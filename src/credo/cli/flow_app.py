"""The commands of `credo flow`; what they do is imported when they run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from credo.cli.command_words import examples_of, flowing, starting
from credo.cli.flags import whole
from credo.core.errors import CredoError
from credo.core.integers import LARGEST_SEED

__all__ = ["flow"]

_EXAMPLES = """
Examples:

  credo flow train flow.toml
  credo flow train flow.toml --steps 500 --out runs/short
  credo flow train flow.toml --resume runs/flow-flow
  credo flow evaluate runs/flow-flow/operator.flow
  credo flow evaluate linear-10
  credo flow evaluate runs/flow-flow/operator.flow --tasks other.toml
"""

flow = App(
    name="flow",
    help="Train a Bayes rule: an operator that moves particles from the prior to the posterior.",
    help_epilogue=_EXAMPLES,
    help_format="plaintext",
    sort_key=6,
)

Seed = Annotated[int, whole(high=LARGEST_SEED)]


@flow.command(sort_key=1, help_epilogue=examples_of("flow train"))
@flowing
def train(
    config: Path,
    /,
    *,
    steps: Annotated[int | None, whole(1)] = None,
    seed: Seed | None = None,
    out: Path | None = None,
    resume: Path | None = None,
    quiet: Annotated[bool, Parameter(name=["--quiet", "-q"], negative="")] = False,
) -> int:
    """Train an operator on the tasks that a TOML file describes.

    The result is a folder with operator.flow, report.json, and report.html with the loss against the least
    that it can be, validation curves and pictures of particles. Training is saved after every chunk of steps;
    after Ctrl-C or a crash it goes on with --resume, and ends in the same bits as if it had never stopped.

    Parameters
    ----------
    config
        A TOML file with the tables tasks, operator and training.
    steps
        The number of gradient steps, instead of that in the file.
    seed
        The seed of all draws, instead of that in the file.
    out
        The folder for the results; by default runs/flow-NAME, with the name of the file.
    resume
        The folder of a training that was cut short, to continue it.
    quiet
        Print nothing but the table.
    """
    if out is not None and resume is not None:
        raise CredoError("--out and --resume exclude each other: a training continues in its own folder.")
    with starting():
        from credo.cli.flow_runs import Order, train_flow

    return train_flow(Order(config, steps, seed, out, resume, quiet))


@flow.command(sort_key=2, help_epilogue=examples_of("flow evaluate"))
@flowing
def evaluate(
    file: Path,
    /,
    *,
    tasks: Path | None = None,
    sequences: Annotated[int, whole(1)] = 16,
    stages: Annotated[int | None, whole(1)] = None,
    seed: Seed = 1,
    out: Path | None = None,
) -> int:
    """Score a trained operator on fresh sequences, stage by stage, and time its updates.

    Parameters
    ----------
    file
        An operator.flow of `credo flow train`, its folder, or the name of an operator that is shipped.
    tasks
        A TOML file whose tasks are used; by default those of the training.
    sequences
        The number of sequences.
    stages
        The number of updates in each sequence; by default as many as in validation.
    seed
        The seed of the sequences.
    out
        A JSON file for the scores.
    """
    with starting():
        from credo.cli.flow_runs import Examination, evaluate_flow

    return evaluate_flow(Examination(file, tasks, sequences, stages, seed, out))
