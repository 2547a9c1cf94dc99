"""What may leave: made of public facts alone, and the same on neighbouring data sets."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import json
import typing
import zipfile
from pathlib import Path

import numpy as np
import pytest

from dperm_cli.core.errors import InputError, PrivacyError
from dperm_cli.core.files import OutputFile
from dperm_cli.kernels.rbf import Rbf
from dperm_cli.privacy.events import Gaussian
from dperm_cli.problem.data import Data
from dperm_cli.problem.problem import Problem
from dperm_cli.results.ledger import ledger, statement
from dperm_cli.results.records.schema import normalise
from dperm_cli.runner.cells import prepared_cell, run_cell
from dperm_cli.runner.cells.ledger_accountant import Accounting
from dperm_cli.runner.cells.optimum_cache import make_solver
from dperm_cli.runner.compose import study_plan
from dperm_cli.runner.compose.command_line import parse
from dperm_cli.runner.models import model_file, publishable, save_model
from dperm_cli.runner.models.input_schema import InputSchema
from dperm_cli.runner.models.publishable import FeatureMap, Publishable
from dperm_cli.runner.verbs import run
from dperm_cli.runner.verbs.predict import describe_predictions

RNG = np.random.default_rng(0)
X = RNG.uniform(-1.0, 1.0, (24, 3))
Y = np.where(X[:, 0] + 0.3 * RNG.standard_normal(24) > 0, "yes", "no")
RECORDS = [(*row.tolist(), label) for row, label in zip(X, Y, strict=True)]
HELD = [(*row, "no") for row in RNG.uniform(-1.0, 1.0, (12, 3)).tolist()]

FILE = [
    "dataset=csv", "dataset.path=t.csv", "dataset.test_path=h.csv", "dataset.target=answer",
    "dataset.labels={yes: 1, no: -1}", "dataset.rows=clip", "loss=logistic", "epsilon=3",
    "delta=1e-5", "trials=1",
]  # fmt: skip
WAYS = {
    "plain": ["mechanism=noisy_gd", "mechanism.steps=5", "dataset.intercept=true"],
    "bounds": ["mechanism=noisy_sgd", "mechanism.steps=5", "mechanism.sampling=poisson",
               "dataset.scaling=bounds", "dataset.bounds=[-1,1]"],
    "secure": ["mechanism=noisy_gd", "mechanism.steps=5", "noise=secure"],
    "minimiser": ["mechanism=output_perturbation", "ridge=0.1"],
    "frequencies": ["mechanism=output_perturbation", "ridge=0.1", "kernel=rbf", "kernel.size=4"],
    "landmarks": ["mechanism=output_perturbation", "ridge=0.1", "kernel=polynomial",
                  "kernel.features=landmarks", "kernel.size=5"],
    "monomials": ["mechanism=output_perturbation", "ridge=0.1", "kernel=polynomial",
                  "kernel.degree=2", "kernel.features=explicit"],
}  # fmt: skip
EXACT = ["mechanism=kernel_release", "ridge=0.1", "kernel=rbf", "kernel.queries=6"]
REPLACED = {
    "a row of zeros": (0.0, 0.0, 0.0, "yes"),
    "a duplicate": RECORDS[3],
    "another label": (*RECORDS[0][:3], "no" if RECORDS[0][3] == "yes" else "yes"),
    "a huge row": (1e300, -1e300, 1e300, "yes"),
    "extremes": (1.0, 1.0, 1.0, "no"),
}
ONE_NO = [(*row[:3], "yes") for row in RECORDS[1:]]


@pytest.fixture(autouse=True)
def _place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DPERM_CACHE_DIR", str(tmp_path / "cache"))
    write("h.csv", HELD)


def write(name, records, header="left,middle,right,answer"):
    lines = [",".join(str(value) for value in record) for record in records]
    Path(name).write_text("\n".join([header, *lines]) + "\n")


def released(records, words, theta=None):
    """(the cell, its record) of a run on these records; ``theta`` stands in for what came out."""
    write("t.csv", records)
    (item,) = run.prepare(study_plan.plan_study(parse([*FILE, *words])).cells)
    (row,) = run_cell.run(item, make_solver(), debug=True)
    assert row["status"] == "ok", row["reason"]
    row = normalise(row)
    return item, row if theta is None else {**row, "theta": theta}


def left(records, words, theta=None):
    """(everything that leaves, theta): file, words of predict, statement of the ledger's entry."""
    item, row = released(records, words, theta)
    found = save_model.publishable(item, save_model.schema_of(item), row)
    entry = statement.format_statement(statement.select_public(row), 1)
    parts = (
        model_file.bytes_of(found),
        "\n".join(describe_predictions(found, 4)),
        entry,
    )
    return (*parts, found.session_words()), row["theta"]


