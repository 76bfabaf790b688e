"""`credo flow evaluate`: scores of a trained operator on fresh sequences, and the time of its updates."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from credo import flows
from credo.cli.flow_train import OPERATOR, read_config, scores_section
from credo.cli.output import require_writable_file
from credo.cli.progress import note
from credo.cli.report import Report, show
from credo.core.errors import CredoError, FormatError
from credo.core.files import json_bytes, write_atomically
from credo.flows import FlowOperator, Tasks
from credo.flows.settings import read_settings
from credo.flows.storage import operator_file, read_tree

__all__ = ["Examination", "evaluate_flow"]

REPEATS = 20
"""The number of updates that are timed."""


class Examination(NamedTuple):
    """The words of `credo flow evaluate`; `file` is an operator's, or its folder, or a shipped name."""

    file: Path
    tasks: Path | None
    sequences: int
    stages: int | None
    seed: int
    out: Path | None


def evaluate_flow(words: Examination) -> int:
    """Score an operator, print the table, and write the scores."""
    if words.out is not None:
        require_writable_file(words.out, "--out")
    file = words.file / OPERATOR if words.file.is_dir() else operator_file(words.file)
    operator = flows.load_operator(file)
    settings = _settings(words, file)
    tasks = settings.tasks
    if tasks.dim != operator.dim:
        raise CredoError(
            f"{file} holds an operator of dimension {operator.dim}; the tasks have the dimension {tasks.dim}."
        )
    stages = settings.plan.stages if words.stages is None else words.stages
    kinds = f"{type(operator).__name__} on {type(tasks).__name__}"
    size = f"{words.sequences} sequences of {stages} updates"
    note(f"{kinds}: {size}")
    scored = jax.jit(
        lambda params: flows.validate(
            operator,
            params,
            tasks,
            jax.random.key(words.seed),
            sequences=words.sequences,
            stages=stages,
            loss=settings.plan.loss,
        )
    )
    table = {name: np.asarray(column) for name, column in scored(operator.params).items()}
    scores = {name: float(np.mean(column)) for name, column in table.items()}
    times = update_times(operator, tasks)
    took = (
        f"An update takes {times['update']:.2f} ms of processor time, and {times['with_density']:.2f} ms "
        "with the density."
    )
    show(Report(kinds, size, [scores_section(scores)], took))
    if words.out is not None:
        stagewise = {name: column.tolist() for name, column in table.items()}
        contents = {"format": 1, "scores": scores, "stages": stagewise, "milliseconds": times}
        write_atomically(words.out, json_bytes(contents))
    return 0


def _settings(words: Examination, file: Path) -> Any:
    if words.tasks is not None:
        return read_config(words.tasks)
    header, _ = read_tree(file, "operator")
    plain = header.get("notes", {}).get("settings")
    if not isinstance(plain, dict):
        raise FormatError(f"{file} does not say on what it was trained; name tasks with --tasks CONFIG.toml.")
    if plain.get("tasks", {}).get("kind") == "python":
        raise CredoError(
            f"{file} was trained on tasks of a Python file, which is not run unless you ask for it: name the "
            "tasks by --tasks CONFIG.toml."
        )
    return read_settings(plain)


def update_times(operator: FlowOperator, tasks: Tasks[Any]) -> dict[str, float]:
    """Processor time of one update in milliseconds, without and with the density: the least of many."""
    _, stage = tasks.observe(tasks.begin(jax.random.key(0)), jax.random.key(1))
    x = stage.x
    y = stage.y
    if hasattr(tasks, "segment_loss"):  # a chain of observations: time the first of them
        x, y = jax.tree.map(lambda leaf: leaf[0], (x, y))

    def bayes(values: jax.Array, y: Any) -> Any:
        return operator.transport(
            operator.params, values, stage.log_weights, lambda z: tasks.log_likelihood(z, x, y), x, y
        )

    programs = {
        "update": jax.jit(lambda values, y: bayes(values, y).forward(values)),
        "with_density": jax.jit(lambda values, y: bayes(values, y).forward_density(values)),
    }
    times = {}
    for name, program in programs.items():
        jax.block_until_ready(program(stage.values, y))
        passed = []
        for _ in range(REPEATS):
            start = time.process_time()
            jax.block_until_ready(program(jnp.asarray(stage.values), y))
            passed.append(time.process_time() - start)
        times[name] = 1e3 * min(passed)
    return times
