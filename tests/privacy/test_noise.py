"""The gate: what it hands out, to whom, which bytes, and that nothing else draws noise."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest

from dperm_cli.core.errors import PrivacyError
from dperm_cli.core.rng import seed_sequence
from dperm_cli.loops import exponential
from dperm_cli.privacy.events import (
    Exponential,
    GammaNorm,
    Gaussian,
    Laplace,
    SampledGaussian,
)
from dperm_cli.privacy.noise import Gate, range_delta

PACKAGE = Path(__file__).resolve().parents[2] / "dperm_cli"
KINDS = {"gaussian": Gaussian, "laplace": Laplace, "gamma_norm": GammaNorm}


def seeds(count=2, seed=0):
    return [seed_sequence(seed, "gate", trial) for trial in range(count)]


def stream(gate, kind, **changes):
    facts = {"dim": 3, "count": 4, "scale": 2.0, "sensitivity": 1.0} | changes
    return getattr(gate, kind)(**facts)


# what dperm promises to draw again, on every version of Python and numpy
PINNED = {
    "gaussian": [
        "-0x1.789bfaa989f8dp+0",
        "-0x1.1e43e9b7d07adp+0",
        "0x1.4c3a09025b747p-2",
        "0x1.cc39f42b102c8p+0",
        "-0x1.264015b2d632ep-1",
        "0x1.5df5a69ec99f7p+0",
    ],
    "laplace": [
        "-0x1.227e7c51f3989p-1",
        "-0x1.5e69a48200ecdp+0",
        "0x1.9239bddafaea0p+1",
        "0x1.467201a7ac130p+0",
        "-0x1.bc982b11bd414p+0",
        "0x1.c96464dcb8f9bp+1",
    ],
    "gamma_norm": [
        "-0x1.76f14eb467e3bp-2",
        "-0x1.3e8fb365e3a1ap+2",
        "-0x1.e0d5cccf317a5p-1",
        "-0x1.4e4fbccd89aa5p+2",
        "0x1.4902bd9a8b0efp+1",
        "0x1.89f301cb6d370p+1",
    ],
}
PINNED_UNIFORMS = [
    "0x1.38909cf0c3584p-3",
    "0x1.45329e8f88d2dp-1",
    "0x1.a6c2249f20cb9p-1",
    "0x1.f1f08379834bfp-1",
]


@pytest.mark.parametrize("kind", KINDS)
def test_first_draws_are_these_bytes(kind):
    noise = stream(Gate(seeds()), kind)
    drawn = noise.add(np.zeros((2, 3)), 1)
    assert [value.hex() for value in drawn.ravel().tolist()] == PINNED[kind]


def test_first_uniforms_are_these_bytes():
    law = Gate(seeds()).law(exponent=1.0, oscillation=2.0)
    assert [value.hex() for value in law.uniforms(1, 0, 4).tolist()] == PINNED_UNIFORMS


@pytest.mark.parametrize("kind", KINDS)
def test_noise_is_keyed_by_trial_stream_and_step(kind):
    """All differ, and none depends on the order of asking or on the trials beside it."""
    zero = np.zeros((2, 3))
    gate = Gate(seeds())
    first, second = stream(gate, kind), stream(gate, kind)
    draws = [s.add(zero, step) for s in (first, second) for step in (3, 0)]
    assert len(np.unique(np.concatenate(draws))) == 4 * 6
    alone = stream(Gate(seeds()[1:]), kind).add(zero[:1], 0)
    assert np.array_equal(alone[0], draws[1][1])
    other = stream(Gate(seeds(seed=1)), kind).add(zero, 0)
    assert not np.any(other == draws[1])


def test_law_uniforms_are_one_sequence_read_anywhere():
    law = Gate(seeds()).law(exponent=1.0, oscillation=2.0, count=2)
    whole = law.uniforms(0, 1, 50)
    assert np.array_equal(law.uniforms(0, 1, 20, start=13), whole[13:33])
    assert 0.0 < whole.min() < whole.max() < 1.0
    assert not np.any(np.isin(whole, law.uniforms(0, 0, 50)))
    assert not np.any(np.isin(whole, law.uniforms(1, 1, 50)))


def test_an_exponential_passes_the_end_of_its_first_word():
    """A word whose U is the least one takes another word: E = 52 ln 2 + E'."""
    key = np.ones(2, np.uint64)
    last = np.uint64(2**64 - 1)
    deep = exponential._exponential.py_func(key[0], key[1], np.uint64(0), np.uint64(5), last)
    word, _ = exponential.words(key[0], key[1], np.uint64(0), np.uint64(5 + 2**24))
    expected = 52 * np.log(2.0) - np.log(exponential.unit(word))
    assert deep == pytest.approx(expected, rel=1e-14)
    assert deep > 52 * np.log(2.0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "change", [{"scale": 1.0}, {"count": 3}, {"sensitivity": 2.0}, {"sensitivity": 1.0 + 1e-9}]
)
def test_noise_must_be_an_event_of_the_plan(kind, change):
    plan = ([KINDS[kind](2.0, 0.5, 4)], "replace_one")
    stream(Gate(seeds(), plan=plan), kind)
    with pytest.raises(PrivacyError, match="no event of the plan"):
        stream(Gate(seeds(), plan=plan), kind, **change)


