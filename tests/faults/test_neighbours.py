"""Runs that start together on one folder share it from their first moment to their last."""

from __future__ import annotations

import pytest

from tests.faults._program import (
    SMALL,
    epsilons,
    kill_session,
    leftovers,
    read_table,
    run_dperm,
    start_dperm,
    wait_for,
)

CELLS = 4


def run_together(words, folder, many):
    """The ends of so many equal runs that are started at once."""
    started = [start_dperm(words, folder) for _ in range(many)]
    try:
        return [wait_for(process) for process in started]
    finally:
        for process in started:
            if process.poll() is None:
                kill_session(process)


def assert_shared(ended, study, cells) -> None:
    assert [one.code for one in ended] == [0] * len(ended), [
        one.err[-500:] for one in ended if one.code
    ]
    assert len({one.out for one in ended}) == 1
    assert len(read_table(study)) == cells
    assert leftovers(study) == []


@pytest.mark.faults
def test_eight_runs_at_once_all_end_well_in_every_round(tmp_path):
    """Few cells, so that the first runs tidy the folder while the last ones begin."""
    for round_number in range(8):
        study = tmp_path / f"study{round_number}"
        words = ["run", "-m", *SMALL, epsilons(CELLS), f"out={study}"]
        assert_shared(run_together(words, tmp_path, 8), study, CELLS)


@pytest.mark.faults
@pytest.mark.parametrize("round_number", [pytest.param(0, marks=pytest.mark.faults_quick), 1, 2, 3])
def test_eight_runs_on_a_finished_study_all_end_well(round_number, tmp_path):
    words = ["run", "-m", *SMALL, epsilons(CELLS), f"out={tmp_path}/study"]
    assert run_dperm(words, tmp_path).code == 0
    before = (tmp_path / "study" / "table.csv").read_bytes()
    assert_shared(run_together(words, tmp_path, 8), tmp_path / "study", CELLS)
    assert (tmp_path / "study" / "table.csv").read_bytes() == before


@pytest.mark.faults
@pytest.mark.parametrize("round_number", range(3))
def test_runs_with_workers_share_a_folder(round_number, tmp_path):
    words = ["run", "-m", *SMALL, epsilons(CELLS), "workers=2", f"out={tmp_path}/study"]
    assert_shared(run_together(words, tmp_path, 3), tmp_path / "study", CELLS)


@pytest.mark.faults
def test_a_run_that_is_killed_beside_others_disturbs_none(tmp_path):
    words = ["run", "-m", *SMALL, epsilons(40), f"out={tmp_path}/study"]
    victim = start_dperm(words, tmp_path)
    others = [start_dperm(words, tmp_path) for _ in range(3)]
    while not (tmp_path / "study" / ".work").is_dir() and victim.poll() is None:
        pass
    kill_session(victim)
    assert_shared([wait_for(process) for process in others], tmp_path / "study", 40)


@pytest.mark.faults
def test_reading_verbs_beside_a_run_see_no_half_file(tmp_path):
    study = tmp_path / "study"
    assert run_dperm(["run", *SMALL, f"out={study}"], tmp_path).code == 0
    running = start_dperm(
        ["run", "-m", *SMALL, epsilons(40), "force=true", f"out={study}"], tmp_path
    )
    seen = [run_dperm([verb, str(study)], tmp_path) for verb in ("status", "verify", "status")]
    assert wait_for(running).code == 0
    for one in seen:
        assert "Traceback" not in one.err
        assert one.code in (0, 1), one.err
        assert "damaged" not in one.out
