"""Which tests a change affects: every kind of dependence in a small tree, and facts of this one."""

from __future__ import annotations

import subprocess
import textwrap
from pathlib import Path

import pytest
from tests.affected import affected, changed_nodes, main
from tests.affected_graph import Graph

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src/credo"

TREE = {
    "src/credo/__init__.py": """
        import importlib

        def __getattr__(name):
            return importlib.import_module(f"credo.{name}")
        """,
    "src/credo/__init__.pyi": """
        from credo import room as room
        from credo.room import One as One
        from credo.room import Two as Two
        """,
    "src/credo/__main__.py": "from credo.command import main",
    "src/credo/command.py": "def main(): from credo.room.two import Two",
    "src/credo/room/__init__.py": """
        from credo.room import inner
        from credo.room.one import One, spread
        from credo.room.two import Two

        __all__ = ["One", "Two", "inner", "spread"]
        """,
    "src/credo/room/one.py": """
        from credo.room.base import BASE
        One, spread = BASE, BASE
        """,
    "src/credo/room/two.py": """
        from __future__ import annotations
        from typing import TYPE_CHECKING
        from credo.room.one import spread
        if TYPE_CHECKING:
            from credo.room.types import Shape

        @spread.register
        def _(two): ...
        class Two: ...
        """,
    "src/credo/room/base.py": "BASE = 1",
    "src/credo/room/types.py": "class Shape: ...",
    "src/credo/room/inner/__init__.py": "from .deep import Deep",
    "src/credo/room/inner/deep.py": "from ..base import BASE as Deep",
    "src/credo/room/inner/named.bin": "",
    "src/credo/room/inner/other.bin": "",
    "src/credo/room/data.py": 'FILE = HERE / "inner" / "named.bin"',
    "src/credo/plug.py": 'PARTS = extensions("credo.parts")',
    "src/credo/flows/storage.py": 'import_module("credo.room.two")',
    "papers/pyproject.toml": """
        [project.entry-points."credo.parts"]
        paper = "credo_papers.paper:start"
        """,
    "papers/src/credo_papers/__init__.py": "",
    "papers/src/credo_papers/paper/__init__.py": "from credo_papers.paper.engine import start",
    "papers/src/credo_papers/paper/engine.py": "def start(): ...",
    "papers/src/credo_papers/paper/first_look.py": "from credo.room.two import Two",
    "benchmarks/race.py": "import track",
    "benchmarks/track.py": "from credo.room import Two",
    "docs/page.md": """
        ```python
        import credo
        credo.Two()
        ```
        """,
    "docs/commands.md": """
        ```sh
        credo learn table.csv
        ```
        """,
    "tests/conftest.py": "from tests.haste import FLAGS\nfrom credo.room import Two",
    "tests/haste.py": "FLAGS = ()",
    "tests/room/conftest.py": "import credo\ntwo = credo.Two",
    "tests/room/test_none.py": "",
    "tests/other/helper.py": "from credo.room import Two",
    "tests/other/data/kept.csv": "",
    "tests/other/stray.csv": "",
    "tests/saved/two.credo": '{"tree": "{\\"record\\": \\"Two\\"}"}',
}
"""Files by their paths. Beside them stands the file of tests whose dependences are asked for."""

TWO, BASE, INNER = "src/credo/room/two.py", "src/credo/room/base.py", "src/credo/room/inner/deep.py"


def write(root: Path, files: dict[str, str]) -> None:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(textwrap.dedent(text))


def graph(root: Path, source: str, path: str = "tests/other/test_it.py") -> Graph:
    write(root, TREE | {path: source})
    return Graph(root)


def nodes(path: str) -> set[str]:
    return changed_nodes(path, None, None)


