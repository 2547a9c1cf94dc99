"""Records are named by what made them: which changes of the package rename which records."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

import dperm_cli
from dperm_cli.core import registry
from dperm_cli.runner.cells import (
    channel_rows,
    gap_rows,
    geometry_rows,
    last_iterate_rows,
    optimum_cache,
    prepared_cell,
    record_digest,
    run_cell,
)
from dperm_cli.runner.cells.source_tree import SourceTree
from dperm_cli.runner.compose import study_plan
from dperm_cli.runner.verbs import account
from dperm_cli.runner.verbs.account_request import parse_request

HERE = Path(dperm_cli.__file__).parent
SMALL = ("dataset=synthetic_logistic", "dataset.n=30", "dataset.p=2", "trials=1", "ridge=0.1")
CELLS = {
    "noisy_gd": ("mechanism=noisy_gd",),
    "inside another": ("mechanism=high_probability", "mechanism.inner=noisy_gd"),
    "noisy_sgd": ("mechanism=noisy_sgd",),
    "local": ("mechanism=local_sgd", "privacy=local"),
    "kernel": ("mechanism=kernel_release", "kernel=rbf"),
    "hinge": ("mechanism=noisy_gd", "loss=hinge"),
    "rounded": ("mechanism=huberized", "loss=hinge"),
    "inner set": ("mechanism=noisy_gd", "constraint=intersection",
                  "constraint.inner={name: lp_ball, power: 1.5, radius: 1}"),
    "drawn": ("mechanism=exponential", "sampler=auto"),
    "drawn by a net": ("mechanism=exponential", "sampler=net"),
}  # fmt: skip


def parts_of(monkeypatch, *words):
    """A cell with its data, and what its name says of the code that makes its record."""
    heard = []

    def name_record(facts, *parts):
        heard.append(parts)
        return real(facts, *parts)

    real = prepared_cell.name_record
    monkeypatch.setattr(prepared_cell, "name_record", name_record)
    (one,) = study_plan.parse_request([*SMALL, *words])[1].cells
    prepared = prepared_cell.prepare(one, one.dataset.load())
    return prepared, heard[-1]


@pytest.fixture(scope="module")
def modules():
    with pytest.MonkeyPatch.context() as patch:
        return {
            name: record_digest.list_modules(*parts_of(patch, *words)[1])
            for name, words in CELLS.items()
        }


@pytest.fixture(scope="module")
def memo(tmp_path_factory):
    return tmp_path_factory.mktemp("memo") / "sources.json"


@pytest.fixture(scope="module")
def before(modules, memo):
    tree = SourceTree(HERE, memo)
    return {
        name: record_digest.find_code(starts, tree).digest() for name, starts in modules.items()
    }


@pytest.fixture
def renamed(modules, memo, before, tmp_path):
    """``renamed(change)``: the cells whose records a change of the package renames."""

    def call(change):
        copy = tmp_path / "dperm_cli"
        shutil.copytree(HERE, copy, ignore=shutil.ignore_patterns("__pycache__"))
        change(copy)
        tree = SourceTree(copy, memo)
        after = {
            name: record_digest.find_code(starts, tree).digest() for name, starts in modules.items()
        }
        return {name for name in CELLS if after[name] != before[name]}

    return call


def add_code(name):
    def change(folder):
        with (folder / name).open("a") as source:
            source.write("\nADDED = 1\n")

    return change


def test_adding_a_plugin_renames_nothing(renamed):
    def change(folder):
        for room, place in registry.ROOMS.items():
            for group in registry.GROUPS.get(room, ("",)):
                (folder / place / group / "one_more.py").write_text("class OneMore: pass\n")

    assert renamed(change) == set()


def test_comments_and_docstrings_rename_nothing(renamed):
    def change(folder):
        for path in folder.rglob("*.py"):
            path.write_text('"""Other words."""\n\n# and a comment\n\n' + path.read_text())

    # the docstring that was first is a statement in the middle now, and as idle
    assert renamed(change) == set()


@pytest.mark.parametrize(
    "name",
    [
        "cli.py", "core/help.py", "core/progress.py", "core/completion.py",
        "runner/sweep/progress.py", "runner/verbs/describe.py", "results/tables/summary_table.py",
        "results/records/store.py", "results/record_format.py", "audit/replay.py",
        "loops/warmup.py", "mechanisms/gradient/newton.py", "losses/l2_median.py",
        "datasets/published/a9a.py", "samplers/mala.py", "__init__.py",
    ],
)  # fmt: skip
def test_what_no_cell_uses_renames_nothing(name, renamed):
    assert renamed(add_code(name)) == set()


@pytest.mark.parametrize(
    ("name", "cells"),
    [
        ("loops/proximal_chain.py", {"drawn"}),
        ("mechanisms/gradient/noisy_gd.py", {"noisy_gd", "inside another", "hinge", "inner set"}),
        ("mechanisms/gradient/noisy_sgd.py", {"noisy_sgd"}),
        ("mechanisms/shared/user_answers.py", {"local"}),
        ("mechanisms/shared/sampled_release.py", {"drawn", "drawn by a net"}),
        ("mechanisms/combinators/high_probability.py", {"inside another"}),
        ("samplers/net.py", {"drawn", "drawn by a net"}),  # secure noise draws on a net
        ("samplers/rejection.py", {"drawn"}),
        ("kernels/rbf.py", {"kernel"}),
        # the adversary of every mechanism takes the hinge, which can be rounded
        ("losses/huberized_hinge.py", set(CELLS)),
        ("sets/lp_ball.py", {"inner set"}),
        ("loops/sgd.py", set(CELLS)),
        ("runner/cells/run_cell.py", set(CELLS)),
        ("runner/cells/prepared_cell.py", set(CELLS)),
        ("runner/cells/metrics.py", set(CELLS)),
        ("runner/cells/optimum_cache.py", set(CELLS)),
        ("solvers/optimum.py", set(CELLS)),
        ("privacy/accounting/accountant.py", set(CELLS)),
        ("privacy/gate.py", set(CELLS)),
        ("bounds/bst14.py", set(CELLS)),
        ("datasets/generated/synthetic_logistic.py", set(CELLS)),
    ],
)
def test_a_change_renames_what_it_may_change(name, cells, renamed):
    assert renamed(add_code(name)) == cells


def test_libraries_that_compute_are_in_the_name(modules, monkeypatch):
    found = record_digest.find_code(modules["noisy_gd"])
    assert {"numpy", "scipy", "numba", "clarabel"} <= set(found.libraries)
    assert not {"matplotlib", "hydra", "pyarrow", "joblib"} & set(found.libraries)
    assert None not in found.libraries.values()
    monkeypatch.setattr(record_digest, "find_version", lambda name: "0")
    assert record_digest.find_code(modules["noisy_gd"]).digest() != found.digest()


def test_every_silent_module_is_there():
    tree = SourceTree(HERE)
    for name in record_digest.SILENT:
        assert f"{tree.package}.{name}" in tree.close_imports([f"{tree.package}.{name}"], ())


def test_other_code_and_another_version_are_another_record_with_the_same_noise(monkeypatch):
    first, _ = parts_of(monkeypatch)
    monkeypatch.setattr(record_digest, "code_digest", lambda *parts: "other")
    second, _ = parts_of(monkeypatch)
    monkeypatch.undo()
    monkeypatch.setattr(record_digest, "__version__", "9.9.9")
    third, _ = parts_of(monkeypatch)
    assert len({first.key, second.key, third.key}) == 3
    assert first.noise_name == second.noise_name == third.noise_name
    assert len(first.key) == 24


def modules_that_run(call):
    """The modules of the package in which some function is called."""
    files = set()
    sys.setprofile(lambda frame, event, argument: files.add(frame.f_code.co_filename))
    try:
        call()
    finally:
        sys.setprofile(None)
    paths = [Path(file) for file in files]
    inside = [path.relative_to(HERE.parent) for path in paths if HERE in path.parents]
    return {".".join(path.with_suffix("").parts).removesuffix(".__init__") for path in inside}


def unnamed(ran, parts):
    """Modules that ran, though the name of the record says nothing of them."""
    silent = tuple(f"dperm_cli.{name}" for name in record_digest.SILENT)
    named = record_digest.find_code(record_digest.list_modules(*parts)).sources
    return {
        name for name in ran
        if name not in named and not any(f"{name}.".startswith(f"{one}.") for one in silent)
    }  # fmt: skip


RUNS = {
    **{name: (f"mechanism={name}",) for name in registry.names("mechanism")},
    **{name: ("mechanism=exponential", f"sampler={name}", "sampler.allow_heuristic=true")
       for name in ("hit_and_run", "mala")},
    **{f"on {name}": ("mechanism=noisy_gd", f"constraint={name}")
       for name in ("box", "l1_ball", "lp_ball", "simplex")},
    "frank_wolfe": ("mechanism=frank_wolfe", "constraint=l1_ball"),
    "rounded": CELLS["rounded"],
    "inner set": CELLS["inner set"],
}  # fmt: skip
for name in RUNS:
    if name.startswith("local_"):
        RUNS[name] += ("privacy=local",)
    if name.startswith("kernel_") or name == "random_features":
        RUNS[name] += ("kernel=rbf",)
    if name == "sufficient_statistics":
        RUNS[name] += ("loss=squared",)


@pytest.mark.parametrize("name", RUNS)
def test_all_that_runs_for_a_record_is_in_its_name(name, monkeypatch):
    prepared, parts = parts_of(monkeypatch, *RUNS[name])
    rows = []
    ran = modules_that_run(lambda: rows.extend(run_cell.run(prepared, optimum_cache.make_solver())))
    assert rows[0]["status"] == "ok", rows[0]["reason"]
    assert "dperm_cli.runner.cells.metrics" in ran
    assert unnamed(ran, parts) == set()


def test_all_that_accounts_or_answers_is_in_the_name_of_that_record():
    (ask,) = parse_request(["mechanism=noisy_sgd", "n=100"]).asks
    ran = modules_that_run(lambda: account.make_records(ask, {}))
    assert "dperm_cli.privacy.accounting.accountant" in ran
    assert unnamed(ran, (account.make_records, ask.mechanism, ask.spec)) == set()
    asked = {"channel": "l_inf", "p": 2, "epsilon": 1.0}
    ran = modules_that_run(lambda: channel_rows.make_rows(asked))
    assert unnamed(ran, (channel_rows.make_rows,)) == set()
    asked = {"losses": "linear", "p": 8}
    ran = modules_that_run(lambda: gap_rows.make_rows(asked))
    ball = registry.load("constraint", "l2_ball")
    assert unnamed(ran, (gap_rows.make_rows, ball)) == set()
    ran = modules_that_run(lambda: last_iterate_rows.make_rows({"steps": 3}))
    assert unnamed(ran, (last_iterate_rows.make_rows,)) == set()
    asked = {"constraint": "l1_ball", "p": 8, "m": 4, "trials": 1}
    ran = modules_that_run(lambda: geometry_rows.make_rows(asked))
    ball = registry.load("constraint", "l1_ball")
    assert unnamed(ran, (geometry_rows.make_rows, ball)) == set()