@pytest.mark.parametrize("kind", KINDS)
def test_noise_must_be_of_the_events_kind_and_is_handed_out_once(kind):
    gate = Gate(seeds(), plan=([KINDS[kind](2.0, 0.5, 4)], "replace_one"))
    for other in set(KINDS) - {kind}:
        with pytest.raises(PrivacyError):
            stream(gate, other)
    noise = stream(gate, kind)
    with pytest.raises(PrivacyError):
        stream(gate, kind)
    noise.add(np.zeros((2, 3)), 0)
    with pytest.raises(PrivacyError, match="second time"):
        noise.add(np.zeros((2, 3)), 0)
    with pytest.raises(PrivacyError, match="step 4 of a stream of 4"):
        noise.add(np.zeros((2, 3)), 4)


def test_batches_must_be_an_event_of_the_plan():
    facts = {"population": 9, "batch": 2, "sampling": "fixed", "count": 4}
    event = SampledGaussian(2.0, 0.5, 2, 9, "fixed", 4)
    gate = Gate(seeds(), plan=([event], "replace_one"))
    for change in ({"population": 8}, {"batch": 3}, {"sampling": "poisson"}, {"count": 5}):
        with pytest.raises(PrivacyError):
            gate.choice(**{**facts, **change})
    stream(gate, "gaussian")
    gate.choice(**facts)
    with pytest.raises(PrivacyError):
        gate.choice(**facts)
    with pytest.raises(PrivacyError):
        Gate(seeds(), plan=([Gaussian(2.0, 0.5, 4)], "replace_one")).choice(**facts)


def test_a_law_must_be_an_event_of_the_plan():
    def gate():
        return Gate(seeds(), plan=([Exponential(0.5, 1.5, 2)], "replace_one"))

    gate().law(exponent=0.5, oscillation=3.0, count=2)
    for change in ({"exponent": 0.6}, {"oscillation": 1.5}, {"count": 1}):
        with pytest.raises(PrivacyError):
            gate().law(**({"exponent": 0.5, "oscillation": 3.0, "count": 2} | change))
    law = gate().law(exponent=0.5, oscillation=3.0, count=2)
    law.release(np.zeros((2, 3)), 0)
    with pytest.raises(PrivacyError):
        law.release(np.zeros((2, 3)), 0)


class Tape:
    """Writes down which method heard what, and hands back 7."""

    def __init__(self):
        self.heard = []

    def __getattr__(self, name):
        def hear(*facts):
            self.heard.append((name, facts))
            return 7.0

        return hear


def test_a_tape_hears_every_kind_and_closes_the_compiled_path():
    tape = Tape()
    gate = Gate(seeds(), tape)
    assert not gate.compiled
    for kind in KINDS:
        noise = stream(gate, kind)
        assert noise.add(np.ones((2, 3)), 0) == 7.0
        with pytest.raises(PrivacyError, match="past the tape"):
            _ = noise.keys
    law = gate.law(exponent=0.5, oscillation=3.0)
    assert law.release(np.ones((2, 3)), 0) == 7.0
    assert [name for name, _ in tape.heard] == ["noise", "laplace", "gamma_norm", "law"]
    for _, (value, scale, sensitivity, drawn) in tape.heard[:3]:
        assert np.array_equal(value, np.ones((2, 3)))
        assert (scale, sensitivity, drawn.shape) == (2.0, 1.0, (2, 3))
    assert tape.heard[3][1][:2] == (0.5, 3.0)


