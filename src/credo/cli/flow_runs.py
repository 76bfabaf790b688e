"""The work of `credo flow train` and `credo flow evaluate`.

An operator is trained on the tasks of a file, and the training is reported. A trained operator is scored on
fresh sequences, and its updates are timed.
"""

from __future__ import annotations

import json
import time
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from credo import flows
from credo.cli import output
from credo.cli.interrupt import Interruptible
from credo.cli.output import require_writable_file
from credo.cli.progress import ProgressLine, duration, note
from credo.cli.report import BLUE, GREY, ORANGE, SKY, Line, Picture, Report, Section, Table, show, write
from credo.core.errors import CredoError, DataError, FormatError
from credo.core.files import json_bytes, versions, write_atomically
from credo.flows import FlowOperator, History, Tasks
from credo.flows.objective import stage_loss
from credo.flows.settings import Settings, read_settings
from credo.flows.storage import operator_file, read_history, read_tree, save_operator
from credo.plots import Chart, Legend, Panel, Pen
from credo.sessions.run_summary import number

__all__ = ["OPERATOR", "Examination", "Order", "evaluate_flow", "read_config", "scores_section", "train_flow"]

RECENT = 100
"""Over how many steps the loss is averaged."""


class FlowWatch(ProgressLine):
    """The progress of a training."""

    def __init__(self, total: int, quiet: bool) -> None:
        super().__init__(quiet=quiet)
        self.total = total
        self.first: tuple[int, float] | None = None
        self.retreats = 0

    def tell(self, history: History) -> None:
        """Show where the training is."""
        if self.quiet:
            return
        now = time.monotonic()
        for step, loss in history.retreats[self.retreats :]:
            self.console.print(
                f"step {step:,}: the loss leapt to {loss:.4g}, so training goes back to this step with "
                "half the learning rate"
            )
        self.retreats = len(history.retreats)
        done = history.steps / self.total
        self.say(self._line(history, now), done, at_once=done >= 1.0)
        self.first = self.first or (history.steps, now)

    def _line(self, history: History, now: float) -> str:
        loss = float(np.mean(history.loss[-RECENT:]))
        floor = float(np.mean(history.floor[-RECENT:]))
        parts = [f"step {history.steps:,}/{self.total:,}", f"loss {loss:.4g}"]
        if np.isfinite(floor):
            parts[-1] += f" (floor {floor:.4g}, {loss - floor:+.3g})"
        if history.checks:
            parts.append(f"validation {np.mean(history.checks[-1]['loss']):.4g}")
        if self.first is not None and history.steps > self.first[0]:
            each = (now - self.first[1]) / (history.steps - self.first[0])
            parts.append(f"{duration(each * (self.total - history.steps))} left")
        return "  ".join(parts)


# The files of the operator, of where its training stands, and of its settings.
OPERATOR = "operator.flow"
TRAINING = "training.safetensors"
SETTINGS = "settings.json"


class Order(NamedTuple):
    """The words of `credo flow train`; where `steps` or `seed` is None, the TOML file has it."""

    config: Path
    steps: int | None
    seed: int | None
    out: Path | None
    resume: Path | None
    quiet: bool


class Stopped(Exception):
    """Training was asked to stop, and has been saved."""


