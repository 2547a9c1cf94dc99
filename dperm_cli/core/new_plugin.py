"""Write the file of a new plug-in, which passes ``dperm check``, from a template."""

from __future__ import annotations

import importlib.util
import keyword
import os
import re

from dperm_cli.core import catalogue, checks, registry
from dperm_cli.core.errors import InputError, StorageError
from dperm_cli.core.plugin_files import RESERVED, snake_case

KINDS = ("mechanism", "loss", "constraint", "dataset", "kernel")
_NAME = re.compile(r"[a-z][a-z0-9_]{0,79}")
_TEMPLATES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "templates")


def write_plugin(kind: str, name: str) -> str:
    """Write ``NAME.py`` into the working folder.

    Args:
        kind: One of ``KINDS``.
        name: The plug-in's name, a word of a-z, 0-9 and _.

    Returns:
        The name of the file.

    Raises:
        InputError: There is no such kind, the name cannot be, or the file is there.
        StorageError: The folder cannot be written to.
    """
    checks.choice("kind", kind, KINDS)
    _check_name(kind, name)
    path = f"{name}.py"
    text = fill_template(kind, name)
    try:
        with open(path, "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise InputError("name", name, f"{path} is there already, and is not overwritten") from None
    except OSError as error:
        raise StorageError(f"{path} cannot be written ({error.strerror})") from None
    return path


def fill_template(kind: str, name: str) -> str:
    """The text of a new plug-in of a kind."""
    with open(os.path.join(_TEMPLATES, f"{kind}.txt"), encoding="utf-8") as file:
        text = file.read()
    made = registry.class_name(name)
    if made in re.findall(r"\w+", text):  # what the file imports would be hidden
        made = f"Own{made}"
    named = "" if snake_case(made) == name else f'\n    name = "{name}"\n'
    return text.format(name=name, Class=made, named=named)


def _check_name(kind: str, name: str) -> None:
    if not _NAME.fullmatch(name) or keyword.iskeyword(name) or keyword.issoftkeyword(name):
        raise InputError("name", name, "must be a word of a-z, 0-9 and _ that begins with a letter "
                         "and is none of Python's")  # fmt: skip
    if name in RESERVED:
        raise InputError("name", name, f"has a meaning of its own, as have {', '.join(RESERVED)}")
    if name in (*registry.list_shipped(kind), *catalogue.list_shipped(kind)):
        raise InputError("name", name, f"is a {kind} that dperm has: take another name")
    if os.path.lexists(f"{name}.py"):
        return
    if importlib.util.find_spec(name) is not None:
        raise InputError(
            "name", name, "is a module of Python, which a file of this name would hide"
        )
