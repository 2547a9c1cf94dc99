"""Refuse fits that a search over held-out scores would make: each of them is a release."""

from __future__ import annotations

import sys

_SEARCHES = ("sklearn.model_selection._validation", "sklearn.model_selection._search")
REFUSED = (
    "a fit inside cross validation or a search is refused: each of k folds is a release of its own "
    "and spends epsilon again, and the scores would be exact figures about the records. Compare on "
    "public records, or pay for a choice with tune={'constraint.radius': [1, 3, 10]}"
)


def refuse_inside_search() -> None:
    """ValueError where scikit-learn's cross validation called this.

    It is seen by the functions that are being called, in worker processes too.
    """
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_globals.get("__name__") in _SEARCHES:
            raise ValueError(REFUSED)
        frame = frame.f_back
