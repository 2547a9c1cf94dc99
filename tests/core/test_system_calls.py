"""The package without what only POSIX has: it is imported, prints its help and makes a study.

Windows itself is tried by the workflow of the tests. Here its gaps are simulated: the modules and
the names that it lacks are taken away before dperm is imported.
"""

from __future__ import annotations

import ast
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import dperm_cli
from dperm_cli.core import system_calls

HERE = Path(dperm_cli.__file__).parent
MODULES = ("fcntl", "resource", "pwd", "grp", "termios", "tty", "posix_ipc")
OF_OS = (
    "fork", "forkpty", "getuid", "geteuid", "getgid", "sysconf", "fchown", "chown", "fchmod",
    "sched_getaffinity", "killpg", "setsid", "O_NONBLOCK", "O_NOFOLLOW", "O_NOCTTY", "O_CLOEXEC",
)  # fmt: skip
OF_SIGNAL = ("SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGKILL", "SIGALRM", "pthread_sigmask")
SIGNALS = ("SIGINT", "SIGTERM", "SIGABRT", "SIGFPE", "SIGILL", "SIGSEGV")  # all of Windows
# Third-party packages ask for the system when they are imported: they come before, and keep theirs.
WITHOUT = """
import os, signal, sys, types
for name in {first!r}: __import__(name)
whole = types.SimpleNamespace(**vars(os))
for module in list(sys.modules.values()):
    if module is not sys.modules["__main__"] and vars(module).get("os") is os: module.os = whole
for name in {modules!r}: sys.modules[name] = None
for name in {of_os!r}: vars(os).pop(name, None)
for name in {of_signal!r}: vars(signal).pop(name, None)
known = {{getattr(signal, name) for name in {signals!r}}}
signal.valid_signals = lambda: known
"""
LIBRARIES = (
    "clarabel", "filelock", "hydra", "joblib", "joblib.externals.loky", "matplotlib.pyplot",
    "numba", "numpy", "pandas", "pyarrow.parquet", "rich.progress", "scipy.optimize", "submitit",
    "sklearn.base", "distributed", "multiprocessing.pool", "threadpoolctl", "subprocess", "socket",
)  # fmt: skip
# Where a name that Windows lacks stands, behind a question or a try.
GUARDED = {
    "core/processors.py": {"sched_getaffinity"},
    "core/system_calls.py": {"getuid", "fchown", "fchmod", "pthread_sigmask", "sysconf"},
    # in jobs of SLURM
    "runner/sweep/slurm_jobs.py": {"SIGUSR2"},
}


def run_without(code: str, first: tuple[str, ...], folder: Path) -> subprocess.CompletedProcess:
    lost = WITHOUT.format(
        first=first, modules=MODULES, of_os=OF_OS, of_signal=OF_SIGNAL, signals=SIGNALS
    )
    given = {**os.environ, "DPERM_CACHE_DIR": str(folder / "cache")}
    return subprocess.run(
        [sys.executable, "-c", lost + code], cwd=folder, env=given, capture_output=True, text=True
    )


@pytest.mark.parametrize("words", [["--help"], ["list"], ["run", "--help"], ["completion", "bash"]])
def test_help_without_posix(words, tmp_path):
    code = f"from dperm_cli.cli import main\nsys.argv[1:] = {words!r}\nsys.exit(main())"
    done = run_without(code, (), tmp_path)
    assert done.returncode == 0, done.stderr
    assert "mechanism" in done.stdout or "dperm" in done.stdout


def test_every_module_is_imported_without_posix(tmp_path):
    names = sorted(
        path.relative_to(HERE.parent).with_suffix("").as_posix().replace("/", ".")
        for path in HERE.rglob("*.py")
        if path.name not in ("__init__.py", "__main__.py") and "templates" not in path.parts
    )
    assert len(names) > 300
    code = (
        "import importlib\nfailed = []\n"
        f"for name in {names!r}:\n"
        "    try: importlib.import_module(name)\n"
        "    except (ImportError, AttributeError) as error: failed.append(f'{name}: {error}')\n"
        "sys.exit('; '.join(failed) or None)"
    )
    done = run_without(code, LIBRARIES, tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.slow
def test_a_study_without_posix(tmp_path):
    words = ["run", "mechanism=noisy_gd", "trials=2", "out=s"]
    code = f"from dperm_cli.cli import main\nsys.exit(main({words!r}))"
    done = run_without(code, LIBRARIES, tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    assert (tmp_path / "s" / "table.csv").stat().st_size > 100
    assert not [path for path in (tmp_path / "s").rglob("*.tmp")]


def find_posix_names(text: str) -> set[str]:
    """Names of ``os`` and ``signal`` in a module's text that the tests above take away."""
    lost = {*OF_OS, *OF_SIGNAL}
    return {
        node.attr
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id in ("os", "signal")
        and node.attr in lost
    }


def test_a_posix_name_is_found():
    assert find_posix_names("import os\nif True: os.getuid() + os.getpid()") == {"getuid"}


def test_posix_names_stand_where_they_have_a_fallback():
    found = {
        path.relative_to(HERE).as_posix(): find_posix_names(path.read_text("utf-8"))
        for path in sorted(HERE.rglob("*.py"))
    }
    assert {name: used for name, used in found.items() if used} == GUARDED


def test_what_this_system_offers_is_used(tmp_path):
    assert {signal.SIGINT, *system_calls.GROUP_SIGNALS} <= signal.valid_signals()
    memory = system_calls.read_machine_memory()
    assert memory is None or memory > 1 << 26
    path = tmp_path / "lines"
    path.write_bytes(b"one\r\ntwo\n")
    with open(system_calls.open_to_read(path), "rb") as file:
        assert file.read() == b"one\r\ntwo\n"
    link = tmp_path / "link"
    link.symlink_to(path)
    with pytest.raises(OSError, match="link"):
        system_calls.open_to_lock(link)
    folder = system_calls.open_to_sync(Path(tempfile.gettempdir()))
    assert folder is not None
    os.close(folder)
