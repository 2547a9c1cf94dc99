"""Columns of records as Arrow's arrays: those that pyarrow makes of the same objects, sooner."""

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

from dperm_cli.results.records.arrow_columns import column_of

COLUMNS = [
    (pa.string(), ["logistic", None, "", "l₂ ball"]),
    (pa.int64(), [0, None, -(2**63), 2**63 - 1]),
    (pa.float64(), [0.1, None, float("inf"), -0.0]),
    (pa.bool_(), [True, None, False, True]),
    (pa.list_(pa.float64()), [[0.5, -1.0], None, [], [3.0]]),
]


@pytest.mark.parametrize(("kind", "values"), COLUMNS, ids=lambda value: str(value)[:12])
@pytest.mark.parametrize("kept", [slice(None), slice(1, 2), slice(0, 1), slice(2, 4)])
def test_a_column_is_the_one_that_pyarrow_makes(kind, values, kept):
    shown = values[kept] * 5  # more than the eight values of a byte
    found = column_of(shown, kind)
    found.validate(full=True)
    assert found.equals(pa.array(shown, kind))


def test_a_yes_of_numpy_is_a_yes():
    found = column_of([np.True_, None, np.False_, True], pa.bool_())
    assert found.to_pylist() == [True, None, False, True]


def test_no_number_is_cut_to_size():
    with pytest.raises(OverflowError):
        column_of([2**63], pa.int64())


def test_a_record_is_written_without_pandas():
    script = (
        "import sys\n"
        "from dperm_cli.results import record_format\n"
        "data = record_format.encode([{'status': 'ok', 'theta': [1.0], 'epsilon': 2.0}])\n"
        "assert record_format.decode(data)[0]['theta'] == [1.0]\n"
        "print('pandas' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.split() == ["False"], done.stderr
