"""Mutants: their choice is spread over the rooms, and a verdict says which tests noticed."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.affected_graph import Graph

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"

ONE = "def one(a, b):\n    return a + b\n"


@pytest.fixture
def mutants(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("mutants")


@pytest.fixture
def place(mutants: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A small checkout, in which the mutants live."""
    files = {
        "src/credo/__init__.py": "",
        "src/credo/one/__init__.py": "from credo.one.adding import one",
        "src/credo/one/adding.py": f'{ONE}    """\n    >>> one(1, 2)\n    3\n    """',
        "src/credo/two/__init__.py": "",
        "src/credo/two/using.py": "from credo.one import one\n'''\n>>> one(1, 2)\n3\n'''",
        "src/credo/two/apart.py": "'''\n>>> 1\n1\n'''",
        "tests/one/test_adding.py": "from credo.one import one",
        "tests/one/test_more.py": "from credo.one import one\none, one",
        "tests/two/test_using.py": "from credo.two.using import one",
        "tests/two/test_using_more.py": "import credo.two.using",
        "tests/two/test_apart.py": "import credo.two.apart",
    }
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    monkeypatch.setattr(mutants, "ROOT", tmp_path)
    monkeypatch.setattr(mutants, "PACKAGE", tmp_path / "src" / "credo")
    return tmp_path


def test_the_choice_is_spread_over_the_rooms_by_their_lines(mutants: Any, tmp_path: Path) -> None:
    for room, count in {"large": 30, "middle": 10, "small": 3}.items():
        (tmp_path / room).mkdir()
        (tmp_path / room / "sums.py").write_text(
            "".join(f"def f{n}(a, b):\n    return a + b\n" for n in range(count))
        )

    def rooms(count: int, *chosen: str) -> list[str]:
        return [one.path.split("/")[0] for one in mutants.choose(tmp_path, count, 0, chosen)]

    assert sorted(rooms(6)) == ["large", "large", "middle", "middle", "small", "small"]
    assert [rooms(20).count(room) for room in ("large", "middle", "small")] == [14, 4, 2]
    assert mutants.choose(tmp_path, 10, 0) == mutants.choose(tmp_path, 20, 0)[:10]
    assert mutants.choose(tmp_path, 10, 0) != mutants.choose(tmp_path, 10, 1)
    assert set(rooms(9, "small", "middle")) == {"small", "middle"}
    assert len(rooms(200)) == 43  # one in a line


def test_the_stages_are_the_affected_tests_by_what_runs_them(mutants: Any, place: Path) -> None:
    (mutation,) = mutants.choose(place / "src" / "credo", 1, 0)
    assert mutation.path == "one/adding.py"
    copy = place / "copy"
    found = mutants.stages(Graph(place), mutation, copy, others=True)
    tests = ["tests/one/test_adding.py", "tests/one/test_more.py", "tests/two/test_using.py"]
    more, apart = ["tests/two/test_using_more.py"], ["tests/two/test_apart.py"]
    examples = [f"{copy}/credo/one/adding.py", f"{copy}/credo/two/using.py"]
    assert [(stage.tier, stage.name, stage.mode, stage.files) for stage in found] == [
        ("test", "nearest", "quick", tests),
        ("test", "quick", "quick", more),
        ("all", "examples", "quick", examples),
        ("all", "slow", "slow", tests + more),
        ("all", "optimised", "optimised", tests + more),
        ("others", "others", "quick", apart),
    ]
    assert [stage.name for stage in mutants.stages(Graph(place), mutation, copy, others=False)][
        -1
    ] == "optimised"


