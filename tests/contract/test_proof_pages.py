"""One proof page for each mechanism: theorem, constants traced to code, deviations."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

from dperm_cli.core import registry

ROOT = Path(__file__).resolve().parents[2]
CALIBRATE = "privacy.accounting.calibrate"
PROOFS = ROOT / "docs" / "proofs"
PACKAGE = ROOT / "dperm_cli"
ROOMS = (
    "cli|runner|results|audit|mechanisms|bounds|views|samplers|kernels|solvers|datasets|losses|sets"
    "|problem|privacy|loops|core"
)
SYMBOL = re.compile(rf"`((?:{ROOMS})(?:\.\w+)+)`")
PATH = re.compile(
    r"`((?:dperm_cli|tests|docs|benchmarks|conf)/[\w/.]+\.(?:py|md|yaml))(?:::(\w+))?`"
)
SECTIONS = ("## Algorithm", "## Privacy", "## Constants", "## Deviations")
LEAST = 8  # constants a mechanism has at the very least: L, S, T, sigma, ...


def resolve(symbol: str) -> object:
    """``privacy.events.Gaussian.scale``: a module, then attributes or dataclass fields."""
    words = symbol.split(".")
    for cut in range(len(words), 0, -1):
        name = ".".join(["dperm_cli", *words[:cut]])
        if _exists(words[:cut]):
            found: object = importlib.import_module(name)
            break
    else:
        raise AttributeError(symbol)
    for word in words[cut:]:
        fields = getattr(found, "__dataclass_fields__", {})
        found = getattr(found, word) if hasattr(found, word) else fields[word]
    return found


def _exists(words: list[str]) -> bool:
    path = PACKAGE.joinpath(*words)
    return path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()


def constants(page: str) -> list[list[str]]:
    """The rows of the table of constants, cell by cell."""
    section = re.search(r"^## Constants\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
    rows = [] if section is None else re.findall(r"^\|(.+)\|$", section[1], re.MULTILINE)
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", row)] for row in rows[2:]]


def faults(page: str) -> list[str]:
    """What is wrong with a page, in words."""
    found = [f"no section {s}" for s in SECTIONS if not re.search(rf"^{s}", page, re.MULTILINE)]
    if not re.search(r"^\*\*Theorem", page, re.MULTILINE) or "*Proof.*" not in page:
        found.append("no theorem with a proof")
    if not re.search(r"\[[A-Z]+\d\d, ", page):
        found.append("no source")
    rows = constants(page)
    found += [f"only {len(rows)} constants"] if len(rows) < LEAST else []
    found += [f"no code for {row[0]}" for row in rows if not SYMBOL.search(row[-1])]
    for symbol in SYMBOL.findall(page):
        try:
            resolve(symbol)
        except (AttributeError, KeyError, ImportError):
            found.append(f"no symbol {symbol}")
    found += [f"no file {path}" for path, _ in PATH.findall(page) if not (ROOT / path).exists()]
    return found


@pytest.mark.parametrize("name", registry.names("mechanism"))
def test_page(name):
    path = PROOFS / f"{name}.md"
    assert path.exists()
    page = path.read_text()
    assert faults(page) == []
    assert f"{registry.find_modules('mechanism')[name].removeprefix('dperm_cli.')}." in page


def test_no_page_without_its_mechanism():
    pages = {path.stem for path in PROOFS.glob("[!_]*.md")}
    assert pages == set(registry.names("mechanism"))


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        (f"{CALIBRATE}.scale_for", f"{CALIBRATE}.scale_four", "no symbol"),
        (f"{CALIBRATE}.scale_for", "privacy.calibration.scale_for", "no symbol"),
        ("privacy.events.Gaussian.sensitivity", "privacy.events.Gaussian.sensitive", "no symbol"),
        ("problem.problem.ProblemSpec.lipschitz", "problem.problem.ProblemSpec.lip", "no symbol"),
        ("`mechanisms.gradient.noisy_gd.STEPS`", "200", "no code for T"),
        ("## Constants", "## Numbers", "no section ## Constants"),
        ("## Deviations", "## Remarks", "no section ## Deviations"),
        ("**Theorem", "**Remark", "no theorem"),
        ("tests/mechanisms/test_noisy_gd.py", "tests/mechanisms/test_gone.py", "no file"),
    ],
)
def test_a_wrong_page_is_noticed(old, new, fault):
    page = (PROOFS / "noisy_gd.md").read_text()
    assert old in page
    assert any(fault in found for found in faults(page.replace(old, new)))
