"""Build the documentation: gather its pages in ``build/site_pages``, have MkDocs write ``site``.

python -m website.build     the site in site/, exit 1 where a link is broken
"""

from __future__ import annotations

import logging
import shutil
import sys
import time
from pathlib import Path
from typing import Any

from dperm_cli.core.files import write_files
from dperm_cli.results.leaderboard.site import make_published
from dperm_cli.runner.studies import experiment_file
from dperm_cli.runner.verbs import reproduce
from website import check_site, glossary_links, links, pages, reference

ROOT = pages.ROOT
GATHERED = ROOT / "build" / "site_pages"
SITE = ROOT / "site"
GLOSSARY = ROOT / "docs" / glossary_links.PAGE
PICTURES = (".png", ".svg", ".bib", ".ipynb")
STYLE, SEARCH = "assets/style.css", "assets/iframe-worker.js"
LEADERBOARD = "leaderboard"  # the experiment, and its folder on the site
EXTENSIONS: list[Any] = [
    "admonition", "attr_list", "md_in_html", "tables", "def_list",
    {"toc": {"permalink": True, "toc_depth": 3}},
    {"pymdownx.arithmatex": {"generic": True}},
    {"pymdownx.highlight": {"anchor_linenums": False}},
    "pymdownx.superfences",
]  # fmt: skip


def find_places() -> dict[Path, str]:
    """The name on the site of every page, picture and file, by its file in the repository."""
    places = pages.find_sources()
    for folder in (ROOT / "docs", ROOT / "examples"):
        start = ROOT / "docs" if folder.name == "docs" else ROOT
        for path in folder.rglob("*"):
            if path.suffix in PICTURES:
                places[path] = path.relative_to(start).as_posix()
    for path in (ROOT / "experiments").glob("*/*.png"):
        places[path] = f"experiments/{path.parent.name}_{path.name}"
    return places


def gather() -> list[str]:
    """Write all pages with the links that they have on the site; their names."""
    shutil.rmtree(GATHERED, ignore_errors=True)
    places, terms = find_places(), glossary_links.list_terms(GLOSSARY.read_text("utf-8"))
    for path, name in places.items():
        target = GATHERED / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".md":
            text = links.move_links(path, path.read_text("utf-8"), places)
            text = glossary_links.link_terms(links.separate_blocks(text), name, terms)
            target.write_text(
                glossary_links.add_anchors(text) if path == GLOSSARY else text, "utf-8"
            )
        else:
            shutil.copyfile(path, target)
    made = reference.write_pages()
    for name, text in made.items():
        (GATHERED / name).parent.mkdir(parents=True, exist_ok=True)
        (GATHERED / name).write_text(text, "utf-8")
    for source, name in (("style.css", STYLE), ("frame_worker.js", SEARCH)):
        (GATHERED / name).parent.mkdir(exist_ok=True)
        shutil.copyfile(ROOT / "website" / source, GATHERED / name)
    return [name for name in (*places.values(), *made) if name.endswith(".md")]


def make_settings(names: list[str]) -> dict[str, Any]:
    """What MkDocs is told: a theme without fonts of other hosts, and a search in the page."""
    from pymdownx.slugs import slugify

    extensions = [
        {"toc": {**one["toc"], "slugify": slugify(case="lower")}}
        if isinstance(one, dict) and "toc" in one
        else one
        for one in EXTENSIONS
    ]
    python = {
        "paths": [str(ROOT)],
        "options": {
            "docstring_style": "google", "docstring_options": {"warnings": False},
            "extensions": ["website.examples"], "show_source": False, "heading_level": 3,
            "show_root_heading": False, "show_root_toc_entry": False, "inherited_members": False,
            "show_bases": False, "members_order": "source", "show_if_no_docstring": False,
            "filters": ["!^_"], "separate_signature": True, "line_length": 80,
        },
    }  # fmt: skip
    return {
        "site_name": "dperm",
        "docs_dir": str(GATHERED),
        "site_dir": str(SITE),
        "use_directory_urls": False,
        "theme": {
            "name": "material",
            "font": False,
            "features": ["navigation.tabs", "navigation.top", "content.code.copy", "toc.follow"],
            "palette": {"scheme": "default", "primary": "indigo"},
        },
        "extra_css": [STYLE],
        "extra": {"generator": False, "polyfills": [SEARCH]},
        "nav": pages.order_pages(set(names)),
        "hooks": [str(ROOT / "website" / "hooks.py")],
        "plugins": ["search", "offline", {"mkdocstrings": {"handlers": {"python": python}}}],
        "markdown_extensions": extensions,
        "validation": {
            "links": {"not_found": "warn", "anchors": "warn", "unrecognized_links": "warn"},
            "nav": {"omitted_files": "warn", "not_found": "warn"},
        },
    }


def write_leaderboard(folder: Path) -> None:
    """The page of the leaderboard's results that come with dperm, with its tables beside it."""
    found = experiment_file.load(LEADERBOARD, "full")
    write_files(folder, make_published(reproduce.describe(found, [])))


def build() -> int:
    """Build the site and check it; the exit code."""
    from mkdocs.commands.build import build as write_site
    from mkdocs.config import load_config

    logging.basicConfig(level=logging.WARNING, format="%(levelname)s: %(message)s")
    begun = time.monotonic()
    settings = make_settings(gather())
    config = load_config(config_file=str(ROOT / "website" / "mkdocs.yml"), strict=True, **settings)
    write_site(config)
    write_leaderboard(SITE / LEADERBOARD)
    code = check_site.main(SITE)
    print(f"built in {time.monotonic() - begun:.0f} s: {SITE / 'index.html'}")
    return code


if __name__ == "__main__":
    sys.exit(build())
