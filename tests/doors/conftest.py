"""Small studies that several files of this folder look at."""

from __future__ import annotations

import contextlib
import io

import pytest

from tests.doors._doors import SMALL, dperm, public
from tests.doors._plugins import CLOUD, OWN


@pytest.fixture(scope="session")
def study_folder(tmp_path_factory):
    """A study of two mechanisms at four budgets with two seeds, by the command line."""
    folder = tmp_path_factory.mktemp("doors")
    keys = ("mechanism=noisy_gd,noisy_sgd", "epsilon=3,10,30,100", "seed=0,1")
    dperm("run", "-m", *keys, *SMALL, "out=study", cwd=folder, code=0)
    return folder / "study"


@pytest.fixture(scope="session")
def study(study_folder):
    """The same study, loaded."""
    return public("load")(study_folder)


@pytest.fixture(scope="session")
def other_order(tmp_path_factory):
    """A study of Python's whose mechanisms stand in another order, with one more between them."""
    run = public("run")
    with contextlib.redirect_stderr(io.StringIO()):
        return run(
            *SMALL,
            mechanism=["noisy_sgd", "objective_perturbation", "noisy_gd"],
            epsilon=[3, 30],
            out=tmp_path_factory.mktemp("order") / "other",
        )


@pytest.fixture
def own(tmp_path):
    path = tmp_path / "own.py"
    path.write_text(OWN)
    return path


@pytest.fixture
def cloud(tmp_path):
    path = tmp_path / "cloud.py"
    path.write_text(CLOUD)
    return path


@pytest.fixture(scope="module")
def own_study(tmp_path_factory):
    """A run of the mechanism, loss and set of one file; the folder with the file in it."""
    folder = tmp_path_factory.mktemp("own folder")  # a path with a space
    (folder / "own.py").write_text(OWN)
    dperm(*own_run(), cwd=folder, code=0)
    return folder


def own_run(*more: str) -> tuple[str, ...]:
    keys = ("dataset=diabetes", "mechanism=one_step,noisy_gd", "loss=quantile")
    sets = ("constraint=nonnegative_ball", "constraint.radius=1")
    return (
        "run",
        "--plugin",
        "own.py",
        "-m",
        *keys,
        *sets,
        "epsilon=1,10",
        "trials=2",
        "out=study",
        *more,
    )
