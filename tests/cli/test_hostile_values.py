"""Values that merely look like numbers, and data nobody would keep on purpose.

Bad input is one line with the key, the value and what is allowed, and leaves nothing behind. Data
that are merely strange (one class, zeros, duplicates) are fitted like any other: what can be
refused is what a file declares, never what a mechanism finds in it.
"""

from __future__ import annotations

import bz2
import copy
import gzip
import io
import math
import os
from pathlib import Path

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from dperm_cli.core import catalogue, checks
from dperm_cli.core.errors import InputError
from dperm_cli.runner.compose import cell_schema, plugin_objects
from dperm_cli.runner.compose.command_line import parse
from dperm_cli.runner.compose.composer import Composer

ROOT = Path(__file__).resolve().parents[2]
NAN, INF = math.nan, math.inf

# never a number, whatever the key
POISON = [
    NAN,
    INF,
    -INF,
    True,
    False,
    "1",
    "0x1",
    "1e3",
    "nan",
    10**400,
    -1,
    -1e-300,
    [],
    {},
    [[1]],
]
# as typed on the command line; 1e400 overflows to inf and 1e-400 to zero
TYPED = ["nan", "inf", "-inf", "true", "'1'", "0x1", "1e400", "-1", "-1e400", "1e3x", "[[1]]", "{}"]
TOP = {
    "epsilon": [*TYPED, "0", "0.0", "-0.0", "1e-400", "null", "auto", "'[1]'"],
    "delta": [*TYPED, "1", "1.0", "2", "1.0000000001", "null"],
    "ridge": [*TYPED, "null", "auto"],
    "trials": [*TYPED, "0", "1.5", "1e-400", "1e7", "null", "auto"],
    "seed": [*TYPED, "1.5", "1e19", "9223372036854775808"],
}


@pytest.fixture(scope="module")
def composed():
    return Composer().compose({})


@pytest.mark.parametrize("key", list(TOP))
def test_top_level_numbers(composed, key):
    for text in TOP[key]:
        (setting,) = parse([f"{key}={text}"]).settings
        config = copy.deepcopy(composed) | {key: setting.values[0]}
        with pytest.raises(InputError) as caught:
            cell_schema.build_cell(config)
        assert caught.value.key == key, text
        assert "must be" in str(caught.value)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("word", "part"),
    [
        ("epsilon=nan", "epsilon=nan: must be a finite number > 0"),
        ("epsilon=1e400", "epsilon=inf: must be a finite number > 0"),
        ("epsilon=0x1", "epsilon=0x1: must be a finite number > 0"),
        ("delta=1", "delta=1: must be a number in [0, 1), or auto"),
        ("ridge=-1e400", "ridge=-inf: must be a finite number >= 0"),
        ("trials=2.5", "trials=2.5: must be an integer >= 1"),
        ("seed=1e19", "seed=10000000000000000000: must be an integer >= 0"),
        ("mechanism.momentum=1", "mechanism.momentum=1: must be a number in [0, 1), or auto"),
        ("constraint.radius=inf", "constraint.radius=inf: must be a finite number > 0"),
        ("dataset.test_fraction=1", "dataset.test_fraction=1: must be a number in [0, 1)"),
    ],
)
def test_the_line_names_key_value_and_range(dperm, tmp_path, word, part):
    done = dperm("run", "mechanism=noisy_gd", word)
    assert done.code == 2
    assert done.err.startswith(f"dperm: {part}"), done.err
    assert len(done.err.splitlines()) == 1
    assert os.listdir(tmp_path) == []


REQUIRED = {
    "csv": {"path": "x"}, "npz": {"path": "x"}, "parquet": {"path": "x"},
    "svmlight": {"path": "x", "n_features": 3},
    "table": {"path": "x", "schema": {
        "target": {"column": "y", "classes": ["a", "b"]},
        "columns": {"x": {"kind": "number", "bounds": [0, 1]}},
    }},
    "frame": {"schema": {
        "target": {"column": "y", "classes": ["a", "b"]},
        "columns": {"x": {"kind": "number", "bounds": [0, 1]}},
    }},
    "image": {"inner": {"name": "l2_ball", "radius": 1.0}, "matrix": [[1.0, 0.0], [0.0, 1.0]]},
    "intersection": {"inner": {"name": "l1_ball", "radius": 1.0}},
    "polytope": {"vertices": [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]},
    "ellipsoid": {"condition": 2.0},
}  # fmt: skip
# null or auto by default, numbers all the same
HIDDEN = {"row_bound", "steps", "step_size", "momentum", "n_features", "condition"}
OTHERS = {"target"}  # a name or a position
ZERO = {
    "test_fraction", "split_seed", "seed", "n_test", "momentum", "shift", "noise", "signal",
    "phi_seed", "norm_share", "eta",
}  # fmt: skip
WITHOUT_ZERO = {("few_directions", "signal")}  # a model of no length has nothing to learn
SIGNED = {"eta"}  # may be below 0, above -1


