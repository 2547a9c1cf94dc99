"""A study that has lost records says so wherever it shows itself."""

from __future__ import annotations

import warnings

import pytest

import dperm_cli


@pytest.fixture
def study(run_small):
    return run_small(mechanism="noisy_gd", epsilon=[1, 10], **{"mechanism.steps": 5})


def damage(study, count):
    """Damage the first record, and remove the second."""
    first, *others = sorted((study.folder / "records").glob("*.parquet"))
    first.write_bytes(first.read_bytes()[:-9] + b"123456789")
    for path in others[: count - 1]:
        path.unlink()
    return dperm_cli.load(study.folder)


@pytest.mark.parametrize("call", ["plot", "table", "frame", "trials", "__repr__", "_repr_html_"])
def test_a_damaged_record_is_warned_of(study, call):
    found = damage(study, 1)
    with pytest.warns(UserWarning, match="1 of 2 records is damaged or missing") as warned:
        getattr(found, call)()
    (line,) = warned
    assert f"dperm verify {study.folder}" in str(line.message)
    assert line.filename == __file__


def test_it_is_said_once(study):
    found = damage(study, 1)
    with pytest.warns(UserWarning, match="damaged or missing"):
        found.frame()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found.frame(), found.table(), found.plot(), repr(found)


def test_with_all_records_lost_the_error_of_a_figure_says_so(study):
    found = damage(study, 2)
    words = "2 of 2 records are damaged or missing"
    with (
        pytest.warns(UserWarning, match=words),
        pytest.raises(dperm_cli.InputError, match=words),
    ):
        found.plot()


def test_its_repr_counts_them(study):
    assert "damaged" not in repr(study)
    found = damage(study, 2)
    with pytest.warns(UserWarning, match="damaged or missing"):
        assert "2 records damaged or missing" in repr(found)


def test_a_whole_study_warns_of_nothing(study):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = dperm_cli.load(study.folder)
        found.frame(), found.plot(), repr(found)
