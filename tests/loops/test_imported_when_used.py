"""Numba is imported where a loop runs, and nowhere else."""

import subprocess
import sys

import pytest

from dperm_cli.loops import __getattr__ as look_up
from dperm_cli.loops import arguments


def run_python(script: str) -> list[str]:
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_planning_cells_imports_nothing_that_computes_or_draws():
    script = (
        "import sys\n"
        "from dperm_cli.runner.compose.study_plan import parse_request\n"
        "parse_request(['-m', 'mechanism=auto,noisy_sgd,local_sgd'])\n"
        "print(*({'numba', 'scipy.optimize', 'pandas', 'matplotlib'} & set(sys.modules)))"
    )
    assert run_python(script) == []


def test_accounting_for_gaussian_noise_imports_no_loop():
    script = (
        "import contextlib, io, sys\n"
        "from dperm_cli.cli import dispatch\n"
        "with contextlib.redirect_stdout(io.StringIO()):\n"
        "    dispatch(['account', 'mechanism=noisy_gd'])\n"
        "print(*({'numba', 'scipy.optimize', 'pandas', 'matplotlib'} & set(sys.modules)))"
    )
    assert run_python(script) == []


def test_a_file_is_imported_when_something_of_it_is_asked_for():
    script = (
        "import sys\n"
        "from dperm_cli.loops import sgd\n"
        "print('numba' in sys.modules)\n"
        "sgd.LAST, sgd.own = sgd.LAST + 5, 1\n"
        "from dperm_cli.loops import sgd as found, vector_lanes\n"
        "import dperm_cli.loops.sgd as real\n"
        "print(found is real, found.LAST, found.own, type(vector_lanes).__name__)\n"
        "del sgd.own\n"
        "print(hasattr(real, 'own'), 'run' in dir(sgd))"
    )
    assert run_python(script) == ["False", "True", "5", "1", "module", "False", "True"]


def test_no_other_name_is_made_up():
    assert not hasattr(arguments, "Nothing")
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        look_up("nothing")
