"""Modules that are seldom used: loaded when something is taken from them, and then as ever."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from importlib import metadata
from importlib.abc import Loader
from pathlib import Path
from types import ModuleType

import pytest

from dperm_cli.core import late_imports

USED = """
import sys
from dperm_cli.core import late_imports
late_imports.load_late()
late_imports.load_late()
assert sys.meta_path.count(late_imports._LateFinder) == 1
import scipy.special
for name in set(late_imports.LATE) & set(sys.modules):
    assert type(sys.modules[name]).__name__ == "_LateModule", name
for room in ("loops", "solvers"):
    __import__(f"dperm_cli.{room}")
from dperm_cli.loops import gradient_sums
from dperm_cli.solvers import optimum
import dperm_cli.loops.gradient_sums, dperm_cli.solvers.optimum, scipy.special, scipy.sparse
late = [gradient_sums, optimum, scipy.special, scipy.sparse]
assert [type(one).__name__ for one in late] == 4 * ["_LateModule"]
import matplotlib.figure  # masked arrays are used there
import matplotlib.dviread
for name in set(late_imports.LATE) & set(sys.modules) - {"numpy.ma"}:
    assert type(sys.modules[name]).__name__ == "_LateModule", name
assert "numpy.f2py.crackfortran" not in sys.modules
assert optimum.solve and type(optimum).__name__ == "module"
import numpy.f2py, numpy.testing, fontTools.agl
numpy.testing.assert_allclose([1.0], [1.0])
assert numpy.f2py.get_include()
assert numpy.ma.masked_less([1.0, 3.0], 2.0).sum() == 3.0
from numpy.polynomial import polynomial
assert polynomial.polyval(2.0, [1.0, 3.0]) == 7.0
assert numpy.char.upper("a") == "A"
assert fontTools.agl.toUnicode("alpha") == chr(0x3b1)
from numpy.testing import assert_array_equal
assert type(sys.modules["numpy.testing"]).__name__ == "module"
"""


WORDS = """
import inspect, sys
{first}
import numpy as np
import scipy.special, scipy.stats
from scipy._lib import _array_api
found = [len(scipy.special.ndtr.__doc__), len(_array_api.xp_capabilities_table)]
found += ["Cumulative distribution" in scipy.special.ndtr.__doc__, float(scipy.special.ndtr(0.3))]
found += [type(scipy.special.ndtr).__name__, scipy.stats.kstest([0.1, 0.7], "uniform").pvalue.hex()]
found += [str(inspect.signature(scipy.stats.kstest)), len(scipy.stats.kstest.__doc__) > 1000]
print(found)
"""


DRAWN = """
import io, sys
from dperm_cli.core import late_imports
{first}
late_imports.settle_matplotlib_words()
from matplotlib.artist import Artist
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
figure = Figure()
FigureCanvasAgg(figure)
axes = figure.subplots()
(line,) = axes.plot([0, 1], [1, 3], label="a")
axes.set(title="t", xlabel="x")
line.set(color="red", lw=3)
class Own(Line2D):
    def set_own(self, value):
        self.own = value
