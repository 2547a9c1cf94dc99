"""The embedded and generated data sets, and what every data set's files promise."""

from __future__ import annotations

import dataclasses
import math
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
import yaml

from dperm_cli.core import registry
from dperm_cli.core.errors import InputError
from dperm_cli.core.fields import keys_of
from dperm_cli.datasets.generated.synthetic_logistic import SyntheticLogistic
from dperm_cli.datasets.shared import embedded_files
from dperm_cli.datasets.shared.stored_rows import Target, store

CONF = Path(__file__).parents[2] / "conf" / "dataset"
EMBEDDED = {"breast_cancer": (569, 30), "digits": (1797, 64), "diabetes": (442, 10)}
LOSS = {
    "binary": {"logistic", "linear"},
    "regression": {"squared", "positive_part", "absolute"},
    "multiclass": {"multinomial"},
    "location": {"l1_median"},
}


def make(name, **fields):
    return registry.load("dataset", name)(**fields)


@pytest.mark.parametrize("name", registry.names("dataset"))
def test_yaml_holds_every_field_with_its_default(name):
    text = (CONF / f"{name}.yaml").read_text()
    values = yaml.safe_load(text)
    assert text.startswith("# ")
    assert values.pop("name") == name
    fields = keys_of(registry.load("dataset", name)).values()
    assert values == {field.name: field.default for field in fields}


@pytest.mark.parametrize("name", registry.names("dataset"))
def test_class_is_frozen_and_declares_task_and_loss(name, tmp_path):
    kind = registry.load("dataset", name)
    given = {"path": "x"} if kind.where == "file" else {}
    if name == "stored":
        store(SyntheticLogistic(n=5, p=2), Target(tmp_path / "stored"))
        given["path"] = str(tmp_path / "stored")
    if name in ("table", "frame"):
        given["schema"] = str(tmp_path / "schema.yaml")
        (tmp_path / "schema.yaml").write_text(
            "target: {column: y, kind: label, classes: [a, b]}\n"
            "columns: {x: {kind: number, bounds: [0, 1]}}\n"
        )
    dataset = kind(**given, **({"n_features": 1} if name == "svmlight" else {}))
    assert dataset.default_loss in LOSS[dataset.task]
    with pytest.raises(dataclasses.FrozenInstanceError):
        dataset.rows = "none"
    hash(dataset)


@pytest.mark.parametrize("name", EMBEDDED)
def test_embedded_sets_keep_their_bounds(name):
    n, p = EMBEDDED[name]
    data = make(name).load()
    assert (data.n + data.x_test.shape[0], data.p) == (n, p)
    for x in (data.x, data.x_test):
        norms = np.linalg.norm(x, axis=1)
        assert np.allclose(norms, 1.0, atol=1e-12)
        assert norms.max() <= 1.0
        assert x.flags.c_contiguous
        assert x.dtype == np.float64
    assert np.abs(data.y).max() <= 1.0
    assert data.task == "regression" or set(np.unique(data.y)) == {-1.0, 1.0}
    assert not data.data_dependent


@pytest.mark.parametrize(
    ("name", "fields", "least"),
    [
        ("breast_cancer", {}, 0.97),
        ("digits", {}, 0.88),
        ("digits", {"contrast": "high"}, 0.86),
        ("diabetes", {}, 0.5),
    ],
)
def test_a_linear_model_of_norm_ten_does_well(name, fields, least):
    """Training accuracy, or R2, of projected gradient descent in the ball of radius 10."""
    data = make(name, **fields).load()
    theta = np.zeros(data.p)
    curvature = np.linalg.norm(data.x, 2) ** 2 * (0.25 if data.task == "binary" else 1.0)
    for _ in range(2000):
        margin = data.x @ theta
        if data.task == "binary":
            slope = -data.y / (1.0 + np.exp(data.y * margin))
        else:
            slope = margin - data.y
        theta = theta - data.x.T @ slope / curvature
        theta *= min(1.0, 10.0 / np.linalg.norm(theta))
    margin = data.x @ theta
    if data.task == "binary":
        assert np.mean(np.sign(margin) == data.y) >= least
    else:
        assert 1 - np.mean((margin - data.y) ** 2) / np.var(data.y) >= least


def test_labels_of_the_embedded_sets_are_the_documented_ones():
    tumours = make("breast_cancer", test_fraction=0).load()
    assert (int(np.sum(tumours.y > 0)), int(np.sum(tumours.y < 0))) == (212, 357)
    # Malignant cells are larger: the first column (mean radius) must correlate with +1.
    assert np.corrcoef(tumours.x[:, 0], tumours.y)[0, 1] > 0.5
    parity = make("digits", test_fraction=0).load()
    high = make("digits", test_fraction=0, contrast="high").load()
    first = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    assert parity.y[:10].tolist() == [1.0 if d % 2 else -1.0 for d in first]
    assert high.y[:10].tolist() == [1.0 if d >= 5 else -1.0 for d in first]


def test_diabetes_targets_are_mapped_by_the_declared_bounds():
    data = make("diabetes", test_fraction=0).load()
    assert data.y[0] == pytest.approx(2 * 151 / 350 - 1)