def numeric_keys():
    for group in ("dataset", "loss", "constraint", "mechanism"):
        for name in catalogue.choices(group):
            config = yaml.safe_load((ROOT / "conf" / group / f"{name}.yaml").read_text())
            config = config | REQUIRED.get(name, {})
            for key, value in config.items():
                number = isinstance(value, (int, float)) and not isinstance(value, bool)
                if (number or key in HIDDEN) and key not in OTHERS:
                    yield group, name, key, config


def build(group, name, config):
    extra = {"p": 2} if group == "constraint" else {}
    return plugin_objects.build(group, config, **extra)


KEYS = list(numeric_keys())


def test_every_group_has_numbers():
    assert {group for group, *_ in KEYS} == {"dataset", "loss", "constraint", "mechanism"}
    assert len(KEYS) > 80


@pytest.mark.parametrize(("group", "name", "key", "config"), KEYS, ids=lambda v: str(v)[:20])
def test_numbers_of_plug_ins(group, name, key, config):
    if (group, name) != ("loss", "auto"):
        build(group, name, config)
    power = key == "power"
    for poison in POISON:
        if (poison is INF and power) or (key == "norm" and poison is INF):
            continue  # a norm may be the sup norm
        if poison == -1e-300 and key in SIGNED:
            continue
        with pytest.raises(InputError) as caught:
            build(group, name, config | {key: poison})
        assert caught.value.key == f"{group}.{key}", poison
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("group", "name", "key", "config"), KEYS, ids=lambda v: str(v)[:20])
def test_zero_is_a_number_only_where_it_means_something(group, name, key, config):
    for zero in (0, 0.0, -0.0, 1e-400):
        if key in ZERO and (name, key) not in WITHOUT_ZERO:
            build(group, name, config | {key: zero})
        else:
            with pytest.raises(InputError, match=rf"^{group}\.{key}="):
                build(group, name, config | {key: zero})


anything = st.one_of(
    st.floats(), st.integers(), st.booleans(), st.text(max_size=4), st.none(),
    st.lists(st.floats(), max_size=2),
)  # fmt: skip


@given(anything)
@settings(max_examples=300, deadline=None, database=None, derandomize=True)
def test_a_number_is_in_range_or_refused(value):
    for check, fits in (
        (lambda: checks.positive("k", value), lambda v: 0 < v < INF),
        (lambda: checks.nonnegative("k", value), lambda v: 0 <= v < INF),
        (lambda: checks.number("k", value, low=0, high=1, high_open=True), lambda v: 0 <= v < 1),
        (lambda: checks.integer("k", value, low=1, high=9), lambda v: v in range(1, 10)),
    ):
        try:
            found = check()
        except InputError:
            continue
        assert fits(found)
        assert not isinstance(value, (bool, str))
        assert found == value


@given(anything, anything)
@settings(max_examples=200, deadline=None, database=None, derandomize=True)
def test_a_typed_privacy_level_is_a_privacy_level(epsilon, delta):
    config = copy.deepcopy(CONFIG) | {"epsilon": epsilon, "delta": delta}
    try:
        typed = cell_schema.build_cell(config)
    except InputError:
        return
    assert 0 < typed.epsilon < INF
    assert typed.delta is None or 0 <= typed.delta < 1


CONFIG = Composer().compose({"mechanism": "noisy_gd"})


# --- files -----------------------------------------------------------------------------------

TINY = ("mechanism=noisy_gd", "mechanism.steps=3", "trials=1", "format=json",
        "constraint.radius=1", "delta=1e-5")  # fmt: skip
ROWS = "0.5,0.1,1\n-0.2,0.3,-1\n0.1,-0.4,1\n0.2,0.2,-1\n0.3,0.1,1\n"


def table(first: str) -> str:
    return f"a,b,y\n{first}\n{ROWS}"


BAD_TABLES = {
    table("nan,0.1,1"): "record 1, column 'a' holds text",
    table("0.1,inf,1"): "record 1, column 2 is missing, nan or infinite",
    table("0.1,-inf,1"): "record 1, column 2",
    table("0.1,1e400,1"): "record 1, column 2",
    table("0.1,,1"): "record 1, column 2",
    table("0.1,x,1"): "column",
    table("0.1,0x1,1"): "column",
    table("0.1,true,1"): "column",
    table("0.1,0.2,2"): "dataset.labels=2",
    table("0.1,0.2,0"): "dataset.labels=0",
    table("0.1,0.2,yes"): "dataset.labels=yes",
    table("0.1,0.2,"): "record 1 has no label",
    table("0.1,0.2,nan"): "dataset.labels=nan",
    table("0.1,0.2,1,7"): "csv",
    "a,b,y\n": "no records",
    "": "is empty",
    "y\n1\n-1\n": "columns",
    "\0\0\0\0": "csv",
}


