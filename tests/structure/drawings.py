"""The two drawings of ``docs/architecture.md``: the rooms, and the way of the data.

    python -m tests.structure.drawings

writes both into the page again. The rooms are those of the import rules in ``pyproject.toml``, each
with the first sentence of its docstring.
"""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "architecture.md"
PACKAGE = "dperm_cli"

# What the data are on their way, the file that makes it, and what is done there.
WAY: tuple[tuple[str, str, str], ...] = (
    ("argv", "cli.py", "the words behind a verb"),
    ("request", "runner/compose/command_line.py", "read by Hydra's grammar, lists are axes"),
    ("configurations", "runner/compose/composer.py", "one for each choice of groups"),
    ("typed cells", "runner/compose/cell_schema.py", "every key of every cell is checked"),
    ("data", "datasets/shared/row_pipeline.py", "read, named, split, scaled by public bounds"),
    ("problem", "problem/problem.py", "data, loss and set joined, and the public facts"),
    ("optimum", "solvers/optimum.py", "the point without noise, with a certified gap"),
    ("plan", "mechanisms/base.py", "events and noise, from public facts alone"),
    ("checked plan", "runner/cells/cell_budget.py", "events added up again, or refused"),
    ("release", "privacy/gate.py", "all trials at once, noise through the gate"),
    ("rows", "runner/cells/run_cell.py", "one for each trial"),
    ("atomic file", "results/records/store.py", "one for each cell, whole or not at all"),
    ("summary", "results/records/summary.py", "one row for each cell"),
)
ENDS: tuple[tuple[str, str], ...] = (
    ("table", "results/tables/summary_table.py"),
    ("figure", "results/charts/study_figure.py"),
    ("page", "results/page/html_page.py"),
    ("ledger", "results/ledger/ledger.py"),
    ("claims", "results/claims/judge.py"),
)


def read_layers(pyproject: Path = ROOT / "pyproject.toml") -> list[list[str]]:
    """The rooms of the import rules, from the top: rooms of one layer do not import each other."""
    contracts = tomllib.loads(pyproject.read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    (layers,) = (contract["layers"] for contract in contracts if contract["type"] == "layers")
    return [[room.strip().split(".")[-1] for room in layer.split("|")] for layer in layers]


def draw_rooms() -> str:
    """A line a room, from the top; rooms that hang on ``+--`` side by side are of one layer."""
    layers = read_layers()
    width = len("+-- ") + max(len(room) for layer in layers for room in layer)
    lines = []
    for place, rooms in enumerate(layers):
        lines += ["  |"] if place else []
        for room in rooms:
            name = room if len(rooms) == 1 else f"+-- {room}"
            lines.append(f"  {name:<{width}}   {_read_purpose(room)}")
    return "\n".join(lines) + "\n"


def draw_data_way() -> str:
    """A line a step, and what is made of the records at the end."""
    width = max(len(name) for name, *_ in WAY)
    most = max(len(file) for _, file, _ in WAY)
    lines = []
    for place, (name, file, what) in enumerate(WAY):
        lines += ["  |"] if place else []
        lines.append(f"  {name:<{width}}   {file:<{most}}   {what}")
    lines.append("  |")
    lines += [f"  {'+-- ' + name:<{width}}   {file}" for name, file in ENDS]
    return "\n".join(lines) + "\n"


DRAWINGS = {"rooms": draw_rooms, "the way of the data": draw_data_way}


def put_drawings(page: str) -> str:
    """The page with its drawings made anew: the blocks below ``<!-- drawing: NAME -->``."""
    for name, draw in DRAWINGS.items():
        head = f"<!-- drawing: {name} -->\n```text\n"
        before, rest = page.split(head)
        page = before + head + draw() + "```" + rest.split("```", 1)[1]
    return page


def _read_purpose(room: str) -> str:
    """The first sentence of a room's docstring, on one line."""
    path = ROOT / PACKAGE / room / "__init__.py"
    path = path if path.exists() else path.parent.with_suffix(".py")
    text = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
    return " ".join(text.split("\n\n")[0].split())


if __name__ == "__main__":
    PAGE.write_text(put_drawings(PAGE.read_text("utf-8")), "utf-8")
