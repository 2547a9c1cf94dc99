"""The commands that the pages show: blocks marked ``sh``, and ``dperm ...`` inside text."""

from __future__ import annotations

import re
import shlex
import shutil
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
_TOOLS = ("dev", "docs", "publish")  # of those who change dperm
EXTRAS = {
    name: [re.split(r"[<>=\[]", wanted)[0] for wanted in all_wanted]
    for name, all_wanted in _PROJECT["optional-dependencies"].items()
    if name not in _TOOLS
}
NEEDS = ("clone", "network", "minutes", "hours", "SLURM", *(f"extra {name}" for name in EXTRAS))
_BLOCK = re.compile(r"^```([^\n]*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"`(dperm [^`]+)`")
_MARK = re.compile(r"\s#\s*\[([^\]]*)\]")
_NAMED = re.compile(r"# ([a-z_]+\.py)\n")
_TESTED = "; tested with "


@dataclass(frozen=True)
class Command:
    """One line of a block.

    Attributes:
        line: As it stands in the page.
        need: What it needs beyond an installed dperm, one of ``NEEDS``, or "".
        extra: Words with which it is run all the same.
    """

    line: str
    need: str = ""
    extra: str = ""

    @property
    def typed(self) -> str:
        """What is run: with the extra words behind the others."""
        return f"{self.line.partition(' # ')[0].rstrip()} {self.extra}".rstrip()

    @property
    def words(self) -> list[str]:
        """The words behind ``dperm``, without comments; none for another program's command."""
        words = shlex.split(self.line, comments=True)
        return words[1:] if words[:1] == ["dperm"] else []

    @property
    def runs(self) -> bool:
        """Whether it is run in an empty folder."""
        has_extra = self.need.startswith("extra ") and is_installed(self.need.split()[1])
        return not self.need or bool(self.extra) or has_extra


def is_installed(extra: str) -> bool:
    """Whether all distributions of an extra are there."""
    return all(any(metadata.Distribution.discover(name=name)) for name in EXTRAS[extra])


def list_modules_of_extras() -> list[str]:
    """The modules that the installed extras bring."""
    wanted = {name for names in EXTRAS.values() for name in names}
    found = metadata.packages_distributions().items()
    return sorted(module for module, owners in found if wanted & set(owners))


def list_pages(root: Path = ROOT) -> list[Path]:
    """README, CONTRIBUTING and everything in docs/."""
    pages = [root / "README.md", root / "CONTRIBUTING.md", *sorted((root / "docs").rglob("*.md"))]
    return [page for page in pages if page.exists()]


def read_blocks(text: str) -> Iterator[tuple[str, str]]:
    """Language and content of each fenced block."""
    for match in _BLOCK.finditer(text):
        yield match[1].strip(), match[2]


def list_files(text: str) -> dict[str, str]:
    """The Python files that a page shows: blocks that begin with ``# NAME.py``, by that name."""
    blocks = [content for language, content in read_blocks(text) if language == "python"]
    found = [(_NAMED.match(content), content) for content in blocks]
    return {named[1]: content for named, content in found if named}


def read_command(line: str) -> Command:
    """A line of a shell block with its mark.

    >>> read_command("dperm audit   # [hours; tested with fuzz=2s] the files").typed
    'dperm audit fuzz=2s'
    """
    mark = _MARK.search(line)
    need, _, extra = (mark[1] if mark else "").partition(_TESTED)
    return Command(line, need, extra)


def list_shell_blocks(text: str) -> list[list[Command]]:
    """The commands of each of a page's shell blocks, in order."""
    blocks = [content for language, content in read_blocks(text) if language == "sh"]
    return [
        [
            read_command(line)
            for line in join_quoted_lines(content)
            if line.strip() and not line.startswith("#")
        ]
        for content in blocks
    ]


def join_quoted_lines(content: str) -> Iterator[str]:
    """The lines of a shell block; those between two quotation marks are one with the first.

    >>> list(join_quoted_lines("dperm run\\npython -c '\\nprint(1)\\n'\\n"))
    ['dperm run', "python -c '\\nprint(1)\\n'"]
    """
    begun = ""
    for line in content.splitlines():
        begun += line
        try:
            shlex.split(begun, comments=True)
        except ValueError:  # a quotation is not closed
            begun += "\n"
        else:
            yield begun
            begun = ""
    if begun:
        yield begun


def list_commands(text: str) -> list[Command]:
    """The commands of all shell blocks of a page."""
    return [command for block in list_shell_blocks(text) for command in block]


def list_inline(text: str) -> list[str]:
    """What stands between backticks in the text and begins with ``dperm``."""
    return _INLINE.findall(_BLOCK.sub("", text))


def lay_out_wheel(target: Path) -> None:
    """Lay the package out as its wheel is, with nothing else of the repository."""
    built = tomllib.loads((ROOT / "pyproject.toml").read_text())
    layout = built["tool"]["hatch"]["build"]["targets"]["wheel"]
    places = {name: name for name in layout["packages"]} | layout["force-include"]
    for source, place in places.items():
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / source, target / place, ignore=ignored)
