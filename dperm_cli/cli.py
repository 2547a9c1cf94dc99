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
from dperm_cli.core.errors import EXIT_INPUT, EXIT_OK, EXIT_STORAGE, DpermError, InputError

EXIT_INTERRUPTED, EXIT_TERMINATED = 130, 143

HELP = """\
dperm {version}: differentially private convex empirical risk minimization

usage: dperm VERB [ARGUMENTS]

verbs
  run         compose a problem, a mechanism and a privacy level, run it, write table and figure
  describe    what is known of a problem before any budget is spent
  account     noise for a budget, budget for a noise scale; reads no data
  audit       attack the mechanisms from outside and check what they claim; reads no data
  reproduce   run an experiment, or all, and judge what it claims: dperm reproduce leak
  report      print a study's table again, redraw its figures, write its page report.html
  status      how far a study is: done, failed, remaining
  merge       put the records of several studies together: dperm merge A B out=C
  verify      check a study's files, their contents and its privacy ledger
  compare     what changed in risk, privacy and time: dperm compare A B
  list        what can be chosen: dperm list [dataset|loss|constraint|privacy|mechanism|sampler|
              kernel|experiment]
  predict     what a saved predictor says of new rows: dperm predict MODEL.npz rows.csv
  ask         a private session: queries answered as they come in, from a file or the input
  data        the data sets: dperm data list | path NAME | fetch NAME | verify NAME
  warmup      compile the loops now instead of at first use
  completion  print the completion script: eval "$(dperm completion bash)"

three examples
  dperm run mechanism=noisy_sgd epsilon=0.1
  dperm run -m mechanism=noisy_sgd,noisy_gd epsilon=0.1,1,10 trials=20
  dperm run dataset=digits loss=hinge constraint=l1_ball constraint.radius=5 format=json

options of every verb: -h, --help; --debug shows the traceback of an error
`dperm VERB --help` says more. Exit codes: 0 ok, 1 a cell failed or none is supported, 2 bad input,
3 storage, 130 interrupted and 143 terminated (finished cells are kept)."""

DESCRIBE_HELP = """\
usage: dperm describe [KEY=VALUE ...]

Takes the keys of `dperm run` that make a problem (dataset, loss, constraint, ridge, lasso,
privacy) and prints its constants, certified optimum and floor, what each mechanism could do with
it and what the bounds promise, and draws a picture. Nothing is released."""

KEEPING_VERBS = ("run", "reproduce")  # verbs that store cells as they end

AUDIT_HELP = """\
usage: dperm audit [KEY=VALUE of a dperm run ...] [pair=FILE] [--quick]
       dperm audit [mechanism=NAME[,..]|all] [epsilon=1[,..]] [delta=1e-5] [--quick]
                   [part=all|adversary|grid] [case=N] [stop=never|first]
       (both: [seed=N|fresh] [workers=auto|N] [format=table|json] [out=FOLDER])
       dperm audit fuzz=30s|10m|1h [seed=N|fresh] [mechanism=NAME] [draw=N] [out=FOLDER]

With the keys of a run it attacks the plan that the run would use: on made-up neighbouring data sets
with the public facts of its own, and on two records of yours (pair=, csv or npz). The records of
the data set are not looked at. Without them it walks a declared grid of problems for every
mechanism, and runs each mechanism many times on the pair it finds hardest to hide: a lower bound on
epsilon, with half the noise as a control. Prints what was and what was not attacked. Exit code 1 on
a violation, and where nothing could be attacked. --quick takes a few cases and fewer runs. Nothing
is written but to out=. docs/audit.md explains the checks and the columns.

fuzz= draws configurations and pairs of data files one record apart for that long, carries out a
whole run on both with the same noise, and says what differs that should not. draw= repeats one."""

REPRODUCE_HELP = """\
usage: dperm reproduce ID|all [size=small|full] [out=FOLDER] [format=table|json] [force=true]
                       [verdicts=FOLDER] [--config-dir DIR]
       dperm reproduce claims [verdicts=FOLDER] [out=FILE]

Runs the cells of an experiment (`dperm list experiment`), writes records, tables, figures and
claims.json to out=outputs/ID and prints a verdict on everything it claims. Cells whose records
exist are looked up. Exit code 1 when a cell failed, when a claim does not hold, or when one holds
that is filed as failing; claims that are not judged at this size, or whose data are absent, do not
change it. docs/experiments.md describes the files of an experiment.

all runs every experiment, whatever the verdict on another one, into out=outputs and ends with one
table; figures whose records have not changed are not drawn again. verdicts=experiments keeps the
verdicts in experiments/ID/verdicts.json, and claims prints the page of all claims from these."""