@pytest.mark.parametrize(
    ("source", "reached", "unreached"),
    [
        ("from credo.room import Two", TWO, INNER),
        ("def test_it():\n    from credo.room.two import Two", TWO, INNER),
        ("import credo\ncredo.Two()", TWO, INNER),
        ("import credo\ncredo.room.Two()", TWO, INNER),
        ("import credo.room as here\nhere.Two()", TWO, INNER),
        ("from typing import Any\nimport credo\nloose: Any = credo\nloose.Two()", TWO, INNER),
        ("import credo\nNAMES = ['Two']\nfor name in NAMES:\n    getattr(credo, name)", TWO, INNER),
        ("from credo.room import inner\ninner.Deep", INNER, TWO),
        ("from credo.room import inner\ninner.Deep", BASE, TWO),
        ("import credo.room.inner", INNER, TWO),
        ("import credo\nfor name in dir(credo): ...", INNER, "benchmarks/race.py"),
        ("from credo.room import spread", TWO, INNER),
        ("from credo.room import Two", BASE, "src/credo/room/types.py"),
        ("patch('credo.room.two.Two', None)", TWO, INNER),
        ("importlib.import_module(f'credo.room.t{rest}')", TWO, INNER),
        ("import subprocess\nrun([python, '-c', 'from credo import Two'])", TWO, INNER),
        ("import subprocess\nrun([python, '-m', 'credo', 'learn'])", "src/credo/command.py", INNER),
        ("import subprocess\nrun([python, '-m', 'credo', 'learn'])", TWO, INNER),
        ("from credo.plug import PARTS", "papers/src/credo_papers/paper/engine.py", TWO),
        ("from credo.flows.storage import load", "src/credo/flows/storage.py", TWO),
        ("run('reproduce', 'first-look')", "papers/src/credo_papers/paper/first_look.py", INNER),
        ("from tests.other.helper import x", TWO, INNER),
        ("import importlib\nOPEN = 'benchmarks'\nimportlib.import_module('race')", TWO, INNER),
        ("FILE = ROOT / 'benchmarks' / 'race.py'", TWO, INNER),
        ("for path in (ROOT / 'src/credo').rglob('*.py'): ...", INNER, "benchmarks/race.py"),
        ("PAGE = ROOT / 'docs/page.md'", TWO, INNER),
        ("PAGE = ROOT / 'docs/page.md'", "docs/page.md", "docs/commands.md"),
        ("PAGE = ROOT / f'docs/{name}.md'", "src/credo/command.py", INNER),
        ("FILE = Path(__file__).parent / 'data' / 'kept.csv'", "tests/other/data/kept.csv", TWO),
        ("FILE = Path(__file__).parent / 'data' / f'{name}.csv'", "tests/other/data/kept.csv", TWO),
        ("", "tests/other/stray.csv", TWO),
        ("FILE = ROOT / 'tests/saved' / f'{name}.credo'", TWO, INNER),
        ("from credo.room.data import FILE", "src/credo/room/inner/named.bin", TWO),
        ("from credo.room.inner import Deep", "src/credo/room/inner/other.bin", TWO),
        ("from credo.room.gone import x", "src/credo/room/__init__.py", "benchmarks/race.py"),
        ("", "tests/haste.py", TWO),
        ("", "papers/pyproject.toml", TWO),
    ],
)
def test_a_test_depends_on_what_it_uses_and_on_little_else(
    source: str, reached: str, unreached: str, tmp_path: Path
) -> None:
    tree = graph(tmp_path, source)
    assert "tests/other/test_it.py" in tree.affected(nodes(reached))
    assert "tests/other/test_it.py" not in tree.affected(nodes(unreached))


def test_a_conftest_serves_the_tests_of_its_folder(tmp_path: Path) -> None:
    tree = graph(tmp_path, "")
    assert tree.affected(nodes("tests/room/conftest.py")) == ["tests/room/test_none.py"]
    assert tree.affected(nodes(TWO)) == ["tests/room/test_none.py"]
    assert tree.affected(nodes("tests/conftest.py")) == tree.tests


def test_pages_affect_all_tests_of_the_documentation(tmp_path: Path) -> None:
    tree = graph(tmp_path, "", "tests/docs/test_it.py")
    assert tree.affected(nodes("docs/page.md")) == ["tests/docs/test_it.py"]
    assert tree.affected(nodes(TWO)) == ["tests/room/test_none.py"]


def test_a_new_name_of_a_package_affects_only_who_uses_it() -> None:
    path = "src/credo/room/__init__.py"
    before = '"""A room."""\nfrom credo.room.one import One\n__all__ = ["One"]\n'
    now = (
        '"""Another."""\nfrom credo.room.one import One\nfrom credo.room.two import Two\n__all__ = ["Two"]\n'
    )
    assert changed_nodes(path, before, now) == {path, f"{path}::Two"}
    assert changed_nodes(path, before, f"{before}One = None\n") == {path, f"{path}::"}
    assert changed_nodes(f"{path}i", before, now) == {f"{path}i", f"{path}::Two"}


