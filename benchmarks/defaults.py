"""The runs behind docs/explanation/defaults.md: credo and its peers without tuning, stream by stream.

    python benchmarks/defaults.py --cache FOLDER              # runs what the folder lacks: hours
    python benchmarks/defaults.py --cache FOLDER --only credo --again
    python benchmarks/defaults.py --cache FOLDER --ablate
    python benchmarks/defaults.py --cache FOLDER --streams unseen,unseen~sentinels,wide
    python benchmarks/defaults.py --cache FOLDER --results    # into results.json, with what is there
    python benchmarks/run.py --pages                          # the tables of the pages, of that file
    python benchmarks/defaults.py --cache FOLDER --markdown   # prints the tables of the folder, ablations too

Every method forecasts a row, and then learns it. The folder has a JSON file for each stream and peer, and the
peers' answers beside it, so that a run goes on where it stopped and the scores can be taken again.
"""

from __future__ import annotations

import argparse
import datetime
import json
import re
import time
import warnings
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
from default_ablation import VARIATIONS, varied
from default_groups import GROUPS, STANDARD, clean_of, dirt_of, group_of, stream, streams_of
from default_ours import ours
from default_peers import numbers_of, peers_of
from default_refits import Refitted
from default_results import (
    collected,
    day_of,
    merged,
    missing_shapes,
    read,
    read_shapes,
    version_of,
    write,
    write_shapes,
)
from default_scores import Scores, class_scores, normal_scores
from default_streams import Stream
from default_tables import described, tables
from result_file import FILE

OURS = "credo"


def path_of(folder: Path, name: str, peer: str) -> Path:
    """The file of a peer's scores on a stream."""
    words = re.sub(r"[^A-Za-z0-9]+", "-", peer).strip("-")
    return folder / f"{name}--{words}.json"


def answers_of(rows: Stream, peer: str) -> tuple[np.ndarray, float]:
    """What a peer says about every row before it learns it, and the processor's seconds that it took.

    The answers are probabilities (N, C), or means and standard deviations (N, 2), NaN where there are none.
    """
    x = numbers_of(rows.columns)
    y = _numbered(rows)
    classes = len(rows.classes)
    learner = peers_of(classes)[peer]()
    if isinstance(learner, Refitted):
        started = time.process_time()
        answers = learner.forecasts(x, y)
        return answers, time.process_time() - started
    answers = np.full((len(y), classes or 2), np.nan)
    started = time.process_time()
    for row, target, place in zip(x, y.tolist(), answers, strict=True):
        answer = learner.predict(row)
        if answer is not None:
            place[:] = answer
        learner.learn(row, target)
    return answers, time.process_time() - started


def scores_of(rows: Stream, answers: np.ndarray, own_sd: bool = True) -> Scores:
    """The scores of a peer's answers; `own_sd` says whether its own standard deviations are used."""
    y = _numbered(rows)
    if rows.classes:
        return class_scores(answers, y.astype(int))
    return normal_scores(answers[:, 0], answers[:, 1] if own_sd else np.full(len(y), np.nan), y)


def _numbered(rows: Stream) -> np.ndarray:
    if rows.classes:
        return np.searchsorted(rows.classes, rows.target).astype(float)
    return rows.target


def _record(folder: Path, name: str, peer: str, rows: Stream, scores: Scores, answers: Path | None) -> None:
    """Write down scores, with the day of the saved answers, or else today."""
    entry: dict[str, Any] = {"stream": name, "peer": peer, "task": rows.task, "group": group_of(name)}
    entry |= {"version": version_of(peer), "scores": scores}
    entry["date"] = day_of(answers) if answers else datetime.datetime.now(datetime.UTC).date().isoformat()
    path_of(folder, name, peer).write_text(json.dumps(entry, indent=1))
    numbers = [f"{key} {value:.4g}" for key, value in scores.items() if isinstance(value, int | float)]
    print(f"{name}, {peer}: {', '.join(numbers)}", flush=True)