STATUS_HELP = """\
usage: dperm status STUDY [format=table|json]

STUDY is the out= of a run, or its name under outputs/. Says how many cells are done, failed,
unsupported and remaining, which run now, when the last record was written, and why cells failed.
It reads files only: a running study is not disturbed."""

MERGE_HELP = """\
usage: dperm merge STUDY STUDY [...] out=FOLDER [format=table|json]

Writes the records of all studies to one folder, with table, figures and ledger. A cell that
several studies have is taken from the first; a result is taken before a failure. Results of one
cell that differ are refused with their names, unless their noise was fresh: then the first one is
shown, and the ledger counts every release. The studies are left as they are."""

VERIFY_HELP = """\
usage: dperm verify STUDY

Checks every record against its checksum, its rows against their digest, every epsilon against its
events, ledger.json against records and releases.log, and the table of a finished study. Exit code 3
when a file is damaged or lines of releases.log are missing, 1 when one contradicts the records."""

COMPARE_HELP = """\
usage: dperm compare RUN_A RUN_B [format=table|json]

Joins the cells of two studies by problem, mechanism, calibration, epsilon and delta and prints
what is different in B: guarantees that are weaker (first, with exit code 1), other changes of
privacy and settings, risks, times, and cells that only one of them has. A risk is called changed
when a rank-sum test over the trials says so, at 5 % for the whole comparison."""

PREDICT_HELP = """\
usage: dperm predict MODEL ROWS [columns=name|position] [format=csv|json] [out=FILE]

MODEL is a file that `dperm run ... save=MODEL.npz` made: the released predictor, its privacy events
and public facts, and no training record. ROWS is a csv file or .parquet, .npy, .npz (array x) or
.svmlight, in the unit of the training data; rows go through the rules of the training rows.
Columns are found by name where the training data had names: a missing one and an unknown one are
refused, the column of labels may stay. columns=position takes them in the model's order instead, as
is done for models without names, whose csv may begin with a line of names.

Prints a line a row: score and label of a classifier, the label as the training data spell it
(`3|5` where several labels were declared to be one class, `*` for every other one), or the value of
a regression. Epsilon is computed from the events in the file; nothing in a file proves that its
events are what happened, or its word for the noise. A file that is not as dperm writes it is
refused (exit code 2)."""

ASK_HELP = """\
usage: dperm ask KEY=VALUE.. [columns=name|position] [out=FOLDER] [FILE|-]
       (FOLDER gets the session's record and the ledger before the first answer)

Opens one session of a mechanism that answers queries one after another (kernel_interactive,
kernel_release) with the keys of a `dperm run`, and answers each row of numbers, in the columns of
the training data, by a line `answer,update`: of the input as soon as it is read, of FILE once all
of it is found in order. Columns are found by name where the training data have names, as
`dperm predict` does it: the first line must name them all, in any order, or columns=position says
that they are in the order of the training data. Elsewhere a first line of names is passed over. A
later line of the input that is no row is told and not asked. `update` is 1 where the answer drew on
the data (at a new point of kernel_release, at a correction of kernel_interactive's function, which
begins at 0) and 0 where it follows from earlier ones. What the whole session spends is told first;
every new session spends as much again. As in
`dperm ask dataset=breast_cancer loss=logistic ridge=0.1 kernel=rbf mechanism=kernel_release -`."""

REPORT_HELP = """\
usage: dperm report FOLDER [format=table|json] [html=true|false]

Reads the records in FOLDER (the out= of a run), prints their table, redraws the figures and writes
report.html, a page that needs no network: docs/report.md."""

LIST_HELP = """\
usage: dperm list [--config-dir DIR] \
[dataset|loss|constraint|privacy|mechanism|sampler|kernel|experiment]"""

