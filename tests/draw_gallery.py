"""Draw every figure that dperm makes, at the width at which it is printed, into one folder.

    python -m tests.draw_gallery FOLDER [KEPT]

Runs small studies, the pictures of ``account`` and ``describe``, and all experiments at size=small,
and writes ``index.html``, which shows each figure at its size in print, with its caption. With
KEPT, a folder of experiments that ran already, their records are used. Look at it after every
change of how figures are drawn.
"""

from __future__ import annotations

import contextlib
import html
import io
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from dperm_cli import cli
from dperm_cli.results.charts.study_view import read_view
from dperm_cli.results.charts.themes import DEFAULT_THEME, THEMES

_FAST = ("constraint.radius=1", "trials=5")
_MANY = (
    "mechanism=noisy_gd,noisy_sgd,newton,one_pass_sgd,objective_perturbation,frank_wolfe,"
    "approximate_minima_perturbation,regularized_exponential,mirror_descent,non_private"
)
# A study's name, the words of its run, and the words of the reports that are drawn of it.
STUDIES: dict[str, tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]] = {
    "two_mechanisms": (
        ("mechanism=noisy_gd,one_pass_sgd", "epsilon=1,10,100", "dataset=diabetes", *_FAST),
        ((), ("show=floor,bounds,orders",), ("y=test_metric",), ("y=excess_risk_per_record",),
         ("x=mechanism", "hue=epsilon"), ("facet=mechanism",)),
    ),
    "calibrations": (
        ("mechanism=noisy_gd,noisy_sgd", "calibration=tight,paper", "epsilon=0.3,1,3,10", *_FAST),
        ((), ("show=floor,bounds,calibration",), ("facet=calibration",)),
    ),
    "many_mechanisms": ((_MANY, "epsilon=1,10", "dataset=diabetes", "loss=squared", *_FAST), ((),)),
    "one_budget": ((_MANY, "epsilon=10", "dataset=diabetes", "loss=squared", *_FAST), ((),)),
    "data_sets": (
        ("dataset=breast_cancer,diabetes,digits", "mechanism=noisy_gd,noisy_sgd,one_pass_sgd",
         "epsilon=1,10,100", *_FAST),
        ((), ("x=dataset", "facet=epsilon"), ("ranks=true", "slopes=true")),
    ),
    "seeds": (
        ("seed=0,1,2,3,4,5,6,7", "mechanism=noisy_gd,noisy_sgd", "epsilon=1,10,100", *_FAST),
        ((), ("aggregate=none",), ("facet=mechanism", "hue=seed")),
    ),
    "steps": (
        ("mechanism=noisy_gd", "mechanism.steps=5,20,80,320,1280", "epsilon=1", *_FAST),
        ((),),
    ),
    "settings": (
        ("mechanism=noisy_gd", "mechanism.averaging=last,uniform", "mechanism.momentum=0,0.5",
         "epsilon=1,10,100", *_FAST),
        ((),),
    ),
    "radius": (
        ("mechanism=noisy_gd,objective_perturbation", "constraint.radius=0.5,1,2,4,8", "trials=5"),
        ((), ("y=test_metric",)),
    ),
    "records": (
        ("dataset=synthetic_logistic", "dataset.n=200,800,3200", "dataset.p=2,8",
         "mechanism=noisy_gd,noisy_sgd", *_FAST),
        ((),),
    ),
    "local": (
        ("mechanism=local_sgd,local_mirror_descent", "privacy=local", "epsilon=1,10",
         "dataset=diabetes", *_FAST),
        ((),),
    ),
}  # fmt: skip
OTHERS = {
    "account": ("account", "mechanism=noisy_sgd,noisy_gd,output_perturbation", "epsilon=0.1,1,10"),
    "account_two": ("account", "mechanism=noisy_sgd,noisy_gd", "epsilon=0.3,1,3"),
    "describe": ("describe", "dataset=diabetes", "loss=squared"),
    "describe_kernel": ("describe", "dataset=breast_cancer", "ridge=0.1", "kernel=rbf"),
}


def draw(out: Path, kept: Path | None) -> None:
    """Draw all figures into a folder, and write its page."""
    out.mkdir(parents=True, exist_ok=True)
    work = out / "work"
    for name, (words, reports) in STUDIES.items():
        call("run", "-m", *words, f"out={work / name}")
        for i, report in enumerate(reports):
            for theme in THEMES if i == 0 else ("single", "double"):
                call("report", str(work / name), "html=false", *report, f"theme={theme}")
                _keep(work / name, out / f"{name}_{i}_{theme}")
    for name, words in OTHERS.items():
        call(*words, f"out={work / name}")
        for figure in sorted((work / name).glob("*.png")):
            shutil.copy(figure, out / f"{name}_{DEFAULT_THEME}.png")
    if kept is None:
        kept = work / "experiments"
        call("reproduce", "all", "size=small", f"out={kept}")
    for study in sorted(path for path in kept.iterdir() if (path / "records").is_dir()):
        copy = work / "copies" / study.name
        shutil.copytree(study, copy, dirs_exist_ok=True)
        call("report", str(copy), "html=false")
        _keep(copy, out / f"experiment_{study.name}_{DEFAULT_THEME}")
    (out / "index.html").write_text(write_page(out))


def call(*words: str) -> None:
    """Run a command quietly; what it says counts only where it is refused."""
    said = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(said):
        code = cli.main(list(words))
    if code == 2:
        raise SystemExit(f"dperm {' '.join(words)}: {said.getvalue()}")


def _keep(study: Path, stem: Path) -> None:
    """Keep a study's figure and caption by another name.

    Where its ranks were drawn, they take the place of the figure, with the slopes below.
    """
    ranked = (study / "ranks.png").exists()
    kept = ("ranks.png", "slopes.csv") if ranked else ("figure.png", "figure.caption.md")
    for name, ending in zip(kept, (".png", ".md"), strict=True):
        if (study / name).exists():
            shutil.copy(study / name, f"{stem}{ending}")


def write_page(out: Path) -> str:
    """A page of all figures, each as wide as in print."""
    parts = ["<!doctype html><meta charset=utf-8><title>Gallery</title>",
             "<style>body{font:15px serif;margin:2em} figure{margin:0 0 3em}"
             " figcaption{max-width:45em;margin-top:.5em;white-space:pre-line}",
             "</style>"]  # fmt: skip
    for path in sorted(out.glob("*.png")):
        theme = read_view({"theme": path.stem.rpartition("_")[2]}).theme
        caption = path.with_suffix(".md")
        words = html.escape(caption.read_text()) if caption.exists() else ""
        wide = f"{THEMES[theme].width}in"
        parts.append(f"<figure><h2>{html.escape(path.stem)}</h2><img style='width:{wide}' "
                     f"src='{path.name}'><figcaption>{words}</figcaption></figure>")  # fmt: skip
    return "\n".join(parts) + "\n"


def main(arguments: Sequence[str]) -> None:
    if not 1 <= len(arguments) <= 2:
        raise SystemExit(__doc__)
    draw(Path(arguments[0]), Path(arguments[1]) if len(arguments) > 1 else None)
    print(os.path.join(arguments[0], "index.html"))


if __name__ == "__main__":
    main(sys.argv[1:])
