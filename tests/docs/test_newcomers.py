"""Four people who see credo for the first time: a visitor, a data engineer, a Python user, a packager.

Their files are those of River and scikit-learn: nobody here made them.
"""

from __future__ import annotations

import csv
import gzip
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from tests.docs.pages import ROOT, pages

import credo
from credo.cli import main

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """A command in an empty folder: its status, what it printed, and its standard error."""
    monkeypatch.chdir(tmp_path)

    def call(*words: object) -> tuple[int, str, str]:
        capsys.readouterr()
        status = main([str(word) for word in words])
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    return call


def table(name: str) -> list[dict[str, str]]:
    """A table that River has in its package."""
    river = pytest.importorskip("river")
    path = Path(river.__file__).parent / "datasets" / name
    whole = path.read_bytes()
    text = (gzip.decompress(whole) if path.suffix == ".gz" else whole).decode()
    return list(csv.DictReader(text.splitlines()))


def write(path: Path, rows: list[dict[str, str]], more: bool = False) -> Path:
    with path.open("a" if more else "w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        if not more:
            writer.writeheader()
        writer.writerows(rows)
    return path


# the visitor reads, and types what is in the grey boxes


def typed() -> Iterator[tuple[str, list[str]]]:
    """Every command of ours in the shell blocks of the pages."""
    for page in pages():
        text = page.read_text(encoding="utf-8")
        for block in re.findall(r"^```(?:sh|bash|console)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
            for line in re.sub(r"\\\n\s*", " ", block).splitlines():
                for part in re.split(r" \| |\|\||&&|;", line.split(" #")[0]):
                    found = re.match(r"\s*(?:\$ )?(?:\S*/)?credo (?!-)(.+)", part)
                    if found:
                        yield f"{page.name}: {part.strip()}", shlex.split(found[1])


def test_the_visitor_finds_every_command_and_flag_of_the_pages(run: Run) -> None:
    helps: dict[tuple[str, ...], str] = {}
    groups = {"bandit", "flow", "bank", "keyed", "serve"}
    unknown, seen = [], 0
    for where, words in typed():
        names = tuple(words[:2] if words[0] in groups and words[1:2] and words[1].isalpha() else words[:1])
        if names not in helps:
            status, out, _ = run(*names, "--help")
            helps[names] = out if status == 0 else ""
            if status != 0 and len(names) == 2:  # the second word was an argument
                helps[names] = run(names[0], "--help")[1]
        flags = [word.split("=")[0] for word in words if re.match(r"--[a-z]", word)]
        seen += 1 + len(flags)
        unknown += [f"{where}: {flag}" for flag in flags if not re.search(rf"{flag}\b", helps[names])]
        unknown += [where] * (not helps[names])
    assert unknown == []
    assert seen > 100


def test_the_visitor_can_run_the_two_commands_of_the_readme() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    goals = re.findall(r"^make (\w+) ", text, re.MULTILINE)
    assert goals == ["demo", "test"]
    rules = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert all(re.search(rf"^{goal}:", rules, re.MULTILINE) for goal in goals)


# the data engineer has files, and a terminal


@pytest.mark.slow
def test_the_data_engineer_learns_goes_on_and_predicts(run: Run, tmp_path: Path) -> None:
    rows = [{"id": f"u{place}", **row} for place, row in enumerate(table("phishing.csv.gz"))]
    file = write(tmp_path / "sites.csv", rows[:300])
    status, out, err = run("learn", file, "--target", "is_phishing", "--drop", "id", "--budget", "fast")
    assert status == 0, err
    assert "beats the running majority" in out
    assert not re.search(r"Warning|Traceback|0x[0-9a-f]{6}", err), err
    folder = tmp_path / "runs" / "sites"
    text = (folder / "report.html").read_text(encoding="utf-8")
    assert text.index("<img") < text.index("<table")
    # new rows come, and the run goes on
    write(file, rows[300:360], more=True)
    status, out, err = run("learn", file, "--resume", folder)
    assert status == 0, err
    data = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
    assert data["rows"]["learned"] == 360
    # tomorrow's rows have no target
    new = [{name: cell for name, cell in row.items() if name != "is_phishing"} for row in rows[360:380]]
    status, out, err = run("predict", folder, write(tmp_path / "new.csv", new), "--keep", "id")
    assert status == 0, err
    answers = list(csv.DictReader(out.splitlines()))
    assert [answer["id"] for answer in answers] == [f"u{place}" for place in range(360, 380)]
    chances = [[float(cell) for name, cell in answer.items() if name.startswith("p")] for answer in answers]
    assert all(0.99 < sum(some[-2:]) < 1.01 for some in chances)


def test_of_22_rows_the_data_engineer_is_told_little(run: Run, tmp_path: Path) -> None:
    """No verdict about change from so few rows."""
    file = write(tmp_path / "chicks.csv", table("chick-weights.csv")[:22])
    status, out, err = run("learn", file, "--target", "weight", "--budget", "fast")
    assert status == 0, err
    said = (tmp_path / "runs" / "chicks" / "report.html").read_text(encoding="utf-8") + out
    assert not re.search(r"is moving|stands still|the world (?:moves|changes)", said)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("learn", "absent.csv", "--target", "y"), "absent.csv"),
        (("learn", "sites.csv", "--target", "is_fishing"), "is_phishing"),
        (("learn", "sites.csv"), "target"),
        (("learn", "sites.csv", "--target", "is_phishing", "--buget", "fast"), "--budget"),
        (("learn", "sites.csv", "--target", "is_phishing", "--limit", "ten"), "ten"),
        (("predict", "nowhere", "sites.csv"), "nowhere"),
    ],
)
def test_a_wrong_command_gets_a_sentence_that_helps(
    words: tuple[str, ...], said: str, run: Run, tmp_path: Path
) -> None:
    write(tmp_path / "sites.csv", table("phishing.csv.gz")[:5])
    status, out, err = run(*words)
    assert status != 0
    assert said in out + err and "Traceback" not in out + err
    assert not (tmp_path / "runs").exists()


