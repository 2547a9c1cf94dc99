"""Nothing but the gate draws noise: a search of the sources."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
from pathlib import Path

import pytest

import dperm_cli.loops
from dperm_cli.privacy import streams

PACKAGE = Path(__file__).resolve().parents[2] / "dperm_cli"

GATE = {
    "privacy/gate.py", "privacy/accounting/generator_range.py", "privacy/streams.py",
    "privacy/secure_noise.py", "privacy/secure_gamma.py", "privacy/grid_noise.py",
    "privacy/secure_wishart.py", "privacy/bit_strings.py",
    "privacy/secure_choice.py", "privacy/secure_batches.py", "privacy/secure_direction.py",
    "privacy/choice_stream.py",
    "privacy/events",  # an event opens its stream
}  # fmt: skip
# Rooms that may have a generator, and what for.
GENERATORS = {
    "core/seeds.py",  # makes them
    "datasets",  # synthetic records, splits of a data set
    "sets",  # Gaussian widths, an image's default matrix
    "problem/random_projection.py",  # public random matrices
    "losses/base.py",  # start of a power iteration
    "kernels/rbf.py",  # public frequencies of finite maps
    "kernels/shared/feature_maps.py",  # the generator of these
    "runner/verbs/describe.py",  # Gaussian widths
    "runner/cells/channel_rows.py",  # answers of channels to a public vector
    "runner/cells/geometry_rows.py",  # Gaussian widths and public points to lift
    "runner/audit_request.py",  # a fresh seed for an audit
    "runner/audits/fuzz.py",  # a fresh seed for a search
    "runner/audits/canary_audit.py",  # coins that decide the records foreign mechanisms are run on
    "runner/audits/outside_audit.py",  # data sets on which foreign mechanisms are tried
    "runner/audits/outside_targets.py",  # fresh seeds for these
    "results/claims/intervals.py",  # the bootstrap of claims
    "runner/verbs/ask.py",  # a fresh seed for a session
    "runner/models/session_record.py",  # names of sessions
    "runner/models/budget_ledger.py",  # names of entries
    "estimators/base.py",  # the seed of research noise, from scikit-learn's random state
    "runner/peers",  # methods of other people, which run apart and draw noise of their own
    "audit",  # attacks: neighbours and halves of runs
    "results/ledger/release_log_lines.py",  # names of fresh releases
    "core/files.py",  # names of temporary files
    "runner/sweep/shared_data.py",  # names of temporary folders
    "runner/forecasts/risk_curves.py",  # records and noise of problems that stand for another
    "runner/forecasts/choice_forecast.py",  # choices on such problems; no records are read
    "runner/forecasts/rehearsal.py",  # which of the public records a forecast runs on
}
MODULES = {"random", "secrets", "uuid"}
# Functions that make random numbers, of a generator or of words, wherever they are imported.
HANDED = {
    "os.urandom", "dperm_cli.core.seeds.generator", "dperm_cli.loops.exact_noise.fill",
    "dperm_cli.loops.exact_noise.fill_strings",
}  # fmt: skip
METHODS = {
    "standard_normal", "normal", "laplace", "exponential", "standard_exponential", "gamma",
    "standard_gamma", "uniform", "integers", "permutation", "shuffle", "multivariate_normal",
    "bytes", "logistic", "gumbel", "vonmises", "rvs",
}  # fmt: skip
KERNELS = {
    "dperm_cli.loops.gaussian_noise", "dperm_cli.loops.exponential_noise",
    "dperm_cli.privacy.secure_noise", "dperm_cli.privacy.secure_gamma",
    "dperm_cli.privacy.secure_wishart", "dperm_cli.privacy.bit_strings",
    "dperm_cli.privacy.streams",
}  # fmt: skip
# What the gate and its streams say to each other; nobody else asks a gate for these.
INSIDE = {"keys", "draws", "batches", "steps", "source", "next_number"}
STREAMS = {
    name
    for name, kind in vars(streams).items()
    if inspect.isclass(kind) and issubclass(kind, streams.Stream)
}
SEALED = {"SealedNoise", "SealedBatches", "SealedAnswers"}
# The gate, and the accountant's module with a function named after the Laplace mechanism.
NO_GENERATORS = {"gate", "self", "bounded_laws"}


# A trial with public numbers, by which a plan decides whether a set can be drawn from at all.
TRIALS = {"samplers/shared/uniform.py": "_Fixed"}


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
            if node.module == "dperm_cli.privacy.streams":
                names = {a.name for a in node.names} - described(tree)
                found |= {f"{node.module}.{name}" for name in names}
            found |= {n for n in names if n in MODULES | KERNELS or n.startswith("numpy.random")}
            found |= {n for n in names if n in HANDED}
        elif isinstance(node, ast.Attribute):
            name = ast.unparse(node)
            if name == "os.urandom" or name == "exact_noise.fill":
                found.add(name)
            if node.attr in INSIDE and ast.unparse(node.value).split(".")[-1] in ("gate", "_gate"):
                found.add(name)
            if name.startswith(("np.random.", "numpy.random.")) and not name.endswith(
                (".SeedSequence", ".Generator")
            ):
                found.add(name)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            receiver = ast.unparse(node.func.value)
            if node.func.attr == "open" and any("gate" in ast.unparse(a) for a in node.args):
                found.add(f"{receiver}.open")  # past the plan
            if node.func.attr not in METHODS or receiver in NO_GENERATORS:
                continue
            if id(node.func.value) not in handed:
                found.add(f"{receiver}.{node.func.attr}")
    return found


def described(tree: ast.AST) -> set[str]:
    """Streams that a file names in annotations alone, and ``LAW``, which draws nothing."""
    noted = [
        child
        for node in ast.walk(tree)
        for child in (getattr(node, "annotation", None), getattr(node, "returns", None))
        if child is not None
    ]
    harmless = {id(inner) for note in noted for inner in ast.walk(note)}
    used = {
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and id(node) not in harmless
    }
    return (STREAMS - used) | {"LAW"}


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
        rooms = {*GATE, *GENERATORS, "loops"}
        allowed = any(name == room or name.startswith(f"{room}/") for room in rooms)
        found = set() if allowed else draws(path.read_text(), TRIALS.get(name, ""))
        if found:
            faults[name] = found
    assert faults == {}


def test_a_source_is_made_of_a_stream_of_the_gate_alone():
    """Outside ``Numbers``, no class has both methods of a Source but the one of ``TRIALS``."""
    makers = set()
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text()
        if "def uniform" not in text and "def normal" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ClassDef):
                methods = {n.name for n in node.body if isinstance(n, ast.FunctionDef)}
                if methods & {"uniform", "normal"}:
                    makers.add((path.relative_to(PACKAGE).as_posix(), node.name))
    assert makers == {
        ("views/central.py", "TrialNumbers"),
        ("samplers/base.py", "Source"),  # the protocol
        ("audit/contracts/sampler_contract.py", "Numbers"),  # draws of a test, and no release
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
        "from dperm_cli.core.seeds import generator",
        "from dperm_cli.loops import gaussian_noise",
        "from dperm_cli.loops.exact_noise import fill",
        "from dperm_cli.loops import exact_noise\nexact_noise.fill(True, w, m, 22, out, 0)",
        "from dperm_cli.privacy import secure_noise",
        "def f(rng):\n    return rng.standard_normal(3)",
        "x = stats.norm.rvs(3)",
        "def f(source):\n    return source.uniform(3)",
        "def f(source: Source):\n    source = other\n    return source.uniform(3)",
        "def f(source: Source):\n    return [rng.normal(3) for rng in others]",
        "def f(source: Source):\n    return (lambda source: source.normal(3))(other)",
        "class _Fixed:\n    def f(self, rng):\n        return rng.normal(3)",
        "from dperm_cli.privacy import streams",
        "from dperm_cli.privacy.streams import Keyed",
        "from dperm_cli.privacy.streams import stream_key",
        "from dperm_cli.privacy.streams import NoiseStream\n"
        "def f(gate, event):\n    return NoiseStream(gate, event, 'gaussian', 3)",
        "from dperm_cli.privacy.streams import NoiseStream\nclass Mine(NoiseStream):\n    pass",
        "def f(gate):\n    return gate.keys()",
        "def f(self):\n    return self._gate.source(8)",
        "def f(gate, event):\n    return event.open(gate, 3)",
    ],
)
def test_the_search_for_other_draws_finds_them(source):
    assert draws(source)
    assert not draws("def f(gate, event):\n    return gate.stream(event, 3).add(x, 0)")
    assert not draws(
        "from dperm_cli.privacy.streams import NoiseStream\n"
        "def f(noise: NoiseStream) -> NoiseStream | None:\n    return noise.add(x, 0)"
    )
    assert not draws("def f(source: Source):\n    return source.uniform(3)")


# --- what compiled loops are given ----------------------------------------------------------------


def calls(text: str, names: set[str]) -> set[str]:
    """Which of these a text calls, or hands on without calling: only annotations are left out."""
    if not any(name in text for name in names):
        return set()
    tree = ast.parse(text)
    noted = [
        child
        for node in ast.walk(tree)
        for child in (getattr(node, "annotation", None), getattr(node, "returns", None))
        if child is not None
    ]
    harmless = {id(inner) for note in noted for inner in ast.walk(note)}
    found = set()
    for node in ast.walk(tree):
        if id(node) in harmless:
            continue
        if isinstance(node, ast.Name | ast.Attribute):
            found.add(node.id if isinstance(node, ast.Name) else node.attr)
    return found & names


def test_only_streams_of_the_gate_make_what_compiled_loops_draw_from():
    """``warmup`` compiles the loops on two records of its own."""
    makers = {
        path.relative_to(PACKAGE).as_posix(): found
        for path in sorted(PACKAGE.rglob("*.py"))
        if (found := calls(path.read_text(), SEALED))
    }
    assert makers == {
        "privacy/streams.py": SEALED,
        "loops/warmup.py": {"SealedBatches", "SealedAnswers"},
    }


def test_the_search_for_makers_finds_them():
    for text in ("SealedNoise(k, 1.0, 3)", "sealed.SealedBatches(k, k, 1.0, 3, 9)",
                 "make = SealedAnswers", "noise._replace(scale=0.5)"):  # fmt: skip
        assert calls(text, SEALED | {"_replace"})
    assert not calls("def f(noise: SealedNoise) -> SealedNoise: return noise", SEALED)
    assert not calls("from dperm_cli.loops.sealed_noise import SealedNoise", SEALED)


def test_no_sealed_object_is_changed_on_its_way():
    """A named tuple can be copied with another scale."""
    changers = {
        path.relative_to(PACKAGE).as_posix()
        for path in sorted(PACKAGE.rglob("*.py"))
        if calls(path.read_text(), {"_replace", "_make"})
    }
    assert changers == {"samplers/shared/potential.py"}  # the kinks of a line


def test_no_public_loop_is_given_a_loose_noise_scale_or_loose_keys():
    """They get what the gate sealed: no plain number says how much noise there is."""
    faults, sealed = set(), set()
    for module in pkgutil.iter_modules(dperm_cli.loops.__path__):
        if module.name.startswith("_"):
            continue
        loop = importlib.import_module(f"dperm_cli.loops.{module.name}")
        for name, made in vars(loop).items():
            if name.startswith("_") or not inspect.isfunction(getattr(made, "py_func", made)):
                continue
            if getattr(made, "__module__", "") != loop.__name__:
                continue
            parameters = inspect.signature(getattr(made, "py_func", made)).parameters
            loose = {"noise_scale", "noise_keys", "index_keys"} & set(parameters)
            faults |= {(module.name, name, word) for word in loose}
            notes = {str(p.annotation) for p in parameters.values()}
            sealed |= {(module.name, name) for note in notes if note in SEALED}
    assert faults == set()
    assert sealed == {
        ("sgd", "start"), ("sgd", "run"), ("reduced_sgd", "run"), ("reduced_sgd", "add_noise"),
        ("local_learning", "run"),
    }  # fmt: skip
