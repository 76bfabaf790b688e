"""The commands and their options; what they do is imported when they run, so that `--help` is quick."""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, CycloptsError, Group, Parameter

import credo
from credo.core.errors import CredoError, require_integer

__all__ = ["app", "run"]

_EXAMPLES = """
Examples:

  credo learn mnist
  credo learn electricity --drift walk:1e-5
  credo learn prices.csv --target price --test new.csv
  cat log.jsonl | credo learn - --target clicked
  credo predict runs/prices/belief.credo new.csv --out p.csv

Any command takes --debug, which shows where an error came from.
"""

app = App(
    name="credo",
    help="Online Bayesian learning: see one row, predict the next with honest uncertainty, learn from it.",
    help_epilogue=_EXAMPLES,
    help_format="plaintext",
    version=lambda: f"credo {credo.__version__}",
)

_DATA = Group("Data", sort_key=1)
_LEARNER = Group("Learner (all of it has defaults)", sort_key=2)
_RUN = Group("Output and resuming", sort_key=3)


_STREAM = "<->"


def _named(word: str) -> str:
    return "-" if word == _STREAM else word


def _flowing(command: Any) -> Any:
    """Join the lines of each paragraph of a command's help, which is then wrapped to the terminal."""
    text, _, rest = inspect.cleandoc(command.__doc__).partition("\nParameters\n")
    paragraphs = [" ".join(part.split()) for part in text.split("\n\n")]
    rest = re.sub(r"\n {4}(\S.*(?:\n {4,}\S.*)+)", lambda found: "\n    " + " ".join(found[1].split()), rest)
    command.__doc__ = "\n\n".join([*paragraphs, f"Parameters\n{rest}"])
    return command


def _list(text: str | None) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()] if text else []


@app.command(sort_key=1)
@_flowing
def learn(
    source: Annotated[str, Parameter(group=_DATA)],
    /,
    *,
    target: Annotated[str | None, Parameter(group=_DATA)] = None,
    task: Annotated[str | None, Parameter(group=_DATA)] = None,
    classes: Annotated[str | None, Parameter(group=_DATA)] = None,
    drop: Annotated[str | None, Parameter(group=_DATA)] = None,
    categorical: Annotated[str | None, Parameter(group=_DATA)] = None,
    test: Annotated[Path | None, Parameter(group=_DATA)] = None,
    test_rows: Annotated[int | None, Parameter(group=_DATA)] = None,
    limit: Annotated[int | None, Parameter(group=_DATA)] = None,
    shuffle: Annotated[bool | None, Parameter(group=_DATA)] = None,
    strict: Annotated[bool, Parameter(group=_DATA, negative="")] = False,
    model: Annotated[str | None, Parameter(group=_LEARNER)] = None,
    posterior: Annotated[str | None, Parameter(group=_LEARNER)] = None,
    method: Annotated[str | None, Parameter(group=_LEARNER)] = None,
    curvature: Annotated[str | None, Parameter(group=_LEARNER)] = None,
    drift: Annotated[str | None, Parameter(group=_LEARNER)] = None,
    prior_var: Annotated[float | None, Parameter(group=_LEARNER, allow_leading_hyphen=True)] = None,
    noise_var: Annotated[float | None, Parameter(group=_LEARNER, allow_leading_hyphen=True)] = None,
    learning_rate: Annotated[float | None, Parameter(group=_LEARNER, allow_leading_hyphen=True)] = None,
    iterations: Annotated[int | None, Parameter(group=_LEARNER, allow_leading_hyphen=True)] = None,
    seed: Annotated[int | None, Parameter(group=_LEARNER)] = None,
    out: Annotated[Path | None, Parameter(group=_RUN)] = None,
    save: Annotated[Path | None, Parameter(group=_RUN)] = None,
    resume: Annotated[Path | None, Parameter(group=_RUN)] = None,
    chunk: Annotated[int | None, Parameter(group=_RUN)] = None,
    quiet: Annotated[bool, Parameter(name=["--quiet", "-q"], group=_RUN, negative="")] = False,
) -> int:
    """Learn from a stream of rows, predicting each row before learning from it.

    SOURCE is a named data set (see `credo datasets`), a CSV, TSV, JSON lines or Parquet file, or - for
    standard input. Files are read in their own order and need not fit in memory. The result is a table, and a
    folder with report.html, plots, metrics.json and the saved belief.

    Parameters
    ----------
    source
        A named data set, a file, or - for standard input.
    target
        The column to predict; needed for files.
    task
        classification or regression; by default it is inferred from the target, and said.
    classes
        All class labels, separated by commas, where the first rows may not show them all.
    drop
        Columns to leave out, separated by commas.
    categorical
        Columns that are categories although they look like numbers, separated by commas.
    test
        A file of held-out rows, scored after learning.
    test_rows
        How many held-out rows of a named data set are scored; 0 for all, -1 for none. Images: 1000, others:
        all.
    limit
        The most rows to learn from; 0 for all. Images: 2000, others: all.
    shuffle
        Whether the rows of a named data set are shuffled by the seed; by default unless it is a stream.
    strict
        Stop at the first bad row; by default bad rows are counted, reported and skipped.
    model
        linear, mlp:WIDTH,WIDTH,... or cnn.
    posterior
        full, diagonal or low-rank:RANK.
    method
        A posterior by natural gradients: bong (one step for each row; the default) or blr (several); by plain
        ones: bog or bbb. Or a gradient baseline without a posterior: sgd, momentum, adam, replay.
    curvature
        How a row's information is measured: lin-hess (the model linearised; the default), lin-ef (cheaper,
        and far too sure where predictions are bad), or with draws from the posterior: mc-hess (slow on
        networks), mc-ef.
    drift
        How the world may change. Gradually: none, walk:Q, ou:GAMMA, inflation:ALPHA, decay:GAMMA or
        shrink-perturb:SHRINK,SD. At once, which has a meaning only for rows in order (files, streams):
        run-length:HAZARD,CAPACITY keeps the likeliest times of the latest change and reports changes
        (by default 0.005,5), soft-reset:HAZARD goes back to the prior as far as a row asks for it (0.05).
        mixture:SWITCHING weighs experts that walk at different speeds (0.01).
    prior_var
        The scale of the prior variances: a weight's variance is this over its fan-in.
    noise_var
        The noise variance of a regression, in units of the target's variance; by default it is learned.
    learning_rate
        Of blr (at most 1; 0.5 by default), bog (0.01), bbb (0.001) and the gradient baselines.
    iterations
        Steps for each row, of blr and bbb (5 by default), or relinearisations of bong (1).
    seed
        Of the initial weights, of the order of the rows and of draws; 0 by default.
    out
        The folder for the results; by default runs/SOURCE, or the next free number.
    save
        A further file for the saved belief.
    resume
        A saved belief to go on from; the learner's options are those it was saved with.
    chunk
        Rows per compiled call, and between two looks at the progress; results do not depend on it.
    quiet
        Say nothing but the table.
    """
    for option, value, least in (("--limit", limit, 0), ("--seed", seed, 0), ("--chunk", chunk, 1)):
        if value is not None:
            require_integer(option, value, least)
    if test_rows is not None:
        require_integer("--test-rows", test_rows, -1)
    from credo.cli.learning import Request, learn_from
    from credo.cli.sources import Table

    table = Table(target, task, _list(classes) or None, _list(drop), _list(categorical), strict)
    learner = {
        "model": model,
        "posterior": posterior,
        "method": method,
        "curvature": curvature,
        "drift": drift,
        "prior_var": prior_var,
        "noise_var": noise_var,
        "learning_rate": learning_rate,
        "iterations": iterations,
        "seed": seed,
    }
    request = Request(
        _named(source), table, learner, test, test_rows, limit, shuffle, out, save, resume, chunk, quiet
    )
    return learn_from(request)