# the Python user has a model of their own


def test_the_python_user_has_a_likelihood_of_their_own_and_wraps_it() -> None:
    """Waiting times, whose rate doubles at once; three lines say what the density is."""
    waiting = credo.Likelihood(lambda eta, y: eta - y * jnp.exp(eta))
    inner = credo.extended_kalman(credo.Model(lambda w, x: w, waiting))
    learner = credo.RunLength(inner, hazard=1 / 100, capacity=5)
    rates = np.where(np.arange(200) < 100, 1.0, 8.0)
    y = np.random.default_rng(0).exponential(size=200) / rates
    belief, trace = credo.run(learner, learner.init(jnp.zeros(())), None, jnp.asarray(y))
    assert bool(trace.ok.all())
    assert abs(float(belief.mean[0]) - np.log(8.0)) < 0.3
    assert [row for row in credo.alarms(trace) if abs(int(row) - 100) < 15]


def test_the_python_user_makes_mistakes_and_is_told_the_field() -> None:
    for mistake, field in (
        (lambda: credo.RandomWalk(-1.0), "var"),
        (lambda: credo.MLP(outputs=0), "outputs"),
        (lambda: credo.LowRank(0), "rank"),
    ):
        with pytest.raises(credo.CredoError) as caught:
            mistake()
        assert caught.value.field == field
        assert str(caught.value).count(".") >= 1 and "\n" not in str(caught.value)


def test_the_python_user_passes_a_data_frame(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(table("chick-weights.csv")[:200]).astype({"weight": float, "time": float})
    regressor = credo.OnlineRegressor("linear").fit(frame[["time", "diet"]], frame["weight"])
    mean, sd = regressor.predict(frame[["time", "diet"]], return_std=True)
    assert mean.shape == sd.shape == (200,) and (sd > 0).all()
    assert np.corrcoef(mean, frame["weight"])[0, 1] > 0.8


# the packager installs the least, and looks at what is published


@pytest.mark.slow
def test_the_packager_needs_only_what_is_declared() -> None:
    """Without the optional packages credo is imported, learns, and says its version."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    optional = ["matplotlib", "pyarrow", "sklearn", "river", "mlxtend", "pandas", "polars", "litestar"]
    optional += ["ray", "cloudpickle", "uvicorn"]
    program = f"""
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {optional!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Absent())
import credo, jax.numpy as jnp
learner = credo.BetaBernoulli()
belief, _ = learner.step(learner.init(), None, 1.0)
assert float(belief.mean) > 0.5
from credo.cli import main
sys.exit(main(["--version"]))
"""
    # the tests' own cache of programs, of which XLA would speak, is not the packager's
    alone = {**os.environ, "JAX_ENABLE_COMPILATION_CACHE": "false"}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=alone, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().endswith(project["version"])
    assert done.stderr == ""


def test_the_packager_finds_types_licence_and_no_secret_needs() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["license"] == "Apache-2.0" and (ROOT / "LICENSE").exists()
    assert (ROOT / "src/credo/py.typed").exists() and (ROOT / "src/credo/__init__.pyi").exists()
    assert project["scripts"] == {"credo": "credo.cli:main"}
    pinned = (ROOT / "constraints/py3.11.txt").read_text(encoding="utf-8").lower()
    names = [re.split(r"[<>=!\[;]", need)[0] for need in project["dependencies"]]
    assert [name for name in names if not re.search(rf"^{name}==", pinned, re.MULTILINE)] == []
