"""Stored machine code must not outlive a change of a neighbouring file."""

import subprocess
import sys

from dperm_cli.loops import _jit, gaussian, sgd

WARM = """
from dperm_cli.loops import gaussian, indices, sgd
from dperm_cli.loops.warmup import warmup
kernels = (gaussian._normals, indices.draw, sgd._advance, sgd.batch_gradient, sgd.update)
assert not any(kernel.signatures for kernel in kernels)
assert warmup() > 0
print(*(len(kernel.signatures) for kernel in kernels))
"""


def test_machine_code_is_stamped_with_the_whole_room():
    for kernel in (gaussian.fill, sgd._advance):
        assert kernel._cache._cache_file._source_stamp[1] == _jit.room_digest()


def test_warmup_compiles_every_kernel_once():
    done = subprocess.run([sys.executable, "-c", WARM], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1"] * 5