@app.command(sort_key=2)
@_flowing
def predict(
    saved: Path,
    file: str,
    /,
    *,
    out: str = "-",
    level: float = 0.9,
    strict: Annotated[bool, Parameter(negative="")] = False,
    chunk: int = 500,
) -> int:
    """Predict the rows of a file with a saved belief; nothing is learned.

    The predictions are CSV: the row's line in the file and, for classes, the most probable one and all
        probabilities; for numbers, mean, standard deviation, and the interval that holds the target with the
        probability LEVEL.

    Parameters
    ----------
    saved
        A belief saved by `credo learn`, such as runs/prices/belief.credo.
    file
        A CSV, TSV, JSON lines or Parquet file, or - for standard input; the target column may be absent.
    out
        The file for the predictions; - is standard output.
    level
        The probability of the interval.
    strict
        Stop at the first bad row; by default bad rows are reported and skipped.
    chunk
        Rows per compiled call.
    """
    require_integer("--chunk", chunk, 1)
    if not 0 < level < 1:
        raise CredoError(f"--level must be between 0 and 1, such as 0.9; got {level:g}.")
    from credo.cli.prediction import predict_file

    return predict_file(saved, _named(file), _named(out), level, strict, chunk)


@app.command(sort_key=3)
@_flowing
def reproduce(
    name: str | None = None,
    /,
    *,
    quick: Annotated[bool, Parameter(negative="")] = False,
    full: Annotated[bool, Parameter(negative="")] = False,
    seed: int = 0,
    out: Path | None = None,
) -> int:
    """Run a published experiment again, beside the published numbers; lists them when none is named.

    Parameters
    ----------
    name
        The experiment.
    quick
        Fewer seeds, under a minute (the default).
    full
        All seeds.
    seed
        Of the data and the draws.
    out
        The folder in which a folder NAME is made; by default runs/reproduce.
    """
    if quick and full:
        raise CredoError("--quick and --full exclude each other; give one of them.")
    from credo import experiments

    if name is None:
        _listing("experiment", experiments.names(), "Run one with: credo reproduce NAME")
        return 0
    result = experiments.reproduce(name, size="full" if full else "quick", seed=seed, out=out)
    result.show()
    return 0


@app.command(sort_key=4)
def datasets() -> int:
    """List the data sets that can be learned from by name."""
    from credo.datasets import names

    _listing("data set", names(), "Learn from one with: credo learn NAME")
    return 0


def _listing(kind: str, entries: dict[str, str], hint: str) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(kind, no_wrap=True)
    table.add_column("what it is")
    for name, line in entries.items():
        table.add_row(name, line)
    console.print(table)
    console.print(f"\n{hint}", highlight=False)


def run(words: Sequence[str]) -> int:
    """Parse the words of a command line and run the command."""
    # A lone hyphen is standard input or output, which the parser would take for an option.
    words = [_STREAM if word == "-" else word for word in words]
    try:
        result: Any = app(
            list(words) or ["--help"],
            exit_on_error=False,
            print_error=False,
            help_on_error=False,
            result_action="return_value",
        )
    except CycloptsError as error:
        command = " ".join(error.command_chain or ())
        where = f"credo {command}".strip()
        raise CredoError(f"{_sentence(error).replace(_STREAM, '-')} See {where} --help.") from None
    return result if isinstance(result, int) else 0


def _sentence(error: CycloptsError) -> str:
    text = " ".join(str(error).split()).strip()
    return text if text.endswith((".", "?", "!")) else f"{text}."
