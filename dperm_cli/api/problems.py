"""Problems as objects: records, a loss and a set, and the certified minimiser."""

from __future__ import annotations

from typing import Any

import numpy as np

from dperm_cli.api.call_keywords import check_methods
from dperm_cli.api.requests import open_call
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import InputError
from dperm_cli.problem import problem as problems
from dperm_cli.problem.data import Data
from dperm_cli.runner.compose import study_plan
from dperm_cli.runner.verbs.run import hold_machine, prepare
from dperm_cli.solvers import optimum
from dperm_cli.solvers.optimum import Optimum


@check_methods
@dataclass(frozen=True)
class Problem(problems.Problem):
    """minimise sum_i [l(theta; d_i) + (ridge / 2) |theta|_2^2 + lasso |theta|_1] over a set.

    Attributes:
        data: The records, with declared bounds.
        loss: Of one record.
        constraint: The set.
        ridge, lasso: Parts of every record's loss.

    >>> from dperm_cli import Data, L2Ball, Squared
    >>> x = np.array([[1.0], [-1.0], [0.5]])
    >>> data = Data.of_records("line", "regression", x, x[:, 0] / 2, 1.0, 1.0, fingerprint="line")
    >>> best = Problem(data, Squared(), L2Ball(2.0, 1)).optimum()
    >>> best.theta.round(2).tolist(), best.gap < 1e-3
    ([0.5], True)
    """

    def optimum(
        self, *, relative_gap: float = optimum.RELATIVE_GAP, gap: float = 0.0, seconds: float = 60.0
    ) -> Optimum:
        """The minimiser without noise, with a certificate: ``gap`` bounds how far off it is.

        It is a fact of the records: no guarantee covers it.

        Args:
            relative_gap: Enough, as a share of what the minimiser gains over the set's centre.
            gap: Enough, in the unit of the objective.
            seconds: After which the gap that was reached is reported.
        """
        return optimum.solve(self, relative_gap=relative_gap, gap=gap, seconds=seconds)

    def certify(self, found: Optimum) -> float:
        """The lower bound on the objective over the whole set, computed anew from ``found.dual``.

        ``found.value`` minus this is the gap, whoever made the optimum.
        """
        return optimum.certificate(self, np.asarray(found.theta), found.dual)


def make_problem(
    *overrides: Any, plugins: Any = (), X: Any = None, y: Any = None, **keys: Any
) -> Problem:
    """The problem of a run, with its records loaded.

    Args:
        overrides: As of ``run``.
        plugins, X, y, keys: As of ``run``.

    Raises:
        InputError: Something of it makes no sense, or it is several problems, or has a kernel.

    >>> problem = make_problem(dataset="breast_cancer", constraint={"radius": 2})
    >>> problem.data.name, problem.spec().p, problem.constraint.radius
    ('breast_cancer', 30, 2.0)
    """
    with open_call(overrides, keys, plugins=plugins, X=X, y=y) as call:
        study = study_plan.plan_requests(call.requests)
        cell, *others = study.cells
        if others:
            raise InputError("make_problem", f"{1 + len(others)} cells", "takes one problem")
        if cell.kernel is not None:
            allowed = "is for runs: a problem in a kernel's space has no parameters of its own"
            raise InputError("kernel", cell.kernel.name, allowed)
        with hold_machine(study):
            (prepared,) = prepare(study.cells, study.keys.data_storage)
    found = prepared.problem
    return Problem(found.data, found.loss, found.constraint, found.ridge, found.lasso)


def load_data(dataset: Any = None, X: Any = None, y: Any = None, **keys: Any) -> Data:
    """A data set as a run has it: split, scaled, and held to declared bounds.

    Args:
        dataset: Its name, an object, or a map of its name and keys.
        X, y: Records of your own, in its place.
        keys: Keys of the data set.

    Raises:
        InputError: There is no such data set, or it cannot be read with these keys.

    >>> load_data("breast_cancer", rows="clip").n
    456
    """
    given = {f"dataset.{key}": value for key, value in keys.items()}
    named = {} if dataset is None else {"dataset": dataset}
    with open_call((), {**named, **given}, X=X, y=y) as call:
        study = study_plan.plan_requests(call.requests)
        with hold_machine(study):
            (prepared,) = prepare(study.cells[:1], study.keys.data_storage)
    return prepared.data
