"""One learner for each key: what a row costs, beside a Kalman filter by hand and a dict of River.

    python benchmarks/run.py --only keyed

Regression on ten inputs with a full posterior, batches of 4,096 rows; every row is forecast before it is
learned. Times are processor times of one process, the median of five batches after the first ones; all
methods of a table take the same batches in turn. The loop by hand looks its keys up, cuts its tiles and
reads its forecasts as `Keyed` does, and has nothing else: no scores, weights, missing rows or refusals.
"""

from __future__ import annotations

import functools
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from timing import held_megabytes, medians, peak_megabytes

import credo
from credo.core.actors import Actor, hire_actors
from credo.core.processes import begin_process
from credo.core.types import Array
from credo.recipes.options import Options
from credo.recipes.resolution import resolve
from credo.scale.feed import Batch
from credo.scale.keyed_run import Plan, Workers
from credo.streams.keyed.engine import tile_places

INPUTS = 10
BATCH = 4096
REPEATS = 7
Feed = Callable[[np.ndarray, np.ndarray, np.ndarray], Any]


def learner(noise: bool = False) -> Any:
    """A Bayesian linear regression, whose noise is known or learned."""
    distribution = credo.Normal(credo.InverseGamma(3.0, 3.0)) if noise else credo.Normal(1.0)
    return credo.extended_kalman(credo.Model(lambda w, x: x @ w, distribution))


def keyed(count: int, tile: int = 16, noise: bool = False, evict: int | None = None) -> credo.Keyed[Any]:
    """A Keyed that has seen all keys once."""
    one = learner(noise)
    many = credo.Keyed(one, one.init(jnp.zeros(INPUTS)), tile=tile, capacity=count, evict=evict)
    for start in range(0, count, 16 * BATCH):
        keys = np.arange(start, min(start + 16 * BATCH, count))
        many.learn(keys, np.zeros((len(keys), INPUTS), np.float32), np.zeros(len(keys), np.float32))
    return many


@functools.partial(jax.jit, donate_argnums=(0, 1))
def _by_hand(means: Array, covs: Array, keys: Array, xs: Array, ys: Array) -> Any:
    def one(mean: Array, cov: Array, x: Array, y: Array) -> Any:
        along = cov @ x
        var = x @ along + 1.0
        forecast = mean @ x
        gain = along / var
        return mean + gain * (y - forecast), cov - jnp.outer(gain, along), forecast, jnp.sqrt(var)

    def tile(carry: tuple[Array, Array], row: tuple[Array, Array, Array]) -> Any:
        means, covs = carry
        at, x, y = row
        mean, cov, forecast, sd = jax.vmap(one)(means[at], covs[at], x, y)
        after = means.at[at].set(mean, mode="drop"), covs.at[at].set(cov, mode="drop")
        return after, (forecast, sd)

    return jax.lax.scan(tile, (means, covs), (keys, xs, ys))


