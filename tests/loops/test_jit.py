"""Stored machine code must not outlive a change of a neighbouring file."""

import errno
import subprocess
import sys

import pytest

from dperm_cli.loops import gaussian_noise, jit, sgd

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
