"""Print measured ratios beside their targets, and tell which fell below what was kept of them."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable
from pathlib import Path

LOSS = 2 / 3  # of a kept ratio that is still well


def judge(found: Iterable[tuple[str, float, float]], file: Path, keep: bool) -> int:
    """Print each (name, ratio, target) as it comes; 1 where one fell by more than a third.

    ``file`` holds the ratios that were measured once; ``keep`` writes it anew.
    """
    kept = {}
    if file.exists():
        with open(file, newline="") as lines:
            kept = {row["ratio"]: float(row["measured"]) for row in csv.DictReader(lines)}
    measured, fell = [], []
    print(f"{'ratio':50s} {'measured':>9s} {'target':>7s} {'kept':>7s}")
    for name, ratio, target in found:
        before = kept.get(name)
        shown = "-" if before is None else f"{before:.2f}"
        print(f"{name:50s} {ratio:9.2f} {target:7.2f} {shown:>7s}", flush=True)
        measured.append((name, f"{ratio:.3g}", f"{target:g}"))
        if before is not None and ratio < LOSS * before:
            fell.append(name)
    if keep:
        with open(file, "w", newline="") as lines:
            csv.writer(lines, lineterminator="\n").writerows(
                [("ratio", "measured", "target"), *measured]
            )
    for name in fell:
        print(f"fell by more than a third: {name}", file=sys.stderr)
    return int(bool(fell))
