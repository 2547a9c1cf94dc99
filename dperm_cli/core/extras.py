"""How an optional part of dperm is installed, for the line that says it is missing."""

from __future__ import annotations


def say_how_to_install(extra: str) -> str:
    """The two commands: of the published package, and in a clone of the repository.

    >>> say_how_to_install("onnx")
    "pip install 'dperm[onnx]', or in a clone pip install '.[onnx]'"
    """
    return f"pip install 'dperm[{extra}]', or in a clone pip install '.[{extra}]'"