def test_changes_since_a_commit_are_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def git(*words: str) -> None:
        own = ("-c", "user.name=a", "-c", "user.email=a@b.c")
        subprocess.run(["git", *own, *words], cwd=tmp_path, check=True, capture_output=True)

    write(tmp_path, TREE | {"tests/other/test_it.py": "from credo.room.two import Two"})
    git("init")
    git("add", ".")
    git("commit", "-m", "all")
    count = len(Graph(tmp_path).tests)
    assert affected(tmp_path, "HEAD") == ([], count)
    (tmp_path / "src/credo/room/base.py").write_text("BASE = 2")
    assert affected(tmp_path, "HEAD") == (["tests/other/test_it.py", "tests/room/test_none.py"], count)
    git("commit", "-a", "-m", "base")
    assert affected(tmp_path, "HEAD") == ([], count)
    assert affected(tmp_path, "HEAD~1")[0] == ["tests/other/test_it.py", "tests/room/test_none.py"]
    (tmp_path / "tests/other/test_more.py").write_text("")
    assert affected(tmp_path, "HEAD") == (["tests/other/test_more.py"], count + 1)
    (tmp_path / "src/credo/room/two.py").unlink()
    assert "tests/other/test_it.py" in affected(tmp_path, "HEAD")[0]


def test_nothing_runs_where_nothing_is_affected(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tests.affected.affected", lambda root, since: ([], 7))
    assert main(["--since", "HEAD", "--", "--no-such-flag"]) == 0
    assert capsys.readouterr().err == "0 of 7 test files depend on what has changed since HEAD.\n"


def test_a_commit_that_there_is_not_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--since", "no-such-commit", "--list"]) == 2
    assert "no-such-commit" in capsys.readouterr().err


@pytest.fixture(scope="module")
def here() -> Graph:
    """What depends on what in this checkout, which takes three seconds to read."""
    return Graph(ROOT)


@pytest.mark.slow
def test_every_module_of_the_package_is_reached_by_a_test_and_few_by_most(here: Graph) -> None:
    paths = [path.relative_to(ROOT).as_posix() for path in sorted(SOURCES.rglob("*.py"))]
    counts = {path: len(here.affected(nodes(path))) for path in paths}
    general = len(here.affected(["src/credo/*", "src/credo/#"]))
    assert [path for path, count in counts.items() if count <= general] == []
    assert sorted(counts.values())[len(counts) // 2] < len(here.tests) / 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "test"),
    [
        ("src/credo/learners/rules/iterates.py", "tests/learners/test_rules.py"),
        ("src/credo/adapt/soft_reset.py", "tests/streams/test_golden_files.py"),
        ("src/credo/serve/journal_source.py", "tests/scale/test_sources.py"),
        ("src/credo/estimators/river_base.py", "tests/estimators/test_river_works.py"),
        ("src/credo/cli/flow_runs.py", "tests/cli/test_flow.py"),
        ("src/credo/flows/operators/linear-2.flow", "tests/flows/test_shipped.py"),
        ("src/credo/serve/pages/view.html", "tests/serve/test_refusals.py"),
        ("papers/src/credo_papers/bone/bone_rotating.py", "tests/papers/bone/test_bone.py"),
        ("papers/src/credo_papers/lofi/lofi_uci.py", "tests/papers/engine/test_reproduce.py"),
        ("tests/sessions/data/numbers.credo", "tests/sessions/test_golden_sessions.py"),
        ("tests/learners/over_devices.py", "tests/learners/test_sharding.py"),
        ("benchmarks/aims.py", "tests/benchmarks/test_speed.py"),
        ("docs/how-to/decide.md", "tests/docs/test_code_blocks.py"),
    ],
)
def test_what_is_loaded_by_name_is_found(path: str, test: str, here: Graph) -> None:
    assert (ROOT / path).exists() and test in here.affected(nodes(path))


@pytest.mark.slow
def test_what_all_tests_share_affects_all(here: Graph) -> None:
    for path in (
        "tests/conftest.py",
        "tests/haste.py",
        "constraints/py3.11.txt",
        "pyproject.toml",
        "Makefile",
    ):
        assert here.affected(nodes(path)) == here.tests
