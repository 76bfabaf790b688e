"""The commands and their options; what they do is imported when they run, so that `--help` is quick.

`credo reproduce` asks the distribution that has the experiments, by the interface `Experiments`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal, Protocol, cast

from cyclopts import App, CycloptsError, Parameter

import credo
from credo.cli.bandit_app import bandit
from credo.cli.command_words import STREAM, examples_of, flowing, source_of, starting
from credo.cli.flags import DATA, DataFlags, LearnerFlags, RunFlags, SeriesFlags, ServeFlags, names, whole
from credo.cli.flow_app import flow
from credo.cli.keyed_app import keyed
from credo.core.errors import CredoError
from credo.core.extensions import PAPERS, extensions
from credo.core.integers import LARGEST_CHUNK, LARGEST_SEED

__all__ = ["Experiments", "Reproduction", "app", "flags_of", "load_experiments", "run_words"]

_EXAMPLES = """
Examples:

  credo learn mnist
  credo learn electricity --drift walk:3e-4
  credo learn prices.csv --target price --test new.csv
  cat log.jsonl | credo learn - --target clicked --predictions -
  credo learn prices.csv --resume runs/prices
  credo learn demand.csv --time hour --target load --horizon 24
  credo predict runs/prices new.csv --keep id --out p.csv
  credo keyed clicks.csv --key user --target bought --out runs/users
  credo bandit run statlog
  credo flow train flow.toml
  credo serve models --port 8000

Any command takes --debug, which shows where an error came from.
"""

app = App(
    name="credo",
    help="Online Bayesian learning: see one row, predict the next with honest uncertainty, learn from it.",
    help_epilogue=_EXAMPLES,
    help_format="plaintext",
    version=lambda: f"credo {credo.__version__}",
)
app.command(bandit)
app.command(flow)
app.command(keyed, sort_key=3, help_epilogue=examples_of("keyed"))

_NO_DATA_FLAGS = DataFlags()
_NO_LEARNER_FLAGS = LearnerFlags()
_NO_RUN_FLAGS = RunFlags()
_NO_SERIES_FLAGS = SeriesFlags()
_NO_SERVE_FLAGS = ServeFlags()


@app.command(sort_key=1, help_epilogue=examples_of("learn"))
@flowing
def learn(
    source: Annotated[str, Parameter(group=DATA)],
    /,
    *,
    data: DataFlags = _NO_DATA_FLAGS,
    learner: LearnerFlags = _NO_LEARNER_FLAGS,
    run: RunFlags = _NO_RUN_FLAGS,
    series: SeriesFlags = _NO_SERIES_FLAGS,
) -> int:
    """Learn from a stream of rows, predicting each row before learning from it.

    SOURCE is a named data set (see `credo datasets`), a CSV, TSV, JSON lines or Parquet file, or - for
    standard input. Files are read in their own order and need not fit in memory. The result is a table, and a
    folder with report.html, plots, metrics.json and the saved belief. With --horizon, the next steps of a
    series are forecast, and forecast.csv has those after the last row.

    Parameters
    ----------
    source
        A named data set, a file, or - for standard input.
    """
    if run.again and run.resume is None:
        raise CredoError("--again is for --resume; a new belief has learned from no row yet.")
    if run.keep and run.predictions is None:
        raise CredoError("--keep is for --predictions; name a file for them, or -.")
    with starting():
        from credo.cli.learning import learn_from
        from credo.cli.request import Request

    predictions = None if run.predictions is None else source_of(run.predictions)
    return learn_from(
        Request(source_of(source), data, learner, dataclasses.replace(run, predictions=predictions), series)
    )


@app.command(sort_key=2, help_epilogue=examples_of("predict"))
@flowing
def predict(
    saved: Path,
    file: str,
    /,
    *,
    out: str = "-",
    level: float = 0.9,
    strict: Annotated[bool, Parameter(negative="")] = False,
    spreadsheet: Annotated[bool, Parameter(negative="")] = False,
    keep: Annotated[str | Sequence[str], names()] = (),
    chunk: Annotated[int, whole(1, LARGEST_CHUNK)] = 500,
) -> int:
    """Predict the rows of a file with a saved belief; nothing is learned.

    The predictions are CSV: the row's line in the file and, for classes, the most probable one and all
    probabilities; for numbers, mean, standard deviation, and the interval that holds the target with the
    probability LEVEL.

    Parameters
    ----------
    saved
        A belief saved by `credo learn`, such as runs/prices/belief.credo, or the folder of its run.
    file
        A CSV, TSV, JSON lines or Parquet file, or - for standard input; the target column may be absent.
    out
        The file for the predictions; - is standard output.
    level
        The probability of the interval.
    strict
        Stop at the first bad row; by default bad rows are reported and skipped.
    spreadsheet
        Write labels that begin with =, +, - or @ so that no spreadsheet reads them as formulas.
    keep
        Columns of the file to copy beside the predictions, separated by commas, such as an id.
    chunk
        Rows per compiled call.
    """
    if not 0 < level < 1:
        raise CredoError(f"--level must be between 0 and 1, such as 0.9; got {level:g}.")
    from credo.cli.prediction import predict_file

    return predict_file(
        saved, source_of(file), source_of(out), level, strict, spreadsheet, chunk, tuple(keep)
    )


@app.command(sort_key=3, help_epilogue=examples_of("reproduce"))
@flowing
def reproduce(
    name: str | None = None,
    /,
    *,
    quick: Annotated[bool, Parameter(negative="")] = False,
    full: Annotated[bool, Parameter(negative="")] = False,
    seed: Annotated[int, whole(high=LARGEST_SEED)] = 0,
    out: Path | None = None,
    jobs: Annotated[int | None, whole(1)] = None,
    ray: str | None = None,
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
        The seed of the data and the draws.
    out
        The folder in which a folder NAME is made; by default runs/reproduce.
    jobs
        Compute the parts of a long experiment in this many processes of one thread; the numbers are the same.
    ray
        The address of a cluster of Ray that runs these processes, or local.
    """
    if quick and full:
        raise CredoError("--quick and --full exclude each other; give one of them.")

    experiments = load_experiments()
    if name is None:
        _listing("experiment", experiments.names(), "Run one with: credo reproduce NAME")
        return 0
    size: Literal["quick", "full"] = "full" if full else "quick"
    result = experiments.reproduce(name, size=size, seed=seed, out=out, jobs=jobs, ray=ray)
    result.show()
    return 0


