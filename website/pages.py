"""Which file of the repository is which page of the site, and in which order they are read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
# Pages outside of docs/, with their names on the site.
OTHERS = {
    "README.md": "overview.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
    "CODE_OF_CONDUCT.md": "code_of_conduct.md",
    "examples/README.md": "examples/index.md",
    "examples/plugins/README.md": "examples/plugins.md",
    "experiments/README.md": "experiments/index.md",
}
# What the navigation calls pages whose first line is the name of the project.
TITLES = {"index.md": "Start here", "overview.md": "README"}
# Pages that website/reference.py writes.
MADE = ("reference/command_line.md", "reference/python.md", "reference/keys.md")

# Headings of the site with their pages. A star stands for all pages of a folder that no heading
# names; a page without a title has that of its first line.
ORDER: dict[str, tuple[str, ...]] = {
    "Start": ("index.md", "overview.md", "install.md"),
    "Tutorials": ("tutorials/*",),
    "How to": (
        "using.md", "choices.md", "release.md", "statement.md", "datasets.md", "models.md",
        "estimators.md", "plan.md", "tuning.md",
        "tables.md", "figures.md", "sweeps.md", "scale.md", "plugins.md", "audit.md",
        "leaderboard.md", "local.md", "kernels.md", "examples/*",
    ),
    "Reference": (
        "reference/command_line.md", "reference/keys.md", "reference/python.md", "api.md",
        "records.md", "ledger.md", "report.md", "glossary.md", "conventions.md", "licences.md",
        "changelog.md",
    ),
    "Explanation": (
        "trust.md", "threats.md", "secure_noise.md", "architecture.md", "optimum.md",
        "shaped_noise.md", "errata.md", "audit_power.md",
        "audit_yours_power.md", "faults.md", "*",
    ),
    "Proofs": ("proofs/*",),
    "Experiments": ("papers.md", "experiments.md", "claims.md", "experiments/*"),
    "Project": ("contributing.md", "security.md", "code_of_conduct.md"),
}  # fmt: skip


def find_sources(root: Path = ROOT) -> dict[Path, str]:
    """Each page's file in the repository, with its name on the site."""
    found = {path: _name(path, root / "docs") for path in (root / "docs").rglob("*.md")}
    found |= {root / source: name for source, name in OTHERS.items() if (root / source).exists()}
    for path in (root / "experiments").glob("*/README.md"):
        found[path] = f"experiments/{path.parent.name}.md"
    return dict(sorted(found.items(), key=lambda pair: pair[1]))


def order_pages(names: set[str]) -> list[dict[str, Any]]:
    """The navigation: headings with their pages.

    Args:
        names: All pages of the site.

    Returns:
        What MkDocs takes for ``nav``.

    Raises:
        KeyError: A page of the table is not there, or one that is there has no place.
    """
    named = {name for pages in ORDER.values() for name in pages if "*" not in name}
    if named - names:
        raise KeyError(f"no page {', '.join(sorted(named - names))}")
    order = [{heading: list(_expand(pages, names - named))} for heading, pages in ORDER.items()]
    placed = {name for entry in order for pages in entry.values() for name in pages}
    if names - placed:
        raise KeyError(f"no place for {', '.join(sorted(names - placed))}")
    return [
        {heading: [{TITLES[name]: name} if name in TITLES else name for name in pages]}
        for entry in order
        for heading, pages in entry.items()
        if pages
    ]


def _expand(pages: tuple[str, ...], free: set[str]) -> Iterator[str]:
    for page in pages:
        folder, star, _ = page.partition("*")
        if not star:
            yield page
            continue
        inside = {name for name in free if name.startswith(folder)}
        yield from sorted(name for name in inside if "/" not in name[len(folder) :])


def _name(path: Path, folder: Path) -> str:
    return path.relative_to(folder).as_posix()