def by_hand(count: int, tile: int = 16) -> Feed:
    """The loop by hand."""
    state = [jnp.zeros((count, INPUTS)), jnp.tile(jnp.eye(INPUTS), (count, 1, 1))]
    slots = {key: key for key in range(count)}

    def feed(keys: np.ndarray, xs: np.ndarray, ys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        found = np.fromiter(map(slots.__getitem__, keys.tolist()), np.int64, len(keys))
        places, tiles = tile_places(found, tile)
        at = np.full(tiles * tile, count, np.int32)
        inputs = np.zeros((tiles * tile, INPUTS), np.float32)
        numbers = np.zeros(tiles * tile, np.float32)
        at[places] = found
        inputs[places] = xs
        numbers[places] = ys
        rows = at.reshape(-1, tile), inputs.reshape(-1, tile, INPUTS), numbers.reshape(-1, tile)
        (state[0], state[1]), told = _by_hand(*state, *rows)
        mean, sd = (np.asarray(one).reshape(-1)[places] for one in told)
        return mean, sd

    return feed


def river() -> Feed:
    """A dict of River's regressions."""
    from river.linear_model import BayesianLinearRegression

    models: dict[int, Any] = {}

    def feed(keys: np.ndarray, xs: np.ndarray, ys: np.ndarray) -> None:
        rows: list[dict[Any, Any]] = [dict(enumerate(row)) for row in xs.tolist()]
        for key, x, y in zip(keys.tolist(), rows, ys.tolist(), strict=True):
            model = models.get(key)
            if model is None:
                model = models[key] = BayesianLinearRegression()
            model.predict_one(x, with_dist=True)
            model.learn_one(x, y)

    return feed


def batches(count: int, zipf: float | None = None) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Batches of rows whose keys are uniform, or have the frequencies of Zipf's distribution."""
    rng = np.random.default_rng(0)
    frequency = None if zipf is None else np.arange(1, count + 1) ** -zipf
    share = None if frequency is None else frequency / frequency.sum()
    return [
        (
            rng.integers(0, count, BATCH) if share is None else rng.choice(count, BATCH, p=share),
            rng.normal(size=(BATCH, INPUTS)).astype(np.float32),
            rng.normal(size=BATCH).astype(np.float32),
        )
        for _ in range(REPEATS + 1)
    ]


def microseconds(methods: Mapping[str, Feed], rows: Sequence[tuple[np.ndarray, ...]]) -> dict[str, float]:
    """The processor time of a row by each method, which take the same batches in turn."""
    feeds = {name: iter(rows) for name in methods}

    def call(name: str) -> Callable[[], object]:
        return lambda: methods[name](*next(feeds[name]))

    # programs of another length may be compiled at the first batches
    for name in methods:
        methods[name](*rows[-1])
    taken = medians({name: call(name) for name in methods}, repeats=5, clock=time.process_time)
    return {name: 1e6 * seconds / BATCH for name, (seconds, _) in taken.items()}


def _rows(keys: int) -> list[str]:
    """Rows of the table, all measured beside each other."""
    methods: dict[str, Feed] = {
        "loop by hand": by_hand(keys),
        "credo.Keyed": keyed(keys).learn,
        "credo.Keyed, forecasts alone": _asking(keyed(keys)),
        "credo.Keyed, learned noise": keyed(keys, noise=True).learn,
        "dict of River's BayesianLinearRegression": river(),
    }
    times = microseconds(methods, batches(keys))
    hand = times["loop by hand"]
    peer = times["dict of River's BayesianLinearRegression"]
    return [
        f"| {name} | {keys:,} | uniform | 16 | {one:.2f} | {one / hand:.2f} | {peer / one:.1f} |"
        for name, one in times.items()
    ]


def _asking(many: credo.Keyed[Any]) -> Feed:
    return lambda keys, xs, ys: many.forecast(keys, xs)


def _tiles(keys: int) -> list[str]:
    lines = []
    for name, zipf in (("uniform", None), ("Zipf 1.3", 1.3)):
        methods = {str(tile): keyed(keys, tile).learn for tile in (8, 16, 64)}
        for tile, one in microseconds(methods, batches(keys, zipf)).items():
            lines.append(f"| credo.Keyed | {keys:,} | {name} | {tile} | {one:.2f} | | |")
    return lines


def _checkpoint(keys: int) -> list[str]:
    """The processor time of checkpoints, of all pages and of one."""
    many = keyed(keys)
    times = []
    with tempfile.TemporaryDirectory() as folder:
        for row in range(10):
            if row in (1, 2):
                many.learn([0], np.zeros((1, INPUTS), np.float32), np.zeros(1, np.float32))
            else:
                many.learn(np.arange(keys), np.zeros((keys, INPUTS), np.float32), np.zeros(keys, np.float32))
            started = time.process_time()
            wall = time.perf_counter()
            many.save(folder)
            times.append((1e3 * (time.process_time() - started), 1e3 * (time.perf_counter() - wall)))
        size = sum(path.stat().st_size for path in Path(folder).glob("rows-00000010-*")) / 1e6
        started = time.process_time()
        credo.Keyed.load(folder, many.learner)
        loaded = 1e3 * (time.process_time() - started)
    busy, clock = (sorted(column[5:])[2] for column in zip(*times, strict=True))
    first = max(times[row][0] for row in (0, 3, 4))
    return [
        f"Checkpoint of {keys:,} keys ({size:.0f} MB): {busy:.0f} ms of processor time ({clock:.0f} ms on "
        f"the clock), the median of five; of the first three {first:.0f} at "
        f"most, while the system finds memory for files; of one page {times[2][0]:.1f} ms; read again in "
        f"{loaded:.0f} ms."
    ]


def _eviction() -> list[str]:
    """What a key costs that goes to the disk, or comes back."""
    keys = 40_000
    most = 10_000
    many = keyed(keys, evict=most)
    zeros = np.zeros((most // 2, INPUTS), np.float32), np.zeros(most // 2, np.float32)
    many.learn(np.arange(keys - most // 2, keys), *zeros)
    started = time.process_time()
    many.learn(np.arange(keys - most // 2, keys), *zeros)
    here = time.process_time() - started
    many.learn(np.arange(most // 2), *zeros)
    started = time.process_time()
    many.learn(np.arange(most // 2, most), *zeros)
    both = time.process_time() - started
    each = 1e6 * (both - here) / (most // 2)
    return [f"A key that comes back from the disk while another goes there: {each:.1f} us of processor time."]


def _batches(rows: int, keys: int, size: int) -> list[Batch]:
    """Batches as the driver of `credo keyed` makes them."""
    rng = np.random.default_rng(0)
    found = []
    for start in range(0, rows, size):
        who = [f"u{key}" for key in rng.integers(0, keys, size).tolist()]
        x = rng.normal(size=(size, INPUTS)).astype(np.float32)
        y = rng.normal(size=size).astype(np.float32)
        ones = np.ones(size)
        lines = np.arange(start + 1, start + size + 1)
        each = (lines, x, y, ones, np.zeros(size), ones, np.ones(size, bool))
        found.append(Batch(start, start + size, who, *each))
    return found


def _busy(post: Any) -> float:
    """The processor time of a worker so far."""
    if isinstance(post, Actor):
        import ray

        call: Any = post.actor.__ray_call__
        taken: float = ray.get(call.remote(lambda desk: time.process_time()))
        return taken
    fields = Path(f"/proc/{post.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _kill(post: Any) -> None:
    """SIGKILL for the process of a worker."""
    if isinstance(post, Actor):
        import ray

        call: Any = post.actor.__ray_call__
        pid: Any = ray.get(call.remote(lambda desk: os.getpid()))
    else:
        pid = post.process.pid
    os.kill(int(pid), signal.SIGKILL)


def _workers(quick: bool) -> list[str]:
    """What a row costs the driver and two workers, and how soon a killed one is back."""
    rows, keys, size = (65_536, 2000, 8192) if quick else (524_288, 20_000, 16_384)
    settings = resolve(Options(model="linear", drift="none", noise_var=1.0), "regression", (INPUTS,), 0)
    lines = [
        "| workers, two | driver, us a row | both workers, us a row | after SIGKILL, s |",
        "|---|--:|--:|--:|",
    ]
    for name in ("processes", "actors of Ray"):
        hire = begin_process if name == "processes" else hire_actors("local")
        with tempfile.TemporaryDirectory() as folder:
            plan = Plan(Path(folder), dict(settings.to_dict()), INPUTS, (), 16, None, True)
            workers = Workers(plan, 2, 2, hire)
            batches = _batches(rows, keys, size)
            first = batches[: len(batches) // 2]
            rest = batches[len(batches) // 2 :]
            for batch in first:  # keys come, and programs for more of them
                workers.apply(batch.shards(2))
            workers.save()
            driver = time.process_time()
            busy = sum(_busy(one.post) for one in workers.workers)
            for batch in rest:
                workers.apply(batch.shards(2))
            workers.save()
            count = sum(len(batch.keys) for batch in rest)
            driver = time.process_time() - driver
            busy = sum(_busy(one.post) for one in workers.workers) - busy
            _kill(workers.workers[0].post)
            started = time.perf_counter()
            workers.workers[0].settle("save", 0)
            back = time.perf_counter() - started
            workers.close()
        lines.append(f"| {name} | {1e6 * driver / count:.2f} | {1e6 * busy / count:.2f} | {back:.1f} |")
    return lines


def markdown(quick: bool) -> str:
    """The section."""
    keys = 10_000 if quick else 100_000
    jax.config.update("jax_cpu_enable_async_dispatch", False)
    lines = [
        "\n## keyed\n",
        "| what | keys | rows | tile | us a row | of the loop by hand | times as fast as River |",
        "|---|--:|---|--:|--:|--:|--:|",
        *_rows(keys),
        *_tiles(keys),
    ]
    if not quick:
        measured = subprocess.check_output([sys.executable, __file__, "--million"], text=True)
        once, before, after, peak = measured.split()
        lines += [
            f"| credo.Keyed | 1,000,000 | uniform | 16 | {once} | | |",
            f"\nA process with a million keys: {after} MB, and at most {peak}; {before} "
            "before the keys, with JAX and the compiled programs.",
        ]
    return "\n".join([*lines, "", *_checkpoint(keys), "", *_eviction(), "", *_workers(quick)])


def million() -> str:
    """The time of a row among a million keys, and the memory of a process that has nothing else, in MB:
    before the keys, with all of them, and at most.
    """
    jax.config.update("jax_cpu_enable_async_dispatch", False)
    microseconds({"few": keyed(BATCH).learn}, batches(BATCH))
    before = held_megabytes()
    many = keyed(1_000_000)
    once = microseconds({"many": many.learn}, batches(1_000_000))["many"]
    return f"{once:.2f} {before:.0f} {held_megabytes():.0f} {peak_megabytes():.0f}"


if __name__ == "__main__":
    print(million() if sys.argv[1:] == ["--million"] else markdown(quick=False))