@pytest.mark.parametrize(
    ("ends", "tier", "by", "unfinished"),
    [
        ({"nearest": "failed"}, "test", "nearest: tests/t.py::test_t", []),
        ({"quick": "standstill"}, "test", "quick: standstill", []),
        ({"slow": "failed"}, "all", "slow: tests/t.py::test_t", []),
        ({"quick": "out of time", "examples": "failed"}, "all", "examples: tests/t.py::test_t", ["quick"]),
        ({"others": "failed"}, "others", "others: tests/t.py::test_t", []),
        ({"slow": "out of time"}, "neither", "", ["slow"]),
    ],
)
def test_a_verdict_says_what_noticed(
    ends: dict[str, str],
    tier: str,
    by: str,
    unfinished: list[str],
    mutants: Any,
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    package = place / "src" / "credo"
    (mutation,) = mutants.choose(package, 1, 0)
    seen: list[str] = []

    def noticed(stage: Any, where: Path, plan: Any) -> Any:
        seen.append((package / mutation.path).read_text())
        end = ends.get(stage.name, "passed")
        return mutants.Outcome(end, "tests/t.py::test_t" if end == "failed" else "")

    monkeypatch.setattr(mutants, "noticed", noticed)
    before = (package / mutation.path).read_text()
    verdict = mutants.judge(mutation, place / "src", mutants.Plan(Graph(place), place, 9.0, True))
    assert (verdict.tier, verdict.by, verdict.unfinished) == (tier, by, unfinished)
    assert "+    return (a - b)" in verdict.diff and "-    return a + b" in verdict.diff
    assert before not in seen and (package / mutation.path).read_text() == before


def test_a_test_that_fails_without_the_mutant_does_not_count(
    mutants: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first of two failing tests is broken itself; the second passes in the copy without the mutant."""
    plan = mutants.Plan(None, tmp_path, 9.0, False)
    calls: list[list[str]] = []

    def run(command: list[str], environment: dict[str, str], limit: float) -> Any:
        calls.append(command)
        clean = environment["PYTHONPATH"].startswith(str(plan.clean))
        fails = [test for test in ("broken", "good") if "--deselect" not in command or test not in command]
        failed = fails[0] if not clean else "broken" if command[-1] == "broken" else ""
        return mutants.Outcome("failed" if failed else "passed", failed)

    monkeypatch.setattr(mutants, "run", run)
    stage = mutants.Stage("test", "quick", "quick", ["tests/t.py"])
    assert mutants.noticed(stage, tmp_path / "0", plan).test == "good"
    assert plan.sound == {"quick broken": False, "quick good": True}
    assert len(calls) == 4
    assert mutants.noticed(stage, tmp_path / "0", plan).test == "good"
    assert len(calls) == 6  # what is known is not run again


@pytest.mark.parametrize(
    ("program", "end", "test"),
    [
        ("print('...')", "passed", ""),
        ("raise SystemExit(5)", "passed", ""),
        (
            "print('.F\\nFAILED tests/a.py::test_b[x - y] - assert 1\\n1 failed'); raise SystemExit(1)",
            "failed",
            "tests/a.py::test_b[x - y]",
        ),
        ("import os; os.abort()", "failed", ""),
        ("import time; time.sleep(60)", "standstill", ""),
        ("import time\nwhile True: print('.', flush=True); time.sleep(0.02)", "out of time", ""),
    ],
)
def test_a_run_ends_by_itself_by_standing_still_or_at_its_limit(
    program: str, end: str, test: str, mutants: Any
) -> None:
    limit = 0.5 if end == "out of time" else 60.0
    standstill = 0.5 if end == "standstill" else 60.0
    outcome = mutants.run([sys.executable, "-S", "-c", program], {}, limit, standstill)
    assert (outcome.end, outcome.test) == (end, test)


def test_the_table_has_a_line_a_room_and_the_survivors(
    mutants: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    verdicts = [
        mutants.Verdict(f"{room}/x.py", room, tier, "", late, 1.0, f"- {room} {tier}")
        for room, tier, late in (
            ("core", "test", []),
            ("core", "neither", ["slow"]),
            ("live", "all", []),
            ("live", "test", []),
        )
    ]
    assert mutants.report(verdicts) == 1
    assert capsys.readouterr().out == (
        "\n"
        "room            mutants     make test make test-all       neither  survived\n"
        "core                  2             1             0             1     50.0%\n"
        "live                  2             1             1             0      0.0%\n"
        "all                   4             2             1             1     25.0%\n"
        "\ncore/x.py (out of time: slow)\n- core neither\n"
        "\n25.0% survived; at most 5% may.\n1 met a stage that ran out of time.\n"
    )
    assert mutants.report(verdicts[2:]) == 0