@pytest.mark.in_turn
@pytest.mark.parametrize("name", list(REPLACED))
@pytest.mark.parametrize("way", [*WAYS, "exact"])
def test_a_replaced_record_changes_nothing_but_theta(way, name):
    words = EXACT if way == "exact" else WAYS[way]
    first, theta = left(RECORDS, words)
    second, other = left([REPLACED[name], *RECORDS[1:]], words, theta)
    assert first == second
    assert other is theta


@pytest.mark.parametrize("way", list(WAYS))
def test_a_record_more_changes_nothing_but_theta(way):
    """With a declared population: dropped, more, zeros, a copy, the last one of its class."""
    words = [*WAYS[way], "privacy.relation=add_remove", "privacy.population=40"]
    first, theta = left(RECORDS, words)
    more = [RECORDS[1:], RECORDS[:-1], [*RECORDS, (0.0, 0.0, 0.0, "yes")], [*RECORDS, RECORDS[2]]]
    for records in more:
        assert left(records, words, theta)[0] == first
    one = left([(*RECORDS[0][:3], "no"), *ONE_NO], words, theta)[0]
    assert one == left(ONE_NO, words, theta)[0] == first
    assert b'"population": 40' in first[0]


def test_a_planted_n_would_be_seen():
    """The comparison above tells files apart that hold the number of records."""
    words = [*WAYS["plain"], "privacy.relation=add_remove", "privacy.population=40"]
    files = []
    for records in (RECORDS, RECORDS[1:]):
        item, row = released(records, words, np.zeros(4))
        found = save_model.publishable(item, save_model.schema_of(item), row)
        leaking = dataclasses.replace(found, steps=item.data.n)
        files.append(model_file.bytes_of(leaking))
    assert files[0] != files[1]


def test_a_missing_cell_is_refused_before_anything_leaves():
    """The loader refuses it, to the holder: no model is made of such a file."""
    write("t.csv", [("", *RECORDS[0][1:]), *RECORDS[1:]])
    with pytest.raises(InputError, match="missing"):
        run.prepare(study_plan.plan_study(parse([*FILE, *WAYS["plain"]])).cells)


def test_add_remove_needs_a_declared_population():
    item, row = released(RECORDS, [*WAYS["plain"], "privacy.relation=add_remove"])
    with pytest.raises(InputError, match=r"privacy\.population=auto"):
        save_model.check_cell(item.cell)
    with pytest.raises(PrivacyError, match="declared"):
        save_model.publishable(item, save_model.schema_of(item), row)


def test_a_record_whose_claim_does_not_follow_is_not_saved():
    item, row = released(RECORDS, WAYS["plain"])
    with pytest.raises(PrivacyError, match="not saved"):
        save_model.publishable(item, save_model.schema_of(item), {**row, "epsilon_accounted": 1.0})


PRIVATE = (Data, Problem, Path, prepared_cell.Prepared)


@pytest.mark.parametrize("made", [Publishable, FeatureMap, publishable.ReleaseFacts, InputSchema])
def test_no_constructor_takes_what_holds_records(made):
    constructors = [made, *(
        getattr(made, name) for name, value in vars(made).items() if isinstance(value, classmethod)
    )]  # fmt: skip
    for constructor in constructors:
        call = made.__init__ if constructor is made else constructor.__func__
        hints = typing.get_type_hints(call)
        names = list(inspect.signature(constructor).parameters)
        assert names
        for name in names:
            taken = kinds_in(hints[name])
            assert not taken & {*PRIVATE, typing.Any}, name


def kinds_in(hint):
    """All classes that a type hint is made of."""
    return {hint}.union(*map(kinds_in, typing.get_args(hint)))


