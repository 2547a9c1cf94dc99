"""Refuse fits that a search over held-out scores would make: each of them is a release."""

from __future__ import annotations

import sys

_SEARCHES = ("sklearn.model_selection._validation", "sklearn.model_selection._search")
FOLDS = 5  # of the example in the refusal, and what scikit-learn takes unasked


def refuse_inside_search(epsilon: object) -> None:
    """Refuse a fit that scikit-learn's cross validation asked for.

    It is seen by the functions that are being called, in worker processes too.

    Args:
        epsilon: What one fit would spend.

    Raises:
        ValueError: A search called this; the text names the price.
    """
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_globals.get("__name__") in _SEARCHES:
            raise ValueError(write_refusal(epsilon))
        frame = frame.f_back


def write_refusal(epsilon: object) -> str:
    """Why such a fit is refused, what it would cost, and what to do instead."""
    spent = FOLDS - 1
    price = f"{spent * epsilon:g}" if isinstance(epsilon, (int, float)) else f"{spent} times that"
    return (
        "a fit inside cross validation or a search is refused: each fold is a release of its own, "
        f"and a record is in all folds but one. {FOLDS} folds would spend epsilon {price} for each "
        "candidate, and the scores would be exact figures about the records. Compare on public "
        "records, or pay for a choice with "
        "tune={'constraint.radius': [1, 3, 10]}, which stays within epsilon"
    )