def test_the_range_of_exponentials_never_matters_and_that_of_normals_does():
    assert (
        range_delta([Laplace(1.0, 4000.0), GammaNorm(1.0, 4000.0, 10**6)], "replace_one", 9) == 0.0
    )
    assert range_delta([Laplace(1.0, 5000.0)], "replace_one", 9) == 1.0
    assert range_delta([Exponential(1.0, 1.0)], "replace_one", 9) == 0.0
    normal = [range_delta([Gaussian(1.0, norm, 3)], "replace_one", 2) for norm in (0.0, 1.0, 5.0)]
    assert normal[0] == 0.0
    assert 3 * 2.0**-64 < normal[1] < 1e-10
    assert normal[2] == 3.0


def test_the_range_counts_every_pair_of_coordinates():
    """A shift spread over all pairs pushes about half of each pair's atom out of the range."""
    pairs, shift = 500_000, 0.5
    spread = range_delta([Gaussian(1.0, shift / 2.0)], "replace_one", 2 * pairs)
    assert spread >= pairs * 2.0**-65
    # and the worst of all ways to spread it over a few pairs, by search
    atom, rng = 2.0**-64, np.random.default_rng(0)
    for m in (1, 2, 5, 20):
        bound = range_delta([Gaussian(1.0, shift / 2.0)], "replace_one", 2 * m)
        parts = rng.dirichlet(np.full(m, 0.3), 2000)
        t = shift * np.sqrt(np.vstack([parts, np.full((1, m), 1.0 / m), np.eye(m)]))
        h = np.exp(-((np.sqrt(128 * np.log(2)) - t) ** 2) / 2.0)
        assert np.max(np.sum(h + atom, axis=1)) <= bound * (1 + 1e-12)


def test_a_value_of_another_shape_gets_no_noise():
    """One draw spread over two coordinates would cancel in their difference."""
    gate = Gate([np.random.SeedSequence(0)])
    stream = gate.gaussian(dim=1, count=1, scale=1.0, sensitivity=1.0)
    with pytest.raises(PrivacyError, match="shape"):
        stream.add(np.zeros((1, 2)), 0)


# --- nothing else draws noise -------------------------------------------------------------------

GATE = {
    "privacy/noise.py", "privacy/_range.py", "privacy/_streams.py", "privacy/_exact.py",
}  # fmt: skip
# Rooms that may have a generator, and what for.
GENERATORS = {
    "core/rng.py",  # makes them
    "problem/datasets",  # synthetic records, splits of a data set
    "problem/constraints",  # Gaussian widths, an image's default matrix
    "problem/transforms",  # public random matrices
    "problem/_first_order.py",  # start of a power iteration
    "problem/kernels",  # public frequencies of finite maps
    "runner/describe.py",  # Gaussian widths
    "runner/geometry.py",  # Gaussian widths and public points to lift
    "runner/audit.py",  # a fresh seed for an audit
    "runner/fuzz.py",  # a fresh seed for a search
    "runner/ask.py",  # a fresh seed for a session
    "runner/sessions.py",  # names of sessions
    "audit",  # attacks: neighbours and halves of runs
    "results/store.py",  # names of temporary files
    "runner/spool.py",  # names of temporary folders
}
MODULES = {"random", "secrets", "uuid"}
METHODS = {
    "standard_normal", "normal", "laplace", "exponential", "standard_exponential", "gamma",
    "standard_gamma", "uniform", "integers", "permutation", "shuffle", "multivariate_normal",
    "bytes", "logistic", "gumbel", "vonmises", "rvs",
}  # fmt: skip
KERNELS = {
    "dperm_cli.loops.gaussian", "dperm_cli.loops.exponential", "dperm_cli.privacy._exact",
    "dperm_cli.privacy._streams",
}  # fmt: skip
# The gate, and the accountant's module with a function named after the Laplace mechanism.
NO_GENERATORS = {"gate", "self", "_bounded"}


# A trial with public numbers, by which a plan decides whether a set can be drawn from at all.
TRIALS = {"samplers/_uniform.py": "_Fixed"}


