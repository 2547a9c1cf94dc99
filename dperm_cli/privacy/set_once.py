"""What code from outside cannot change once it was accounted for."""

from __future__ import annotations

from typing import Any

import numpy as np

from dperm_cli.core.errors import PrivacyError


class SetOnce:
    """Base of classes whose public attributes are set once.

    >>> class Noise(SetOnce):
    ...     def __init__(self, scale):
    ...         self.scale = scale
    >>> Noise(2.0).scale = 0.0
    Traceback (most recent call last):
    dperm_cli.core.errors.PrivacyError: scale of Noise was accounted for and cannot be changed
    """

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("_") and name in vars(self):
            raise PrivacyError(
                f"{name} of {type(self).__name__} was accounted for and cannot be changed"
            )
        super().__setattr__(name, value)


def read_numbers(value: Any) -> np.ndarray:
    """A value that is to get noise, as an array of float64.

    Noise on an array of another class need not be noise on all of it: complex numbers have a part
    that noise of real numbers does not reach, and a class of arrays may add as it likes.

    >>> read_numbers([1, 2]).tolist()
    [1.0, 2.0]
    """
    found = np.asarray(value)
    if found.dtype.kind == "c":
        raise PrivacyError("complex numbers have a part that no noise reaches")
    return found.astype(np.float64, copy=False)