def read_config(path: Path, *, steps: int | None = None, seed: int | None = None) -> Settings:
    """The settings of a TOML file, with the steps and the seed that are given instead of its own."""
    try:
        raw: dict[str, Any] = tomllib.loads(path.read_text())
    except OSError as error:
        raise DataError(f"cannot read {path}: {(error.strerror or str(error)).lower()}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DataError(f"{path} is no TOML file: {str(error).rstrip('.')}.") from None
    changed = {name: value for name, value in (("steps", steps), ("seed", seed)) if value is not None}
    training = raw.get("training", {})
    if changed and isinstance(training, dict):
        raw["training"] = {**training, **changed}
    try:
        return read_settings(raw, path.parent)
    except CredoError as error:
        if isinstance(error, DataError):
            raise
        raise CredoError(f"{path}: {error}") from None


def train_flow(words: Order) -> int:
    """Train, print the summary, and write the results; the exit status."""
    settings = read_config(words.config, steps=words.steps, seed=words.seed)
    saved = None if words.resume is None else _saved(words.resume)
    folder = words.out if words.resume is None else words.resume
    name = f"flow-{words.config.stem}"
    with Interruptible("steps") as interrupt, output.writing(folder, name, saved, TRAINING) as place:
        if place.sentence and saved is None:
            note(place.sentence, words.quiet)
        size = _size(settings.operator)
        note(
            f"operator: {type(settings.operator).__name__} with {size:,} parameters, dimension "
            f"{settings.operator.dim}; tasks: {type(settings.tasks).__name__}; "
            f"{settings.plan.steps:,} steps of {settings.plan.batch} tasks",
            words.quiet,
        )
        _keep_settings(place.files / SETTINGS, settings.plain, words.resume)
        start = time.monotonic()
        courses: list[flows.History] = []
        try:
            with FlowWatch(settings.plan.steps, words.quiet) as watch:

                def progress(history: flows.History) -> None:
                    courses[:] = [history]
                    watch.tell(history)
                    if interrupt.stopped:
                        raise Stopped

                interrupt.busy = True
                trained = flows.train(
                    settings.tasks,
                    settings.operator,
                    plan=settings.plan,
                    key=settings.seed,
                    out=place.files,
                    progress=progress,
                )
                interrupt.busy = False
        except (Stopped, KeyboardInterrupt):
            if not place.belief.is_file():
                note("credo: interrupted; nothing was written.")
                return interrupt.status
            steps = courses[0].steps if courses else 0
            note(
                f"credo: interrupted after {steps:,} steps; training is saved, continue with: "
                f"{_again(words, place)}"
            )
            return interrupt.status
        history = courses[0] if courses else read_history(place.belief)
        report = report_of(settings, trained, history, time.monotonic() - start)
        save_operator(
            place.files / OPERATOR,
            trained,
            notes={"settings": settings.plain, "steps": history.steps, "scores": report.data["scores"]},
        )
        write(report, place.files)
        place.commit()
    show(report)
    note(f"report: {place.path}/report.html   operator: {place.path}/{OPERATOR}", words.quiet)
    return 0


def _saved(folder: Path) -> Path:
    training = folder / output.UNFINISHED / TRAINING
    if training.is_file():
        return training
    if (folder / TRAINING).is_file():
        raise DataError(f"--resume {folder} holds a training that is complete; there is nothing to continue.")
    raise DataError(f"--resume {folder} holds no training; name the folder of one that was cut short.")


def _keep_settings(file: Path, plain: dict[str, Any], resume: Path | None) -> None:
    """Write the settings beside the training, or compare them with those that stand there."""
    if resume is not None and file.is_file():
        earlier = json.loads(file.read_text())
        for table, values in plain.items():
            before = earlier.get(table, {})
            for name in sorted({*values, *before}):
                if values.get(name) != before.get(name):
                    raise CredoError(
                        f"--resume {resume} holds a training with another {name} of {table}: use its "
                        "settings, or start a new training."
                    )
    write_atomically(file, json_bytes(plain))


def _again(words: Order, place: output.Folder) -> str:
    parts = ["credo flow train", str(words.config)]
    parts += [] if words.steps is None else [f"--steps {words.steps}"]
    parts += [] if words.seed is None else [f"--seed {words.seed}"]
    return " ".join([*parts, f"--resume {place.path}"])


def _size(operator: flows.FlowOperator) -> int:
    """The number of parameters."""
    shapes = jax.eval_shape(operator.start, jax.random.key(0))
    return sum(leaf.size for leaf in jax.tree.leaves(shapes))


MEANING = {
    "training_loss": "mean loss of the last steps (nats)",
    "training_floor": "the least that it can be in expectation",
    "loss": "mean loss on fresh sequences (nats)",
    "floor": "the least that it can be in expectation, from the exact evidence of the same sequences",
    "kde": "cross-entropy from the exact posterior to the kernel density of the particles (nats)",
    "gaussian": "cross-entropy from the exact posterior to the normal distribution of the particles (nats)",
}


def report_of(settings: Settings, trained: flows.FlowOperator, history: History, seconds: float) -> Report:
    """The report of a training, of which this run took some seconds."""
    data = _data_of(settings, history, seconds)
    data["verdict"] = _verdict(data["scores"])
    steps = f"{history.steps:,} steps"
    remarks = []
    if data["early"]:
        remarks.append(f"Training stopped early, after {steps}: validation had become no better.")
    if history.retreats:
        remarks.append(f"Training went back {len(history.retreats)} times, where the loss had leapt.")
    return Report(
        title=type(settings.operator).__name__,
        subject=f"A learned Bayes rule for {type(settings.tasks).__name__}",
        headline=f"{steps} in {seconds:.0f} s, compiling included",
        verdict=data["verdict"],
        remarks=remarks,
        sections=[scores_section(data["scores"])],
        settings={
            f"{table}: {name}": value if len(str(value)) < 200 else f"{str(value)[:200]} ..."
            for table, values in settings.plain.items()
            for name, value in values.items()
        },
        command="credo flow train",
        data=data,
        draw=lambda: _draw(data, trained, settings.tasks),
    )


def scores_section(scores: Mapping[str, float]) -> Section:
    """The table of the scores that are known."""
    lines = [
        Line(name.replace("_", " "), (number(value),), MEANING[name])
        for name, value in scores.items()
        if np.isfinite(value)
    ]
    return Section("Scores", [], Table(("score", "value"), lines), main=True)


def _verdict(scores: Mapping[str, float]) -> str:
    """The outcome of a training, in a sentence."""
    kind = "fresh sequences" if "loss" in scores else "the last steps"
    loss = scores.get("loss", scores["training_loss"])
    floor = scores.get("floor", scores["training_floor"])
    if not np.isfinite(floor):
        return f"The loss on {kind} is {loss:.4g} nats an update; its floor is not known."
    return f"The loss on {kind} is {loss:.4g} nats, {loss - floor:.3g} above its exact floor of {floor:.4g}."


def _data_of(settings: Settings, history: History, seconds: float) -> dict[str, Any]:
    """The contents of report.json."""
    scores = {
        "training_loss": float(np.mean(history.loss[-RECENT:])),
        "training_floor": float(np.mean(history.floor[-RECENT:])),
    }
    checks = {
        name: [check[name] for check in history.checks] for name in ("loss", "floor", "kde", "gaussian")
    }
    means = {name: [float(np.mean(column)) for column in columns] for name, columns in checks.items()}
    if history.checks:
        best = int(np.nanargmin(means["loss"]))
        scores |= {name: column[best] for name, column in means.items() if np.isfinite(column[best])}
    return {
        "format": 1,
        "scores": scores,
        "settings": settings.plain,
        "steps": history.steps,
        "early": history.steps < settings.plan.steps,
        "seconds": seconds,
        "loss": history.loss,
        "floor": history.floor,
        "validation": {"step": [check["step"] for check in history.checks], **means},
        "stages": {name: columns[-1] for name, columns in checks.items() if columns},
        "retreats": history.retreats,
        "versions": versions(),
    }


SHOWN = (0, 2, 8)
"""The stages whose particles are drawn."""

LINEAR = (1e-3, 1.0)
"""The bounds (nats over the floor) of the part around 0 where the axis of losses is not logarithmic."""

NARROW = 0.02
"""No linear axis shows less than this (nats)."""


def _draw(
    data: Mapping[str, Any], operator: flows.FlowOperator, tasks: flows.Tasks[Any]
) -> dict[str, Picture]:
    """All plots of a trained operator, by file name without suffix; `data` is what report.json holds."""
    pictures = {"loss": _loss(data["loss"], data["floor"])}
    if data["validation"]["step"]:
        pictures["validation"] = _validation(data["validation"])
        if len(data["stages"]["loss"]) > 1:
            pictures["stages"] = _stages(data["stages"])
    if operator.dim > 1:
        pictures["particles"] = _particles(operator, tasks)
    return pictures


def _smooth(values: np.ndarray, width: int) -> np.ndarray:
    sums = np.cumsum(np.concatenate([[0.0], values]))
    ends = np.arange(1, len(values) + 1)
    starts = np.maximum(ends - width, 0)
    mean: np.ndarray = (sums[ends] - sums[starts]) / (ends - starts)
    return mean


def _loss(losses: Any, floors: Any) -> Picture:
    loss = np.asarray(losses, float)
    floor = np.asarray(floors, float)
    steps = np.arange(1, len(loss) + 1)
    width = min(len(loss), max(5, len(loss) // 50))
    known = bool(np.isfinite(floor).all())
    curve = loss - floor if known else loss
    chart = Chart(label="steps", whole=True)
    panel = chart.panels[0]
    panel.label = "loss above its floor (nats)" if known else "loss (nats)"
    panel.line(steps, curve, Pen(SKY, 0.6), name="each step")
    panel.line(steps, _smooth(curve, width), Pen(BLUE), name=f"mean of {width} steps")
    if known:
        panel.across(0.0, _FLOOR, name="exact floor")
        # most of a training is near the floor, so the axis is linear there and logarithmic above
        noise = float(np.std(curve[-max(5, len(curve) // 4) :]))
        panel.linear = float(np.clip(10 ** np.ceil(np.log10(noise + 1e-12)), *LINEAR))
        panel.low = min(1.5 * float(np.min(curve)), -panel.linear)
    panel.legend = Legend(columns=3)
    words = (
        "The training loss minus the least that it can be in expectation, minus the log evidence of the same "
        "observations. It is noisy, but its mean cannot lie below 0 where densities are exact."
        if known
        else "The training loss. How low it can be is not known for these tasks."
    )
    return Picture(chart.svg(), words)


def _validation(checks: Mapping[str, Any]) -> Picture:
    known = bool(np.isfinite(checks["floor"]).all())
    curve = np.subtract(checks["loss"], checks["floor"]) if known else np.asarray(checks["loss"])
    chart = Chart((1, 1), label="steps", whole=True)
    above, below = chart.panels
    above.label = "nats above the floor" if known else "loss (nats)"
    _dotted(above, checks["step"], curve, BLUE, "loss")
    if known:
        above.across(0.0, _FLOOR, name="exact floor")
        if np.max(np.abs(curve)) < NARROW:  # an axis that does not stretch rounding errors over the picture
            above.low = -NARROW
            above.high = NARROW
    above.legend = Legend(columns=2)
    below.label = "cross-entropy (nats)"
    _dotted(below, checks["step"], checks["kde"], BLUE, "kernel density")
    _dotted(below, checks["step"], checks["gaussian"], ORANGE, "normal distribution")
    below.legend = Legend(columns=2)
    return Picture(chart.svg(), "Scores on fresh sequences, which are the same at every validation.")


_FLOOR = Pen(GREY, 1.2, "5 3")


def _dotted(panel: Panel, x: Any, y: Any, color: str, name: str) -> None:
    """Draw a line with a dot at each point."""
    panel.line(x, y, Pen(color), name=name)
    panel.dots(x, y, color)


def _stages(stages: Mapping[str, Any]) -> Picture:
    places = np.arange(1, len(stages["loss"]) + 1)
    chart = Chart(label="observations", whole=True)
    panel = chart.panels[0]
    panel.label = "cross-entropy (nats)"
    panel.line(places, stages["kde"], Pen(BLUE), name="kernel density of the particles")
    panel.line(places, stages["gaussian"], Pen(ORANGE), name="their normal distribution")
    panel.legend = Legend(columns=2)
    return Picture(chart.svg(), "The last validation, observation by observation.")


def _particles(operator: flows.FlowOperator, tasks: flows.Tasks[Any]) -> Picture:
    """The first two coordinates of particles before and after some updates, on a sequence of its own."""

    @jax.jit
    def step(task: Any, key: jax.Array) -> tuple[Any, Any, jax.Array]:
        keys = jax.random.split(key)
        seen, stage = tasks.observe(task, keys[0])
        _, new = stage_loss(operator, operator.params, tasks, stage, "elbo")
        return tasks.advance(seen, stage, new, keys[1]), stage, new

    task = tasks.begin(jax.random.key(11))
    sets = list[tuple[int, list[np.ndarray]]]()
    for place in range(SHOWN[-1] + 1):
        task, stage, new = step(task, jax.random.fold_in(jax.random.key(12), place))
        if place in SHOWN:
            shown = (stage.values, new, stage.targets)
            sets.append((place + 1, [np.asarray(each)[:, :2] for each in shown]))
    chart = Chart((1,) * len(sets), (389.0, 259.0 * len(sets)), "first coordinate")
    for panel, (place, (before, after, exact)) in zip(chart.panels, sets, strict=True):
        panel.dots(before[:, 0], before[:, 1], GREY, size=2.5, opacity=0.5, name="before")
        if len(exact) > 1 and np.isfinite(exact).all():
            panel.dots(exact[:, 0], exact[:, 1], ORANGE, size=4.0, shape="cross", name="exact posterior")
        panel.dots(after[:, 0], after[:, 1], BLUE, size=2.5, name="after")
        panel.title = f"Update {place}"
        panel.label = "second coordinate"
    chart.panels[0].legend = Legend(columns=3)
    return Picture(chart.svg(), "Particles before an update and where the operator takes them.")


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
