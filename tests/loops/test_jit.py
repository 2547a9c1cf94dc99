"""Stored machine code must not outlive a change of a neighbouring file."""

import copy
import errno
import importlib
import pickle
import pkgutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

import dperm_cli.loops
from dperm_cli.loops import gaussian_noise, jit, machine_operations, sgd

WARM = """
from dperm_cli.loops import batch_indices, gaussian_noise, sgd
from dperm_cli.loops.warmup import warmup
kernels = (gaussian_noise._normals, batch_indices.draw, sgd._advance, sgd.batch_gradient)
kernels += (sgd.update,)
assert not any(kernel.signatures for kernel in kernels)
assert warmup() > 0
print(*(len(kernel.signatures) for kernel in kernels))
"""


def test_machine_code_is_stamped_with_the_whole_room():
    for kernel in (gaussian_noise.fill, sgd._advance):
        assert kernel._cache._cache_file._source_stamp[1] == jit.room_digest()


def test_warmup_compiles_every_kernel_once():
    done = subprocess.run([sys.executable, "-c", WARM], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1"] * 5


IMPORT_ALL = """
import importlib, pkgutil, sys
import dperm_cli.loops as room
for found in pkgutil.iter_modules(room.__path__, "dperm_cli.loops."):
    if not found.name.endswith("machine_operations"):
        importlib.import_module(found.name)
assert "numba" not in sys.modules
import numpy as np
from dperm_cli.loops import gaussian_noise
keys = np.zeros((1, 2), dtype=np.uint64)
assert gaussian_noise.normals(keys, 0, 2, 3).size == 6
assert "numba" in sys.modules
"""


def test_numba_is_imported_with_the_first_call():
    subprocess.run([sys.executable, "-c", IMPORT_ALL], check=True)


KEPT = """
import sys
import numpy as np
from dperm_cli.loops import gaussian_noise, jit
keys = np.zeros((1, 2), dtype=np.uint64)
first = gaussian_noise.normals(keys, 0, 2, 3)
hits = sum(gaussian_noise._normals.stats.cache_hits.values())
print(first.tobytes().hex(), hits, "numba.np.linalg" in sys.modules)
@jit.compile_loop
def count(n):
    seen = np.zeros(n)
    for i in range(n):
        seen[i] = np.sqrt(i * i)
    return seen.sum()
assert count(4) == 6.0 and "numba.np.linalg" in sys.modules
"""


@pytest.mark.skipif(not dperm_cli.loops.KEEPS_CODE, reason="no machine code is kept here")
def test_kept_code_needs_no_tables_of_what_numba_compiles(tmp_path):
    (tmp_path / "kept.py").write_text(KEPT)  # numba keeps code of files alone
    words = [sys.executable, str(tmp_path / "kept.py")]
    first, again = (
        subprocess.run(words, capture_output=True, text=True, check=True) for _ in range(2)
    )
    numbers, hits, filled = again.stdout.split()
    assert (numbers, hits, filled) == (first.stdout.split()[0], "1", "False")


INNER = """
import numpy as np
from dperm_cli.loops import jit


@jit.compile_loop
def add_roots(n):
    seen = np.zeros(n)
    for i in range(n):
        seen[i] = np.sqrt(i * i)
    return seen.sum()
"""
LINKED = """
import sys
import own_loop
from dperm_cli.loops import jit
import llvmlite.binding as binding

parse, parsed = binding.parse_bitcode, []
binding.parse_bitcode = lambda code: parsed.append(len(code)) or parse(code)
{own}
empty = len(jit._empty_module())


@jit.compile_loop
def add_one(n):
    return own_loop.add_roots(n) + 1.0


read = [size for size in parsed if size > empty]
assert add_one(4) == 7.0 and add_one.signatures
linked = [size for size in parsed if size > empty]
assert own_loop.add_roots(3) == 3.0
print(sum(own_loop.add_roots.stats.cache_hits.values()), len(read), len(linked))
"""


@pytest.mark.skipif(not dperm_cli.loops.KEEPS_CODE, reason="no machine code is kept here")
@pytest.mark.parametrize("own", ["", "assert own_loop.add_roots(4) == 6.0"])
def test_the_form_to_link_is_read_when_a_loop_is_linked(tmp_path, own):
    """Whether a kept loop was called by itself before or not: never when it is only called."""
    (tmp_path / "own_loop.py").write_text(INNER)
    run = [sys.executable, "-c", "import own_loop; assert own_loop.add_roots(4) == 6.0"]
    subprocess.run(run, check=True, cwd=tmp_path)
    (tmp_path / "linked.py").write_text(LINKED.format(own=own))
    run = [sys.executable, str(tmp_path / "linked.py")]
    done = subprocess.run(run, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == ["1", "0", "1"]


def list_operations():
    for found in pkgutil.iter_modules(dperm_cli.loops.__path__, "dperm_cli.loops."):
        for name, value in vars(importlib.import_module(found.name)).items():
            if isinstance(value, jit.Operation):
                yield name, value


def test_every_operation_is_there_under_its_name():
    found = list(list_operations())
    assert len({name for name, _ in found}) >= 15
    for name, operation in found:
        assert operation.name == name
        assert isinstance(getattr(machine_operations, name), type(machine_operations.fma))


@jit.compile_inline
def add_one(x):
    return x + 1.0


@jit.compile_loop
def add_two(x):
    return add_one(jit.fma(x, 1.0, 1.0))


def test_a_loop_is_a_function_with_its_words_and_can_be_sent():
    assert (add_two.__name__, add_two.__module__) == ("add_two", __name__)
    assert pickle.loads(pickle.dumps(add_two)) is add_two
    assert copy.deepcopy(add_two) is add_two


def test_threads_that_call_first_make_one_dispatcher():
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: add_two.dispatcher, range(32)))
    assert len(set(map(id, made))) == 1
    assert add_two(1.5) == 3.5
    assert len(add_two.signatures) == 1


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "no space"), RuntimeError("no bytes")])
def test_what_cannot_be_kept_is_run_all_the_same(error, monkeypatch):
    tried = []

    def fail(*_):
        tried.append(error)
        raise error

    @jit.compile_loop
    def double(x):
        return 2.0 * x

    monkeypatch.setattr(double._cache, "_save_overload", fail)
    assert [double(1.5), double(2.5)] == [3.0, 5.0]
    assert tried == [error]
