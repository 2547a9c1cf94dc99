"""``dperm`` in a process of its own that starts at once: one process has all imported, and forks.

A fresh process imports for two seconds what a small run uses for a tenth of one. What a command
does to its process stays in it all the same: each has its own folder, variables, streams and end.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import io
import json
import os
import pkgutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WARM = ("run", "-m", "dataset=synthetic_logistic", "dataset.n=40", "dataset.p=2", "trials=2",
        "mechanism=noisy_gd,noisy_sgd")  # fmt: skip


def run_forked(
    words: Sequence[str], cwd: Path, env: Mapping[str, str], limit: float
) -> subprocess.CompletedProcess[str]:
    """``python -m dperm_cli WORDS`` with these variables in this folder.

    Args:
        words: The command line.
        cwd: The working directory.
        env: All variables; one that Python reads when it starts has no effect.
        limit: Seconds after which the command is killed.

    Raises:
        subprocess.TimeoutExpired: It took longer.
    """
    with tempfile.TemporaryDirectory() as folder:
        said = [os.path.join(folder, name) for name in ("out", "err")]
        asked = {"words": list(words), "cwd": str(cwd), "env": dict(env), "said": said}
        server = _start_server()
        server.stdin.write(json.dumps(asked) + "\n")
        server.stdin.flush()
        child = int(server.stdout.readline())
        killed = threading.Event()
        clock = threading.Timer(limit, lambda: (killed.set(), os.kill(child, 9)))
        clock.start()
        code = int(server.stdout.readline())
        clock.cancel()
        out, err = (Path(path).read_text() for path in said)
    if killed.is_set():
        raise subprocess.TimeoutExpired(words, limit, out, err)
    return subprocess.CompletedProcess(words, code, out, err)


@cache
def _start_server() -> subprocess.Popen:
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.forked"],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": path, "MPLBACKEND": "agg"},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    atexit.register(server.communicate)  # its input ends, and so does it
    return server


def serve() -> None:
    """Fork for each line of stdin; answer with the child's number, then with its exit code."""
    atexit.register(_leave)  # before others, so that it is called last
    import dperm_cli
    from dperm_cli.cli import main

    for found in pkgutil.walk_packages(dperm_cli.__path__, "dperm_cli."):
        if not found.name.endswith("__main__"):
            importlib.import_module(found.name)
    said = io.StringIO()
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.redirect_stdout(said),
        contextlib.redirect_stderr(said),
    ):  # what a run imports, loads and compiles
        assert main([*WARM, f"out={folder}/study"]) == 0, said.getvalue()
    gc.collect()
    gc.freeze()  # a child that never looks at these objects does not copy them
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            _ended["code"] = 1
            _ended["code"] = main(_become(json.loads(line)))
            return
        print(child, flush=True)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


_ended = {"code": 0}


def _leave() -> None:
    """End without taking down what was imported, which takes longer than a small command."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(_ended["code"])


def _become(asked: dict) -> list[str]:
    """Make this process look as if a shell had started it; give its words."""
    said = [os.open(path, os.O_WRONLY | os.O_CREAT) for path in asked["said"]]
    for stream, number in enumerate([os.open(os.devnull, os.O_RDONLY), *said]):
        os.dup2(number, stream)
        os.close(number)
    sys.stdin, sys.stdout, sys.stderr = (
        os.fdopen(number, mode, closefd=False) for number, mode in enumerate(("r", "w", "w"))
    )
    os.environ.clear()
    os.environ.update(asked["env"])
    os.chdir(asked["cwd"])
    sys.path[0] = asked["cwd"]
    sys.argv = [os.path.join(ROOT, "dperm_cli", "__main__.py"), *asked["words"]]
    return asked["words"]


if __name__ == "__main__":
    serve()