def draws(text: str, skipped: str = "") -> set[str]:
    """The ways in which a file could draw random numbers without the gate.

    A function may use the ``Source`` that it was handed, and whoever makes one is ``Numbers``,
    from a stream of the gate. The class ``skipped`` is left out, if it is used only once.
    """
    tree = ast.parse(text)
    names = [n for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id == skipped]
    once = len(names) == 1
    left_out = {
        id(inner)
        for node in ast.walk(tree)
        if once and isinstance(node, ast.ClassDef) and node.name == skipped
        for inner in ast.walk(node)
    }
    handed = sources(tree)
    found = set()
    for node in ast.walk(tree):
        if id(node) in left_out:
            continue
        if isinstance(node, ast.Import):
            found |= {a.name for a in node.names if a.name in MODULES | KERNELS}
        elif isinstance(node, ast.ImportFrom):
            names = {f"{node.module}.{a.name}" for a in node.names} | {node.module}
            found |= {n for n in names if n in MODULES | KERNELS or n.startswith("numpy.random")}
            found |= {n for n in names if n in ("os.urandom", "dperm_cli.core.rng.generator")}
        elif isinstance(node, ast.Attribute):
            name = ast.unparse(node)
            if name == "os.urandom" or name == "exact.fill":
                found.add(name)
            if name.startswith(("np.random.", "numpy.random.")) and not name.endswith(
                (".SeedSequence", ".Generator")
            ):
                found.add(name)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            receiver = ast.unparse(node.func.value)
            if node.func.attr not in METHODS or receiver in NO_GENERATORS:
                continue
            if id(node.func.value) not in handed:
                found.add(f"{receiver}.{node.func.attr}")
    return found


def sources(tree: ast.AST) -> set[int]:
    """Ids of the names that stand for a parameter annotated ``Source``, never bound again."""
    found: set[int] = set()
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        parameters = [*function.args.args, *function.args.kwonlyargs]
        mine = {
            a.arg
            for a in parameters
            if a.annotation is not None and ast.unparse(a.annotation) == "Source"
        }
        uses = [n for n in ast.walk(function) if isinstance(n, ast.Name) and n.id in mine]
        bound = {n.id for n in uses if not isinstance(n.ctx, ast.Load)}
        # nor by a function inside that has a parameter of the same name
        bound |= {
            a.arg
            for inner in ast.walk(function)
            if isinstance(inner, ast.FunctionDef | ast.Lambda) and inner is not function
            for a in [*inner.args.args, *inner.args.kwonlyargs]
        }
        found |= {id(n) for n in uses if n.id not in bound}
    return found


def test_nothing_but_the_gate_draws_noise():
    faults = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        allowed = name in GATE or name.startswith("loops/")
        allowed |= any(name == room or name.startswith(f"{room}/") for room in GENERATORS)
        found = set() if allowed else draws(path.read_text(), TRIALS.get(name, ""))
        if found:
            faults[name] = found
    assert faults == {}


def test_a_source_is_made_of_a_stream_of_the_gate_alone():
    """Outside ``Numbers``, no class has both methods of a Source but the one of ``TRIALS``."""
    makers = set()
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                methods = {n.name for n in node.body if isinstance(n, ast.FunctionDef)}
                if methods & {"uniform", "normal"}:
                    makers.add((path.relative_to(PACKAGE).as_posix(), node.name))
    assert makers == {
        ("mechanisms/_views.py", "Numbers"),
        ("samplers/_target.py", "Source"),  # the protocol
        *TRIALS.items(),
    }


@pytest.mark.parametrize(
    "source",
    [
        "import random",
        "from random import gauss",
        "import secrets",
        "from os import urandom",
        "import os\nx = os.urandom(8)",
        "import numpy as np\nx = np.random.default_rng(0)",
        "import numpy as np\nx = np.random.Philox",
        "from numpy.random import default_rng",
        "from dperm_cli.core.rng import generator",
        "from dperm_cli.loops import gaussian",
        "from dperm_cli.privacy import _exact",
        "def f(rng):\n    return rng.standard_normal(3)",
        "x = stats.norm.rvs(3)",
        "def f(source):\n    return source.uniform(3)",
        "def f(source: Source):\n    source = other\n    return source.uniform(3)",
        "def f(source: Source):\n    return [rng.normal(3) for rng in others]",
        "def f(source: Source):\n    return (lambda source: source.normal(3))(other)",
        "class _Fixed:\n    def f(self, rng):\n        return rng.normal(3)",
    ],
)
def test_the_search_for_other_draws_finds_them(source):
    assert draws(source)
    assert not draws("def f(gate):\n    return gate.laplace(dim=1, count=1)")
    assert not draws("def f(source: Source):\n    return source.uniform(3)")
