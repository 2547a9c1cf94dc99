"""What a source file's digest follows, and which imports and plug-ins are seen in it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import dperm_cli
from dperm_cli.runner.cells.source_file import read_source

FOLDER = Path(dperm_cli.__file__).parent
SAMPLE = b'''"""A module."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np  # for arrays

if TYPE_CHECKING:
    from package.kinds import Kind

NAMES: dict[str, str] = {"one": "first", "two": "second"}


@cache
def load(kind: Kind, *rest: int, wide: bool = False) -> str:
    """Load it.

    Args:
        kind: of what.
    """
    from package import late

    width = 3.5e-7 if wide else 1_000
    return f"{kind!r:>{width}} is {rest[1:]}" + registry.load("loss", NAMES[kind])


class Point:
    x: int = 1
    """Where it is."""

    def none(self): return None
'''
OTHER_WORDS = [
    (b"# for arrays", b"# of numbers"),
    (b"A module.", b"Another module."),
    (b"        kind: of what.\n", b"        kind: of what,\n            in two lines.\n"),
    (b"Where it is.", b"Its place."),
    (b"    width = 3.5e-7 if wide", b"    # by hand\n\n    width = 3.5e-7 if wide"),
    (b"1_000", b"1000"),
    (b"    x: int = 1\n", b"    x: int = (\n        1\n    )\n"),
    (b"package.kinds import Kind", b"package.sorts import Kind, Sort"),
    (b"def none(self): return None", b"def none(self):\n        return None"),
]
OTHER_CODE = [
    (b"3.5e-7", b"3.5e-8"),
    (b"1_000", b"1_000.0"),
    (b"1_000", b"True"),
    (b"is {rest[1:]}", b"are {rest[1:]}"),
    (b":>{width}", b":<{width}"),
    (b"!r", b"!s"),
    (b"rest[1:]", b"rest[1]"),
    (b"@cache", b"@once"),
    (b'"second"', b'""'),
    (b"wide: bool = False", b"wide: bool = None"),
    (b"x: int = 1", b"x: float = 1"),
    (b"return None", b"return"),
    (b"import numpy as np", b"import numpy as numeric"),
]


def changed(old: bytes, new: bytes) -> bytes:
    assert SAMPLE.count(old) == 1
    return SAMPLE.replace(old, new)


@pytest.mark.parametrize(("old", "new"), OTHER_WORDS)
def test_comments_docstrings_layout_and_typing_are_no_code(old, new):
    assert read_source(changed(old, new)).digest == read_source(SAMPLE).digest


@pytest.mark.parametrize(("old", "new"), OTHER_CODE)
def test_what_runs_is_code(old, new):
    assert read_source(changed(old, new)).digest != read_source(SAMPLE).digest


def test_all_other_code_differs():
    digests = {read_source(changed(old, new)).digest for old, new in OTHER_CODE}
    assert len(digests) == len(OTHER_CODE)


def test_an_empty_text_in_a_list_is_code():
    texts = (b"x = ['']", b"x = []", b"f('')", b"f()", b"x = ''", b"x = f''")
    assert len({read_source(text).digest for text in texts}) == len(texts)


def test_imports_of_modules_and_functions_but_not_those_for_type_checkers():
    assert read_source(SAMPLE).imports == (
        "__future__.annotations", "numpy", "package.late", "typing.TYPE_CHECKING",
    )  # fmt: skip
    both = b"if TYPE_CHECKING:\n    import a\nelse:\n    import b\n"
    assert read_source(both).imports == ("a", "b")


def test_a_plugin_that_is_loaded_by_name_is_among_the_words_beside():
    plugins = read_source(SAMPLE).plugins
    assert {("loss", "first"), ("loss", "second")} <= set(plugins)
    assert not any("docs" in word for _, word in plugins)
    far = b"def f():\n    return registry.load('loss', name)\n\nNAMES = ['hinge']\n"
    assert ("loss", "hinge") not in read_source(far).plugins
    made_of = b"A = ['one']\nB = [A, 'two']\n\ndef f(x):\n    registry.load('loss', A[x])\n"
    assert read_source(made_of).plugins == (("loss", "loss"), ("loss", "one"))


READ = """
import json, pathlib, sys
sys.path.insert(0, sys.argv[1])
from dperm_cli.runner.cells.source_file import read_source
read = {p: read_source(pathlib.Path(p).read_bytes()).digest for p in sys.argv[2:]}
print(json.dumps(read))
"""


def digests(python: str, files: list[str]) -> dict[str, str]:
    words = [python, "-I", "-c", READ, str(FOLDER.parent), *files]
    return json.loads(subprocess.run(words, capture_output=True, check=True, text=True).stdout)


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13"])
def test_digests_do_not_depend_on_the_version_of_python(version, tmp_path):
    asked = [f"python{version}", "-c", "import sys; print(sys.executable, *sys.version_info[:2])"]
    try:
        told = subprocess.run(asked, capture_output=True, check=True, text=True).stdout
    except (OSError, subprocess.CalledProcessError):
        pytest.skip(f"Python {version} is not installed")
    python, *numbers = told.split()
    assert ".".join(numbers) == version
    sample = tmp_path / "sample.py"
    sample.write_bytes(SAMPLE)
    rooms = ("core", "runner/cells", "loops")
    files = [str(path) for room in rooms for path in sorted((FOLDER / room).glob("*.py"))]
    assert digests(python, [str(sample), *files]) == digests(sys.executable, [str(sample), *files])


def test_the_digest_of_a_sample_is_known():
    """Whatever Python runs the suite: names of records last."""
    assert read_source(SAMPLE).digest == "a70e9d0f6f1c87a01c287f69a1c20474"
