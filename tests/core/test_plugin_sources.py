"""Plug-ins are loaded from a file or an installed package, and what is none is refused."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from pathlib import Path

import pytest

from dperm_cli.core import catalogue, imported_files, plugin_files, plugin_sources, registry
from dperm_cli.core.errors import DpermError, InputError
from dperm_cli.core.plugin_words import (
    PluginUse,
    format_uses,
    list_missing,
    list_uses,
    read_uses,
    summarise_uses,
)

FILES = Path(__file__).with_name("plugin_files")
MINE, CLOUD, OTHERS = FILES / "mine.py", FILES / "cloud.py", FILES / "others.py"
STEP = """from dataclasses import dataclass
from dperm_cli import Gaussian, Mechanism, Release
@dataclass(frozen=True)
class MyStep(Mechanism):
    def events(self, spec, scale, budget):
        return (Gaussian(scale, spec.lipschitz),)
    def release(self, view, plan, gate):
        return Release(gate.stream(plan.events[0], view.spec.p))
"""


@pytest.fixture(autouse=True)
def _forget():
    with plugin_sources.use_plugins():
        yield


def write(folder: Path, text: str, name: str = "mine.py") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_a_file_offers_its_classes_with_version_and_digest():
    source = plugin_sources.add_file(MINE)
    assert source.names == (
        ("mechanism", "one_step"), ("loss", "quantile"), ("constraint", "nonnegative_ball"),
    )  # fmt: skip
    assert source.version == "1.2"
    assert source.digest == hashlib.sha256(MINE.read_bytes()).hexdigest()
    assert plugin_sources.list_sources() == (source,)
    assert registry.load("loss", "quantile")(tau=0.3).name == "quantile"
    assert "one_step" in registry.names("mechanism")
    assert "one_step" in registry.list_protective()


def test_every_kind_of_plugin_is_offered():
    for path in (MINE, CLOUD, OTHERS):
        plugin_sources.add_file(path)
    offered = {kind for source in plugin_sources.list_sources() for kind, _ in source.names}
    assert offered == set(plugin_files.KINDS)


def test_what_was_added_in_a_block_is_forgotten():
    with plugin_sources.use_plugins([MINE]):
        assert "quantile" in registry.names("loss")
    assert "quantile" not in registry.names("loss")
    with pytest.raises(InputError, match="loss=quantile"):
        registry.load("loss", "quantile")


def test_shipped_names_and_defaults_are_as_they_were():
    shipped = {room: registry.list_shipped(room) for room in registry.ROOMS}
    audited = registry.list_audited("loss")
    plugin_sources.add_file(MINE)
    assert {room: registry.list_shipped(room) for room in registry.ROOMS} == shipped
    assert registry.list_audited("loss") == audited
    assert catalogue.list_shipped("mechanism") == [
        name for name in catalogue.choices("mechanism") if name != "one_step"
    ]


def test_declared_fields_are_the_keys_and_defaults():
    plugin_sources.add_file(MINE)
    choice = catalogue.choices("mechanism")["one_step"]
    (setting,) = catalogue.settings("mechanism", choice)
    assert (setting.line, setting.meaning) == ("step_size: 0.1", "number > 0")
    assert choice.summary.startswith("Project(centre - step_size (sum of gradients + noise))")
    assert "mine.py, version 1.2, sha256" in choice.summary
    ball = registry.load("constraint", "nonnegative_ball")
    assert catalogue.outside_defaults(ball) == {"radius": None}


def test_a_changed_file_takes_the_place_of_what_it_was(tmp_path):
    path = write(tmp_path, STEP)
    before = plugin_sources.add_file(path)
    old = registry.load("mechanism", "my_step")
    assert plugin_sources.add_file(path) is before
    write(tmp_path, STEP + "# more\n")
    after = plugin_sources.add_file(path)
    assert after.digest != before.digest
    assert registry.load("mechanism", "my_step") is not old
    assert plugin_sources.list_sources() == (after,)


def test_no_byte_code_is_left_beside_the_file(tmp_path):
    plugin_sources.add_file(write(tmp_path, STEP))
    assert os.listdir(tmp_path) == ["mine.py"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("class A(:\n", "has a syntax error, line 1"),
        ("\0", "cannot be loaded|syntax error"),
        ("import no_such_module_here\n", "No module named 'no_such_module_here' \\(line 1\\)"),
        ("x = 1\n", "holds no plug-in"),
        ("raise SystemExit(0)\n", "SystemExit"),
        ("raise KeyboardInterrupt\n", "KeyboardInterrupt"),
        ("\n\n1 / 0\n", "ZeroDivisionError: division by zero \\(line 3\\)"),
        (STEP.replace("MyStep", "NoisyGd"), "shadows the shipped mechanism noisy_gd"),
        (STEP.replace("@dataclass(frozen=True)\n", ""), "class MyStep needs the line @dataclass"),
        (STEP.replace("frozen=True", ""), "class MyStep needs the line @dataclass"),
        (STEP.replace("    def release", "    def released"), "class MyStep lacks release"),
        (STEP + "    name = 'a=b'\n", "'a=b', must be a word"),
        (STEP + "    name = ''\n", "'', must be a word"),
        (STEP + "    steps: 'Unknown' = 1\n", "name 'Unknown' is not defined"),
        (STEP + STEP.replace("MyStep", "Other").replace("Other(", "Other(") + "    name='my_step'",
         "two plug-ins of the name mechanism my_step"),
    ],
)  # fmt: skip
def test_a_file_that_is_no_plugin_is_refused_in_one_line(text, words, tmp_path):
    path = write(tmp_path, text)
    with pytest.raises(InputError, match=words) as caught:
        plugin_sources.add_file(path)
    assert str(caught.value).startswith("--plugin=")
    assert "\n" not in str(caught.value)
    assert plugin_sources.list_sources() == ()


@pytest.mark.parametrize(("name", "words"), [
    ("absent.py", "is not there"), ("folder", "is a folder"), ("notes.txt", "ending in .py"),
    ("pipe.py", "is not a regular file"), ("", "file ending in .py"),
])  # fmt: skip
def test_a_path_that_is_no_file_is_refused(name, words, tmp_path):
    (tmp_path / "folder").mkdir()
    write(tmp_path, STEP, "notes.txt")
    os.mkfifo(tmp_path / "pipe.py")
    with pytest.raises(InputError, match=words):
        plugin_sources.add(tmp_path / name if name else "")


def test_two_files_with_one_name_are_refused(tmp_path):
    plugin_sources.add_file(write(tmp_path, STEP, "first.py"))
    second = write(tmp_path, STEP + "\n", "second.py")
    with pytest.raises(InputError, match=r"second\.py.*mechanism my_step.*first\.py"):
        plugin_sources.add_file(second)


@pytest.mark.parametrize("how", [
    "import beside\n", "from beside import helper\n", "def f():\n    import beside\n",
    "from . import beside\n", "from .beside import helper\n",
    "import sys, os; sys.path.insert(0, os.path.dirname(__file__))\n"
    "__import__('bes' + 'ide')\n",
])  # fmt: skip
def test_a_file_beside_it_is_refused_since_no_digest_covers_it(how, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    write(tmp_path, "helper = 1\n", "beside.py")
    with pytest.raises(InputError, match=r"beside|imports \."):
        plugin_sources.add_file(write(tmp_path, how + STEP))


def test_libraries_and_dperm_itself_may_be_imported(tmp_path):
    text = "import json\nimport numpy.linalg\nfrom dperm_cli.core import fields\n"
    assert plugin_sources.add_file(write(tmp_path, text + STEP)).names


def test_what_a_file_prints_goes_to_stderr(tmp_path, capfd):
    text = "print('hello')\nimport os\nos.write(1, b'raw')\n"
    plugin_sources.add_file(write(tmp_path, text + STEP))
    out, error = capfd.readouterr()
    assert out == ""
    assert "hello" in error
    assert "raw" in error


def test_another_process_has_the_same_bytes_or_says_so(tmp_path):
    path = write(tmp_path, STEP)
    with plugin_sources.use_plugins():
        source = plugin_sources.add_file(path)
    with plugin_sources.use_sources([source]):
        assert plugin_sources.list_sources() == (source,)
    write(tmp_path, STEP + "# more\n")
    with (
        pytest.raises(DpermError, match=r"mine\.py has changed since the study was planned"),
        plugin_sources.use_sources([source]),
    ):
        pass
    path.unlink()
    with (
        pytest.raises(DpermError, match=r"a worker cannot load the plug-in mine\.py.*not there"),
        plugin_sources.use_sources([source]),
    ):
        pass
    assert plugin_sources.list_sources() == ()


def make_package(folder: Path, points: str, text: str = STEP, name: str = "stepper") -> None:
    package, info = folder / name, folder / f"{name}-2.5.dist-info"
    package.mkdir()
    info.mkdir()
    (package / "__init__.py").write_text("")
    (package / "mechanisms.py").write_text(text)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 2.5\n")
    (info / "entry_points.txt").write_text(points)


@pytest.fixture
def packages(tmp_path, monkeypatch):
    """A folder on the path of modules."""
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


POINTS = "[dperm.mechanisms]\nmy_step = stepper.mechanisms:MyStep\n"


def test_an_entry_point_is_found_when_its_name_is_asked_for(packages):
    make_package(packages, POINTS)
    assert plugin_sources.list_installed("mechanism") == ("my_step",)
    assert "stepper" not in sys.modules  # nothing is imported for a list of names
    assert registry.load("mechanism", "noisy_gd").__module__.startswith("dperm_cli.")
    assert "stepper" not in sys.modules  # or for a shipped one
    made = registry.load("mechanism", "my_step")
    assert made.__module__ == "stepper.mechanisms"
    (source,) = plugin_sources.list_sources()
    assert (source.package, source.version, source.label) == ("stepper", "2.5", "stepper")
    assert source.digest == imported_files.hash_package(sys.modules["stepper"])[1]


def test_every_file_of_a_package_is_in_its_digest(packages):
    make_package(packages, POINTS)
    before = plugin_sources.add_package("stepper").digest
    (packages / "stepper" / "helper.py").write_text("x = 1\n")
    assert imported_files.hash_package(sys.modules["stepper"])[1] != before


def test_the_working_folder_is_no_place_of_packages(packages, monkeypatch):
    make_package(packages, POINTS)
    monkeypatch.chdir(packages)
    assert plugin_sources.list_installed("mechanism") == ()
    assert plugin_sources.find("mechanism", "my_step") is None


def test_an_entry_point_may_not_have_a_shipped_name(packages):
    make_package(packages, POINTS.replace("my_step", "noisy_gd"))
    assert registry.load("mechanism", "noisy_gd").__module__.startswith("dperm_cli.")
    with pytest.raises(InputError, match="shadows the shipped mechanism noisy_gd"):
        plugin_sources.add_entry_points()
    told: list[str] = []
    plugin_sources.add_installed(told.append)
    assert len(told) == 1


def test_a_name_that_two_packages_have_is_refused(packages):
    make_package(packages, POINTS)
    make_package(packages, POINTS.replace("stepper", "rival"), name="rival")
    with pytest.raises(InputError, match=r"my_step.*(stepper|rival).*give one another name"):
        registry.load("mechanism", "my_step")


@pytest.mark.parametrize("file", ["entry_points.txt", "METADATA"])
def test_a_package_whose_files_are_no_text_is_left_out_with_a_line(file, packages, capsys):
    make_package(packages, POINTS)
    make_package(packages, POINTS.replace("my_step", "other"), name="broken")
    path = packages / "broken-2.5.dist-info" / file
    path.write_bytes(b"\xff\xfe[dperm.mechanisms]\n\xff = a:b\n" + path.read_bytes())
    assert "my_step" in plugin_sources.list_installed("mechanism")
    assert registry.load("mechanism", "my_step").__module__ == "stepper.mechanisms"
    assert "Traceback" not in capsys.readouterr().err


def test_a_package_whose_entry_points_are_no_text_is_named(packages, capsys):
    make_package(packages, POINTS)
    (packages / "stepper-2.5.dist-info" / "entry_points.txt").write_bytes(
        POINTS.encode() + b"\xff\xfe = a:b\n"
    )
    assert plugin_sources.list_installed("mechanism") == ()
    (line,) = capsys.readouterr().err.splitlines()
    assert str(packages) in line
    assert "cannot be read" in line


def test_a_file_may_not_have_the_name_of_an_installed_one(packages, tmp_path):
    make_package(packages, POINTS)
    with pytest.raises(InputError, match="my_step, and so does the installed package stepper"):
        plugin_sources.add_file(write(tmp_path, STEP))


@pytest.mark.parametrize(("text", "words"), [
    ("1 / 0\n", "ZeroDivisionError"), (STEP.replace("MyStep", "Another"), "AttributeError"),
    ("MyStep = 3\n", "names no mechanism"),
])  # fmt: skip
def test_a_package_that_cannot_be_used_is_refused_in_one_line(text, words, packages):
    make_package(packages, POINTS, text)
    with pytest.raises(InputError, match=words) as caught:
        registry.load("mechanism", "my_step")
    assert "stepper" in str(caught.value)


def test_a_package_can_be_named_in_place_of_a_file(packages):
    make_package(packages, POINTS)
    assert plugin_sources.add("stepper").names == (("mechanism", "my_step"),)
    with pytest.raises(InputError, match="did you mean 'stepper'"):
        plugin_sources.add("steper")


def test_the_variable_names_several_files(tmp_path, monkeypatch):
    other = shutil.copy(OTHERS, tmp_path)
    monkeypatch.setenv(plugin_sources.VARIABLE, os.pathsep.join([str(MINE), str(other)]))
    plugin_sources.add_environment()
    assert [source.label for source in plugin_sources.list_sources()] == ["mine.py", "others.py"]
    monkeypatch.setenv(plugin_sources.VARIABLE, "absent.py")
    with pytest.raises(InputError, match=r"^DPERM_PLUGINS=.*absent\.py: is not there"):
        plugin_sources.add_environment()


@pytest.mark.parametrize(("word", "name"), [
    ("OneStep", "one_step"), ("DpFtrl", "dp_ftrl"), ("DPFTRL2", "dpftrl2"), ("L1Ball", "l1_ball"),
    ("PBMSampler", "pbm_sampler"),
])  # fmt: skip
def test_names_are_the_snake_case_of_classes(word, name):
    assert plugin_files.snake_case(word) == name


def test_what_records_say_can_be_read_back_and_says_what_is_missing():
    source = plugin_sources.add_file(OTHERS)
    uses = list_uses(source, source.names)
    text = format_uses(uses)
    assert read_uses(text) == tuple(uses)
    assert "event Quiet" in text
    assert text.count("the accountant believes it") == 2  # the event and the sampler
    assert summarise_uses(uses).count("others.py") == 1
    assert list_missing(text) is None
    other = PluginUse("event", "Quiet", "others.py", "", "0" * 64)
    assert "the one given has other bytes" in list_missing(format_uses([other]))
    with plugin_sources.use_sources([]):
        missing = list_missing(text, ("event",))
    assert missing.startswith("cannot be recomputed without plug-in event Quiet of others.py")
    assert missing.endswith("give --plugin FILE.py")
    assert read_uses("nothing of the kind") == read_uses(None) == ()
