"""Write ``dperm_cli/__init__.pyi``: ``python -m dperm_cli.api.type_stub``.

Public names are imported when they are asked for, which a type checker does not follow.
"""

from __future__ import annotations

from pathlib import Path

from dperm_cli.api.name_table import NAMES, ROOMS
from dperm_cli.core.files import write_atomically

STUB = Path(__file__).parents[1] / "__init__.pyi"


def format_stub() -> str:
    """The text of the stub: an import for each public name."""
    lines = ["# Written by `python -m dperm_cli.api.type_stub`.", "# ruff: noqa: I001", ""]
    for name, place in sorted(NAMES.items(), key=lambda item: (item[1].partition(":")[0], item[0])):
        module, _, word = place.partition(":")
        lines.append(f"from {module} import {word or name} as {name}")
    for name, module in ROOMS.items():
        package, _, last = module.rpartition(".")
        lines.append(f"from {package} import {last} as {name}")
    names = [f'    "{name}",' for name in sorted({*NAMES, *ROOMS})]
    return "\n".join([*lines, "", "__version__: str", "__all__ = [", *names, "]", ""])


if __name__ == "__main__":
    write_atomically(STUB, format_stub().encode())
