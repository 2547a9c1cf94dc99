"""Classes without a file: those of a notebook's cells are plug-ins as they stand."""

from __future__ import annotations

import json
import linecache
import sys
from types import ModuleType

import pytest

import dperm_cli
from dperm_cli.core import plugin_classes, plugin_sources
from tests.api.conftest import SMALL

SOURCE = '''
from dataclasses import dataclass

import numpy as np

from dperm_cli import Gaussian, Mechanism, Positive, Release

SHARE = 1.0


def move(start, total, step_size):
    return start - SHARE * step_size * total


@dataclass(frozen=True)
class OneStep(Mechanism):
    """One noisy step."""

    step_size: Positive = 0.1

    def events(self, spec, scale, budget):
        return (Gaussian(scale, spec.lipschitz, gap=spec.gradient_gap),)

    def release(self, view, plan, gate):
        start = np.tile(view.spec.constraint.centre(), (gate.trials, 1))
        total = gate.stream(plan.events[0], view.spec.p).add(view.gradient_sum(start), 0)
        moved = move(start, total, self.step_size)
        return Release(view.spec.constraint.project(moved))


@dataclass(frozen=True)
class Unfinished(Mechanism):
    def events(self, spec, scale, budget):
        return ()


@dataclass(frozen=True)
class NoisyGd(OneStep):
    pass


@dataclass(frozen=True)
class Longer(OneStep):
    step_size: Positive = 0.3
'''


@pytest.fixture
def make_cell(monkeypatch):
    """Run the text of a cell in a module without a file, as a notebook does; gives its names."""
    made = []

    def run_cell(text=SOURCE, name="a_notebook"):
        module = ModuleType(name)
        monkeypatch.setitem(sys.modules, name, module)
        file = f"<cell {len(made)} of {name}>"
        monkeypatch.setitem(linecache.cache, file, (len(text), None, text.splitlines(True), file))
        made.append(file)
        exec(compile(text, file, "exec"), vars(module))
        return module

    return run_cell


def find_digest(cls) -> str:
    with plugin_sources.use_plugins():
        return plugin_classes.add_class(cls).digest


def test_a_class_and_its_objects_run(make_cell, run_small):
    cell = make_cell()
    made = [cell.OneStep, cell.OneStep(step_size=0.2), "noisy_gd"]
    found = run_small(*SMALL[:3], mechanism=made).frame()
    assert found["mechanism"].tolist() == ["one_step", "one_step", "noisy_gd"]
    assert found["mechanism.step_size"].tolist()[:2] == [0.1, 0.2]
    digest = find_digest(cell.OneStep)
    assert [digest in str(words) for words in found["plugins"]] == [True, True, False]


def test_a_class_by_its_name(make_cell, run_small):
    cell = make_cell()
    found = run_small(*SMALL[:3], "mechanism=one_step", plugins=cell.OneStep)
    assert found.frame()["status"].tolist() == ["ok"]
    with pytest.raises(dperm_cli.InputError, match="one_step"):  # forgotten after the call
        dperm_cli.plans(*SMALL, mechanism="one_step")


def test_a_cell_has_the_record_of_a_file(make_cell, run_small, tmp_path):
    """The same source gives the same release, whoever holds it."""
    (tmp_path / "mine.py").write_text(SOURCE.partition("\n\n@dataclass(frozen=True)\nclass Unf")[0])
    cell = run_small(*SMALL[:3], mechanism=make_cell().OneStep)
    file = run_small(
        *SMALL[:3], mechanism="one_step", plugins=[tmp_path / "mine.py"], out="of a file"
    )
    assert cell.trials()["theta"].tolist() == file.trials()["theta"].tolist()


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("SHARE = 1.0", "SHARE = 0.5", False),
        ("start - SHARE", "start + SHARE", False),
        ("One noisy step", "A noisy step", False),
        ("class Unfinished(", "class Other(", True),
    ],
)
def test_the_digest_is_of_the_class_and_what_it_uses(make_cell, old, new, same):
    first, second = make_cell(), make_cell(SOURCE.replace(old, new))
    assert (find_digest(first.OneStep) == find_digest(second.OneStep)) is same


