"""What is settled before libraries are imported, and words for what cannot be had."""

from __future__ import annotations

import errno
import os
import re
import signal
import subprocess
import sys

import pytest

from dperm_cli.core import environment
from dperm_cli.core.errors import StorageError


def test_libraries_find_their_numbers_of_threads():
    code = (
        "import sys; from dperm_cli.core import environment; environment.settle()\n"
        "assert not {'numpy', 'numba', 'pyarrow'} & set(sys.modules)\n"
        "import pyarrow, threadpoolctl, numpy, scipy.linalg, numba\n"
        "print(pyarrow.cpu_count(), pyarrow.io_thread_count(), numba.config.NUMBA_NUM_THREADS,\n"
        "      *(found['num_threads'] for found in threadpoolctl.threadpool_info()))\n"
    )
    many = dict.fromkeys(environment.THREADS, "3")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                          env=os.environ | many, check=True)  # fmt: skip
    assert set(done.stdout.split()) == {"1"}


@pytest.mark.parametrize("number", environment.ENDING_SIGNALS)
def test_a_signal_ends_once(number):
    before = environment.end_at_signals()
    try:
        with pytest.raises(environment.Terminated) as ended:
            os.kill(os.getpid(), number)
        assert ended.value.number == number
        os.kill(os.getpid(), number)  # is not heeded any more
    finally:
        for other, handler in before.items():
            signal.signal(other, handler)


def test_nohup_is_heeded():
    kept = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        before = environment.end_at_signals()
        os.kill(os.getpid(), signal.SIGHUP)
        for number, handler in before.items():
            signal.signal(number, handler)
        assert signal.SIGHUP not in before
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, kept)


def chain(outer, inner):
    outer.__cause__ = inner
    return outer


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
        ImportError("libparquet.so: failed to map segment from shared object"),
        chain(StorageError("out/x: cannot allocate memory"), OSError(errno.ENOMEM, "no")),
        chain(RuntimeError("llvmlite was not found"), OSError("x.so: failed to map segment")),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_lack_of_memory_says_what_to_do(error):
    found = environment.find_shortage(error)
    assert found is not None
    words = str(found)
    assert words.startswith("limits.memory=auto: this command needs more memory than the ")
    assert len(re.findall(r"\d [kMGT]B ", words)) == 2
    assert "raise the limit" in words


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space"), ValueError("memory")])
def test_other_errors_are_no_lack_of_memory(error):
    assert environment.find_shortage(error) is None
