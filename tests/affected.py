"""Run the test files that a change can reach: those that depend on a file which has changed.

    python -m tests.affected                        # since the branch left its upstream
    python -m tests.affected --since HEAD~5 --list  # the files only, one a line
    python -m tests.affected -- -n 2 -x              # arguments for pytest

What is not committed counts too. What depends on what is read from the sources (`affected_graph.py`): a test
too many runs now and then, and one too few where a name is put together in a way that no rule there knows.
`benchmarks/mutants.py` looks for such.
"""

from __future__ import annotations

import argparse
import ast
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.affected_facts import read_facts
from tests.affected_graph import Graph
from tests.affected_names import module_name

__all__ = ["ROOT", "affected", "changed_nodes", "main"]

ROOT = Path(__file__).resolve().parent.parent


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the tests or list their files; the status is that of pytest."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    split = words.index("--") if "--" in words else len(words)
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--since", metavar="COMMIT", help="what has changed since then")
    parser.add_argument("--list", action="store_true", help="print the files, one a line, and run nothing")
    options = parser.parse_args(words[:split])
    since = options.since or start(ROOT)
    try:
        tests, count = affected(ROOT, since)
    except subprocess.CalledProcessError as error:
        print(error.stderr.strip(), file=sys.stderr)
        return 2
    print(f"{len(tests)} of {count} test files depend on what has changed since {since}.", file=sys.stderr)
    if options.list:
        sys.stdout.writelines(f"{test}\n" for test in tests)
    if options.list or not tests:
        return 0
    command = [sys.executable, "-m", "pytest", *tests, *words[split + 1 :]]
    return subprocess.run(command, cwd=ROOT).returncode


def start(root: Path) -> str:
    """Where the branch left its upstream, or origin/main; without these, the commit before the last one."""
    for other in ("@{upstream}", "origin/main"):
        done = subprocess.run(["git", "merge-base", "HEAD", other], cwd=root, capture_output=True, text=True)
        if done.returncode == 0:
            return done.stdout.strip()
    return "HEAD~1"


def affected(root: Path, since: str) -> tuple[list[str], int]:
    """The files of tests that depend on what has changed since a commit, and how many there are in all."""
    paths = _lines(root, "diff", "--name-only", "--no-renames", since, "--")
    paths += _lines(root, "ls-files", "--others", "--exclude-standard")
    graph = Graph(root, deleted=[path for path in paths if not (root / path).exists()])
    nodes = set[str]()
    for path in paths:
        before = now = None
        if _hands_on(path) and (root / path).exists():
            before = _old(root, since, path)
            now = (root / path).read_text(encoding="utf-8")
        nodes |= changed_nodes(path, before, now)
    return graph.affected(nodes), len(graph.tests)


def changed_nodes(path: str, before: str | None, now: str | None) -> set[str]:
    """The nodes of a changed file: all that it does or, if only imports changed in a package, their names."""
    source = path.removesuffix("i") if path.endswith(".pyi") else path
    if before is None or now is None or not _hands_on(path):
        return {path, f"{source}::"}
    if _rest(before) != _rest(now):
        return {path, f"{source}::"}
    old, new = (read_facts(code, module_name(source)).handed for code in (before, now))
    return {path, *(f"{source}::{name}" for name, _ in old.items() ^ new.items())}


def _hands_on(path: str) -> bool:
    """Whether a file may only hand names on."""
    return path.endswith(("/__init__.py", "/__init__.pyi"))


def _rest(code: str) -> list[str]:
    """What a file does beside importing names and listing them."""
    lines = [line for line in ast.parse(code).body if not isinstance(line, ast.Import | ast.ImportFrom)]
    return [
        ast.dump(line)
        for line in lines
        if not (isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant))
        and not (isinstance(line, ast.Assign) and ast.unparse(line.targets[0]) == "__all__")
    ]


def _old(root: Path, since: str, path: str) -> str | None:
    done = subprocess.run(["git", "show", f"{since}:{path}"], cwd=root, capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else None


def _lines(root: Path, *words: str) -> list[str]:
    command = ["git", "-c", "core.quotePath=false", *words]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout.splitlines()


if __name__ == "__main__":
    sys.exit(main())