def test_a_class_below_another_has_both_in_its_digest(make_cell):
    first = make_cell()
    found = find_digest(first.Longer)
    assert found != find_digest(first.OneStep)
    for old, new in (("= 0.3", "= 0.4"), ("SHARE = 1.0", "SHARE = 2.0")):
        assert find_digest(make_cell(SOURCE.replace(old, new)).Longer) != found


def test_a_cell_that_is_run_again_is_the_newer_class(make_cell, run_small):
    first = run_small(*SMALL[:3], mechanism=make_cell().OneStep)
    second = run_small(*SMALL[:3], mechanism=make_cell(SOURCE.replace("= 0.1", "= 0.3")).OneStep)
    assert first.frame()["cell"][0] != second.frame()["cell"][0]


def test_other_processes_cannot_read_a_cell(make_cell, tmp_path):
    with pytest.raises(dperm_cli.InputError, match="OneStep has no file") as caught:
        dperm_cli.run(*SMALL[:3], mechanism=make_cell().OneStep, workers=2, out=tmp_path / "x")
    assert caught.value.key == "workers"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "said"),
    [("Unfinished", "lacks release"), ("NoisyGd", "shadows the shipped mechanism noisy_gd")],
)
def test_classes_that_are_refused(make_cell, name, said):
    with pytest.raises(dperm_cli.InputError, match=said):
        dperm_cli.plans(*SMALL, mechanism=getattr(make_cell(), name))


def test_a_class_without_source_is_refused():
    space = {"__name__": "__main__"}
    exec(SOURCE, space)
    with pytest.raises(dperm_cli.InputError, match="has no source that can be read"):
        dperm_cli.plans(*SMALL, mechanism=space["OneStep"])


def test_a_class_of_an_imported_file(tmp_path, monkeypatch, run_small):
    """Its digest is that of the file, as for --plugin."""
    text = SOURCE.partition("\n\n@dataclass(frozen=True)\nclass Unf")[0]
    (tmp_path / "lab_of_mine.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    import lab_of_mine  # type: ignore[import-not-found]

    found = run_small(*SMALL[:3], mechanism=lab_of_mine.OneStep)
    with plugin_sources.use_plugins():
        digest = plugin_sources.add_file(tmp_path / "lab_of_mine.py").digest
    assert digest in found.frame()["plugins"][0]
    (release,) = json.loads((found.folder / "ledger.json").read_text())["releases"]
    assert "one_step" in json.dumps(release)


MORE = SOURCE.replace(
    "    step_size: Positive = 0.1", "    share = SHARE\n    step_size: Positive = 0.1"
)


@pytest.mark.parametrize(
    ("source", "old", "new"),
    [
        (SOURCE.replace("SHARE *", "SHARE[0] *"), "SHARE = 1.0", "SHARE = [{}]"),
        (SOURCE.replace("SHARE *", 'SHARE["a"] *'), "SHARE = 1.0", 'SHARE = {{"a": {}}}'),
        (SOURCE, "SHARE = 1.0", "SHARE = np.array([{}])"),
        (MORE.replace("SHARE *", "1.0 *"), "SHARE = 1.0", "SHARE = {}"),
        (
            SOURCE,
            "def move(start, total, step_size",
            "K = {}\n\n\ndef move(start, total, step_size, k=K",
        ),
    ],
    ids=["list", "map", "array", "class body", "default"],
)
def test_another_value_that_a_cell_uses_is_another_digest(make_cell, source, old, new):
    """A kept record would else be taken for the release of the changed cell."""
    digests = [
        find_digest(make_cell(source.replace(old, new.format(value))).OneStep)
        for value in ("0.5", "0.500000000001", "0.5")
    ]
    assert digests[0] != digests[1]
    assert digests[0] == digests[2]


def test_a_module_beside_a_notebook_is_in_the_digest(make_cell, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    source = SOURCE.replace("SHARE = 1.0", "import beside_it").replace("SHARE *", "beside_it.A *")
    found = []
    for text in ("A = 1.0", "A = 2.0"):
        (tmp_path / "beside_it.py").write_text(text)
        found.append(find_digest(make_cell(source).OneStep))
    assert found[0] != found[1]


def test_a_value_that_no_digest_covers_is_refused(make_cell):
    source = SOURCE.replace("SHARE = 1.0", "import threading\nSHARE = threading.Lock()")
    with pytest.raises(dperm_cli.InputError, match="SHARE"):
        find_digest(make_cell(source.replace("SHARE *", "id(SHARE) *")).OneStep)
