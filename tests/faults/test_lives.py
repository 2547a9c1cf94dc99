"""The whole life of a sweep, start and end included: kills in each back end, many runs at once."""

from __future__ import annotations

import importlib.util
import random
import signal
import time

import pytest

from tests.faults.test_crash import assert_same

FULL = pytest.mark.faults
BACKENDS = {
    "local": ("workers=2",),
    "dask": ("backend=dask", "workers=2"),
    "submitit": ("backend=submitit", "workers=2", "slurm={cluster: local}"),
}
NEEDED = {"dask": "distributed", "submitit": "submitit"}
# Seconds that a run lives here: a kill comes anywhere in them.
LIFE = {"here": 2.0, "local": 5.0, "dask": 9.0, "submitit": 12.0}


def words_of(backend: str) -> tuple[str, ...]:
    if importlib.util.find_spec(NEEDED.get(backend, "os")) is None:
        pytest.skip(f"{NEEDED[backend]} is not installed")
    return BACKENDS.get(backend, ())


@pytest.mark.parametrize(
    ("backend", "kills"),
    [
        pytest.param("local", 1),
        pytest.param("dask", 2, marks=pytest.mark.slow),
        pytest.param("submitit", 2, marks=pytest.mark.slow),
        pytest.param("local", 50, marks=FULL),
        pytest.param("dask", 50, marks=FULL),
        pytest.param("submitit", 50, marks=FULL),
    ],
)
def test_a_sweep_outlives_its_workers(zygote, whole, backend, kills):
    """Each run loses one worker or two, from the first second on, and comes to its end."""
    rng, killed, studies = random.Random(kills), 0, 0
    while killed < kills:
        out = f"lost-{backend}{kills}-{studies}"
        times, delay = min(rng.randint(1, 2), kills - killed), rng.uniform(0.0, LIFE[backend] / 2)
        found = zygote(*words_of(backend), out=out, more=0, delay=delay, whom="worker", times=times)
        # a cell that was at work at both kills is the one thing that may have failed
        assert found["code"] in ((0, 1) if found["killed"] > 1 else (0,)), zygote.log
        # Python's own tracker of resources may print a traceback when its clients are killed
        assert "dperm_cli" not in zygote.log
        if found["code"]:
            assert "died twice" in zygote.log
            assert zygote(out=out)["code"] == 0, zygote.log
        assert_same(zygote.folder / out, whole)
        killed, studies = killed + found["killed"], studies + 1
        assert studies < 2 * kills + 20


PIECES = 10  # of a hundred kills of a back end: each is a test of some minutes


@pytest.mark.parametrize(
    ("backend", "kills", "seed"),
    [
        pytest.param("here", 2, 0),
        pytest.param("local", 2, 0, marks=pytest.mark.slow),
        pytest.param("dask", 2, 0, marks=pytest.mark.slow),
        pytest.param("submitit", 2, 0, marks=pytest.mark.slow),
        *(
            pytest.param(backend, 100 // PIECES, seed, marks=FULL)
            for backend in LIFE
            for seed in range(1, PIECES + 1)
        ),
    ],
)
def test_killed_at_any_time_of_its_life(zygote, whole, backend, kills, seed):
    """Kill -9 from the first instant to the last, three times a study; then it is resumed."""
    rng, killed, studies = random.Random(f"{backend} {seed}"), 0, 0
    while killed < kills:
        out = f"life-{backend}{seed}-{studies}"
        for _ in range(min(3, kills - killed)):
            delay = rng.uniform(0.0, LIFE[backend])
            found = zygote(*words_of(backend), out=out, more=0, delay=delay)
            assert found["code"] in (0, -signal.SIGKILL), zygote.log
            if backend != "submitit":  # whose jobs go on, as those of a batch system do
                assert found["orphans"] == []
            killed += found["killed"]
        assert zygote(*words_of(backend), out=out)["code"] == 0, zygote.log
        wait_for_lease(zygote.folder / out)
        assert_same(zygote.folder / out, whole)
        studies += 1
        assert studies < 3 * kills + 20


def wait_for_lease(out) -> None:
    """Jobs of a killed run may still be at the study: the last one to leave tidies."""
    end = time.monotonic() + 60.0
    while (out / ".work").exists() and time.monotonic() < end:
        time.sleep(0.1)


@pytest.mark.parametrize("rounds", [1, pytest.param(50, marks=FULL)])
def test_eight_runs_at_once_all_end_well(zygote, whole, rounds):
    """They make one folder, share it and tidy it."""
    for number in range(rounds):
        out = f"eight{rounds}-{number}"
        assert zygote(out=out, copies=8)["code"] == 0, zygote.log
        assert_same(zygote.folder / out, whole)
