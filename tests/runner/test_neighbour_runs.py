"""Whole runs on neighbouring data files with the same noise: what differs, and what is seen."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dperm_cli.audit import fuzz_draws, holder_facts
from dperm_cli.audit.first_difference import first_difference, line_difference
from dperm_cli.audit.hard_pairs import Records
from dperm_cli.audit.noise_tape import SameNoise
from dperm_cli.core.foreign_errors import suppress_warnings
from dperm_cli.core.seeds import seed_sequence
from dperm_cli.privacy.events import Gaussian, Laplace
from dperm_cli.privacy.gate import Gate, install_tape
from dperm_cli.results.ledger import release_log
from dperm_cli.results.page import page_data
from dperm_cli.results.records.schema import BY_NAME, COLUMNS
from dperm_cli.results.tables import summary_table
from dperm_cli.runner.audits import neighbour_runs
from dperm_cli.runner.cells import run_cell
from dperm_cli.runner.studies import study_report

N = 12
QUICK = ["mechanism=noisy_gd", "mechanism.steps=3", "trials=1", "seed=0", "epsilon=2", "delta=1e-6"]
QUICK += ["dataset.intercept=false"]


def records(n=N, p=3, seed=0):
    rng = np.random.default_rng(seed)
    return Records(np.round(rng.standard_normal((n, p)), 4), rng.choice([-1.0, 1.0], n))


def changed(found, row, label, index=4):
    return found.replace(index, (row, label))


def dropped(found, index=4):
    return found.drop(index)


def replayed(tmp_path, words, first, second, reader="npz", figures=False):
    folders = tmp_path / "first", tmp_path / "second"
    for folder, found in zip(folders, (first, second), strict=True):
        folder.mkdir()
        found.write(folder / f"records.{reader}")
    read = {"csv": ["dataset.header=false"], "svmlight": ["dataset.n_features=3"]}
    words = [
        f"dataset={reader}", f"dataset.path=records.{reader}", "dataset.test_fraction=0",
        *read.get(reader, []), *words,
    ]  # fmt: skip
    return neighbour_runs.run_on_both(words, *folders, cache=tmp_path / "cache", figures=figures)


PAIRS = {
    "zeros": lambda found: changed(found, 0.0, 1.0),
    "extremes": lambda found: changed(found, [1e300, -1e300, 5e-324], -1.0),
    "a duplicate": lambda found: changed(found, found.x[7], found.y[7]),
    "the other label": lambda found: changed(found, found.x[4], -found.y[4]),
    "opposite": lambda found: changed(found, -found.x[4], found.y[4]),
}


@pytest.mark.in_turn
@pytest.mark.parametrize("reader", fuzz_draws.READERS)
@pytest.mark.parametrize("change", PAIRS)
def test_a_record_replaced(tmp_path, reader, change):
    first = records()
    words = [*QUICK, "save=model.npz"]
    fault, one, other = replayed(tmp_path, words, first, PAIRS[change](first), reader)
    assert fault is None
    assert one.status == other.status == "ok"
    assert one.code == 0
    # the runs did see different records, and made a model each
    assert one.records[0]["optimum"] != other.records[0]["optimum"]
    assert one.records[0]["data_fingerprint"] != other.records[0]["data_fingerprint"]
    assert one.records[0]["theta"] == other.records[0]["theta"]
    assert {"model.npz", "out/ledger.json", "out/manifest.json"} <= set(one.files)


@pytest.mark.in_turn
@pytest.mark.parametrize("reader", fuzz_draws.READERS)
@pytest.mark.parametrize("mechanism", ["noisy_gd", "one_pass_sgd", "output_perturbation"])
def test_a_record_dropped_with_a_declared_population(tmp_path, reader, mechanism):
    words = [f"mechanism={mechanism}", "ridge=0.1", "epsilon=2", "delta=1e-6", "trials=1"]
    words += ["privacy.relation=add_remove", "privacy.population=20", "save=model.npz"]
    fault, one, other = replayed(tmp_path, words, records(), dropped(records()), reader)
    assert fault is None
    assert (one.records[0]["n"], other.records[0]["n"]) == (N, N - 1)


def test_nothing_in_its_place_without_a_declared_population(tmp_path):
    first = records()
    words = [*QUICK, "privacy.relation=add_remove"]
    fault, one, _ = replayed(tmp_path, words, first, changed(first, 0.0, 1.0))
    assert fault is None
    assert one.records[0]["population_source"] == "from the data"


def test_no_model_without_a_declared_population(tmp_path):
    words = [*QUICK, "privacy.relation=add_remove", "save=model.npz"]
    fault, one, other = replayed(tmp_path, words, records(), dropped(records()))
    assert fault is None
    assert one.code == other.code == 2
    assert "privacy.population" in one.stderr
    assert not one.files
    assert not other.files


def test_a_dropped_record_without_a_declared_population_is_seen(tmp_path):
    words = [*QUICK, "privacy.relation=add_remove"]
    fault, _, _ = replayed(tmp_path, words, records(), dropped(records()))
    assert fault is not None


def test_the_last_of_a_class(tmp_path):
    first = Records(records().x, np.where(np.arange(N) == 4, -1.0, 1.0))
    fault, one, _ = replayed(tmp_path, QUICK, first, changed(first, first.x[4], 1.0))
    assert fault is None
    assert one.status == "ok"


@pytest.mark.parametrize("n", [4096, 4097])
def test_across_4096_records(tmp_path, n):
    words = [*QUICK, "privacy.relation=add_remove", "privacy.population=5000"]
    fault, one, _ = replayed(tmp_path, words, records(n), dropped(records(n)))
    assert fault is None
    assert one.status == "ok"


def test_secure_noise(tmp_path):
    words = [
        "mechanism=noisy_gd",
        "mechanism.steps=3",
        "trials=1",
        "epsilon=2",
        "delta=1e-6",
        "noise=secure",
    ]
    fault, one, other = replayed(tmp_path, words, records(), changed(records(), 0.0, 1.0))
    assert fault is None
    assert one.records[0]["arithmetic"].startswith("grid")
    # the log of fresh noise is compared by column too
    assert [entry["trials"] for entry in one.logged] == [1]
    assert one.logged[0]["data_fingerprint"] != other.logged[0]["data_fingerprint"]
    other.logged[0]["epsilon_accounted"] += 1e-9
    assert "releases.log 0, column epsilon_accounted" in neighbour_runs.compare_runs(one, other)


def test_figures_and_json(tmp_path, figures):
    words = [*QUICK, "format=json"]
    fault, one, _ = replayed(tmp_path, words, records(), changed(records(), 0.0, 1.0), figures=True)
    assert fault is None
    assert "out/figure.png" in one.files


def test_a_refusal_on_both_is_equal(tmp_path):
    words = [*QUICK, "dataset.labels={1: 1, 7: -1}"]
    fault, one, _ = replayed(tmp_path, words, records(), changed(records(), 0.0, 1.0))
    assert one.status == "refused"
    assert one.code == 2
    assert fault is None


def test_a_refusal_of_one_is_seen(tmp_path):
    fault, _, _ = replayed(tmp_path, QUICK, records(), changed(records(), 0.0, 7.0))
    assert fault is not None
    assert fault.startswith("exit code: 0 and 2")


def test_a_saved_model_holds_no_private_n(tmp_path):
    words = [*QUICK, "privacy.relation=add_remove", "privacy.population=20", "save=model.npz"]
    fault, _, _ = replayed(tmp_path, words, records(), dropped(records()))
    assert fault is None


def seen_after(tmp_path, words=()):
    words = [*QUICK, *words]
    fault, _, _ = replayed(tmp_path, words, records(), changed(records(), 0.0, 1.0))
    assert fault is not None
    return fault


def test_a_new_column_is_private(tmp_path, monkeypatch):
    """A value of the records in a column that nobody has listed."""
    kept = run_cell.make_common_columns

    def more(prepared):
        return kept(prepared) | {"smoothness": float(np.sum(prepared.data.x))}

    monkeypatch.setattr(run_cell, "make_common_columns", more)
    assert seen_after(tmp_path).startswith("record 0, column smoothness")


@pytest.fixture
def held(monkeypatch):
    """The training rows of the run at hand, where a fault may find them."""
    kept, found = run_cell.make_common_columns, {}

    def noted(prepared):
        found["x"] = prepared.data.x
        return kept(prepared)

    monkeypatch.setattr(run_cell, "make_common_columns", noted)
    return found


def test_a_value_beside_the_records_in_a_table(tmp_path, monkeypatch, held):
    kept = summary_table.format_terminal
    monkeypatch.setattr(
        summary_table, "format_terminal", lambda table: f"{kept(table)}{np.sum(held['x'])}\n"
    )
    assert seen_after(tmp_path).startswith("what is printed, without the holder's columns")


def test_a_value_in_the_page(tmp_path, monkeypatch, held):
    kept = page_data.build_payload

    def payload(*facts):
        return kept(*facts) | {"form": float(np.sum(held["x"]))}

    monkeypatch.setattr(page_data, "build_payload", payload)
    assert seen_after(tmp_path).startswith("report.html")


def test_a_line_of_the_log_that_is_not_its_record(tmp_path, monkeypatch, held):
    kept = release_log.make_entry

    def written(cell, rows):
        found = kept(cell, rows)
        return replace(found, row=found.row | {"population": int(np.sum(held["x"] != 0.0))})

    monkeypatch.setattr(release_log, "make_entry", written)
    words = [
        "mechanism=noisy_gd",
        "mechanism.steps=3",
        "trials=1",
        "epsilon=2",
        "delta=1e-6",
        "noise=secure",
    ]
    fault, _, _ = replayed(tmp_path, words, records(), changed(records(), 0.0, 1.0))
    assert fault.startswith("releases.log 0, column population")


def test_a_file_more(tmp_path, monkeypatch, held):
    kept = study_report.make_report

    def present(out, *rest, **more):
        if np.all(np.any(held["x"] != 0.0, axis=1)):
            (out / "notes.txt").write_text("")
        return kept(out, *rest, **more)

    monkeypatch.setattr(study_report, "make_report", present)
    assert seen_after(tmp_path).startswith("names of files: ['out/notes.txt']")


def test_every_listed_column_exists_and_says_why():
    for name, reason in holder_facts.COLUMNS.items():
        assert name in BY_NAME
        assert reason
    listed = {column.name for column in COLUMNS if column.role in ("public",)}
    assert listed & set(holder_facts.COLUMNS) == {"n"}
    assert "theta" not in holder_facts.COLUMNS


def test_the_listed_columns_are_named_in_the_threats():
    text = (Path(__file__).parents[2] / "docs" / "threats.md").read_text()
    for name in ("optimum", "excess_risk", "floor_risk", "train_metric", "data_fingerprint"):
        assert name in holder_facts.COLUMNS
        assert f"`{name}`" in text


# the tape


FIRST = Gaussian(1.0, 1.0, 2)


def gate():
    return Gate([seed_sequence(0, "test", trial) for trial in range(2)])


def test_a_second_run_gets_the_noise_of_the_first():
    tape, drawn = SameNoise(), []
    for value in (0.0, 5.0):
        with install_tape(tape):
            stream = gate().stream(Gaussian(1.0, 1.0, 2), 3)
            drawn.append([stream.add(np.full((2, 3), value), step) for step in range(2)])
        if not value:
            tape.rewind()
    assert np.array_equal(drawn[0], drawn[1])
    assert tape.find_fault() is None
    assert tape.calls == 2


@pytest.mark.parametrize(
    ("second", "words"),
    [
        # the event is part of what is asked for: its count too
        ((Gaussian(2.0, 1.0, 2), 2), "draw 1"),
        ((Laplace(1.0, 1.0, 2), 2), "draw 1"),
        ((Gaussian(1.0, 2.0, 2), 2), "draw 1"),
        ((Gaussian(1.0, 1.0, 3), 3), "draw 1"),
        ((FIRST, 3), "a draw more"),
        ((FIRST, 1), "1 draws where the first run made 2"),
    ],
)
def test_another_request_is_a_fault(second, words):
    tape = SameNoise()
    for number, (event, draws) in enumerate(((FIRST, 2), second)):
        with install_tape(tape):
            stream = gate().stream(event, 3)
            # a gate without a plan draws a step again: step 0 stands for one draw more
            for step in range(draws):
                stream.add(np.zeros((2, 3)), step % event.count)
        if not number:
            tape.rewind()
    assert words in tape.find_fault()


def test_no_tape_after_the_block():
    with install_tape(SameNoise()):
        assert not gate().can_run_compiled
    assert gate().can_run_compiled


# differences


def test_first_differences():
    one = {"a": [1.0, np.array([1.0, 2.0])], "b": "x"}
    assert first_difference(one, {"a": [1.0, np.array([1.0, 2.0])], "b": "x"}) is None
    assert "['a'][1][1]" in first_difference(one, {"a": [1.0, np.array([1.0, 2.5])], "b": "x"})
    assert "keys" in first_difference(one, {"a": 1})
    assert first_difference(float("nan"), float("nan")) is None
    assert first_difference(0.0, -0.0) is not None
    assert first_difference(1, True) is not None
    assert first_difference(np.zeros(2), np.zeros(3)) is not None


def test_differences_of_lines():
    assert line_difference("a\nb\n", "a\nb\n", "text") is None
    assert line_difference("a\nb\n", "a\nc\n", "text").startswith("text, line 2: 'b' and 'c'")
    assert "no such line" in line_difference("a\nb\n", "a\n", "text")
    assert line_difference("a\n", "a", "text") == "text: other line ends"


def test_warnings_are_not_told_and_stay_errors_where_they_are(capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        with suppress_warnings():
            warnings.warn("a value of the records", RuntimeWarning, stacklevel=1)
    assert capsys.readouterr().err == ""
    with suppress_warnings(), pytest.raises(RuntimeWarning):
        warnings.warn("an error under the filters of this suite", RuntimeWarning, stacklevel=1)
