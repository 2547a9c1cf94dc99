"""Files that unpack to more than was declared are refused before they fill the memory."""

from __future__ import annotations

import bz2
import gzip
import io
import zipfile

import numpy as np
import pytest

from dperm_cli.core.errors import InputError
from dperm_cli.datasets.files.csv import Csv
from dperm_cli.datasets.files.npz import Npz
from dperm_cli.datasets.files.parquet import Parquet
from dperm_cli.datasets.files.svmlight import Svmlight
from tests.datasets.files_data import made, refused


@pytest.mark.parametrize("kind", [Csv, Svmlight])
@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, None])
def test_own_text_files_have_a_limit(kind, pack, tmp_path):
    def one(data):
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("f", data)
        return out.getvalue()

    text = b"a,y\n1,1\n" if kind is Csv else b"1 1:1\n"
    (tmp_path / "f").write_bytes((pack or one)(text + b"1,1\n" * 400_000))
    assert "unpacks to more than" in refused(kind, tmp_path / "f", max_size=0.001)
    (tmp_path / "f").write_bytes((pack or one)(text))
    assert made(kind, tmp_path / "f", max_size=0.001).load().n == 1
    with pytest.raises(InputError, match=r"dataset\.max_size"):
        made(kind, "f", max_size=0)


def test_npz_and_parquet_bombs(tmp_path):
    np.savez_compressed(tmp_path / "f.npz", x=np.zeros((200_000, 10)), y=np.ones(200_000))
    with pytest.raises(InputError, match=r"unpacks to more than the declared limit"):
        Npz(path=str(tmp_path / "f.npz"), max_size=0.001).load()
    assert Npz(path=str(tmp_path / "f.npz"), intercept=False).load().p == 10
    import pandas as pd

    pd.DataFrame({"a": np.zeros(500_000), "y": np.ones(500_000)}).to_parquet(tmp_path / "f")
    assert (tmp_path / "f").stat().st_size < 100_000
    with pytest.raises(InputError, match=r"unpacks to more than the declared limit"):
        Parquet(path=str(tmp_path / "f"), max_size=0.001).load()
    assert Parquet(path=str(tmp_path / "f")).load().n == 400_000
