"""The same data on every processor: the kernels of OpenBLAS, numpy and the C library that other
processors take are asked for by environment variables, in processes of their own."""

from __future__ import annotations

import functools
import json
import math
import os
import subprocess
import sys

import numpy as np
import pytest

from dperm_cli.core import registry
from dperm_cli.datasets.published.kddcup99 import Kddcup99
from dperm_cli.datasets.shared.generated_rows import responses, roots
from dperm_cli.datasets.shared.row_rules import row_norms
from tests.faults.processors import KERNELS, X86, tell_why_not

FOUND = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
PLAIN = {
    "NPY_DISABLE_CPU_FEATURES": " ".join(FOUND),
    "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-AVX512F",
    "NUMBA_CPU_NAME": "generic",
}
PROCESSORS = {
    "Prescott": {"OPENBLAS_CORETYPE": "Prescott"} | PLAIN,
    "Haswell": {"OPENBLAS_CORETYPE": "Haswell"},
    "SkylakeX": {"OPENBLAS_CORETYPE": "SkylakeX"},
    "Zen": {"OPENBLAS_CORETYPE": "Zen"},
    "plain numpy": PLAIN,
}
SETS = {
    "median_cloud": [{"n": 700, "p": 37}, {"p": 1}, {"p": 2}, {"shape": "box", "p": 11}],
    "sparse_linear": [{"spread": 7}],
    "sparse_regression": [{"p": 37}, {"rows": "clip", "p": 7}],
    "synthetic_logistic": [{"p": 100}, {"rows": "clip"}],
    "zipf_regression": [{"row_nonzeros": 30}],
    "bst14_d1": [{}],
    "bst14_d2": [{}],
    "bst14_fingerprint": [{"p": 33, "signal": 60}],
    "bst14_packing": [{"p": 37}],
    "djw12_corners": [{"p": 37}, {"corners": "cross"}],
    "few_directions": [{"rank": 7}],
    "breast_cancer": [{}, {"rows": "clip", "norm": 1}],
    "digits": [{}],
    "diabetes": [{}],
}


def fingerprints():
    """Fingerprint and population minimiser of every set that is made here or shipped."""
    found = {}
    for name, choices in SETS.items():
        for fields in choices:
            data = registry.load("dataset", name)(**fields).load()
            truth = None if data.minimiser is None else data.minimiser.tobytes().hex()
            found[f"{name} {fields}"] = [data.fingerprint, data.identity, data.preprocessing, truth]
    found["logarithms"] = Kddcup99().bounds().tobytes().hex()
    return json.loads(json.dumps(found))


def elsewhere(processor, *words, **more):
    """What a Python process prints that takes another processor's kernels."""
    if processor in KERNELS and (reason := tell_why_not(processor)):
        pytest.skip(reason)
    env = os.environ | PROCESSORS[processor] | {"PYTHONPATH": os.pathsep.join(sys.path)} | more
    done = subprocess.run(
        [sys.executable, *words], env=env, capture_output=True, text=True, timeout=280, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@functools.cache
def here():
    return fingerprints()


def test_every_generated_set_is_compared():
    kinds = (registry.load("dataset", name) for name in registry.names("dataset"))
    made = {kind.__module__.rpartition(".")[2] for kind in kinds if kind.where == "generated"}
    assert made <= set(SETS)


@pytest.mark.parametrize(
    "processor",
    ["Prescott", *(pytest.param(p, marks=pytest.mark.slow) for p in list(PROCESSORS)[1:])],
)
def test_data_are_the_same_bytes_on_every_processor(processor):
    program = "import json; from tests.datasets.test_processors import fingerprints as f; "
    found = json.loads(elsewhere(processor, "-c", program + "print(json.dumps(f()))"))
    assert found == here()


@pytest.mark.slow
def test_results_differ_by_rounding_alone(tmp_path):
    """The noise, which a fingerprint keys, is the same, so that risks are near each other."""
    words = ["run", "dataset=synthetic_logistic", "dataset.n=300", "dataset.rows=clip", "trials=2"]
    words += ["mechanism=[noisy_gd,objective_perturbation,output_perturbation]", "ridge=0.1"]
    words += ["seed=[0,1]", "format=json"]
    rows = {}
    if not X86:
        pytest.skip("kernels of x86-64")
    known = [name for name in ("SkylakeX", "Prescott", "Haswell", "Zen") if not tell_why_not(name)]
    assert len(known) > 1
    for processor in known:
        out = tmp_path / processor
        more = {"DPERM_CACHE_DIR": str(tmp_path / f"cache {processor}")}
        text = elsewhere(processor, "-m", "dperm_cli", *words, f"out={out}", **more)
        rows[processor] = [json.loads(line) for line in text.splitlines()]
    first = rows.pop(known[0])
    assert len(first) == 6
    for found in rows.values():
        assert len(found) == len(first)
        for mine, theirs in zip(first, found, strict=True):
            differing = {key for key in mine if not near(mine[key], theirs[key])}
            assert {key for key in differing if not key.startswith("seconds")} == set()


def near(one, other):
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(near, one, other))
    return one == other


# --- what they are made of


def test_squares_are_added_in_one_order():
    """Even and odd columns apart, of whole groups of eight the last first; in any layout."""
    for p in (1, 2, 7, 8, 9, 31, 100):
        x = np.random.default_rng(p).standard_normal((5, p))
        expected = []
        for row in x:
            sums = [0.0, 0.0]
            whole = p // 8 * 8
            groups = [range(g, g + 8, 2) for g in range(0, whole, 8)]
            order = [j for group in groups for j in reversed(group)] + list(range(whole, p, 2))
            for j in order:
                sums[0] += row[j] * row[j]
                sums[1] += row[j + 1] * row[j + 1] if j + 1 < p else 0.0
            expected.append(math.sqrt(sums[0] + sums[1]))
        assert row_norms(x).tolist() == expected
        assert row_norms(np.asfortranarray(x)).tolist() == expected
        assert row_norms(x[:1]).tolist() == expected[:1]


def test_products_are_added_column_by_column():
    x = np.random.default_rng(0).standard_normal((5000, 9))
    theta = np.random.default_rng(1).standard_normal(9)
    expected = [sum(a * b for a, b in zip(row, theta.tolist(), strict=True)) for row in x.tolist()]
    assert responses(x, theta).tolist() == expected


@pytest.mark.parametrize("degree", [1, 2, 7, 100])
def test_roots_are_rounded_down_or_exact(degree):
    values = np.append(np.random.default_rng(0).random(1000), 0.0)
    found = roots(values, degree)
    assert degree < 3 or np.all(found * 2.0**32 % 1.0 == 0.0)
    assert np.all((found <= values ** (1 / degree) + 1e-15) & (found < 1.0))
    assert np.all(values ** (1 / degree) < found + 2.0**-32 + 1e-15)


EXCESS = """
import numpy as np
from dperm_cli.loops import log_odds
rng = np.random.default_rng(0)
for p, dimension in ((1, 1), (2, 2), (7, 9), (100, 100)):
    points, best = 3.0 * rng.standard_normal((9, p)), rng.standard_normal(p)
    print(log_odds.find_excess(points, best, dimension, 1.0).tobytes().hex())
"""


@pytest.mark.skipif(not X86, reason="features of x86-64")
def test_population_risks_of_logistic_data_are_the_same_on_another_processor():
    done = subprocess.run(
        [sys.executable, "-c", EXCESS], capture_output=True, text=True, check=True
    )
    assert len(done.stdout.split()) == 4
    assert elsewhere("Prescott", "-c", EXCESS) == done.stdout
