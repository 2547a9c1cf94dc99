"""The command line: find the verb and run it. Heavy modules are imported only when needed."""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import sys
from collections.abc import Callable

from dperm_cli import __version__
from dperm_cli.core import (
    checks,
    completion,
    environment,
    foreign_errors,
    plugin_sources,
    standard_streams,
)
from dperm_cli.core.errors import (
    EXIT_FAILED,
    EXIT_INPUT,
    EXIT_OK,
    EXIT_STORAGE,
    DpermError,
    InputError,
    Unsupported,
    describe_error,
)
from dperm_cli.core.help import help_page, list_text
from dperm_cli.core.operands import HELP, Syntax, take_plugins, wants_help

EXIT_SIGNAL = 128  # and the number of the signal
# verbs that name plug-ins, or read studies that do
PLUGIN_VERBS = (
    "run", "describe", "plan", "account", "audit", "reproduce", "report", "status", "verify",
    "compare", "predict", "export", "statement", "ask", "list", "data", "completion", "check",
)  # fmt: skip
KEEPING_VERBS = ("run", "reproduce")  # verbs that store cells as they end
PRINTING_VERBS = ("ask", "predict")  # verbs that need not go on when nobody reads any more
_ENDS: dict[int, str] = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}


def main(argv: list[str] | None = None) -> int:
    """Entry point; returns the exit code.

    Without ``argv`` the process is dperm's own: its streams and threads are settled first.
    """
    if argv is None:
        environment.settle()
    arguments = list(sys.argv[1:] if argv is None else argv)
    debug = "--debug" in arguments
    arguments = [word for word in arguments if word != "--debug"]
    if arguments[:1] and arguments[0] in PRINTING_VERBS:
        standard_streams.raise_at_once()
    code = _dispatch_safely(arguments, debug)
    fault = standard_streams.find_fault()
    if fault is None or isinstance(fault, BrokenPipeError):
        return code
    words = f"standard output cannot be written ({fault.strerror}); what was printed is lost"
    print(f"dperm: {words}", file=sys.stderr)
    return code or EXIT_STORAGE


def _dispatch_safely(arguments: list[str], debug: bool) -> int:
    """The exit code of a verb; what goes wrong is told in one line."""
    try:
        with environment.raise_at_signals(), foreign_errors.show_words(debug):
            code = dispatch(arguments)
            sys.stdout.flush()
        return code
    except BrokenPipeError:
        _silence_stdout()
        return EXIT_OK
    except (Exception, KeyboardInterrupt) as error:
        end = environment.find_end(error)
        if end is not None:
            return _tell_end(end, arguments)
        shortage = environment.find_shortage(error)
        foreign = foreign_errors.is_foreign(error) and not isinstance(error, DpermError)
        known = isinstance(error, DpermError | OSError | Unsupported)
        if debug or not (shortage or foreign or known):
            raise
        if shortage and not isinstance(error, InputError):
            words, code = f"{shortage} ({describe_error(error)[:160]})", shortage.exit_code
        elif isinstance(error, DpermError):
            words, code = str(error), error.exit_code
        elif foreign:
            words, code = foreign_errors.describe(error), EXIT_FAILED
        elif isinstance(error, Unsupported):
            words, code = str(error), EXIT_FAILED
        else:
            _silence_stdout()
            words, code = getattr(error, "strerror", None) or str(error), EXIT_STORAGE
        if error is not standard_streams.find_fault():
            print(f"dperm: {words}", file=sys.stderr)
        return code


def _tell_end(end: KeyboardInterrupt, arguments: list[str]) -> int:
    """Say that a signal ended the verb, and what is kept; the exit code."""
    number = end.number if isinstance(end, environment.Terminated) else signal.SIGINT
    word = _ENDS.get(number, f"ended by {end}")
    kept = "; finished cells are kept" if arguments[:1] and arguments[0] in KEEPING_VERBS else ""
    print(f"{word}{kept}", file=sys.stderr)
    return EXIT_SIGNAL + number


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
    if name not in PLUGIN_VERBS:
        return _carry_out(name, rest)
    plugins, rest = take_plugins(rest)
    with plugin_sources.use_plugins():
        # whoever completes a line has not typed all of it
        broken = (InputError,) if name == "completion" else ()
        with contextlib.suppress(*broken):
            plugin_sources.add_environment()
            for word in plugins:
                plugin_sources.add(word)
        return _carry_out(name, rest)


def _carry_out(name: str, rest: list[str]) -> int:
    """The verb itself, or its help page."""
    if wants_help(rest) or not (rest or name in COMPLETE_VERBS):
        print(help_page(name, [word for word in rest if word not in HELP]))
        return EXIT_OK if rest else EXIT_INPUT
    if name not in LIGHT_VERBS:
        environment.check_memory()
    if name not in SHORT_VERBS:
        environment.collect_as_usual()
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

    Syntax(operands=False).split(arguments)  # it takes no words
    print("compiling the loops ...", file=sys.stderr)
    warmup()
    return EXIT_OK


def _completion(arguments: list[str]) -> int:
    if arguments[0] == "--words":
        print("\n".join(completion.complete_words(arguments[1:], VERBS)))
    else:
        shell = checks.choice("completion", arguments[0], completion.SHELLS)
        print(completion.read_script(shell))
    return EXIT_OK


VERBS: dict[str, Callable[[list[str]], int]] = {
    "run": _run,
    "describe": _defer("describe"),
    "plan": _defer("plan"),
    "account": _defer("account"),
    "gap": _defer("gap"),
    "audit": _defer("audit"),
    "reproduce": _reproduce,
    "report": _defer("report"),
    "status": _defer("status"),
    "merge": _defer("merge"),
    "verify": _defer("verify"),
    "compare": _defer("compare"),
    "predict": _defer("predict"),
    "statement": _defer("statement"),
    "schema": _defer("schema"),
    "prepare": _defer("prepare"),
    "release": _defer("release"),
    "budget": _defer("budget"),
    "export": _defer("export"),
    "ask": _defer("ask"),
    "list": _list,
    "data": _defer("data"),
    "cache": _defer("cache"),
    "peers": _defer("peers"),
    "check": _defer("check"),
    "new": _defer("new"),
    "warmup": _warmup,
    "completion": _completion,
}
LIGHT_VERBS = ("list", "completion", "new")  # verbs that import no library
# verbs that end soon, or call ``collect_as_usual`` themselves before they compute
SHORT_VERBS = ("run", "report", "status", "account", "cache", *LIGHT_VERBS)
# verbs that do something without further words
COMPLETE_VERBS = ("run", "describe", "account", "gap", "audit", "list", "cache", "warmup", "new")


def _silence_stdout() -> None:
    # A reader such as `head` has gone; without this the interpreter complains at exit.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
