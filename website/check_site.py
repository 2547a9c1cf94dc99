"""Check a built site: no broken link, and nothing that a browser would fetch from another host.

python -m website.check_site site     a line a fault, exit 1
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# What a browser fetches by itself when it draws a page.
FETCHED = {
    "script": "src", "img": "src", "iframe": "src", "source": "src", "video": "src",
    "audio": "src", "embed": "src", "object": "data", "input": "src",
}  # fmt: skip
FETCHED_LINKS = {
    "stylesheet",
    "preload",
    "icon",
    "manifest",
    "preconnect",
    "dns-prefetch",
    "prefetch",
}
_IN_STYLE = re.compile(r"(?:url\(\s*['\"]?|@import\s+['\"])((?:https?:)?//[^'\")\s]+)")


class Page(HTMLParser):
    """The names and the links of one page.

    Attributes:
        anchors: Names in the page that a link may lead to.
        links: Where links lead to.
        fetched: What a browser fetches by itself.
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = {"", "__skip"}
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep what a tag names and leads to."""
        found = {name: value or "" for name, value in attrs}
        self.anchors |= {found[name] for name in ("id", "name") if name in found}
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        elif tag == "link" and FETCHED_LINKS & set(found.get("rel", "").split()):
            self.fetched.append(found["href"])
        elif tag in FETCHED and found.get(FETCHED[tag]):
            self.fetched.append(found[FETCHED[tag]])


def find_faults(site: Path) -> list[str]:
    """What is wrong with a site.

    Args:
        site: Its folder.

    Returns:
        A line for each link to a page, picture or heading that is not there, and for each thing
        that a browser would fetch from another host.
    """
    pages = {path: Page(path.read_text("utf-8")) for path in sorted(site.rglob("*.html"))}
    faults = []
    for path, page in pages.items():
        here = path.relative_to(site).as_posix()
        if here == "404.html":  # its links begin with a slash, for a server
            continue
        faults += [f"{here}: fetches {url}" for url in page.fetched if _is_foreign(url)]
        inside = [url for url in (*page.links, *page.fetched) if not _has_host(url)]
        faults += [f"{here}: no {url}" for url in inside if not _is_there(site, path, url, pages)]
    for path in sorted(site.rglob("*.css")):
        urls = _IN_STYLE.findall(path.read_text("utf-8"))
        faults += [f"{path.relative_to(site)}: fetches {url}" for url in urls]
    return faults


def _is_foreign(url: str) -> bool:
    return bool(urlsplit(url).netloc)


def _has_host(url: str) -> bool:
    parts = urlsplit(url)
    return bool(parts.scheme or parts.netloc)


def _is_there(site: Path, path: Path, url: str, pages: dict[Path, Page]) -> bool:
    parts = urlsplit(url)
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if target.is_dir():
        target = target / "index.html"
    if not target.is_relative_to(site.resolve()) and target != path:
        return False
    if target.suffix != ".html":
        return target.exists()
    found = pages.get(target) or pages.get(site / target.relative_to(site.resolve()))
    return found is not None and unquote(parts.fragment) in found.anchors


def list_pages(site: Path) -> Iterator[Path]:
    """The pages of a site."""
    yield from sorted(site.rglob("*.html"))


def main(site: Path) -> int:
    """Print the faults of a site, or that there are none; the exit code."""
    faults = find_faults(site)
    count = len(list(list_pages(site)))
    print("\n".join(faults) or f"{site}: {count} pages, no broken link, no foreign request")
    return 1 if faults or not count else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
