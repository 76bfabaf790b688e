"""The published code of PFBR on this machine: milliseconds an update, and seconds a training iteration.

It needs PyTorch, torchdiffeq and a clone of the authors' repository, and runs in an environment of its own:

    git clone https://github.com/xinshi-chen/ParticleFlowBayesRule
    python benchmarks/flow_official.py ParticleFlowBayesRule --dim 10 --particles 256

The settings are those of the authors' script for linear dynamical systems. Times are of one thread: the best
of several repetitions, and the processor time. `benchmarks/flow_times.py --official "PYTHON FOLDER"` calls
this script, so that both are measured in one run.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any


def build(folder: Path, dim: int, particles: int) -> tuple[Any, Any, Any, Any]:
    """The modules of the clone, with its published settings: its arguments, data, operator and prior."""
    work = Path("/tmp") if Path("/tmp").is_dir() else Path()
    sys.path.insert(0, str(folder.resolve()))
    sys.argv = f"""main.py -gpu -1 -num_particles {particles} -stage_len -1 -batch_size 1 -phase train
        -feed_context_input True -layer_cond concat -gauss_dim {dim} -train_samples 25
        -train_kernel_embed True
        -save_dir {work} -solver rk4 -time_mode adaptive -time_length 1.0 -test_length 25""".split()
    import_module("torch").set_num_threads(1)
    settings = import_module("pfbayes.common.cmd_args").cmd_args
    data = import_module("pfbayes.experiments.hmm_lds.utils").HmmLdsDataset(
        dim=dim, partition_sizes={"train": 25}
    )
    flow = import_module("pfbayes.common.ode.misc").build_model(
        settings, x_dim=dim, ob_dim=dim, ll_func=data.log_likelihood
    )
    prior = import_module("pfbayes.common.distributions").DiagMvn(mu=[0.0] * dim, sigma=[1.0] * dim)
    return settings, data, flow, prior


def best(function: Any, repetitions: int) -> tuple[float, float]:
    """The least wall time of a call, and the mean processor time, in seconds."""
    function()
    walls = []
    start = time.process_time()
    for _ in range(repetitions):
        begin = time.perf_counter()
        function()
        walls.append(time.perf_counter() - begin)
    return min(walls), (time.process_time() - start) / repetitions


def main() -> None:
    """Print the times as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path, help="a clone of the authors' repository")
    parser.add_argument("--dim", type=int, default=10)
    parser.add_argument("--particles", type=int, default=256)
    arguments = parser.parse_args()
    settings, data, flow, prior = build(arguments.folder, arguments.dim, arguments.particles)
    torch = import_module("torch")
    forward_local_x = import_module("pfbayes.common.train_utils").forward_local_x
    particles = prior.get_samples(arguments.particles)
    density = prior.get_log_pdf(particles)
    (observation,) = data.gen_seq_obs(1)

    def update() -> None:
        with torch.no_grad():
            flow(particles, density, prior_samples=particles, ob_m=observation)

    optimizer = torch.optim.Adam(flow.parameters(), lr=1e-3, weight_decay=1e-5)

    def train() -> None:
        optimizer.zero_grad()
        loss, _, _ = forward_local_x(
            flow, particles, density, data.gen_seq_obs(25), data.log_likelihood, data.transition_log_pdf
        )
        loss.backward()
        optimizer.step()

    with_density = best(update, 20)
    settings.phase = "eval_metric"
    without = best(update, 20)
    settings.phase = "train"
    training = best(train, 3)
    print(
        json.dumps(
            {
                "update without density, ms": [1e3 * value for value in without],
                "update with density, ms": [1e3 * value for value in with_density],
                "training iteration, s": list(training),
            }
        )
    )


if __name__ == "__main__":
    main()
