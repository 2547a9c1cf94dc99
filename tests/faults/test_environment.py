"""The program works without a home, beside a cache it cannot write, in odd surroundings."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.faults._program import REPOSITORY, SMALL, assert_refused_in_a_line, run_dperm

COMMANDS = {
    "account": ["account", "n=100", "p=2", *SMALL[3:5], "figure=false"],
    "describe": ["describe", *SMALL[:3]],
    "warmup": ["warmup"],
    "run": ["run", *SMALL, "out=study"],
    "audit": ["audit", "--quick", *SMALL[3:4]],
}


def without(*names, **more) -> dict[str, str]:
    """The environment of this process without these names, and with others."""
    kept = {name: value for name, value in os.environ.items() if name not in names}
    return kept | more


@pytest.fixture(scope="module")
def sealed_package(tmp_path_factory) -> Path:
    """A copy of the package in which no cache can be made, whoever tries: in the place of each
    cache folder lies a file, as only a read-only file system would stop root otherwise."""
    folder = tmp_path_factory.mktemp("sealed")
    for name in ("dperm_cli", "conf", "experiments"):
        shutil.copytree(
            REPOSITORY / name, folder / name, ignore=shutil.ignore_patterns("__pycache__")
        )
    for inner in [folder / "dperm_cli", *(folder / "dperm_cli").rglob("*/")]:
        (inner / "__pycache__").write_text("")
    return folder


@pytest.fixture
def bare(tmp_path) -> dict[str, str]:
    """Almost no environment, and a home that is a file: nothing can be made below it."""
    (tmp_path / "home").write_text("")
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path / "home"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }


SEALED = [
    pytest.param(name, marks=[] if name == "account" else [pytest.mark.slow])
    for name in COMMANDS
]  # fmt: skip


@pytest.mark.parametrize("name", SEALED)
def test_neither_home_nor_package_can_be_written(name, sealed_package, bare, tmp_path):
    ended = run_dperm(COMMANDS[name], tmp_path, env=bare, package=sealed_package, seconds=400)
    assert "Traceback" not in ended.err, ended.err[-1000:]
    assert ended.code == 0, ended.err[-1000:]


@pytest.mark.slow
def test_workers_start_where_neither_home_nor_package_can_be_written(
    sealed_package, bare, tmp_path
):
    words = ["run", "-m", *SMALL, "epsilon=1,2", "workers=2", "out=study"]
    ended = run_dperm(words, tmp_path, env=bare, package=sealed_package, seconds=400)
    assert ended.code == 0, ended.err[-1000:]
    assert len((tmp_path / "study" / "table.csv").read_text().splitlines()) == 3


@pytest.mark.slow
def test_the_cache_folder_takes_the_place_of_the_package(sealed_package, bare, tmp_path):
    """What was compiled is kept in DPERM_CACHE_DIR, so that the next run finds it there."""
    cache = tmp_path / "cache"
    ended = run_dperm(
        COMMANDS["warmup"], tmp_path, env=bare | {"DPERM_CACHE_DIR": str(cache)},
        package=sealed_package, seconds=400,
    )  # fmt: skip
    assert ended.code == 0, ended.err[-1000:]
    assert list(cache.rglob("*.nbi"))


@pytest.mark.slow
def test_a_run_without_any_home(tmp_path):
    """No HOME at all; the package's own cache can be written."""
    ended = run_dperm(
        COMMANDS["run"], tmp_path, env=without("HOME", "XDG_CACHE_HOME", "DPERM_CACHE_DIR")
    )
    assert ended.code == 0, ended.err[-1000:]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["DPERM_CACHE_DIR", "MPLCONFIGDIR", "XDG_CACHE_HOME", "TMPDIR"])
def test_a_folder_of_the_environment_that_is_a_file(name, tmp_path):
    (tmp_path / "file").write_text("")
    ended = run_dperm(
        COMMANDS["run"], tmp_path, env=without(name, **{name: str(tmp_path / "file")})
    )
    assert "Traceback" not in ended.err, ended.err[-1000:]
    assert ended.code in (0, 2, 3)
    if ended.code:
        assert_refused_in_a_line(ended, ended.code)


@pytest.mark.slow
@pytest.mark.parametrize("locale", ["C", "POSIX", "tr_TR.UTF-8", "no_SUCH.locale"])
def test_the_locale_does_not_decide(locale, tmp_path):
    env = without("PYTHONUTF8", "PYTHONIOENCODING", LC_ALL=locale, LANG=locale)
    ended = run_dperm([*COMMANDS["run"][:-1], "out='stüdy 1'"], tmp_path, env=env)
    assert ended.code == 0, ended.err[-1000:]
    assert (tmp_path / "stüdy 1" / "table.csv").is_file()


THREADS = [
    pytest.param(name, value, marks=[
        pytest.mark.slow,
    ])
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
    for value in ("0", "-1", "many", "", "99999")
]  # fmt: skip


@pytest.mark.parametrize(("name", "value"), THREADS)
def test_odd_thread_limits_are_survived_or_said(name, value, tmp_path):
    ended = run_dperm(COMMANDS["run"], tmp_path, env=without(name, **{name: value}))
    assert "Traceback" not in ended.err, ended.err[-1000:]
    assert ended.code in (0, 2)


ODD = ["with space", "with'quote", 'with"quote', "with,comma", "with=equals", "-dash", "näme",
       "$HOME", "a;b", "[x]", "{x}", "line\nbreak", "%d", "#hash"]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", ODD)
def test_a_working_folder_with_an_odd_name(name, tmp_path):
    (tmp_path / name).mkdir()
    ended = run_dperm([*COMMANDS["run"], "workers=2"], tmp_path / name)
    assert ended.code == 0, ended.err[-1000:]
    again = run_dperm(["verify", "study"], tmp_path / name)
    assert again.code == 0, again.err + again.out


@pytest.mark.slow
def test_a_working_folder_that_is_gone(tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    ended = run_dperm(COMMANDS["run"], tmp_path, before=f"cd '{gone}'; rmdir '{gone}'")
    assert "Traceback" not in ended.err, ended.err[-1000:]
    assert ended.code in (2, 3)