DATA_HELP = """\
usage: dperm data list | path NAME | fetch NAME | verify NAME [key=value ...]

list    every data set, its size and whether it is here
path    where a data set's file lies
fetch   download a data set's files, going on where an earlier try broke off
verify  check a data set against what is declared of it; prints exact facts of
        the records, for their holder only

Files are looked for in the folder named by DPERM_DATA_DIR, then among the
downloads in DPERM_CACHE_DIR (~/.cache/dperm). DPERM_OFFLINE=1 forbids downloads;
DPERM_MIRROR names a web folder to use instead of the published ones."""

WARMUP_HELP = """\
usage: dperm warmup

Compiles the loops and keeps them in numba's cache."""

COMPLETION_HELP = 'usage: eval "$(dperm completion bash)"'


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
        print(HELP.format(version=__version__))
        return EXIT_OK if arguments else EXIT_INPUT
    name, rest = arguments[0], arguments[1:]
    if name in ("-V", "--version"):
        print(__version__)
        return EXIT_OK
    if name not in VERBS:
        raise InputError("verb", name, f"must be one of {', '.join(VERBS)}", VERBS)
    from dperm_cli.core.operands import wants_help

    carry_out, page, needs_words = VERBS[name]
    if wants_help(rest) or (needs_words and not rest):
        print(page if isinstance(page, str) else page())
        return EXIT_OK if rest else EXIT_INPUT
    return carry_out(rest)


# Each verb imports what it needs when it is called.


def _defer(verb: str) -> Callable[[list[str]], int]:
    """The function that has the name of its module in ``runner/verbs``, imported when called."""

    def carry_out(arguments: list[str]) -> int:
        module = importlib.import_module(f"dperm_cli.runner.verbs.{verb}")
        return getattr(module, verb)(arguments)

    return carry_out


def _run_help() -> str:
    from dperm_cli.core.help import run_help

    return run_help()


def _account_help() -> str:
    from dperm_cli.core.help import account_help

    return account_help()


def _run(arguments: list[str]) -> int:
    from dperm_cli.runner.compose.study_plan import parse_request

    asked = parse_request(arguments)  # refused, if it is, before what computes is imported
    from dperm_cli.runner.verbs.run import run

    return run(arguments, *asked)


def _reproduce(arguments: list[str]) -> int:
    from dperm_cli.runner.verbs.reproduce_all import reproduce_experiments

    return reproduce_experiments(arguments)


def _list(arguments: list[str]) -> int:
    from dperm_cli.core.help import list_text

    print(list_text(arguments))
    return EXIT_OK


def _warmup(arguments: list[str]) -> int:
    from dperm_cli.loops.warmup import warmup

    print("compiling the loops ...", file=sys.stderr)
    warmup()
    return EXIT_OK


def _completion(arguments: list[str]) -> int:
    from dperm_cli.core import completion

    if arguments[0] not in ("bash", "--words"):
        print(COMPLETION_HELP)
        return EXIT_INPUT
    if arguments[0] == "bash":
        print(completion.BASH)
    else:
        print("\n".join(completion.complete_words(arguments[1:], VERBS)))
    return EXIT_OK


# By verb: what carries it out, its help, and whether it is nothing without further words.
VERBS: dict[str, tuple[Callable[[list[str]], int], str | Callable[[], str], bool]] = {
    "run": (_run, _run_help, False),
    "describe": (_defer("describe"), DESCRIBE_HELP, False),
    "account": (_defer("account"), _account_help, False),
    "audit": (_defer("audit"), AUDIT_HELP, False),
    "reproduce": (_reproduce, REPRODUCE_HELP, True),
    "report": (_defer("report"), REPORT_HELP, True),
    "status": (_defer("status"), STATUS_HELP, True),
    "merge": (_defer("merge"), MERGE_HELP, True),
    "verify": (_defer("verify"), VERIFY_HELP, True),
    "compare": (_defer("compare"), COMPARE_HELP, True),
    "predict": (_defer("predict"), PREDICT_HELP, True),
    "ask": (_defer("ask"), ASK_HELP, True),
    "list": (_list, LIST_HELP, False),
    "data": (_defer("data"), DATA_HELP, True),
    "warmup": (_warmup, WARMUP_HELP, False),
    "completion": (_completion, COMPLETION_HELP, True),
}


def _silence_stdout() -> None:
    # A reader such as `head` has gone; without this the interpreter complains at exit.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