def test_embedded_file_that_differs_is_refused(monkeypatch, tmp_path):
    (tmp_path / "digits.csv.gz").write_bytes(b"1,2\n")
    monkeypatch.setattr(embedded_files, "FOLDER", tmp_path)
    with pytest.raises(InputError, match=r"dataset=digits.*cannot be read"):
        make("digits").load()
    np.savetxt(tmp_path / "digits.csv.gz", np.ones((3, 65)), delimiter=",")
    with pytest.raises(InputError, match="is not the file dperm knows"):
        make("digits").load()


def test_embedded_files_come_with_their_licence():
    folder = embedded_files.FOLDER
    words = (folder / "LICENSE.txt").read_text()
    assert "BSD 3-Clause License" in words
    assert "The scikit-learn developers" in words
    root = Path(__file__).parents[2]
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    assert (folder / "LICENSE.txt").relative_to(root).as_posix() in project["license-files"]
    assert "BSD-3-Clause" in project["license"]


def test_loading_imports_nothing_heavy():
    code = (
        "import sys; from dperm_cli.core.registry import load\n"
        "for name in ('digits', 'synthetic_logistic'): load('dataset', name)().load()\n"
        "heavy = {'sklearn', 'pandas', 'numba', 'pyarrow', 'scipy.stats', 'matplotlib'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_synthetic_rows_labels_and_minimiser():
    data = make("synthetic_logistic", n=20000, p=5, signal=4.0, n_test=10).load()
    assert np.linalg.norm(data.minimiser) == pytest.approx(4.0)
    norms = np.linalg.norm(data.x, axis=1)
    assert norms.max() <= 1.0
    assert np.allclose(norms, 1.0)
    # The gradient of the mean loss at theta* is a mean of n vectors of norm <= 1 and mean zero:
    # its squared norm exceeds 25 / n with probability below e^-8 (fixed seed).
    slope = -data.y / (1 + np.exp(data.y * (data.x @ data.minimiser)))
    at_minimiser = np.linalg.norm(data.x.T @ slope) / data.n
    assert at_minimiser < 5 / math.sqrt(data.n)
    # Power: a minimiser off by a fifth is noticed.
    slope = -data.y / (1 + np.exp(data.y * (data.x @ data.minimiser) * 1.2))
    assert np.linalg.norm(data.x.T @ slope) / data.n > 1.5 * at_minimiser


def test_synthetic_ball_is_uniform_and_scaled():
    data = make("synthetic_logistic", n=20000, p=3, rows="clip", row_bound=2.0).load()
    norms = np.linalg.norm(data.x, axis=1)
    assert norms.max() <= 2.0
    # (norm / bound)^p is uniform on [0, 1]; 6 standard errors of its mean (false alarm 2e-9).
    level = (norms / 2.0) ** 3
    assert abs(level.mean() - 0.5) < 6 / math.sqrt(12 * 20000)
    assert abs((norms / 2.0).mean() - 0.5) > 0.2


def test_synthetic_sizes_are_prefixes_and_seeds_differ():
    small = make("synthetic_logistic", n=50).load()
    large = make("synthetic_logistic", n=80).load()
    assert np.array_equal(small.x, large.x[:50])
    assert np.array_equal(small.y, large.y[:50])
    assert np.array_equal(small.minimiser, large.minimiser)
    assert not np.array_equal(small.x, small.x_test[:50])
    other = make("synthetic_logistic", n=50, seed=1).load()
    assert not np.array_equal(small.x, other.x)
    assert small.fingerprint != other.fingerprint


def test_synthetic_extremes():
    one = make("synthetic_logistic", n=1, p=1, n_test=0, signal=1e6).load()
    assert (one.n, one.p, one.x_test) == (1, 1, None)
    with pytest.raises(InputError, match=r"limits\.memory=auto: making \d+ records"):
        make("synthetic_logistic", n=10**15, p=10**5).load()


@pytest.mark.parametrize(
    ("name", "key", "value"),
    [
        ("digits", "rows", "units"),
        ("digits", "row_bound", 0),
        ("digits", "row_bound", math.nan),
        ("digits", "row_bound", True),
        ("digits", "scaling", "maxmin"),
        ("digits", "intercept", 1),
        ("digits", "centred", "yes"),
        ("digits", "test_fraction", 1.0),
        ("digits", "test_fraction", -0.1),
        ("digits", "split_seed", -1),
        ("digits", "contrast", "odd"),
        ("synthetic_logistic", "n", 0),
        ("synthetic_logistic", "p", 1.5),
        ("synthetic_logistic", "signal", math.inf),
        ("synthetic_logistic", "rows", "ball"),
        ("synthetic_logistic", "seed", -1),
        ("synthetic_logistic", "n_test", -1),
        ("svmlight", "path", None),
        ("svmlight", "path", ""),
        ("svmlight", "path", "a\0b"),
    ],
)
def test_bad_values_name_their_key(name, key, value):
    with pytest.raises(InputError) as caught:
        make(name, **{key: value})
    assert caught.value.key == f"dataset.{key}"
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("scaling", ["minmax", "standardise"])
def test_fitted_scaling_needs_the_unsafe_flag(scaling):
    with pytest.raises(InputError) as caught:
        make("breast_cancer", scaling=scaling)
    assert caught.value.key == "dataset.scaling"
    assert "unsafe_scaling=true" in str(caught.value)
    data = make("breast_cancer", scaling=scaling, unsafe_scaling=True).load()
    assert data.data_dependent
    assert any("UNSAFE" in step for step in data.preprocessing)
    assert not make("breast_cancer", unsafe_scaling=True).load().data_dependent
