"""Maps, projections, landmarks, schedules and plans are made of public facts: no record reaches
what makes them, by type, and neighbours get the same bytes."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import pkgutil
import typing
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dperm_cli.core import registry
from dperm_cli.core.candidate_lists import FITTED_SCALINGS
from dperm_cli.core.errors import InputError, Unsupported
from dperm_cli.datasets.shared import row_pipeline
from dperm_cli.datasets.shared.row_pipeline import Raw
from dperm_cli.kernels.shared import kernel_problem, map_choice
from dperm_cli.kernels.shared.feature_maps import Explicit, Fourier, Landmarks
from dperm_cli.kernels.shared.kernel_problem import Fit, KernelProblem
from dperm_cli.privacy.budget import Budget
from dperm_cli.problem import problem, projection_dimension, random_projection
from dperm_cli.problem.data import Data, pad_with_zeros
from dperm_cli.problem.problem import Problem
from dperm_cli.problem.public_facts import PublicFacts
from dperm_cli.runner.cells import (
    gap_rows,
    geometry_rows,
    kernel_cells,
    last_iterate_rows,
    prepared_cell,
)
from dperm_cli.runner.compose import study_plan
from dperm_cli.runner.compose.command_line import parse
from dperm_cli.samplers.shared.potential import Records
from dperm_cli.sets.l2_ball import L2Ball
from dperm_cli.sets.shared import image_set
from dperm_cli.views.central import CentralView
from dperm_cli.views.kernel import KernelView
from dperm_cli.views.local import Devices, LocalView

PRIVATE = (Data, Raw, Problem, KernelProblem, Fit, CentralView, KernelView, LocalView, Devices,
           Records, kernel_cells.PendingRows, kernel_cells.KernelCell,
           prepared_cell.Prepared)  # fmt: skip
PARTS = "dperm_cli.mechanisms", "dperm_cli.kernels", "dperm_cli.problem.random_projection"
PARTS += "dperm_cli.problem.projection_dimension", "dperm_cli.problem.given_projection"
PARTS += "dperm_cli.solvers.lift", "dperm_cli.solvers.trust_region", "dperm_cli.bounds"
PARTS += "dperm_cli.sets", "dperm_cli.runner.cells.geometry_rows", "dperm_cli.runner.cells.gap_rows"
PARTS += ("dperm_cli.runner.cells.last_iterate_rows",)
# A module that makes the neighbours of an audit.
VIEWS = ("adversary",)
# The steps of a release: they are given a view of the records, or a solution found on them.
RELEASES = {
    "frank_wolfe._make_choice_oracle", "frank_wolfe._make_noise_oracle",
    "kernel_interactive.InteractiveSession.__init__", "kernel_non_interactive._in_ball",
    "kernel_non_interactive._on_net", "kernel_release.ReleaseSession.__init__",
    "list_choice.count_objective",
    "newton._choose_step", "newton._step_by_hidden_matrix", "noisy_gd.descend",
    "noisy_minimiser.release_minimiser", "noisy_sgd._parts", "noisy_sgd._run_compiled",
    "noisy_sgd._run_in_row_span", "noisy_sgd._run_plain", "norm_bound.estimate",
    "perturbed_objective._noisy_minimiser", "private_selection.PrivateSelection._select",
    "projected_problem.project_view", "release",
    "row_span.RowSpanView.__init__", "sampled_release.draw", "secure_net.choose_point", "session",
    "sufficient_statistics.SufficientStatistics.release_best",
    "sufficient_statistics._release_moments", "user_answers.descend",
}  # fmt: skip
# The adversary's own records.
ATTACKS = {"projected_problem._on_a_line", "projected_problem._embed_problem"}


def modules(name: str) -> list[Any]:
    first = importlib.import_module(name)
    inside = pkgutil.walk_packages(getattr(first, "__path__", ()), f"{name}.")
    return [first, *(importlib.import_module(one.name) for one in inside)]


def functions(module: Any) -> typing.Iterator[tuple[str, Any]]:
    """Every function that the module defines, and every method but those a dataclass is given."""
    for name, found in vars(module).items():
        if getattr(found, "__module__", None) != module.__name__:
            continue
        if inspect.isfunction(found):
            yield name, found
        elif inspect.isclass(found):
            for key, member in vars(found).items():
                plain = getattr(member, "__func__", getattr(member, "fget", member))
                code = getattr(plain, "__code__", None)
                if code is not None and code.co_filename == module.__file__:
                    yield f"{name}.{key}", plain


def private(kind: Any, seen: set[Any] | None = None) -> bool:
    """Whether a value of this type is records, or holds something that is."""
    seen = set() if seen is None else seen
    if id(kind) in seen:
        return False
    seen.add(id(kind))
    if any(private(part, seen) for part in typing.get_args(kind)):
        return True
    if not inspect.isclass(kind):
        return False
    if issubclass(kind, PRIVATE):
        return True
    fields = typing.get_type_hints(kind) if dataclasses.is_dataclass(kind) else {}
    return any(private(part, seen) for part in fields.values())


def test_only_releases_are_given_records():
    """A plan, a map or a schedule that asks for them fails here until somebody lets it."""
    found = set()
    for module in (one for part in PARTS for one in modules(part)):
        short = module.__name__.rpartition(".")[2]
        if short in VIEWS:
            continue
        for name, function in functions(module):
            hints = typing.get_type_hints(function)
            hints.pop("return", None)
            if any(private(kind) for kind in hints.values()):
                step = name.rpartition(".")[2]
                found.add(step if step in ("release", "session") else f"{short}.{name}")
    assert found == RELEASES | ATTACKS


def test_the_search_for_private_types_finds_them():
    assert private(Data)
    assert private(list[Data] | None)
    assert private(KernelProblem)
    for public in (PublicFacts, problem.ProblemSpec, kernel_problem.KernelSpec, Landmarks):
        assert not private(public)


# What makes maps and plans: the parameters that may hold an array or anything at all. They are
# public points, a public matrix, or objects of the configuration; a new one fails here.
MAKERS = {
    "make_map": (map_choice.make_map, set()),
    "choose_kind": (map_choice.choose_kind, set()),
    "make_queries": (map_choice.make_queries, set()),
    "check_size": (map_choice.check_size, set()),
    "Explicit": (Explicit, set()),
    "Fourier": (Fourier, {"_kept"}),
    "Landmarks": (Landmarks, {"points"}),
    "Wanted": (map_choice.MapRequest, set()),
    "make_kernel_spec": (kernel_problem.make_kernel_spec, {"loss", "queries"}),
    "norm_bound": (kernel_problem.norm_bound, {"loss"}),
    "spec_of": (problem.spec_of, set()),
    "make_spec": (problem.make_spec, set()),
    "draw": (random_projection.draw, set()),
    "image": (image_set.image, {"constraint"}),
    "balanced": (projection_dimension.balanced_dimension, set()),
    "of_the_paper": (projection_dimension.paper_dimension, set()),
    "row bound": (row_pipeline._bound, set()),
    "gap": (gap_rows.make_rows, set()),  # as for geometry
    "last_iterate": (last_iterate_rows.make_rows, set()),  # the same
    "geometry": (geometry_rows.make_rows, set()),  # the words of an experiment's file
}
OPEN = ("Any", "Matrix", "Rows", "object", "ndarray", "dict")


@pytest.mark.parametrize("name", MAKERS)
def test_makers_take_no_rows(name):
    made, known = MAKERS[name]
    words = dict(made.__annotations__)
    if inspect.isclass(made):
        words = {field.name: field.type for field in dataclasses.fields(made)}
    words.pop("return", None)
    words.pop("path", None)  # names of a random stream
    loose = {key for key, kind in words.items() if any(word in str(kind) for word in OPEN)}
    assert loose == known
    hints = typing.get_type_hints(made)
    hints.pop("return", None)
    assert not any(private(kind) for kind in hints.values())


@pytest.mark.parametrize("kernel", registry.names("kernel"))
def test_kernels_know_numbers_of_the_data_set_and_no_rows(kernel):
    made = registry.load("kernel", kernel)
    for name in ("bound", "check_columns", "lipschitz", "monomials", "frequencies"):
        words = getattr(made, name).__annotations__
        taken = {str(kind) for key, kind in words.items() if key != "return"}
        assert taken <= {"float", "int", "np.random.Generator"}


@pytest.mark.parametrize("loss", registry.names("loss"))
def test_the_number_of_parameters_follows_from_public_facts(loss):
    words = registry.load("loss", loss).dimension.__annotations__
    assert words["facts"] == "PublicFacts"


def test_public_facts_hold_what_is_declared_and_the_held_out_inputs():
    names = {field.name for field in dataclasses.fields(PublicFacts)}
    assert names == {"n", "p", "task", "classes", "row_bound", "target_bound", "entry_bound",
                     "phi", "phi_row_bound", "points", "hidden_points", "blocks"}  # fmt: skip


# --- neighbours get the same bytes


def a_data_set(n: int = 60, p: int = 5) -> Data:
    rng = np.random.default_rng(0)
    x = rng.random((n + 40, p))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    y = np.where(x[:, 0] > x[:, 1], 1.0, -1.0)
    return Data.of_records("pair", "binary", x[:n], y[:n], 1.0, 1.0, "pair",
                           x_test=x[n:], y_test=y[n:])  # fmt: skip


def neighbours(data: Data) -> list[Data]:
    """One record is another one, is nothing, is far away; two are gone; all are the same."""
    far = np.eye(data.p)[0]
    gone = data.take(np.arange(data.n - 2))
    found = [
        data.with_record(0, -far, -1.0),
        data.with_record(0, 0.0 * far, 1.0),
        data.with_record(3, 1e-300 * far, 1.0),
        data.with_records(np.tile(far, (data.n, 1)), np.ones(data.n)),
        replace(gone, x_test=data.x_test, y_test=data.y_test),
    ]
    return [replace(one, fingerprint=f"pair {k}") for k, one in enumerate(found)]


def contents(value: Any, depth: int = 0) -> Any:
    """Everything that an object holds, arrays as their bytes."""
    if isinstance(value, np.ndarray):
        return value.shape, value.tobytes()
    if isinstance(value, dict):
        return {str(key): contents(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [contents(item, depth + 1) for item in value]
    if value is None or isinstance(value, str | int | float | bool | type) or callable(value):
        return repr(value) if not callable(value) or isinstance(value, type) else type(value)
    held = dict(getattr(value, "__dict__", {}))
    assert depth < 12
    return type(value).__name__, contents(held, depth + 1)


def test_a_declared_population_is_the_public_number_of_records():
    data = a_data_set()
    assert data.facts().n == data.n
    assert data.facts(data.n + 5).n == data.n + 5


@pytest.mark.parametrize("population", [None, 64])
@pytest.mark.parametrize("mechanism", ["random_features", "noisy_gd", "output_perturbation",
                                       "kernel_release", "kernel_non_interactive"])  # fmt: skip
@pytest.mark.parametrize("kernel", ["linear", "rbf", "laplacian", "polynomial",
                                    "histogram_intersection"])  # fmt: skip
def test_maps_and_points_are_the_same_bytes_for_neighbours(kernel, mechanism, population):
    words = ["loss=logistic", "ridge=0.05", "delta=1e-5", "trials=1", f"kernel={kernel}",
             f"mechanism={mechanism}", "kernel.size=7", "kernel.queries=6",
             "dataset=synthetic_logistic"]  # fmt: skip
    if population:
        words += ["privacy.relation=add_remove", f"privacy.population={population}"]
    (one,) = study_plan.plan_study(parse(words)).cells
    data = a_data_set()
    first, *rest = [data, *neighbours(data)]
    if population is None:
        rest = [other for other in rest if other.n == data.n]
    made = found(one, first)
    for other in rest:
        assert found(one, other) == made


def found(one: Any, data: Data) -> Any:
    """The map, the queries and the public facts that a mechanism plans with, or why not."""
    kernel_cells._MAPPED_ROWS.clear()
    kernel_cells._PROBLEMS.clear()
    try:
        item = prepared_cell.prepare(one, data)
        spec = item.spec
    except (InputError, Unsupported) as reason:
        return str(reason)
    basis = kernel_cells.basis_of(item.problem)
    public = contents(basis), basis.bound, item.problem.data.row_bound
    if isinstance(basis, Fourier):
        public += (basis.frequencies.tobytes(),)
    if isinstance(basis, Landmarks):
        public += (basis.weights.tobytes(),)
    queries = None if item.kernel is None else contents(item.kernel.queries)
    return public, queries, contents(spec)


def test_landmarks_and_frequencies_are_tried():
    """The test above compares numbers, not reasons."""
    kinds = set()
    for name, mechanism in (("rbf", "noisy_gd"), ("rbf", "random_features"),
                            ("histogram_intersection", "noisy_gd")):  # fmt: skip
        words = ["loss=logistic", "ridge=0.05", "delta=1e-5", f"kernel={name}", "kernel.size=7",
                 f"mechanism={mechanism}", "dataset=synthetic_logistic"]  # fmt: skip
        (one,) = study_plan.plan_study(parse(words)).cells
        made = found(one, a_data_set())
        assert not isinstance(made, str)
        kinds.add(made[0][0][0])
    assert kinds == {"Fourier", "Landmarks"}


@pytest.mark.parametrize("name", ["projected", "standard_projection"])
@pytest.mark.parametrize("m", ["balanced", 3])
def test_projections_are_the_same_bytes_for_neighbours(name, m):
    data, budget = a_data_set(p=8), Budget(1.0, 1e-5, "add_remove")
    mechanism = registry.load("mechanism", name)(m=m, inner={"name": "noisy_gd", "steps": 3})
    loss = registry.load("loss", "logistic")()
    made = []
    for one in (data, *neighbours(data)):
        filled = Problem(pad_with_zeros(one, 64), loss, L2Ball(1.0, 8), 0.1)
        space = mechanism.plan(filled.spec(), budget).space
        made.append((np.asarray(space.phi.columns(np.arange(8))).tobytes(), space.row_bound,
                     space.constraint.radius, space.constraint.diameter))  # fmt: skip
    assert len(set(made)) == 1


def test_the_row_bound_and_the_facts_do_not_follow_the_records():
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((50, 3)), np.ones(50)
    far = np.vstack([1e6 * x[:1], x[1:]])
    choices: list[dict[str, Any]] = [
        {}, {"rows": "clip"}, {"rows": "none", "row_bound": 3.0},
        {"rows": "none", "scaling": "bounds"}, {"norm": np.inf, "intercept": True},
        {"scalings": ["none", "bounds"], "intercept": True},
    ]  # fmt: skip
    for keys in choices:
        options = row_pipeline.RowOptions(test_fraction=0.2, **keys)
        bounds = np.array([-1.0, 1.0])
        both = [row_pipeline.prepare("toy", "binary", options, Raw(x=rows, y=y, bounds=bounds))
                for rows in (x, far)]  # fmt: skip
        first, second = (contents(replace(one.facts(), points=None)) for one in both)
        assert first == second
    assert set(FITTED_SCALINGS) == {"minmax", "standardise"}  # which are refused unless unsafe
