"""``dperm cache``: what is kept between runs, where it lies, and how to clear it."""

from __future__ import annotations

import sys

from dperm_cli.core import cache_contents
from dperm_cli.core.cache_contents import Contents
from dperm_cli.core.errors import EXIT_OK, EXIT_STORAGE
from dperm_cli.core.memory_limits import format_bytes
from dperm_cli.core.operands import FORMATS, Syntax, refuse_repeated
from dperm_cli.results.records.schema import json_lines

KEYS = ("clear", "format")


def cache(arguments: list[str]) -> int:
    """``dperm cache [clear=KIND,...|all] [format=table|json]``."""
    refuse_repeated(arguments)
    words = Syntax(keys=KEYS, operands=False).split(arguments)
    form = words.choose("format", FORMATS)
    asked = words.settings.get("clear")
    kinds = None if asked is None else cache_contents.read_kinds(asked)
    folder = cache_contents.find_folder()
    if kinds is None:
        shown, kept = cache_contents.list_contents(folder), []
    else:
        shown, kept = cache_contents.clear(folder, kinds)
    if form == "json":
        print(json_lines(_list_facts(one, str(folder)) for one in shown))
    else:
        print(_format_table(shown, "freed" if kinds else "size"))
    print(f"cache folder: {folder}", file=sys.stderr)
    for path in kept[:1]:
        more = f" (and {len(kept) - 1} more)" if len(kept) > 1 else ""
        print(f"dperm: {path}{more}: is in use or cannot be removed, and stays", file=sys.stderr)
    return EXIT_STORAGE if kept else EXIT_OK


def _list_facts(one: Contents, folder: str) -> dict[str, object]:
    return {
        "kind": one.kind.name, "files": one.files, "bytes": one.bytes, "holds": one.kind.holds,
        "cleared_by_hand": one.kind.remake is not None, "folder": folder,
    }  # fmt: skip


def _format_table(shown: list[Contents], head: str) -> str:
    lines = [f"{'kind':<16}{'files':>7}{head:>10}  holds"]
    for one in shown:
        words = ": ".join(filter(None, (one.kind.holds, one.kind.remake)))
        lines.append(f"{one.kind.name:<16}{one.files:>7}{format_bytes(one.bytes):>10}  {words}")
    return "\n".join(lines)