Own([0], [0]).set(own=3)
axes.legend()
sink = io.BytesIO()
figure.savefig(sink, format="png", metadata={{"Software": None}})
sys.stdout.write(sink.getvalue().hex())
sys.stderr.write(str(len(Line2D.set.__doc__ or "")))
"""


def draw(first):
    program = DRAWN.format(first=first)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout, int(done.stderr)


def test_a_figure_is_the_same_without_docstrings():
    usual, words = draw("")
    short, fewer = draw("late_imports.load_late()")
    assert usual == short
    assert words > 1000 > fewer


def run(program):
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_they_are_loaded_when_they_are_used():
    run(USED)


def test_functions_of_scipy_are_the_same_without_their_notes():
    usual = ast.literal_eval(run(WORDS.format(first="")))
    late = "from dperm_cli.core import late_imports; late_imports.load_late()"
    short = ast.literal_eval(run(WORDS.format(first=late)))
    assert usual[1:] == short[1:]
    assert usual[0] > short[0] > 1000


def test_a_release_of_scipy_that_asks_for_more_is_left_as_it_is(tmp_path):
    module = ModuleType("made")
    module.__dict__.update(xp_capabilities_table={}, FunctionDoc=int)

    def add_note():
        def add(function):
            module.xp_capabilities_table[function] = 1
            return module.FunctionDoc(function).sections["Notes"]

        return add

    class Usual(Loader):
        def exec_module(self, module):
            module.xp_capabilities = add_note

    late_imports._ScipyLoader(Usual()).exec_module(module)
    assert module.FunctionDoc is int
    assert module.xp_capabilities_table == {}


NAMES = """
import sys
from dperm_cli.core import late_imports
late_imports.load_late()
from scipy import sparse, special
import numpy as np
early = {name: getattr(special, name) for name in ("ndtr", "gammaln", "betainc", "expit")}
assert not sparse.issparse(np.eye(2))
late = [type(sys.modules[f"scipy.{name}"]).__name__ for name in ("sparse", "special")]
assert late == 2 * ["_LateModule"], late
made = sparse.csr_array(np.eye(2))  # all of both is loaded from here on
assert special.softmax([0.0, 0.0])[0] == 0.5
late = [type(sys.modules[f"scipy.{name}"]).__name__ for name in ("sparse", "special")]
assert late == 2 * ["module"], late
assert all(getattr(special, name) is found for name, found in early.items())
from scipy.special import _ufuncs
whole = [n for n in _ufuncs.__all__ if type(getattr(_ufuncs, n)).__name__ == "ufunc"]
assert len(whole) > 200
assert [n for n in whole if getattr(special, n) is not getattr(_ufuncs, n)] == []
assert sparse.issparse(made) and late_imports._is_sparse(made)
assert not late_imports._is_sparse(3)
"""


def test_what_is_given_early_is_what_the_whole_module_has():
    run(NAMES)


COMPILED = """
from dperm_cli.core import late_imports
late_imports.load_late()
import numpy as np
from dperm_cli.loops import log_odds
assert log_odds.find_excess(np.zeros((3, 5)), np.zeros(5), 5, 1.0).tolist() == [0.0] * 3
"""


def test_loops_are_compiled_where_no_machine_code_is_kept(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", COMPILED], capture_output=True, text=True,
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_arrays_of_other_libraries_get_the_whole_module():
    program = NAMES.split("early =")[0] + "special.ndtr(0.0); print(type(special).__name__)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True,
        env={**os.environ, "SCIPY_ARRAY_API": "1"},
    )  # fmt: skip
    assert done.stdout == "module\n"


CONSTRAINTS = Path(__file__).parents[2] / "constraints.txt"
OWN_VERSIONS = all(
    f"{name}=={metadata.version(name)}" in CONSTRAINTS.read_text().splitlines()
    for name in ("numpy", "scipy", "matplotlib")
)


@pytest.mark.skipif(not OWN_VERSIONS, reason="other releases import other modules")
@pytest.mark.parametrize("name", sorted({*late_imports.LATE} - {"numba.np.arrayobj"}))
def test_each_of_them_is_imported_by_a_library(name):
    """What nobody imports any more is no longer worth its line."""
    used = "dperm_cli.problem.problem, scipy.special, matplotlib.figure, matplotlib.dviread, numba"
    program = f"import sys, {used}"
    assert run(f"{program}; print({name!r} in sys.modules)") == "True\n"


def test_a_program_that_imports_dperm_is_left_as_it_is():
    program = "import sys, gc; before = [*sys.meta_path, gc.get_threshold()]; import dperm_cli.cli"
    asked = "print([*sys.meta_path, gc.get_threshold()] == before)"
    assert run(f"{program}; {asked}") == "True\n"


SLOW = """
import time
first = 1
time.sleep(0.3)
from late_package import inner
last = first + inner.value
"""
THREADS = """
import sys, threading
from dperm_cli.core import late_imports
late_imports.LATE = ("late_package",)
late_imports.load_late()
sys.path.insert(0, {folder!r})
import late_package
assert "late_package.inner" not in sys.modules
found, faults = [], []
def take(name):
    try:
        found.append(getattr(late_package, name))
    except AttributeError as error:
        faults.append(error)
