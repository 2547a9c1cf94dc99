"""The command line inside the test process, without figures (tests/cli/conftest.py), and models."""

import pytest

from tests.breaks._files import (
    NAMES,
    WAYS,
    make_rows,
    model_arrays,
    write_named,
    write_table_with_test,
)
from tests.cli.conftest import Outcome, dperm, no_figures

__all__ = ["Outcome", "dperm", "no_figures"]


@pytest.fixture
def saved(dperm, tmp_path):
    """way -> (facts, arrays) of a model that was trained on columns c0, c1, c2."""

    def make(way="plain"):
        folder = tmp_path / way
        words = write_table_with_test(folder, make_rows(200), make_rows(40, seed=9))
        words += ["ridge=0.05", "epsilon=8", "trials=1", "delta=1e-5", *WAYS[way]]
        done = dperm("run", *words, f"out={folder}/study", f"save={folder}/m.npz")
        assert done.code == 0, done.err
        return model_arrays(folder / "m.npz")

    return make


@pytest.fixture
def predict(dperm, tmp_path):
    """Predict four rows, or those of a file, with the model in ``forged.npz``."""

    def call(rows=None):
        if rows is None:
            rows = tmp_path / "new.csv"
            write_named(rows, make_rows(4, seed=5)[:, :3], NAMES)
        return dperm("predict", str(tmp_path / "forged.npz"), str(rows))

    return call
