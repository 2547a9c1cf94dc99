"""A cell joined to its data: what its record is called, and what its mechanism plans with.

Nothing is planned, solved or drawn here. A finished study is looked up with what is here alone.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.digests import hash_facts
from dperm_cli.core.errors import InputError
from dperm_cli.kernels.shared.kernel_problem import KernelProblem, KernelSpec
from dperm_cli.privacy.budget import Budget
from dperm_cli.problem.data import Data
from dperm_cli.problem.problem import Problem, ProblemSpec
from dperm_cli.results.record_format import CodeIdentity
from dperm_cli.runner.cells import kernel_cells, plugin_columns
from dperm_cli.runner.cells.cell_budget import delta_of, kind_of
from dperm_cli.runner.cells.record_digest import identify_code, list_modules, name_record
from dperm_cli.runner.compose import cell_schema, public_radius

# The modules that make a record, beside those of the cell's own parts.
MADE_BY = ("dperm_cli.runner.cells.run_cell", "dperm_cli.runner.cells.optimum_cache")


@dataclass(frozen=True)
class Prepared:
    """A validated cell with its data, ready to run.

    ``key`` names the record, ``noise_name`` the noise: data and files are in both names, since
    noise of two versions must not cancel. ``data`` are the records as they were loaded; with a
    kernel, ``problem`` has psi(x) for rows, and ``kernel`` is the kernel's own problem. ``code`` is
    what makes the record, as the record keeps it; ``plugins`` are those from outside, in words.
    ``rows_alone`` says that each row of psi(x) was made by itself.
    """

    cell: cell_schema.Cell
    problem: Problem
    key: str
    noise_name: str
    data: Data
    code: CodeIdentity
    kernel: KernelProblem | None = None
    plugins: str | None = None
    rows_alone: bool = False

    @cached_property
    def padded_problem(self) -> Problem:
        """The problem without a kernel's minimiser: under add_remove with a declared population,
        records of zeros fill it up, so that nothing there depends on how many there are."""
        if self.cell.population is None:
            return self.problem
        return kernel_cells.pad_problem(self.problem, self.cell.population)

    @property
    def viewed_problem(self) -> Any:
        """The problem that the mechanism's view opens."""
        return self.kernel if self.cell.mechanism.space == "kernel" else self.padded_problem

    @property
    def population(self) -> int:
        """The n of the mechanism's formulas."""
        return self.padded_problem.data.n

    @property
    def target(self) -> Problem | KernelProblem:
        """What the certified optimum is of."""
        return self.problem if self.kernel is None else self.kernel

    @property
    def spec(self) -> ProblemSpec | KernelSpec:
        """The public facts that the mechanism plans with; Unsupported where the kernel is wrong."""
        if self.cell.mechanism.space != "kernel":
            kernel_cells.require_map(self.cell)
            return self.padded_problem.spec()
        if self.kernel is None:
            raise kernel_cells.name_missing_kernel(self.cell)
        spec = self.kernel.spec()
        # a declared population stands for the number of records there too
        return spec if spec.n == self.population else replace(spec, n=self.population)


def prepare(cell: cell_schema.Cell, data: Data) -> Prepared:
    """Join a cell to its data; the key names the record."""
    own = None
    if cell.kernel is None:
        constraint = cell.constraint(data.facts())
        problem = Problem(data, cell.loss, constraint, cell.ridge, cell.lasso)
        named = cell_schema.names_file(cell.constraint_config) or public_radius.is_auto(
            cell.constraint_config
        )
        read = [repr(constraint)] if named else []
    else:
        made = kernel_cells.prepare(cell, data)
        problem, own = made.problem, made.kernel
        read = [problem.data.fingerprint, "" if own is None else own.points_name]
    plugins = cell.dataset, cell.loss, problem.constraint, cell.kernel, cell.mechanism
    makers = sorted(list_modules(*MADE_BY, *plugins))
    outside = plugin_columns.list_digests(*plugins)
    key = name_record([cell.config, data.identity, *read, *outside], *makers)
    if cell.population is not None:
        if data.task == "location":
            allowed = "cannot be declared for location data: a record of zeros is not nothing there"
            raise InputError("privacy.population", cell.population, allowed)
        if cell.population < data.n:
            allowed = f"must be at least the number of training records of {data.name}"
            raise InputError("privacy.population", cell.population, allowed)
    named = data.identity if uses_record_names(cell) else data.fingerprint
    name = hash_facts([cell.identity(), named, *read])
    described = plugin_columns.describe_parts(*plugins)
    return Prepared(cell, problem, key, name, data, identify_code(*makers), own, described)


def uses_record_names(cell: cell_schema.Cell) -> bool:
    """Whether batches are named by the records as they were read: two files of equal rows may then
    differ in them, and must not share their noise."""
    mechanism = cell.mechanism
    while mechanism.inner is not None:
        mechanism = mechanism.inner
    return cell.relation == "add_remove" and mechanism.one_pass


def make_feature_rows(prepared: Prepared) -> Prepared:
    """The same with the rows of its features made, where it has a kernel."""
    cell = prepared.cell
    if cell.kernel is None:
        return prepared
    alone = kernel_cells.maps_alone(cell, prepared.problem)
    made = kernel_cells.make_feature_rows(cell, prepared.problem, prepared.kernel)
    return replace(prepared, problem=made.problem, kernel=made.kernel, rows_alone=alone)


def find_budget(prepared: Prepared) -> tuple[Budget, str]:
    """The budget in force and its kind; Unsupported when the mechanism has no such guarantee."""
    cell = prepared.cell
    kind = kind_of(cell.mechanism_name, cell.mechanism, cell.privacy, cell.delta, cell.relation)
    return budget_of(prepared, kind), kind


def budget_of(prepared: Prepared, kind: str) -> Budget:
    """The cell's budget for one kind of guarantee; ``delta=auto`` is 1/n^2."""
    cell = prepared.cell
    if kind == "local":
        return Budget(cell.epsilon, 0.0, cell.relation, "local", cell.information)
    delta = 0.0 if kind == "pure" else delta_of(cell.delta, prepared.population)
    return Budget(cell.epsilon, delta, cell.relation)