def run_peer(folder: Path, name: str, rows: Stream, peer: str, again: bool) -> None:
    """Run a peer on a stream, unless the folder has its answers, and write down its scores."""
    path = path_of(folder, name, peer)
    saved = path.with_suffix(".npz")
    if again or not saved.exists():
        answers, seconds = answers_of(rows, peer)
        np.savez_compressed(saved, answers=answers, seconds=seconds)
    with np.load(saved) as archive:
        answers = archive["answers"]
        seconds = float(archive["seconds"])
    own = rows.task == "regression" and bool(np.isfinite(answers[:, 1]).any())
    for title, own_sd in ((peer, True), (f"{peer}, sd of its errors", False))[: 1 + own]:
        scores = scores_of(rows, answers, own_sd)
        scores["seconds"], scores["rows_per_second"] = seconds, len(answers) / seconds
        _record(folder, name, title, rows, scores, saved)


def run(
    folder: Path, names: list[str], only: str | None, again: bool, ablate: bool, timed: bool = True
) -> None:
    """Run what the folder lacks. Dirty copies are not timed."""
    for name in names:
        try:
            rows = stream(name)
        except (ImportError, ValueError) as error:
            print(f"{name}: left out, {error}", flush=True)
            continue
        for peer in () if ablate else peers_of(len(rows.classes)):
            if only in (None, peer) and (again or not path_of(folder, name, peer).exists()):
                try:
                    run_peer(folder, name, rows, peer, again)
                except (ImportError, ArithmeticError, ValueError) as error:
                    print(f"{name}, {peer}: no scores, {type(error).__name__}: {error}", flush=True)
        for variation in (*VARIATIONS, None) if ablate else (None,):
            title = OURS if variation is None else f"{OURS}, {variation}"
            if only in (None, title) and (again or not path_of(folder, name, title).exists()):
                with nullcontext() if variation is None else varied(variation):
                    _record(
                        folder, name, title, rows, ours(rows, timed=timed and dirt_of(name) is None), None
                    )


def rescore(folder: Path, names: list[str]) -> None:
    """Take the scores of the peers' saved answers again."""
    for name in names:
        rows = stream(name)
        for peer in peers_of(len(rows.classes)):
            if path_of(folder, name, peer).with_suffix(".npz").exists():
                run_peer(folder, name, rows, peer, again=False)


def write_results(folder: Path, path: Path) -> None:
    """Write the scores of a folder into a file beside those that it has, and the sizes of their streams."""
    results = merged(read(path), collected(folder, OURS))
    write(results, path)
    known = read_shapes(path)
    names = dict.fromkeys(clean_of(one.stream) for one in results)
    write_shapes(known | missing_shapes(known, names, stream), path)


def main() -> None:
    """Read the command line, run, and print the tables if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--cache", type=Path, required=True, help="the folder of the results")
    parser.add_argument(
        "--streams",
        default=",".join(STANDARD),
        help=f"names, NAME~DIRT, or groups, with commas between: {', '.join(GROUPS)}; by default %(default)s",
    )
    parser.add_argument("--only", help="one peer, or credo")
    parser.add_argument("--again", action="store_true", help="run what the folder has, too")
    parser.add_argument("--untimed", action="store_true", help="leave out the run that times credo")
    parser.add_argument("--ablate", action="store_true", help="run the variations of credo's default")
    parser.add_argument("--rescore", action="store_true", help="score the saved answers of the peers again")
    parser.add_argument("--markdown", action="store_true", help="print the tables, and run nothing")
    parser.add_argument(
        "--results",
        type=Path,
        nargs="?",
        const=FILE,
        help="write the folder's scores into this file, and run nothing; by default %(const)s",
    )
    arguments = parser.parse_args()
    folder: Path = arguments.cache
    folder.mkdir(parents=True, exist_ok=True)
    try:
        names = streams_of(arguments.streams.split(","))
    except KeyError as error:
        parser.error(f"--streams must name streams or groups ({', '.join(GROUPS)}); got {error}")
    methods = [*peers_of(0), *peers_of(3), OURS, *(f"{OURS}, {key}" for key in VARIATIONS)]
    if arguments.only not in (None, *methods):
        parser.error(f"--only must be one of {', '.join(dict.fromkeys(methods))}; got {arguments.only!r}")
    if arguments.results:
        write_results(folder, arguments.results)
        return
    if arguments.markdown:
        entries = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
        clean = [name for name in names if dirt_of(name) is None]
        print(f"## The streams\n\n{described(missing_shapes({}, clean, stream))}", end="\n\n")
        print(tables([entry for entry in entries if entry["stream"] in names], names, OURS))
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if arguments.rescore:
            rescore(folder, names)
        else:
            run(folder, names, arguments.only, arguments.again, arguments.ablate, not arguments.untimed)


if __name__ == "__main__":
    main()
