"""The files that the host of the repository reads: workflows, forms, the citation.

They cannot run here. What can be read off them is held against the Makefile, pyproject.toml and the
package: targets that exist, versions that agree, rights that are given one by one.
"""

from __future__ import annotations

import re
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

import dperm_cli
from tests import distributions

ROOT = Path(__file__).parents[2]
HOST = ROOT / ".github"
WORKFLOWS = sorted((HOST / "workflows").glob("*.yml"))
FORMS = sorted(path for path in (HOST / "ISSUE_TEMPLATE").glob("*.yml") if path.stem != "config")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PYTHONS = re.findall(r"Python :: (3\.\d+)", " ".join(PROJECT["classifiers"]))
MAKEFILE = (ROOT / "Makefile").read_text()
TARGETS = {
    *re.findall(r"^([a-z][\w-]*):", MAKEFILE, re.M),
    *(path.stem for path in (ROOT / "conf" / "experiment").glob("*.yaml")),
}
ACTION = re.compile(r"[\w.-]+/[\w.-]+@(v\d+(\.\d+)*|release/v\d+|[0-9a-f]{40})")
FIELDS = {"markdown", "textarea", "input", "dropdown", "checkboxes"}


def read(path: Path) -> dict[Any, Any]:
    found = yaml.safe_load(path.read_text())
    assert isinstance(found, dict), path
    return found


def list_jobs(path: Path) -> dict[str, dict[str, Any]]:
    return read(path)["jobs"]


def list_steps(path: Path) -> list[dict[str, Any]]:
    return [step for job in list_jobs(path).values() for step in job["steps"]]


def fill(text: str, job: dict[str, Any]) -> list[str]:
    """A line of a job for each value of its matrix."""
    found = re.search(r"\$\{\{ matrix\.(\w+) \}\}", text)
    if found is None:
        return [text]
    values = job["strategy"]["matrix"][found[1]]
    return [one for value in values for one in fill(text.replace(found[0], value), job)]


