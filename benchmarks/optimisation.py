"""Bayesian optimisation beside its peers: simple regret after 50 evaluations, and seconds a question.

    python benchmarks/optimisation.py --run credo --cache FOLDER     # in an environment that has it
    python benchmarks/optimisation.py --cache FOLDER                 # the tables of the folder

Peers need NumPy alone beside themselves, and are best installed into an environment of their own:

    pip install optuna scikit-optimize bayesian-optimization botorch

The variables of `learn-20` and `learn-20-diabetes` are 20 numbers of credo's default learner. They also need
the dependencies of credo there, of the same versions, with `src` on the PYTHONPATH, and the data (concrete
is in `CREDO_DATA_DIR`).

Every method has its defaults, sees the same functions and, with noise, the same noise (a tenth of the
standard deviation of the function over its box), and minimises. The simple regret is the true value at the
point that the method calls the best, less the minimum: the point with the best value for those that have no
other answer. If the minimum is not known, the least value of all runs in the folder takes its place, which
more runs may lower. A run that is in the folder is not made again. Seconds are processor time of one thread,
for the questions and what is told: the median of the runs, so that the compilation of programs is left out.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

# One thread, for a processor time that says what was computed.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")

import numpy as np
from optimisation_methods import METHODS
from optimisation_problems import CHOSEN, PROBLEMS, SCORED

EVALUATIONS = 50
SEEDS = 10


def run(method: str, problem: str, noisy: bool, seed: int) -> dict[str, Any]:
    """One search: the regret of its answer, of its best value, after each evaluation, and its seconds.

    If the minimum of the problem is not known, these are values in place of regrets.
    """
    one = PROBLEMS[problem]
    minimum = 0.0 if one.minimum is None else one.minimum
    sd = one.noise_sd if noisy else 0.0
    noise = sd * np.random.default_rng(1000 + seed).standard_normal(EVALUATIONS)
    start = time.process_time()
    search = METHODS[method](one.box, seed, noisy)
    points = []
    values = []
    truths = []
    clock = time.process_time() - start
    for step in range(EVALUATIONS):
        start = time.process_time()
        point = search.ask()
        clock += time.process_time() - start
        truth = one.function(point)
        value = truth + float(noise[step])
        start = time.process_time()
        search.tell(point, value)
        clock += time.process_time() - start
        points.append(point.tolist())
        values.append(value)
        truths.append(truth)
    answer = search.answer()
    best = truths[int(np.argmin(values))]
    final = best if answer is None else one.function(answer)
    return {
        "answer": final - minimum,
        "best": best - minimum,
        "curve": (np.minimum.accumulate(truths) - minimum).tolist(),
        "seconds": clock / EVALUATIONS,
    }


def _path(cache: Path, method: str, problem: str, noisy: bool, seed: int) -> Path:
    return cache / method / f"{problem}{'-noisy' if noisy else ''}-{seed}.json"


def fill(cache: Path, method: str, problems: list[str], seeds: int, noises: list[bool]) -> None:
    """Run what the folder lacks."""
    for seed in range(seeds):
        for problem in problems:
            for noisy in noises:
                path = _path(cache, method, problem, noisy, seed)
                if not path.exists() and (PROBLEMS[problem].noisy or not noisy):
                    path.parent.mkdir(parents=True, exist_ok=True)
                    result = run(method, problem, noisy, seed)
                    path.write_text(json.dumps(result))
                    print(
                        f"{method} {path.stem} {result['answer']:.4g} {result['seconds']:.3f} s", flush=True
                    )


def least(cache: Path, problem: str) -> float:
    """What to take from the numbers of runs: 0, or their least if the minimum of the problem is not known."""
    if PROBLEMS[problem].minimum is not None:
        return 0.0
    runs = [json.loads(path.read_text()) for path in cache.glob(f"*/{problem}-[0-9]*.json")]
    return min((min(one["answer"], *one["curve"]) for one in runs), default=0.0)


def tables(cache: Path, problems: list[str], seeds: int) -> None:
    """Median regrets of all methods in the folder, a row a problem, and seconds a question."""
    methods = [name for name in METHODS if (cache / name).is_dir()]
    for noisy in (False, True):
        print(f"\n| {'with noise' if noisy else 'without noise'} | " + " | ".join(methods) + " |")
        print("|---" * (len(methods) + 1) + "|")
        for problem in problems:
            if noisy and not PROBLEMS[problem].noisy:
                continue
            cells = []
            base = least(cache, problem)
            for method in methods:
                paths = [_path(cache, method, problem, noisy, seed) for seed in range(seeds)]
                runs = [json.loads(path.read_text()) for path in paths if path.exists()]
                told = f"{np.median([one['answer'] for one in runs]) - base:.3g}" if runs else ""
                if runs and any(one["answer"] != one["best"] for one in runs):
                    told += f" ({np.median([one['best'] for one in runs]) - base:.3g})"
                cells.append(told + (f" [{len(runs)}]" if 0 < len(runs) < seeds else ""))
            print(f"| {problem} | " + " | ".join(cells) + " |")
    print("\n| method | ms a question |\n|---|--:|")
    for method in methods:
        seconds = [json.loads(path.read_text())["seconds"] for path in (cache / method).glob("*.json")]
        print(f"| {method} | {1e3 * np.median(seconds):.0f} |")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--cache", type=Path, required=True, help="the folder of runs")
    parser.add_argument("--run", choices=list(METHODS), help="run what the folder lacks of this method")
    parser.add_argument("--problems", nargs="*", default=["scored"], help="names, scored or chosen")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--noise", choices=["no", "yes", "both"], default="both")
    given = parser.parse_args()
    groups = {"scored": list(SCORED), "chosen": list(CHOSEN)}
    problems = [one for name in given.problems for one in groups.get(name, [name])]
    noises = {"no": [False], "yes": [True], "both": [False, True]}[given.noise]
    if given.run:
        fill(given.cache, given.run, problems, given.seeds, noises)
    else:
        tables(given.cache, problems, given.seeds)


if __name__ == "__main__":
    main()
