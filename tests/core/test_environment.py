"""What is settled before libraries are imported, and words for what cannot be had."""

from __future__ import annotations

import errno
import os
import re
import signal
import subprocess
import sys
import time

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


TRIED = """
import os, resource, signal
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
for number in sorted(signal.valid_signals()):
    child = os.fork()
    if child == 0:
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
        os._exit(0)
    _, status = os.waitpid(child, os.WUNTRACED)
    if os.WIFSTOPPED(status):
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    elif os.WIFSIGNALED(status):
        print(int(number))
"""
FATAL = {signal.SIGILL, signal.SIGTRAP, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE,
         signal.SIGSEGV, signal.SIGSYS, signal.SIGKILL}  # fmt: skip


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_ending_signals_are_those_that_end_a_process():
    """All by whose default action a process ends, but for those after which it cannot go on."""
    tried = subprocess.run(
        [sys.executable, "-c", TRIED], capture_output=True, text=True, check=True
    )
    ends = set(map(int, tried.stdout.split()))
    assert ends >= {signal.SIGUSR1, signal.SIGALRM, signal.SIGPIPE, signal.SIGSEGV}
    assert ends - FATAL - {getattr(signal, "SIGEMT", 0)} == environment.ENDING_SIGNALS


@pytest.fixture
def default_action(request):
    """The signal with its default action, whatever pytest or Python made of it."""
    kept = signal.signal(request.param, signal.SIG_DFL)
    yield request.param
    signal.signal(request.param, kept)


@pytest.mark.parametrize("default_action", sorted(environment.ENDING_SIGNALS), indirect=True)
def test_a_signal_ends_once(default_action):
    number = default_action
    with environment.raise_at_signals():
        with pytest.raises(environment.Terminated) as ended:
            os.kill(os.getpid(), number)
        assert ended.value.number == number
        os.kill(os.getpid(), number)  # is not heeded any more


def test_a_signal_is_not_lost_while_an_object_is_taken_away():
    """Python drops errors there, and the signal with them."""

    class Lock:
        def __del__(self):
            os.kill(os.getpid(), signal.SIGHUP)
            reached.append("after the signal")

    def drop_lock_and_work():
        lock = Lock()
        del lock
        assert reached == []
        time.sleep(30)

    reached: list[str] = []
    before, kept = sys.unraisablehook, signal.signal(signal.SIGHUP, signal.SIG_DFL)
    try:
        with environment.raise_at_signals(), pytest.raises(environment.Terminated, match="SIGHUP"):
            drop_lock_and_work()
    finally:
        signal.signal(signal.SIGHUP, kept)
    assert sys.unraisablehook is before


def test_an_error_of_a_library_that_was_cut_short_is_the_end_that_was_asked_for():
    end = environment.Terminated(signal.SIGHUP)
    assert environment.find_end(end) is end
    assert environment.find_end(chain(ValueError("outer"), chain(RuntimeError("lock"), end))) is end
    assert environment.find_end(chain(ValueError("outer"), KeyError("inner"))) is None


def test_a_signal_that_the_caller_handles_stays_its_own():
    seen = []
    kept = signal.signal(signal.SIGALRM, lambda number, _: seen.append(number))
    try:
        with environment.raise_at_signals() as raised:
            os.kill(os.getpid(), signal.SIGALRM)
        assert seen == [signal.SIGALRM]
        assert signal.SIGALRM not in raised
    finally:
        signal.signal(signal.SIGALRM, kept)


def test_nohup_is_heeded():
    kept = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with environment.raise_at_signals() as raised:
            os.kill(os.getpid(), signal.SIGHUP)
        assert signal.SIGHUP not in raised
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


ROOM_OF_THREADS = """
import threading
from dperm_cli.core import environment
environment.settle()
def read_size():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmSize"))
before, go = read_size(), threading.Event()
ready = threading.Barrier(5)
def work():
    kept = [bytearray(100_000) for _ in range(4)]
    ready.wait()
    go.wait()
threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads:
    thread.start()
ready.wait()
print((read_size() - before) >> 10)
go.set()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not hold to ulimit -v")
def test_threads_reserve_no_room_where_addresses_are_limited():
    """Four threads take their stacks, and not 64 MiB each beside them."""
    grown = {}
    for limit in ("unlimited", str(8 << 20)):
        shell = f'ulimit -v {limit}; ulimit -s 8192; exec "$0" -c "$1"'
        command = ["sh", "-c", shell, sys.executable, ROOM_OF_THREADS]
        grown[limit] = int(subprocess.run(command, capture_output=True, check=True).stdout)
    assert grown[str(8 << 20)] < 100
    assert grown["unlimited"] >= 4 * 64
