"""The command line: find the verb and run it. Heavy modules are imported only when needed."""

from __future__ import annotations

import importlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from dperm_cli import __version__
from dperm_cli.core import checks, completion
from dperm_cli.core.errors import EXIT_INPUT, EXIT_OK, EXIT_STORAGE, DpermError
from dperm_cli.core.help import help_page, list_text
from dperm_cli.core.operands import wants_help

EXIT_INTERRUPTED, EXIT_TERMINATED = 130, 143
KEEPING_VERBS = ("run", "reproduce")  # verbs that store cells as they end


class Terminated(KeyboardInterrupt):
    """SIGTERM, from a batch system or a container that ends: what is finished stays."""


def main(argv: list[str] | None = None) -> int:
    """Entry point; returns the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    debug = "--debug" in arguments
    arguments = [word for word in arguments if word != "--debug"]
    try:
        with _termination():
            code = dispatch(arguments)
            sys.stdout.flush()
        return code
    except BrokenPipeError:
        _silence_stdout()
        return EXIT_OK
    except OSError as error:
        if debug:
            raise
        _silence_stdout()
        print(f"dperm: {error.strerror or error}", file=sys.stderr)
        return EXIT_STORAGE
    except KeyboardInterrupt as error:
        ended = isinstance(error, Terminated)
        word = "terminated" if ended else "interrupted"
        kept = (
            "; finished cells are kept" if arguments[:1] and arguments[0] in KEEPING_VERBS else ""
        )
        print(f"{word}{kept}", file=sys.stderr)
        return EXIT_TERMINATED if ended else EXIT_INTERRUPTED
    except DpermError as error:
        if debug:
            raise
        print(f"dperm: {error}", file=sys.stderr)
        return error.exit_code


@contextmanager
def _termination() -> Iterator[None]:
    """While the block runs, SIGTERM is raised in it as Ctrl-C is."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(*_: object) -> None:
        # ignore a second SIGTERM while the first one is handled
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise Terminated

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL if before is None else before)


def dispatch(arguments: list[str]) -> int:
    """Hand the arguments to their verb."""
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(help_page("dperm").replace("{version}", __version__))
        return EXIT_OK if arguments else EXIT_INPUT
    name, rest = arguments[0], arguments[1:]
    if name in ("-V", "--version"):
        print(__version__)
        return EXIT_OK
    checks.choice("verb", name, VERBS)
    if wants_help(rest) or not (rest or name in COMPLETE_VERBS):
        print(help_page(name))
        return EXIT_OK if rest else EXIT_INPUT
    return VERBS[name](rest)


# Each verb imports what it needs when it is called.


def _defer(verb: str) -> Callable[[list[str]], int]:
    """The function that has the name of its module in ``runner/verbs``, imported when called."""

    def carry_out(arguments: list[str]) -> int:
        module = importlib.import_module(f"dperm_cli.runner.verbs.{verb}")
        return getattr(module, verb)(arguments)

    return carry_out


def _run(arguments: list[str]) -> int:
    from dperm_cli.runner.compose.study_plan import parse_request

    asked = parse_request(arguments)  # refused, if it is, before what computes is imported
    from dperm_cli.runner.verbs.run import run

    return run(arguments, *asked)


def _reproduce(arguments: list[str]) -> int:
    from dperm_cli.runner.verbs.reproduce_all import reproduce_experiments

    return reproduce_experiments(arguments)


def _list(arguments: list[str]) -> int:
    print(list_text(arguments))
    return EXIT_OK


def _warmup(arguments: list[str]) -> int:
    from dperm_cli.loops.warmup import warmup

    print("compiling the loops ...", file=sys.stderr)
    warmup()
    return EXIT_OK


def _completion(arguments: list[str]) -> int:
    if arguments[0] not in ("bash", "--words"):
        print(help_page("completion"))
        return EXIT_INPUT
    if arguments[0] == "bash":
        print(completion.read_script())
    else:
        print("\n".join(completion.complete_words(arguments[1:], VERBS)))
    return EXIT_OK


VERBS: dict[str, Callable[[list[str]], int]] = {
    "run": _run,
    "describe": _defer("describe"),
    "account": _defer("account"),
    "audit": _defer("audit"),
    "reproduce": _reproduce,
    "report": _defer("report"),
    "status": _defer("status"),
    "merge": _defer("merge"),
    "verify": _defer("verify"),
    "compare": _defer("compare"),
    "predict": _defer("predict"),
    "ask": _defer("ask"),
    "list": _list,
    "data": _defer("data"),
    "warmup": _warmup,
    "completion": _completion,
}
# verbs that do something without further words
COMPLETE_VERBS = ("run", "describe", "account", "audit", "list", "warmup")


def _silence_stdout() -> None:
    # A reader such as `head` has gone; without this the interpreter complains at exit.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