def test_workflows_and_forms_are_there():
    assert {path.stem for path in WORKFLOWS} == {"tests", "docs", "publish"}
    assert {path.stem for path in FORMS} == {"bug", "claim", "wish"}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_says_what_it_needs(path):
    found = read(path)
    assert found[True], "when it runs"  # YAML reads the key `on` as true
    assert found["permissions"] == {"contents": "read"}
    for name, job in found["jobs"].items():
        assert job["runs-on"], name
        needs = job.get("needs", [])
        assert {needs} if isinstance(needs, str) else {*needs} <= set(found["jobs"])
        assert "timeout-minutes" in job or "id-token" in job.get("permissions", {}), name
    for step in list_steps(path):
        assert ("run" in step) != ("uses" in step), step
        if "uses" in step:
            assert ACTION.fullmatch(step["uses"]), step["uses"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_targets_files_and_matrices_of_a_workflow_exist(path):
    for job in list_jobs(path).values():
        for step in job["steps"]:
            text = "\n".join(fill(step.get("run", ""), job))
            for line in re.findall(r"^make (.+)$", text, re.M):
                target = line.split()[0]
                assert target in TARGETS, f"{path.name}: no target {target}"
            for name in re.findall(r"\b(?:tests|docs|dperm_cli)/[\w/.-]+", text):
                assert (ROOT / name).exists(), f"{path.name}: no file {name}"
            for extra in re.findall(r"-e '?\.\[(\w+)\]", text):
                assert extra in PROJECT["optional-dependencies"], extra


def test_a_slip_in_a_workflow_is_found():
    assert "tset" not in TARGETS
    assert {"test", "lint", "docs", "dist", "bst14_table1"} <= TARGETS
    assert not ACTION.fullmatch("actions/checkout@main")
    job = {"strategy": {"matrix": {"target": ["a", "b"]}}}
    assert fill("make ${{ matrix.target }}", job) == ["make a", "make b"]


def test_the_suite_runs_on_every_python_of_the_package():
    matrix = list_jobs(HOST / "workflows/tests.yml")["tests"]["strategy"]["matrix"]
    assert matrix["python"] == PYTHONS
    assert [name.partition("-")[0] for name in matrix["os"]] == ["ubuntu", "macos", "windows"]
    assert PROJECT["requires-python"] == f">={PYTHONS[0]}"


def test_the_workflows_of_every_change_run_what_ci_runs():
    line = re.search(r"^for target in (.*); do$", (ROOT / ".ci" / "run").read_text(), re.M)
    assert line
    files = [HOST / "workflows" / name for name in ("tests.yml", "docs.yml")]
    steps = "\n".join(step.get("run", "") for file in files for step in list_steps(file))
    assert set(line[1].split()) - set(re.findall(r"make ([\w-]+)", steps)) == set()


def test_tables_are_compiled_where_the_tests_run():
    """Without LaTeX the tests of ``table.tex`` skip, and nobody sees it."""
    job = list_jobs(HOST / "workflows/tests.yml")["tests"]
    steps = [step.get("run", "") for step in job["steps"]]
    found = next(place for place, text in enumerate(steps) if "texlive-latex-base" in text)
    assert "texlive-latex-recommended" in steps[found]
    assert job["steps"][found]["if"] == "runner.os == 'Linux'"
    tests = [place for place, text in enumerate(steps) if text.startswith("make test")]
    assert found < min(tests)


def test_only_the_last_job_of_a_release_has_rights():
    jobs = list_jobs(HOST / "workflows/publish.yml")
    assert [name for name, job in jobs.items() if "permissions" in job] == ["publish"]
    rights = jobs["publish"]["permissions"]
    assert rights["id-token"] == rights["attestations"] == "write"
    used = [step.get("uses", "").partition("@")[0] for step in jobs["publish"]["steps"]]
    for action in (
        "actions/attest-build-provenance", "actions/attest-sbom", "pypa/gh-action-pypi-publish",
    ):  # fmt: skip
        assert action in used
    text = (HOST / "workflows/publish.yml").read_text()
    assert "password" not in text.replace("without a password", "")
    assert "secrets." not in text


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_a_form_can_be_filled_in(path):
    form = read(path)
    assert {"name", "description", "body"} <= set(form)
    fields = [field for field in form["body"] if field["type"] != "markdown"]
    assert {field["type"] for field in form["body"]} <= FIELDS
    names = [field["id"] for field in fields]
    assert len(names) == len(set(names)) >= 3
    assert all(field["attributes"]["label"] for field in fields)


def test_the_citation_is_of_this_version():
    citation = read(ROOT / "CITATION.cff")
    assert citation["version"] == dperm_cli.__version__
    assert citation["cff-version"] == "1.2.0"
    assert {"message", "title", "authors"} <= set(citation)
    assert citation["license"] in PROJECT["license"]
    years = {one["year"]: one["authors"][0]["family-names"] for one in citation["references"]}
    assert years == {2014: "Bassily", 2016: "Kasiviswanathan", 2013: "Jain", 2012: "Duchi"}


@pytest.mark.parametrize("name", ["SECURITY.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md"])
def test_files_that_a_page_names_are_there(name):
    text = (ROOT / name).read_text()
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text)
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_what_does_not_belong_in_a_wheel_is_found(tmp_path):
    path = tmp_path / "dperm-1.0-py3-none-any.whl"
    names = [name.format(v="1.0") for name in distributions.NEEDED_IN_WHEEL]
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            archive.writestr(name, "x")
    assert distributions.check_wheel(path, "1.0") == []
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("tests/conftest.py", "x")
        archive.writestr("dperm_cli/__pycache__/cli.pyc", "x")
    assert len(distributions.check_wheel(path, "1.0")) == 2
    assert len(distributions.find_faults(names[1:], names[:1], ("dperm",))) == 1