@app.command(sort_key=4, help_epilogue=examples_of("serve"))
@flowing
def serve(
    folder: Path,
    /,
    *,
    flags: ServeFlags = _NO_SERVE_FLAGS,
) -> int:
    """Serve models over HTTP: they learn, answer and wait for labels, and lose nothing acknowledged.

    Models are added with PUT /v1/models/NAME. FOLDER has their journal, which is enough to bring all of them
    back, and snapshots. After SIGTERM or Ctrl-C, all rows that came are first learned and saved.

    Parameters
    ----------
    folder
        The folder of the service; it is created if it does not exist.
    """
    from credo.cli.serving import serve_folder

    return serve_folder(folder, flags)


@app.command(sort_key=4, help_epilogue=examples_of("datasets"))
def datasets() -> int:
    """List the data sets that can be learned from by name."""
    from credo.datasets import names

    _listing("data set", names(), "Learn from one with: credo learn NAME")
    return 0


@app.command(help_epilogue=examples_of("cache"))
@flowing
def cache(*, clear: Annotated[bool, Parameter(negative="")] = False) -> int:
    """Show the compiled programs that are kept between runs, or remove them.

    With them, a model starts at once if one of its kind and shape ran before. To keep none, set the
    environment variable CREDO_PROGRAMS to 0.

    Parameters
    ----------
    clear:
        Remove them.
    """
    from credo.cli.cache_table import cleared, show

    if clear:
        return cleared()
    return show()


def _listing(kind: str, entries: dict[str, str], hint: str) -> None:
    from rich.table import Table

    from credo.cli.progress import Screen

    console = Screen()
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(kind, no_wrap=True)
    table.add_column("what it is")
    for name, line in entries.items():
        table.add_row(name, line)
    console.print(table)
    console.print(f"\n{hint}")


def run_words(words: Sequence[str]) -> int:
    """Parse the words of a command line and run the command."""
    # A lone hyphen is standard input or output, which the parser would take for an option.
    words = [STREAM if word == "-" else word for word in words]
    try:
        status: object = app(
            list(words) or ["--help"],
            exit_on_error=False,
            print_error=False,
            help_on_error=False,
            result_action="return_value",
        )
    except CycloptsError as error:
        if isinstance(error.__cause__, CredoError):
            raise error.__cause__ from None
        command = " ".join(error.command_chain or ())
        where = f"credo {command}".strip()
        raise CredoError(f"{_sentence(error).replace(STREAM, '-')} See {where} --help.") from None
    if isinstance(status, int):
        return status
    return 0


def flags_of(words: Sequence[str]) -> set[str]:
    """The flags of the command that the words of a command line begin with."""
    *_, command = app.parse_commands(words)[1]
    if command.default_command is None:
        return set()
    return {name for argument in command.assemble_argument_collection() for name in argument.names}


def _sentence(error: CycloptsError) -> str:
    text = " ".join(str(error).split()).strip()
    if text.endswith((".", "?", "!")):
        return text
    return f"{text}."


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
