"""A record is named by what made it: other code leaves it alone, its own code makes it anew.

The package is copied, changed and run, as a user would who works on it. The study has two cells,
``noisy_gd`` and ``exponential`` with the sampler ``grid_walk``. Both are refused, the one a pure
guarantee and the other so many steps: that is a record too, and it takes little time.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import dperm_cli

PACKAGE = Path(dperm_cli.__file__).parent
STUDY = [
    "run", "-m", "mechanism=noisy_gd,exponential", "sampler=grid_walk", "privacy=pure",
    "dataset=synthetic_logistic", "dataset.n=20", "dataset.p=2", "constraint=box",
    "constraint.radius=1", "epsilon=1", "trials=1", "out=study", "format=json",
]  # fmt: skip


class Tree:
    """A copy of the package and its configuration, and one study that it ran.

    Attributes:
        package: The copied package.
        conf: The copied configuration.
        names: The records' names by mechanism, as the copy's last run gave them.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.package = folder / PACKAGE.name
        self.conf = folder / "conf"
        shutil.copytree(PACKAGE, self.package)
        shutil.copytree(PACKAGE.parent / "conf", self.conf)
        self.names: dict[str, str] = {}

    def run(self) -> int:
        """Run the study; how many records were written."""
        before = self._list_records()
        done = subprocess.run(
            [sys.executable, "-m", PACKAGE.name, *STUDY],
            cwd=self.folder, capture_output=True, text=True, check=False,
            env=os.environ | {"PYTHONPATH": str(self.folder)},
        )  # fmt: skip
        assert done.returncode == 1, done.stderr
        assert done.stdout, done.stderr
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        self.names = {row["mechanism"]: row["cell"] for row in rows}
        assert self.names.keys() == {"noisy_gd", "exponential"}
        return len(self._list_records() - before)

    def find(self, name: str) -> Path:
        """The one source file of a name, which may begin with folders."""
        (found,) = self.package.rglob(name)
        return found

    def change(self, *paths: Path) -> None:
        """Add a harmless line of code to files."""
        for path in paths:
            path.write_text(f"{path.read_text(encoding='utf-8')}\n_CHANGED = 1\n", encoding="utf-8")

    def _list_records(self) -> set[str]:
        return {file.name for file in (self.folder / "study" / "records").glob("*.parquet")}


@pytest.fixture(scope="module")
def original(tmp_path_factory) -> Tree:
    tree = Tree(tmp_path_factory.mktemp("tree"))
    assert tree.run() == 2
    assert tree.run() == 0
    return tree


@pytest.fixture
def tree(original):
    """The copy with its study; whatever a test changes is put back."""
    names = original.names
    sources = {path: path.read_bytes() for path in original.package.rglob("*.py")}
    yield original
    for path in original.package.rglob("*.py"):
        if path not in sources:
            path.unlink()
        elif path.read_bytes() != sources[path]:
            path.write_bytes(sources[path])
    original.names = names


@pytest.mark.slow
def test_comments_docstrings_and_new_plugins_recompute_nothing(tree):
    for path in tree.package.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if text.startswith('"""'):
            text = text.replace('"""', '"""Said otherwise. ', 1)
        path.write_text(f"{text}\n# a remark\n", encoding="utf-8")
    for group, name in (("mechanism", "non_private"), ("loss", "absolute"), ("constraint", "box")):
        module = tree.find(f"*/{name}.py")
        words = "".join(word.title() for word in name.split("_"))
        text = module.read_text(encoding="utf-8").replace(words, "Added").replace(name, "added")
        module.with_name("added.py").write_text(text, encoding="utf-8")
        (tree.conf / group / "added.yaml").write_text("# added\nname: added\n")
    names = dict(tree.names)
    assert tree.run() == 0
    assert tree.names == names


@pytest.mark.parametrize(
    ("source", "mechanism"),
    [
        pytest.param("loops/grid_walk.py", "exponential", marks=pytest.mark.slow),
        pytest.param("samplers/grid_walk.py", "exponential", marks=pytest.mark.slow),
        ("noisy_gd.py", "noisy_gd"),
    ],
)
def test_a_change_recomputes_only_what_runs_through_it(source, mechanism, tree):
    names = dict(tree.names)
    tree.change(tree.find(source))
    assert tree.run() == 1
    changed = {name for name in names if tree.names[name] != names[name]}
    assert changed == {mechanism}


@pytest.mark.slow
def test_a_change_of_what_all_run_through_recomputes_all(tree):
    names = dict(tree.names)
    tree.change(*(tree.package / "privacy").rglob("*.py"))
    assert tree.run() == 2
    assert not set(tree.names.values()) & set(names.values())


@pytest.mark.slow
def test_a_change_of_how_records_are_shown_recomputes_nothing(tree):
    tree.change(*(tree.package / "results").rglob("*.py"))
    assert tree.run() == 0
