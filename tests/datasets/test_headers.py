"""What a header alone shows to be wrong is said in one line that names the way out."""

from __future__ import annotations

import numpy as np
import pytest

from dperm_cli.core.errors import InputError
from dperm_cli.datasets.files.csv import Csv
from dperm_cli.datasets.shared.schema_draft import draft_schema
from dperm_cli.datasets.shared.table_columns import position
from dperm_cli.runner.models import model_file


@pytest.mark.parametrize("sign", [";", "\t"])
def test_another_delimiter_is_named(sign, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(sign.join(["age", "sick"]) + "\n")
    with pytest.raises(InputError, match="say delimiter=") as caught:
        draft_schema("TABLE", path, "sick", ",", 1 << 20)
    assert "did you mean" not in str(caught.value)
    with pytest.raises(InputError, match=r"say dataset\.delimiter="):
        position("dataset.target", "sick", [f"age{sign}sick"])
    assert "sick" in draft_schema("TABLE", path, "sick", sign, 1 << 20)
    with pytest.raises(InputError, match="no such column; there are a;b, c"):
        position("dataset.target", "x", ["a;b", "c"])


def test_a_draft_refuses_two_columns_of_one_name(tmp_path):
    path = tmp_path / "dup.csv"
    path.write_text("age,age\n1,2\n")
    with pytest.raises(InputError, match="has column 'age' more than once"):
        draft_schema("TABLE", path, None, ",", 1 << 20)


def test_text_in_a_column_is_not_shown_and_has_a_way_out(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("customer,age,y\nC00000,1,1\nC00001,2,-1\n")
    table = Csv(path=str(path), target="y")
    with pytest.raises(InputError, match=r"dataset\.drop.*dataset=table") as caught:
        table.load(None)
    assert "column 'customer' holds text" in str(caught.value)
    assert "C00000" not in str(caught.value)
    kept = Csv(path=str(path), target="y", drop=["customer"]).load(None)
    assert np.all(np.isfinite(np.asarray(kept.x)))
    assert len(kept.y) == 2


def test_the_model_in_a_folder_is_named(tmp_path):
    with pytest.raises(InputError, match="is not a file"):
        model_file.read(str(tmp_path))
    made = tmp_path / "release"
    made.mkdir()
    (made / "model.npz").write_bytes(b"")
    for folder in (tmp_path, made):
        with pytest.raises(InputError, match=r"its model is .*release/model.npz"):
            model_file.read(str(folder))
