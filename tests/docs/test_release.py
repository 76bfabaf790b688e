"""What a release needs agrees: versions, supported Pythons, and the addresses that the workflow writes."""

from __future__ import annotations

import importlib.util
import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

import credo

ROOT = Path(__file__).parents[2]


def project(text: str) -> dict[str, Any]:
    table: dict[str, Any] = tomllib.loads(text)["project"]
    return table


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_all_files_name_one_version() -> None:
    papers = project(read("papers/pyproject.toml"))
    needed = papers["dependencies"][0].partition("==")[2]
    cited = re.findall(r"^version: (\S+)$", read("CITATION.cff"), re.MULTILINE)
    versions = [project(read("pyproject.toml"))["version"], papers["version"], needed, *cited]
    assert versions == [credo.__version__] * 4


def test_all_files_name_the_same_pythons() -> None:
    wanted = re.findall(
        r'"(3\.\d+)"', re.findall(r"python: \[(.*)\]", read(".github/workflows/checks.yml"))[0]
    )
    assert len(wanted) == 4
    assert (
        re.findall(r'"(3\.\d+)"', re.findall(r"python: \[(.*)\]", read(".github/workflows/release.yml"))[0])
        == wanted
    )
    assert sorted(path.stem.removeprefix("py") for path in (ROOT / "constraints").glob("*.txt")) == wanted
    for name in ("pyproject.toml", "papers/pyproject.toml"):
        table = project(read(name))
        assert [word.rpartition(" ")[2] for word in table["classifiers"] if " :: 3." in word] == wanted
        assert table["requires-python"] == f">={wanted[0]}"


def script(name: str) -> Any:
    """A script of packaging."""
    spec = importlib.util.spec_from_file_location(name, ROOT / f"packaging/{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def packaging_urls() -> Any:
    return script("urls")


def test_sites_of_versions_lie_beside_each_other(tmp_path: Path) -> None:
    """A patch replaces its minor version, 0.10 is newer than 0.9, and the front page leads to the newest."""
    site, sites, place = tmp_path / "site", tmp_path / "sites", script("versions").place
    with pytest.raises(SystemExit, match="make docs"):
        place(site, sites, "0.9.0")
    site.mkdir()
    for version in ("0.9.0", "v0.10.0", "0.9.1"):
        (site / "index.html").write_text(version)
        place(site, sites, version)
    listed = json.loads((sites / "versions.json").read_text())
    assert [(one["version"], one["aliases"]) for one in listed] == [("0.10", ["latest"]), ("0.9", [])]
    assert (sites / "0.9/index.html").read_text() == "0.9.1"
    assert 'url=0.10/"' in (sites / "index.html").read_text()
    with pytest.raises(SystemExit, match="looks like"):
        place(site, sites, "latest")


@pytest.mark.parametrize("name", ["pyproject.toml", "papers/pyproject.toml"])
def test_a_release_names_its_repository(name: str, tmp_path: Path) -> None:
    urls = packaging_urls()
    (path := tmp_path / "pyproject.toml").write_text(read(name))
    urls.write(path, "https://host.example/o/n")
    written = project(path.read_text())
    assert written.pop("urls")["Issues"] == "https://host.example/o/n/issues"
    assert written == project(read(name))


def test_the_readme_of_a_release_leads_into_the_repository() -> None:
    text = packaging_urls().absolute("![a](b/c.png) [d](e.md#f) [g](https://h.example) [i](#j)", "https://x")
    assert text == (
        "![a](https://x/raw/main/b/c.png) [d](https://x/blob/main/e.md#f) [g](https://h.example) [i](#j)"
    )
    whole = packaging_urls().absolute(read("README.md"), "https://x")
    paths = re.findall(r"\(https://x/(?:raw|blob)/main/([^)#]+)", whole)
    assert len(paths) > 10 and [path for path in paths if not (ROOT / path).exists()] == []
