"""A process that has everything imported and forks: each run starts at once and can be killed.

Read requests from stdin, a JSON object a line: {"argv": [...], "records": folder, "more": how many
records have to be written before the kill, "delay": seconds after that, "signal": number,
"limit": bytes a file may have, "whom": "worker" to kill one of the run's workers and not the run,
"times": how many of them, one "delay" after the other, "copies": how many equal runs at once,
"at": [what Python does, part of a path, how often], for a run that kills itself}.
Answers {"code": exit code or -signal, of several runs the first that is not 0, "killed": how many,
"left": records in the folder, "orphans": processes of the run that outlive it}.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import sys
import time
import traceback

WAIT = 240.0


def main() -> None:
    import pyarrow.parquet  # noqa: F401

    from dperm_cli import cli
    from dperm_cli.results import report
    from dperm_cli.runner.verbs import run as app  # noqa: F401

    # of the report only the table matters here, and figures take most of its time
    report._write_figures = lambda *_: None
    for line in sys.stdin:
        asked = json.loads(line)
        print(json.dumps(attempt(cli.main, asked)), flush=True)


def attempt(run, asked: dict) -> dict:
    before = count(asked["records"])
    children = [start(run, asked) for _ in range(asked.get("copies", 1))]
    killed = watch(children[0], asked, before) if "more" in asked else 0
    found = next(filter(None, [ended(child) for child in children]), 0)
    return {"code": found, "killed": killed, "left": count(asked["records"]),
            "orphans": orphans(children[0])}  # fmt: skip


def start(run, asked: dict) -> int:
    child = os.fork()
    if child == 0:
        os.setsid()
        quiet = os.open(asked.get("log", os.devnull), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if "limit" in asked:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (asked["limit"], asked["limit"]))
        if "at" in asked:
            kill_at(*asked["at"])
        code = 99
        try:
            code = run(asked["argv"])
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    return child


def kill_at(event: str, part: str, times: int) -> None:
    """Kill -9 of this process when it does something to such a path for so many times."""
    left = times

    def hear(name: str, arguments: tuple) -> None:
        nonlocal left
        if name == event and any(part in str(one) for one in arguments):
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hear)


def watch(child: int, asked: dict, before: int) -> int:
    """Kill the child when it has written enough; how many processes were killed."""
    end = time.monotonic() + WAIT
    while count(asked["records"]) < before + asked["more"]:
        if has_ended(child):
            return 0
        if time.monotonic() > end:
            break
        time.sleep(0.001)
    killed = 0
    for _ in range(asked.get("times", 1)):
        time.sleep(asked["delay"])
        workers = [] if asked.get("whom") == "worker" else [child]
        while not workers and not has_ended(child):
            workers = [pid for pid, words in members(child) if is_worker(pid, words, child)]
            time.sleep(0.01)
        if has_ended(child):
            break
        with contextlib.suppress(ProcessLookupError):
            os.kill(workers[killed % len(workers)], asked.get("signal", signal.SIGKILL))
            killed += 1
    return killed


def has_ended(child: int) -> bool:
    return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def is_worker(pid: int, words: str, leader: int) -> bool:
    """Whether a process of the run computes cells, or is about to."""
    return pid != leader and "python" in words and "resource_tracker" not in words


def ended(child: int) -> int:
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def orphans(session: int) -> list[str]:
    """Processes of the child's session that are still there a moment later."""
    end = time.monotonic() + 20.0
    while (found := members(session)) and time.monotonic() < end:
        time.sleep(0.05)
    return [words for _, words in found]


def members(session: int) -> list[tuple[int, str]]:
    """The processes of a session: numbers and the words they were started with."""
    found = []
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        try:
            with open(f"/proc/{name}/stat") as file:
                fields = file.read().rpartition(")")[2].split()
            if name.isdigit() and int(fields[3]) == session and fields[0] != "Z":
                with open(f"/proc/{name}/cmdline") as file:
                    found.append((int(name), file.read().replace("\0", " ")[:200]))
        except (OSError, IndexError, ValueError):
            continue
    return found


def count(folder: str) -> int:
    try:
        return sum(name.endswith(".parquet") for name in os.listdir(folder))
    except FileNotFoundError:
        return 0


if __name__ == "__main__":
    main()
