"""The command under SIGKILL of its driver and its workers at any time: for minutes, by -m crash."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.needed import needs
from tests.scale.test_keyed_run import OPTIONS, beliefs, lines, predictions, same, write
from tests.streams.setups import bitwise

from credo.scale import KeyedOptions, learn_keyed
from credo.scale.keyed_run import Worker, Workers

CREDO = str(Path(sys.executable).parent / "credo")


def command(source: Path, out: Path, *more: str) -> subprocess.Popen[bytes]:
    words = [CREDO, "keyed", str(source), "--out", str(out), *more]
    with said(out).open("wb") as file:  # a pipe that nobody reads would stop what writes much into it
        return subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=file, start_new_session=True)


def said(out: Path) -> Path:
    """The file of what the latest run into a folder said."""
    return out.with_suffix(".txt")


def workers(driver: int) -> list[int]:
    """The worker processes of a driver."""
    found = subprocess.run(["pgrep", "-P", str(driver), "-f", "spawn_main"], capture_output=True, text=True)
    return [int(word) for word in found.stdout.split()]


@pytest.mark.crash
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.thorough) for seed in range(1, 10))]
)
def test_whatever_is_killed_every_key_has_the_bits_of_one_process(seed: int, tmp_path: Path) -> None:
    rng, rows, source = np.random.default_rng(seed), 200_000, tmp_path / "t.csv"
    users, x = rng.integers(0, 9, rows), rng.normal(size=rows)
    table = zip(users.tolist(), x.tolist(), (x * users).tolist(), strict=True)
    source.write_text("user,x,y\n" + "".join(f"u{user},{one:.4f},{y:.4f}\n" for user, one, y in table))
    first = ("--key", "user", "--target", "y", "--batch", "2000")
    began = time.monotonic()
    assert command(source, tmp_path / "whole", *first).wait(300) == 0
    undisturbed = time.monotonic() - began
    out, dice, kills = tmp_path / "run", random.Random(seed), {"driver": 0, "worker": 0}
    flags = ("--workers", "2", "--checkpoint", "4")
    run = command(source, out, *first, "--shards", "4", *flags)
    while True:
        try:
            # Counted from the first file and in lengths of a whole run, a kill comes before the end on a fast
            # machine and after the start on a slow one.
            while run.poll() is None and not (out / "run.credo").exists():
                time.sleep(0.02)
            status = run.wait(dice.uniform(0.0, 0.3) * undisturbed)
        except subprocess.TimeoutExpired:
            status = None
        if status is None and sum(kills.values()) < 6:
            if (kind := dice.choice(["driver", "worker"])) == "worker" and (some := workers(run.pid)):
                os.kill(dice.choice(some), signal.SIGKILL)
                kills[kind] += 1
                continue
            os.killpg(run.pid, signal.SIGKILL)
            run.wait()
            kills["driver"] += 1
            time.sleep(0.2)
            begun = (out / "run.credo").exists()
            run = command(source, out, *(("--resume",) if begun else (*first, "--shards", "4")), *flags)
        elif status is not None:
            assert status == 0, said(out).read_text()
            break
    assert sum(kills.values()), "nothing was killed"
    ours, theirs = beliefs(out, 4), beliefs(tmp_path / "whole")
    assert ours.keys() == theirs.keys()
    for key, belief in theirs.items():
        bitwise(ours[key], belief)
    assert predictions(out) == predictions(tmp_path / "whole")


@pytest.mark.thorough  # on a busy machine its four tries take longer than all other crashes in short form
@pytest.mark.timeout(1800)
def test_the_shards_of_a_node_that_is_lost_go_on_at_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ray: Any = needs("ray")
    cluster_utils: Any = needs("ray.cluster_utils")
    source = write(tmp_path / "t.csv", lines())
    learn_keyed(source, tmp_path / "whole", OPTIONS)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    apply, replace = Workers.apply, Worker._replace

    def lost(out: Path) -> int:
        """How many actors are begun again where one of two nodes is lost."""
        cluster = cluster_utils.Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
        other = cluster.add_node(num_cpus=1)
        cluster.wait_for_nodes()
        calls, again = 0, 0

        def losing(self: Workers, parts: Any) -> None:
            nonlocal calls
            calls += 1
            apply(self, parts)
            if calls == 3:
                cluster.remove_node(other, allow_graceful=False)

        def counting(self: Worker) -> None:
            nonlocal again
            again += 1
            replace(self)

        monkeypatch.setattr(Workers, "apply", losing)
        monkeypatch.setattr(Worker, "_replace", counting)
        options = KeyedOptions(**{**vars(OPTIONS), "shards": 4, "workers": 4, "ray": cluster.address})
        try:
            learn_keyed(source, out, options)
        finally:
            ray.shutdown()
            cluster.shutdown()
        assert calls == 6
        same(out, tmp_path / "whole", shards=4)
        return again

    # on a busy machine Ray may put all actors on one node although it was asked to spread them
    assert any(lost(tmp_path / f"run-{number}") for number in range(4))
