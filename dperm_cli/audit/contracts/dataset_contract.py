"""What every data set promises: the same records each time, within bounds that are declared."""

from __future__ import annotations

import contextlib
from functools import cached_property
from typing import Any

import numpy as np

from dperm_cli.audit.contracts.examples import make_examples
from dperm_cli.audit.contracts.problems import TASKS
from dperm_cli.audit.contracts.promises import promise, require, show
from dperm_cli.core import registry
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import InputError
from dperm_cli.core.fields import fields_of
from dperm_cli.losses.base import to_dense
from dperm_cli.problem.data import Data

_WITHIN = 1e-9  # relative


@dataclass(frozen=True)
class Subject:
    """A data set with its defaults and with other keys."""

    examples: tuple[Any, ...]

    @cached_property
    def records(self) -> list[tuple[Any, Data]]:
        """Each with its records; a load that is refused is left out, but for the first."""
        found = [(self.examples[0], self.examples[0].load(None))]
        for made in self.examples[1:]:
            with contextlib.suppress(InputError):
                found.append((made, made.load(None)))
        return found


def make_subject(cls: type[Any], others: Any = None) -> Subject:
    """The data set to be checked, from its class; nothing is loaded before it is asked for."""
    return Subject(make_examples(cls))


@promise(
    "it names its task, and load gives records of that task",
    mend="task is one of binary, regression, multiclass, location; load(data_dir) returns "
    "Data.of_records(..., task=...)",
)
def check_task(subject: Subject) -> str:
    for made, data in subject.records:
        require(made.task in TASKS, f"task is {made.task!r}")
        require(isinstance(data, Data), f"load gives a {type(data).__name__}, not a Data")
        require(data.task == made.task, f"task is {made.task}, and that of the records {data.task}")
        losses = registry.names("loss")
        require(made.default_loss in losses, f"its default_loss {made.default_loss} is no loss")
    return f"task {subject.examples[0].task}; {len(subject.records)} sets of keys"


@promise(
    "records are a float64 matrix with a label for each row, all numbers finite",
    mend="x is [n, p] float64 (C order, or csr_array), y is [n] float64, x_test and y_test "
    "likewise with as many columns",
)
def check_shapes(subject: Subject) -> str:
    count = 0
    for _, data in subject.records:
        require(
            data.x.ndim == 2 and data.y.shape == (data.n,),
            f"x has shape {data.x.shape} and y {data.y.shape}",
        )
        require(
            data.x.dtype == np.float64 and data.y.dtype == np.float64,
            f"x is {data.x.dtype} and y {data.y.dtype}, not float64",
        )
        require(data.n >= 1 and data.p >= 1, f"{data.n} records of {data.p} columns")
        for word, rows in (("x", data.x), ("x_test", data.x_test)):
            if rows is not None:
                require(np.isfinite(to_dense(rows[:])), f"{word} holds numbers that are not finite")
                require(rows.shape[1] == data.p, f"{word} has {rows.shape[1]} columns, x {data.p}")
        require((data.x_test is None) == (data.y_test is None), "x_test and y_test go together")
        count += data.n
    return f"{count} records"


@promise(
    "every row keeps its row_bound and every target its target_bound",
    mend="shorten each row by itself to the declared row_bound (rows / max(1, norm / bound)), "
    "clip each target; never divide by a number that was measured on all records",
)
def check_bounds(subject: Subject) -> str:
    count = 0
    for made, data in subject.records:
        parts = ((data.x, data.y), (data.x_test, data.y_test))
        for x, y in parts:
            if x is None or y is None:
                continue
            longest = float(np.max(np.linalg.norm(to_dense(x[:]), axis=1), initial=0.0))
            require(
                longest <= data.row_bound * (1 + _WITHIN),
                f"{made}: a row has norm {show(longest)}, and row_bound is {show(data.row_bound)}",
            )
            if data.task == "regression":
                most = float(np.max(np.abs(y), initial=0.0))
                require(
                    most <= data.target_bound * (1 + _WITHIN),
                    f"{made}: a target is "
                    f"{show(most)}, and target_bound is {show(data.target_bound)}",
                )
            count += len(y)
        if data.entry_bound is not None:
            most = float(np.max(np.abs(to_dense(data.x[:])), initial=0.0))
            require(
                most <= data.entry_bound * (1 + _WITHIN), f"{made}: an entry is above the bound"
            )
    return f"{count} rows"


