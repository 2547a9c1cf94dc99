"""How these tests speak to dperm: by the command line, and by public names of the package."""

from __future__ import annotations

import csv
import importlib
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.forked import run_forked

ROOT = Path(__file__).resolve().parents[2]
DPERM = (sys.executable, "-m", "dperm_cli")
# a small problem that takes milliseconds a cell
SMALL = ("dataset=diabetes", "loss=squared", "constraint.radius=1", "trials=2")


def mostly_slow(values, *shown):
    """Parameters of which only those ``shown`` run in the default suite."""
    assert set(shown) <= set(values)
    slow = pytest.mark.slow
    return [one if one in shown else pytest.param(one, marks=slow) for one in values]


def public(name: str):
    """Give the public object ``dperm_cli.<name>``."""
    package = importlib.import_module("dperm_cli")
    assert hasattr(package, name), f"dperm_cli has no {name}"
    return getattr(package, name)


def environment(folder: Path, **more: str) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if k not in ("DPERM_PLUGINS", "COLUMNS", "LINES")}
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    return {**kept, "PYTHONPATH": path, "MPLBACKEND": "agg", **more}


def dperm(*args, cwd: Path, code: int | None = None, limit: float = 200, **more: str):
    """Run a command; with ``code`` assert how it ends.

    Returns:
        What ``subprocess.run`` gives, with stdout and stderr as text.
    """
    words, env = [*map(str, args)], environment(cwd, **more)
    if all(name.startswith("DPERM_") for name in more):
        done = run_forked(words, cwd, env, limit)
    else:  # such as a variable that Python reads when it starts
        done = subprocess.run(
            [*DPERM, *words], cwd=cwd, env=env, capture_output=True, text=True, timeout=limit,
            check=False,
        )  # fmt: skip
    if code is not None:
        assert done.returncode == code, f"exit {done.returncode}: {done.stdout}\n{done.stderr}"
    return done


def python(text: str, *args, cwd: Path, code: int = 0, **more: str):
    """Run a script in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", text, *map(str, args)],
        cwd=cwd,
        env=environment(cwd, **more),
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == code, f"exit {done.returncode}: {done.stdout}\n{done.stderr}"
    return done


def refused(done, *words: str) -> str:
    """Assert that a command was refused in one line with these words; give the line."""
    lines = done.stderr.strip().splitlines()
    assert done.returncode == 2, f"exit {done.returncode}: {done.stderr}"
    assert done.stdout == ""
    assert len(lines) == 1, done.stderr
    assert "Traceback" not in done.stderr
    for word in words:
        assert re.search(word, lines[0], re.IGNORECASE), f"{word!r} is not in {lines[0]!r}"
    return lines[0]


def table(folder: Path) -> list[dict[str, str]]:
    with (folder / "table.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def plugin_words(row: dict[str, str]) -> str:
    """What a row says of plug-ins: all columns with ``plugin`` in their name."""
    return " ".join(str(value) for key, value in row.items() if "plugin" in key)


def digests(text: str) -> set[str]:
    """All digests (12 or more hexadecimal digits) in a text."""
    return set(re.findall(r"\b[0-9a-f]{12,}\b", text))


def json_lines(text: str) -> list[dict]:
    return [json.loads(line) for line in io.StringIO(text)]


def texts_of(figure):
    """Each visible text of a figure with its bounding box in pixels."""
    from matplotlib.text import Text

    figure.canvas.draw()
    renderer = figure.canvas.get_renderer()
    hidden = {id(tick.label1) for axes in figure.axes for tick in outside_ticks(axes)}
    found = []
    for text in figure.findobj(Text):
        if text.get_visible() and text.get_text().strip() and id(text) not in hidden:
            found.append((text, text.get_window_extent(renderer)))
    return found


def outside_ticks(axes):
    """Ticks beyond the limits, which matplotlib keeps and does not draw."""
    for axis, limits in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
        low, high = sorted(limits)
        for tick in [*axis.get_major_ticks(), *axis.get_minor_ticks()]:
            if not axis.get_visible() or not axes.axison or not low <= tick.get_loc() <= high:
                yield tick


def legend_entries(figure) -> dict[str, tuple[str, str]]:
    """Colour and marker of each name in the figure's legends."""
    from matplotlib.colors import to_hex
    from matplotlib.legend import Legend
    from matplotlib.lines import Line2D

    entries = {}
    for legend in figure.findobj(Legend):
        for handle, text in zip(legend.legend_handles, legend.get_texts(), strict=True):
            lines = [handle, *handle.findobj(Line2D)] if handle is not None else []
            for line in lines:
                if isinstance(line, Line2D):
                    marker = str(line.get_marker())
                    entries[text.get_text()] = (to_hex(line.get_color()), marker)
                    break
    return entries


def drawn_panels(figure):
    """Axes on which data are drawn: the place of a legend is none."""
    return [axes for axes in figure.axes if axes.axison and (axes.lines or axes.collections)]


def column(frame, *names: str) -> str:
    """The first of these columns that a frame has."""
    for name in names:
        if name in frame.columns:
            return name
    raise AssertionError(f"none of {names} is in {list(frame.columns)}")
