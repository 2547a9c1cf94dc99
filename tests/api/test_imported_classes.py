"""Classes of imported modules as plug-ins: the digest covers every file that they come from."""

from __future__ import annotations

import importlib
import pickle
import sys

import pytest

import dperm_cli
from dperm_cli.core import plugin_classes, plugin_sources
from dperm_cli.core.errors import DpermError, InputError
from tests.core.test_plugin_sources import MINE

TEXT = MINE.read_text()


@pytest.fixture
def place(tmp_path, monkeypatch):
    """An importable folder; what is imported from it is forgotten afterwards."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield tmp_path
    for name in set(sys.modules) - before:
        if name.startswith("lab_"):
            del sys.modules[name]


def load(name):
    """A module as it is on disk now."""
    for known in [one for one in sys.modules if one.startswith("lab_")]:
        del sys.modules[known]
    importlib.invalidate_caches()
    return importlib.import_module(name)


def find_digest(name):
    with plugin_sources.use_plugins():
        return plugin_classes.add_class(load(name).OneStep).digest


@pytest.mark.parametrize(
    "line",
    ["import lab_beside", "from lab_beside import helper", "def later():\n    import lab_beside"],
)
def test_a_class_whose_module_imports_a_file_beside_it_is_refused(line, place):
    (place / "lab_beside.py").write_text("helper = 1\n")
    (place / "lab_mine.py").write_text(f"{TEXT}\n{line}\n")
    with pytest.raises(InputError, match=r"^plugins=.*imports lab_beside, .*no digest|digest"):
        find_digest("lab_mine")


def test_of_a_package_every_file_counts(place):
    folder = place / "lab_pack"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "helper.py").write_text("helper = 1\n")
    (folder / "mine.py").write_text(f"from lab_pack.helper import helper\n{TEXT}")
    before = find_digest("lab_pack.mine")
    assert find_digest("lab_pack.mine") == before
    (folder / "helper.py").write_text("helper = 2\n")
    assert find_digest("lab_pack.mine") != before


def test_classes_of_two_modules_of_a_package_are_of_one_source(place):
    folder = place / "lab_pack"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    for name in ("one", "other"):
        (folder / f"{name}.py").write_text(TEXT)
    made = load("lab_pack.one").OneStep, importlib.import_module("lab_pack.other").Quantile
    with plugin_sources.use_plugins():
        for cls in made:
            plugin_classes.add_class(cls)
        [source] = plugin_sources.list_sources()
        assert source.names == (("mechanism", "one_step"), ("loss", "quantile"))
        assert plugin_sources.sources_of([made[0].__module__]) == (source,)


def test_what_a_cell_uses_of_a_package_counts_too(place):
    folder = place / "lab_pack"
    folder.mkdir()
    (folder / "__init__.py").write_text("from lab_pack.helper import helper\n")
    (folder / "helper.py").write_text("helper = 1\n")
    before = plugin_classes._describe_module(load("lab_pack"))
    (folder / "helper.py").write_text("helper = 2\n")
    assert plugin_classes._describe_module(load("lab_pack")) != before


def test_the_digest_of_a_file_alone_is_that_of_the_file(place):
    path = place / "lab_mine.py"
    path.write_text(TEXT)
    digest = find_digest("lab_mine")
    with plugin_sources.use_plugins():
        assert plugin_sources.add_file(path).digest == digest


def test_two_classes_of_one_module_stand_beside_each_other(place, monkeypatch):
    monkeypatch.chdir(place)
    (place / "lab_mine.py").write_text(TEXT)
    made = load("lab_mine")
    keys = {"mechanism": made.OneStep, "loss": made.Quantile, "dataset": "diabetes"}
    [plan] = dperm_cli.plans(**keys, constraint={"radius": 1}, progress=False)
    assert plan.guarantee.epsilon <= 1


@pytest.fixture
def in_package(place):
    """A class of a package whose file imports another one of the package."""
    folder = place / "lab_pack"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "helper.py").write_text("__version__ = '1.5'\n")
    (folder / "mine.py").write_text(TEXT.replace("__version__ =", "OLD =").replace(
        "from __future__ import annotations\n",
        "from __future__ import annotations\n\nfrom .helper import __version__\n",
    ))  # fmt: skip
    return load("lab_pack.mine").OneStep


def test_another_process_has_a_class_of_a_package_with_what_it_imports(in_package, place):
    with plugin_sources.use_plugins():
        source = plugin_classes.add_class(in_package, for_workers=True)
        assert plugin_classes.add_class(in_package) == source  # the same name of its records
    sys.path.remove(str(place))  # what a new process would not have
    for name in [one for one in sys.modules if one.startswith("lab_")]:
        del sys.modules[name]
    sent = pickle.loads(pickle.dumps(source))
    with plugin_sources.use_sources([sent]):
        found = plugin_sources.find("mechanism", "one_step")
        assert found.__module__ == "lab_pack.mine"
        assert found is sys.modules["lab_pack.mine"].OneStep
        assert pickle.loads(pickle.dumps(found)) is found


def test_another_process_runs_no_other_bytes_of_a_package(in_package, place):
    with plugin_sources.use_plugins():
        source = plugin_classes.add_class(in_package, for_workers=True)
    for name in [one for one in sys.modules if one.startswith("lab_")]:
        del sys.modules[name]
    (place / "lab_pack" / "helper.py").write_text("raise SystemExit('was run')\n")
    with (
        pytest.raises(DpermError, match="lab_pack has changed since the study was planned"),
        plugin_sources.use_sources([source]),
    ):
        pass
    assert "lab_pack.helper" not in sys.modules


@pytest.mark.slow
def test_workers_run_a_class_of_a_package(in_package, place, monkeypatch):
    monkeypatch.chdir(place)
    keys = {"mechanism": in_package, "epsilon": [1, 2, 3, 4], "trials": 2, "progress": False}
    one = dperm_cli.run(**keys, out="one")
    several = dperm_cli.run(**keys, out="several", workers=2)
    assert one.frame()["cell"].tolist() == several.frame()["cell"].tolist()
    assert one.trials()["theta"].tolist() == several.trials()["theta"].tolist()