@promise(
    "labels are those of the task: -1 and 1, 0 .. classes - 1, or targets within the bound",
    mend="binary: y of -1.0 and 1.0; multiclass: 0.0 .. classes - 1 with classes= given; "
    "location: zeros; and target_bound=1.0 for all but regression",
)
def check_labels(subject: Subject) -> str:
    for made, data in subject.records:
        allowed = {
            "binary": [-1.0, 1.0],
            "location": [0.0],
            "multiclass": [float(k) for k in range(data.classes)],
        }.get(data.task)
        for y in (data.y, data.y_test):
            if y is None or allowed is None:
                continue
            others = sorted(set(np.unique(y).tolist()) - set(allowed))
            require(not others, f"{made}: the labels {show(others)} are none of task {data.task}")
    return f"{len(subject.records)} sets of keys"


@promise(
    "loading twice gives the same bytes, and draws nothing from numpy's shared generator",
    mend="make every number from the seed of its keys: np.random.default_rng(self.seed)",
)
def check_determinism(subject: Subject) -> str:
    for made, data in subject.records:
        before = np.random.get_state()[1].tobytes(), np.random.get_state()[2]  # type: ignore[index, union-attr]
        again = made.load(None)
        after = np.random.get_state()[1].tobytes(), np.random.get_state()[2]  # type: ignore[index, union-attr]
        require(before == after, f"{made}: it draws from np.random, which no key seeds")
        require(
            _bytes(data) == _bytes(again),
            f"{made}: loaded twice, its records are not the same: the seed does not fix them",
        )
        require(
            data.fingerprint == again.fingerprint,
            f"{made}: loaded twice, its fingerprint is not the same",
        )
        require(np.array_equal(data.names, again.names), f"{made}: names of records change")
    return f"{2 * len(subject.records)} loads"


def _bytes(data: Data) -> tuple[Any, ...]:
    parts = (data.x, data.y, data.x_test, data.y_test)
    return tuple(None if one is None else to_dense(one[:]).tobytes() for one in parts)


@promise(
    "other records have another fingerprint",
    mend="put every key that the records depend on "
    "into the fingerprint: two data sets of one fingerprint share optima and noise",
)
def check_fingerprint(subject: Subject) -> str:
    seen: dict[str, tuple[Any, tuple[Any, ...]]] = {}
    for made, data in subject.records:
        require(isinstance(data.fingerprint, str) and data.fingerprint, "its fingerprint is empty")
        other, content = seen.setdefault(data.fingerprint, (made, _bytes(data)))
        require(
            content == _bytes(data),
            f"{other} and {made} have one fingerprint and different records",
        )
    return f"{len(subject.records)} sets of keys"


@promise(
    "bounds and other public facts do not follow the records",
    mend="declare row_bound and target_bound; a bound that is measured tells something of "
    "the records without any privacy",
)
def check_declared_bounds(subject: Subject) -> str:
    first, usual = subject.records[0]
    pairs = [pair for pair in subject.records[1:] if _differs_in_seed(first, pair[0])]
    for _, data in pairs:
        facts = [usual.facts(), data.facts()]
        words = [(f.n, f.p, f.row_bound, f.target_bound, f.entry_bound, f.classes) for f in facts]
        require(
            words[0] == words[1],
            f"another seed changes n, p, row_bound, target_bound, "
            f"entry_bound or classes: {words[0]} and {words[1]}",
        )
    require(not usual.data_dependent, "data_dependent is true: a step was fitted to the records")
    for _, data in subject.records:
        row = np.zeros(data.p)
        other = data.with_record(0, row, float(data.y[0]))
        require(other.facts().row_bound == data.row_bound, "a neighbour has another row_bound")
    return f"{len(pairs)} other seeds, {len(subject.records)} neighbours"


def _differs_in_seed(first: Any, made: Any) -> bool:
    names = [name for name in fields_of(type(made)) if vars(first)[name] != vars(made)[name]]
    return names == ["seed"]


@promise(
    "what it says of its size before loading is so",
    mend="size = (records, columns), or "
    "find_size(data_dir), counts held-out records too; leave it out where it is not "
    "known",
)
def check_size(subject: Subject) -> str:
    for made, data in subject.records:
        known = made.find_size(None)
        held = 0 if data.x_test is None else data.x_test.shape[0]
        require(
            known.n in (None, data.n + held, data.n),
            f"{made}: it says {known.n} records, and loads {data.n} and {held} held out",
        )
        one = 1 if made.intercept is True else 0  # a column of ones that is put beside the others
        require(
            known.p in (None, data.p, data.p - one),
            f"{made}: it says {known.p} columns, and loads {data.p}",
        )
    return f"{len(subject.records)} sets of keys"