threads = [threading.Thread(target=take, args=("last",)) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(found, faults, type(late_package).__name__, late_package.__spec__.name)
"""


def test_threads_that_ask_meanwhile_wait_for_the_whole_module(tmp_path):
    package = tmp_path / "late_package"
    package.mkdir()
    (package / "__init__.py").write_text(SLOW)
    (package / "inner.py").write_text("value = 2")
    shown = run(THREADS.format(folder=str(tmp_path)))
    assert shown == f"{[3] * 8} [] module late_package\n"


FAILING = """
import sys
from dperm_cli.core import late_imports
late_imports.LATE = ("late_module",)
late_imports.load_late()
sys.path.insert(0, {folder!r})
import late_module, builtins
for place in range(2):
    try:
        late_module.value
    except ZeroDivisionError:
        print("failed")
builtins.late_divisor = 4
print(late_module.value)
del late_module.value
"""


OWN_ATTRIBUTES = """
import sys
from dperm_cli.core import late_imports
late_imports.LATE = ("late_module",)
late_imports.load_late()
sys.path.insert(0, {folder!r})
import late_module
print(late_module.anything, late_module.__doc__, late_module.own)
"""


def test_a_module_may_answer_for_names_of_its_own_from_the_first_on(tmp_path):
    text = "'words'\nimport late_module\ndef __getattr__(name): return 'made ' + name\n"
    (tmp_path / "late_module.py").write_text(text + "own = late_module.of_itself\n")
    shown = run(OWN_ATTRIBUTES.format(folder=str(tmp_path)))
    assert shown == "made anything words made of_itself\n"


def test_a_module_that_fails_is_tried_again(tmp_path):
    (tmp_path / "late_module.py").write_text("value = 8 // globals().get('none', late_divisor)")
    program = "import builtins; builtins.late_divisor = 0\n"
    assert run(program + FAILING.format(folder=str(tmp_path))) == "failed\nfailed\n2\n"


def test_garbage_is_looked_for_as_usual_once_cells_run():
    program = (
        "import gc; from dperm_cli.core import environment; before = gc.get_threshold();"
        "environment.settle(); seldom = gc.get_threshold(); environment.collect_as_usual();"
        "print(seldom > before, gc.get_threshold() == before, gc.get_freeze_count() > 1000);"
        "gc.set_threshold(5, 5, 5); environment.collect_as_usual(); print(gc.get_threshold())"
    )
    assert run(program) == "True True True\n(5, 5, 5)\n"


@pytest.mark.parametrize(("own", "shown"), [("", "True True"), ("settle", "False True")])
def test_garbage_is_looked_for_seldom_in_a_report_of_a_process_of_its_own(own, shown):
    program = "import gc; from dperm_cli.core import environment;"
    program += "environment.settle(); environment.collect_as_usual();" if own else ""
    program += (
        "before = gc.get_threshold()\n"
        "with environment.collect_seldom(): inside = gc.get_threshold()\n"
        "print(inside == before, gc.get_threshold() == before)"
    )
    assert run(program) == shown + "\n"


SET = """
import sys, threading
from dperm_cli.core import late_imports
late_imports.load_late()
import scipy.special, scipy.sparse
from dperm_cli.loops import gradient_sums
sys.setswitchinterval(1e-6)
found, begin = [], threading.Event()
def ask():
    begin.wait()
    for _ in range(2000):
        try:
            found.append(scipy.sparse.issparse(3))
        except Exception as error:
            found.append(repr(error))
threads = [threading.Thread(target=ask) for _ in range(3)]
for thread in threads:
    thread.start()
begin.set()
scipy.sparse.csr_array
for thread in threads:
    thread.join()
assert set(found) == {False}, set(found)
scipy.special.ndtr = "mine"
scipy.special.softmax = "mine"
gradient_sums.sum_losses = "mine"
assert scipy.special.ndtr == scipy.special.softmax == gradient_sums.sum_losses == "mine"
del gradient_sums.sum_gradients
assert not hasattr(gradient_sums, "sum_gradients")
"""


def test_a_module_whose_lock_cannot_be_had_is_tried_again():
    program = (
        "from dperm_cli.core import late_imports; late_imports.load_late()\n"
        "import numpy.ma\n"
        "def refuse(name):\n    raise RuntimeError('deadlock')\n"
        "usual, late_imports._lock = late_imports._lock, refuse\n"
        "try:\n    numpy.ma.masked_array\nexcept RuntimeError as error:\n    print(error)\n"
        "late_imports._lock = usual\n"
        "print(numpy.ma.masked_array([1.0]).sum())"
    )
    assert run(program) == "deadlock\n1.0\n"


def test_a_late_module_that_is_no_package_has_no_path():
    program = (
        "from dperm_cli.core import late_imports; late_imports.load_late()\n"
        "import dperm_cli.loops.sgd\n"
        "try:\n    import dperm_cli.loops.sgd.json\n"
        "except ModuleNotFoundError as error:\n    print(error)\n"
        "print(hasattr(dperm_cli.loops.sgd, '__path__'))"
    )
    said = "No module named 'dperm_cli.loops.sgd.json'; 'dperm_cli.loops.sgd' is not a package"
    assert run(program) == f"{said}\nFalse\n"


def test_what_is_set_from_outside_stays_and_threads_may_ask_meanwhile():
    run(SET)


PART = """
import sys, threading
from dperm_cli.core import late_imports
late_imports.load_late()
import scipy.special
begin, found = threading.Barrier(2), []
def import_part():
    begin.wait()
    import scipy.special._basic
    found.append(True)
thread = threading.Thread(target=import_part)
thread.start()
begin.wait()
scipy.special.softmax
thread.join()
assert found == [True]
"""


def test_a_part_of_a_package_may_be_imported_while_another_thread_loads_it():
    done = subprocess.run([sys.executable, "-c", PART], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


LOOP = """
import numpy as np
from dperm_cli.loops.jit import compile_loop


@compile_loop
def make_one(n):
    return np.ones(n)[n - 1]
"""
KEPT = """
import sys
from dperm_cli.core import late_imports
late_imports.load_late()
import numpy as np
import own_loop
assert own_loop.make_one(3) == 1.0
module = sys.modules["numba.np.arrayobj"]
if sys.argv[1] == "kept":  # the names of the module are taken and none of its code has run
    assert type(module) is late_imports._LateModule, module
    from numba import njit
    assert njit(lambda a: a[a > 1.0].sum())(np.arange(4.0)) == 5.0
assert type(module) is not late_imports._LateModule
"""


def test_kept_machine_code_is_read_without_what_numba_compiles_arrays_with(tmp_path):
    (tmp_path / "own_loop.py").write_text(LOOP)
    for state in ("new", "kept"):
        done = subprocess.run(
            [sys.executable, "-c", KEPT, state], capture_output=True, text=True, cwd=tmp_path,
            env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "kept")},
        )  # fmt: skip
        assert done.returncode == 0, (state, done.stderr)