def assert_refused(done, tmp_path, part):
    assert done.code == 2, done.out + done.err
    assert part in done.err
    assert len(done.err.splitlines()) == 1, done.err
    assert "Traceback" not in done.err
    assert not (tmp_path / "outputs").exists()


@pytest.mark.parametrize("text", list(BAD_TABLES), ids=lambda text: text[:22])
def test_bad_tables(dperm, tmp_path, text):
    (tmp_path / "t.csv").write_text(text)
    done = dperm("run", *TINY, "dataset=csv", "dataset.path=t.csv")
    assert_refused(done, tmp_path, BAD_TABLES[text])
    assert "dataset." in done.err


def test_bad_targets(dperm, tmp_path):
    (tmp_path / "t.csv").write_text(table("0.1,0.2,nan"))
    words = ("dataset=csv", "dataset.path=t.csv", "dataset.task=regression")
    assert_refused(dperm("run", *TINY, *words), tmp_path, "dataset.target_bounds")
    for bounds in ("[1,0]", "[0,nan]", "[0]", "[0,inf]", "3", "[-1e308,1e308]", "[0,true]"):
        done = dperm("run", *TINY, *words, f"dataset.target_bounds={bounds}")
        assert_refused(done, tmp_path, "dataset.target_bounds")
    done = dperm("run", *TINY, *words, "dataset.target_bounds=[0,1]")
    assert_refused(done, tmp_path, "record 1, column 'y' holds text")


def archive(**arrays) -> bytes:
    out = io.BytesIO()
    np.savez(out, **arrays)
    return out.getvalue()


X3, Y3 = np.full((3, 2), 0.5), np.array([1.0, -1.0, 1.0])
BAD_ARCHIVES = {
    "nan": archive(x=np.array([[0.0, NAN]]), y=np.ones(1)),
    "no rows": archive(x=np.zeros((0, 2)), y=np.zeros(0)),
    "no columns": archive(x=np.zeros((3, 0)), y=Y3),
    "flat": archive(x=np.zeros(3), y=Y3),
    "cube": archive(x=np.zeros((3, 2, 2)), y=Y3),
    "complex": archive(x=X3 * 1j, y=Y3),
    "text": archive(x=X3.astype(str), y=Y3),
    "short": archive(x=X3, y=Y3[:2]),
    "labels": archive(x=X3, y=Y3 * 2),
    "label nan": archive(x=X3, y=np.array([1.0, NAN, 1.0])),
    "objects": archive(x=np.array([[{}], [open]], dtype=object), y=np.ones(2)),
    "other": archive(z=X3),
    "zip": b"PK\x05\x06" + bytes(18),
    "half": archive(x=X3, y=Y3)[:200],
    "garbage": b"\x93NUMPY" + bytes(50),
}


@pytest.mark.parametrize("name", list(BAD_ARCHIVES))
def test_bad_archives(dperm, tmp_path, name):
    (tmp_path / "t.npz").write_bytes(BAD_ARCHIVES[name])
    done = dperm("run", *TINY, "dataset=npz", "dataset.path=t.npz")
    assert_refused(done, tmp_path, "dataset.")


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("t.gz", gzip.compress(bytes(20 << 20))),
        ("t.bz2", bz2.compress(b"0.1,0.2,1\n" * 1_000_000)),
    ],
)
def test_decompression_bombs(dperm, tmp_path, name, data):
    assert len(data) < 200_000
    (tmp_path / name).write_bytes(data)
    words = ("dataset=csv", f"dataset.path={name}", "dataset.max_size=0.001")
    assert_refused(dperm("run", *TINY, *words), tmp_path, "dataset.")


def test_a_pickle_is_not_loaded(dperm, tmp_path):
    class Payload:
        def __reduce__(self):
            return os.mkdir, ("owned",)

    np.save(tmp_path / "t.npy", np.array([Payload()]), allow_pickle=True)
    data = archive(x=X3, y=np.array([Payload()] * 3))
    (tmp_path / "t.npz").write_bytes(data)
    done = dperm("run", *TINY, "dataset=npz", "dataset.path=t.npz")
    assert_refused(done, tmp_path, "pickled objects, which are never loaded")
    done = dperm("run", *TINY, "constraint=ellipsoid", "constraint.path=t.npz")
    assert_refused(done, tmp_path, "constraint.path")
    assert sorted(os.listdir(tmp_path)) == ["t.npy", "t.npz"]


# --- data that are strange and valid ---------------------------------------------------------