def test_the_module_imports_nothing_that_holds_records():
    tree = ast.parse(inspect.getsource(publishable))
    taken = [alias.name for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))
             for alias in node.names]  # fmt: skip
    assert not {"Data", "Problem", "KernelProblem", "Path", "os", "cell", "kernels"} & set(taken)


def test_what_is_in_a_file_is_this_and_no_more():
    """A name that is added has to be looked at: may it leave?"""
    (data, *_), _ = left(RECORDS, WAYS["landmarks"])
    Path("m.npz").write_bytes(data)
    with zipfile.ZipFile("m.npz") as archive:
        assert [entry.filename for entry in archive.infolist()] == [
            "facts.npy", "theta.npy", "basis.npy", "points.npy",
        ]  # fmt: skip
        assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        facts = json.loads(archive.read("facts.npy").partition(b"\n")[2])
    assert sorted(facts) == [
        "arithmetic", "delta", "events", "facts", "features", "format", "mechanism", "noise",
        "relation", "schema", "steps", "version",
    ]  # fmt: skip
    assert sorted(facts["facts"]) == [
        "constraint", "constraint_size", "lasso", "loss", "population", "population_source",
        "ridge", "row_bound",
    ]  # fmt: skip
    assert facts["features"] == {
        "kind": "landmarks", "source": "held-out",
        "kernel": {"name": "polynomial", "degree": 3, "offset": 1},
    }  # fmt: skip
    assert facts["schema"]["columns"] == ["left", "middle", "right"]
    assert facts["schema"]["target"] == "answer"
    for word in (b"t.csv", b"h.csv", b"seed", b"fingerprint", b"optimum"):
        assert word not in data


def test_a_file_is_read_as_it_was_written():
    for words in (*WAYS.values(), EXACT):
        item, row = released(RECORDS, words)
        found = save_model.publishable(item, save_model.schema_of(item), row)
        Path("m.npz").unlink(missing_ok=True)
        save_model.save(OutputFile.of("save", "m.npz"), found)
        again = model_file.read("m.npz")
        assert model_file.bytes_of(again) == model_file.bytes_of(found)
        assert again.events == found.events
        assert again.guarantee == found.guarantee
        assert again.guarantee.epsilon == pytest.approx(row["epsilon_accounted"], rel=1e-6)
        rows = np.array(X[:5])
        np.testing.assert_allclose(again.values(rows), found.values(rows), rtol=1e-12)


def test_held_out_landmarks_are_named_as_published_inputs():
    item, row = released(RECORDS, WAYS["landmarks"])
    found = save_model.publishable(item, save_model.schema_of(item), row)
    assert "5 inputs of held-out records are its landmarks" in found.session_words()
    entry = ledger.build_ledger([row], Accounting())["releases"][0]
    assert "inputs of held-out records are its landmarks" in entry["statement"]
    np.savez("z.npz", x=X[:5])
    words = [*WAYS["landmarks"], "kernel.landmarks=z.npz"]
    item, row = released(RECORDS, words)
    found = save_model.publishable(item, save_model.schema_of(item), row)
    assert "held-out" not in found.session_words()
    assert "held-out" not in statement.format_statement(statement.select_public(row), 1)
    assert b"z.npz" not in model_file.bytes_of(found)


def test_points_of_a_kernel_that_is_not_shift_invariant_are_refused():
    with pytest.raises(TypeError):
        FeatureMap.of(object(), "file")  # pyright: ignore[reportArgumentType]
    made = FeatureMap("fourier", Rbf(), {"frequencies": np.zeros((2, 3))})
    assert made.count_coordinates(3) == 4


def test_the_guarantee_is_that_of_the_events():
    item, row = released(RECORDS, WAYS["plain"])
    found = save_model.publishable(item, save_model.schema_of(item), row)
    (event,) = found.events
    assert isinstance(event, Gaussian)
    less = dataclasses.replace(found, events=(dataclasses.replace(event, scale=event.scale / 2),))
    assert less.guarantee.epsilon > 1.5 * found.guarantee.epsilon
    with pytest.raises(ValueError, match="no guarantee"):
        dataclasses.replace(found, delta=0.0)
    with pytest.raises(ValueError, match="events"):
        dataclasses.replace(found, events=())
