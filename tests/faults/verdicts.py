"""Keep what came of each fault test: a plugin of pytest, ``-p tests.faults.verdicts``.

The verdicts of a run take the place of earlier ones of the same cases in ``verdicts.json``;
``page.py`` writes ``docs/faults.md`` from them.
"""

from __future__ import annotations

import ast
import json
import os
import platform
import re
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

from tests.faults.sources import Sources

FOLDER = Path(__file__).parent
KEPT = FOLDER / "verdicts.json"
HELD, BROKE, FILED, NOT_RUN = "held", "broke", "broke, as filed", "not run"
_LIBRARIES = ("numpy", "scipy", "numba", "pandas", "pyarrow", "clarabel")
_PATH = re.compile(r"(?<![\w.])(?:/[\w.+@~-]+){2,}/?")
_MOST_LETTERS = 160


@dataclass(frozen=True)
class Verdict:
    """What came of one case.

    ``digest`` is of the test as it was, ``machine`` says where it ran, ``measured`` what the test
    measured there, if it has something to say beyond its verdict.
    """

    verdict: str
    why: str
    seconds: float
    digest: str
    machine: str
    measured: str = ""


@dataclass(frozen=True)
class FaultTest:
    """A test function of this folder, and the first line of its docstring.

    ``digest`` is of its code and of all that this uses of the tests: see ``sources.py``.
    """

    file: str
    name: str
    text: str
    digest: str

    @property
    def key(self) -> str:
        return f"{self.file}::{self.name}"


def list_tests(folder: Path = FOLDER) -> list[FaultTest]:
    """The test functions of a folder as they are written, file by file."""
    found = []
    sources = Sources(folder.parents[1])
    for path in sorted(folder.glob("test_*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                text = (ast.get_docstring(node) or "").split("\n\n")[0].replace("\n", " ")
                digest = sources.digest_test(path, node.name)
                found.append(FaultTest(path.name, node.name, text, digest))
    return found


def read_verdicts(path: Path = KEPT) -> dict[str, Verdict]:
    """case -> its verdict, as they are kept."""
    if not path.is_file():
        return {}
    kept = json.loads(path.read_text())
    machines = kept["machines"]
    return {
        case: Verdict(**{**found, "machine": machines[found["machine"]]})
        for case, found in kept["verdicts"].items()
    }


def write_verdicts(found: dict[str, Verdict], path: Path = KEPT) -> None:
    """Keep verdicts beside those of other cases.

    What is of an earlier form of a test goes when the test is run again: until then the page says
    that the test was changed.
    """
    written = {test.key: test.digest for test in list_tests(path.parent)}
    again = {name_test(case) for case in found}
    kept = {
        case: verdict
        for case, verdict in read_verdicts(path).items()
        if name_test(case) in written
        if name_test(case) not in again or written[name_test(case)] == verdict.digest
    } | found
    machines = sorted({verdict.machine for verdict in kept.values()})
    verdicts = {
        case: {
            name: machines.index(value) if name == "machine" else value
            for name, value in asdict(kept[case]).items()
            if (name, value) != ("measured", "")
        }
        for case in sorted(kept)
    }
    text = json.dumps({"machines": machines, "verdicts": verdicts}, indent=1, ensure_ascii=False)
    half = path.with_suffix(".tmp")
    half.write_text(text + "\n")
    half.replace(path)


def name_test(case: str) -> str:
    """``file::test`` of ``file::test[case]``."""
    return case.partition("[")[0]


def describe_machine() -> str:
    """Kind of machine and versions, without a name or a path of it."""
    from dperm_cli import __version__

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    user = "root" if hasattr(os, "getuid") and os.getuid() == 0 else "user"
    words = [f"{platform.system()} {platform.machine()}", f"{cores} cores", user]
    words += [f"dperm {__version__}", f"Python {platform.python_version()}"]
    for name in _LIBRARIES:
        try:
            words.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    return ", ".join(words)


def clean(why: str) -> str:
    """A reason in one line of bounded length, without paths of this machine."""
    line = next((line.strip() for line in why.splitlines() if line.strip()), "")
    line = _PATH.sub("PATH", line).replace(platform.node() or "\0", "HOST")
    return line if len(line) <= _MOST_LETTERS else line[: _MOST_LETTERS - 3] + "..."


def judge(report: pytest.TestReport) -> tuple[str, str] | None:
    """(verdict, why) of one phase of a test; None where the phase says nothing of its own."""
    if report.skipped:
        if hasattr(report, "wasxfail"):
            return FILED, clean(report.wasxfail.removeprefix("reason: "))
        text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        return NOT_RUN, clean(text.removeprefix("Skipped: "))
    if report.failed:
        text = str(report.longrepr)
        if text.startswith("[XPASS(strict)]"):
            return BROKE, clean("it holds, though it is filed as broken: " + text[16:])
        crash = getattr(report.longrepr, "reprcrash", None)
        return BROKE, clean(crash.message if crash else text)
    return (HELD, "") if report.when == "call" else None


class Keeper:
    """Hears what comes of each case and keeps it at once, however the run ends."""

    def __init__(self, path: Path) -> None:
        self.path, self.machine = path, describe_machine()
        self.digests = {test.key: test.digest for test in list_tests(path.parent)}
        self.found: dict[str, tuple[str, str]] = {}
        self.seconds: dict[str, float] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        case = Path(report.nodeid.partition("::")[0]).name + "::" + report.nodeid.partition("::")[2]
        self.seconds[case] = self.seconds.get(case, 0.0) + report.duration
        judged = judge(report)
        if judged and self.found.get(case, ("", ""))[0] != BROKE:
            self.found[case] = judged
        digest = self.digests.get(name_test(case))
        if report.when == "teardown" and digest is not None and case in self.found:
            seconds = round(self.seconds[case], 1)
            measured = "; ".join(str(text) for name, text in report.user_properties
                                 if name == "measured")  # fmt: skip
            verdict = Verdict(*self.found[case], seconds, digest, self.machine, measured)
            write_verdicts({case: verdict}, self.path)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--verdicts", type=Path, default=KEPT, help="file of the verdicts")


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # workers of xdist tell the one that started them
        config.pluginmanager.register(Keeper(config.getoption("--verdicts")), "keeper of verdicts")
