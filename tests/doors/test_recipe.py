"""``dperm new``, the recipe of CONTRIBUTING, and the examples."""

from __future__ import annotations

import re

import pytest

from tests.doors._doors import ROOT, dperm, refused, table

EXAMPLES = ROOT / "examples" / "plugins"


def test_new_writes_one_short_file_that_says_what_to_do(tmp_path):
    done = dperm("new", "mechanism", "mine", cwd=tmp_path, code=0)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.py"]
    text = (tmp_path / "mine.py").read_text()
    compile(text, "mine.py", "exec")
    assert "class Mine(" in text
    assert "from dperm_cli import" in text
    assert len(text.splitlines()) <= 80
    assert "dperm check mine.py" in done.stdout + done.stderr


def test_new_never_overwrites(tmp_path):
    (tmp_path / "mine.py").write_text("precious")
    refused(dperm("new", "mechanism", "mine", cwd=tmp_path), r"mine\.py")
    assert (tmp_path / "mine.py").read_text() == "precious"


@pytest.mark.parametrize("name", ["../up", "a b", "noisy_gd", "class", "1st", "Mine", "a/b", ""])
def test_new_refuses_a_name_that_cannot_be(name, tmp_path):
    refused(dperm("new", "mechanism", name, cwd=tmp_path), "name|noisy_gd|mine")
    assert list(tmp_path.iterdir()) == []


def test_new_of_an_unknown_kind_names_the_known_ones(tmp_path):
    refused(dperm("new", "mechanisms", "mine", cwd=tmp_path), "mechanism")
    refused(dperm("new", cwd=tmp_path), "mechanism")


@pytest.mark.slow
def test_from_an_empty_folder_to_an_audited_mechanism(tmp_path):
    """The four commands of the issue, in their words."""
    dperm("new", "mechanism", "mine", cwd=tmp_path, code=0)
    dperm("check", "mine.py", cwd=tmp_path, code=0)
    keys = ("mechanism=mine,noisy_gd", "-m", "epsilon=0.1,1", "out=study")
    dperm("run", "--plugin", "mine.py", *keys, cwd=tmp_path, code=0)
    rows = table(tmp_path / "study")
    assert [(row["mechanism"], row["status"]) for row in rows] == [
        ("mine", "ok"),
        ("mine", "ok"),
        ("noisy_gd", "ok"),
        ("noisy_gd", "ok"),
    ]
    dperm("audit", "--plugin", "mine.py", "mechanism=mine", cwd=tmp_path, code=0)
    assert "mine" in dperm("report", "study", cwd=tmp_path, code=0).stdout


@pytest.mark.slow
def test_the_recipe_of_contributing_passes(tmp_path):
    """The one whole mechanism that the page shows goes through check, run, audit and report."""
    page = (ROOT / "CONTRIBUTING.md").read_text()
    files = [t for t in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "(Mechanism)" in t]
    assert files
    (tmp_path / "mine.py").write_text(files[0])
    assert "dperm_cli.core" not in files[0], "the page must import public names alone"
    name = re.sub(r"(?<!^)(?=[A-Z])", "_", re.findall(r"class (\w+)\(Mechanism\)", files[0])[0])
    dperm("check", "mine.py", cwd=tmp_path, code=0)
    keys = (f"mechanism={name.lower()}", "trials=2", "out=study")
    dperm("run", "--plugin", "mine.py", *keys, cwd=tmp_path, code=0)
    audited = ("--plugin", "mine.py", f"mechanism={name.lower()}", "--quick")
    dperm("audit", *audited, cwd=tmp_path, code=0)
    dperm("report", "study", cwd=tmp_path, code=0)


@pytest.mark.parametrize("base", [r"\(Mechanism\)", "Loss|Glm", "ConvexSet|OfRadius", "DataSet"])
def test_there_is_an_example_of_each_kind(base):
    texts = [path.read_text() for path in EXAMPLES.glob("*.py")]
    assert [text for text in texts if re.search(r"class \w+\(.*" + base.strip("\\()"), text)]


@pytest.mark.slow
def test_each_example_passes_its_check(tmp_path):
    files = sorted(EXAMPLES.glob("*.py"))
    assert len(files) >= 4
    for file in files:
        text = file.read_text()
        assert "from dperm_cli." not in text.replace("from dperm_cli.api", ""), file.name
        dperm("check", file, cwd=tmp_path, code=0)
