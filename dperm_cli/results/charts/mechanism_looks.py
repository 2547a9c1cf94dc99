"""The colour and mark of each mechanism: the same in every study, in figures and on the page.

A look is a number below ``LOOKS``, from which ``chart_model`` takes hue and mark. Mechanisms of the
package have theirs in a table, in which those that are often compared differ in both. A name that
is not in it (a plug-in, a sampler, a mechanism in another) has one that follows from its letters.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

_COLORS = 8
LOOKS = _COLORS * _COLORS


def make_look(hue: int, mark: int) -> int:
    """The look with the place of a hue and the place of a mark.

    >>> from dperm_cli.results.charts.chart_model import Curve, HUES, MARKS
    >>> curve = Curve("a", (), make_look(3, 5))
    >>> curve.hue == HUES[3], curve.mark == MARKS[5]
    (True, True)
    """
    return hue + _COLORS * ((mark - hue) % _COLORS)


# place of the hue, place of the mark
_TABLE = {
    "noisy_gd": (0, 0),
    "noisy_sgd": (1, 1),
    "one_pass_sgd": (2, 2),
    "objective_perturbation": (3, 3),
    "output_perturbation": (4, 4),
    "newton": (5, 5),
    "frank_wolfe": (6, 6),
    "mirror_descent": (7, 7),
    "exponential": (2, 5),
    "regularized_exponential": (6, 2),
    "approximate_minima_perturbation": (7, 1),
    "localization(noisy_gd)": (6, 7),
    "localization(exponential)": (6, 3),
    "localization(output_perturbation)": (1, 5),
    "huberized(objective_perturbation)": (7, 4),
    "high_probability(noisy_gd)": (1, 3),
    "high_probability(exponential)": (4, 1),
    "projected(objective_perturbation)": (5, 6),
    "standard_projection(objective_perturbation)": (4, 2),
    "kernel_release": (0, 1),
    "kernel_interactive": (1, 0),
    "kernel_semi_interactive": (4, 0),
    "kernel_non_interactive": (2, 3),
    "random_features(objective_perturbation)": (6, 4),
    "random_features(output_perturbation)": (5, 1),
    "local_sgd": (0, 2),
    "local_mirror_descent": (1, 4),
    "channel": (2, 1),
    "non_private": (5, 0),
    "exponential/closed_form": (0, 3),
    "exponential/grid_walk": (1, 2),
    "exponential/proximal": (4, 5),
    "exponential/rejection": (3, 0),
    "exponential/tangent_cells": (6, 1),
}
# A mechanism in another where what is inside is not said: it looks as it does around the first.
_PAIRS = [(name.partition("("), places) for name, places in reversed(_TABLE.items())]
_OUTER = {outer: places for (outer, inside, _), places in _PAIRS if inside}
SHIPPED = {name: make_look(*places) for name, places in (_OUTER | _TABLE).items()}
_FREE = [look for look in range(LOOKS) if look not in SHIPPED.values()]


def choose_looks(names: Iterable[str]) -> dict[str, int]:
    """The look of each name; no two names of one figure have the same.

    The look of a shipped mechanism never depends on the others. Neither does that of another name,
    except where two of them would look alike: then the later one in the alphabet takes the next.

    >>> choose_looks(["noisy_gd"])["noisy_gd"] == choose_looks(["mine", "noisy_gd"])["noisy_gd"]
    True
    """
    names = list(names)
    found = {name: SHIPPED[name] for name in names if name in SHIPPED}
    free = list(_FREE)
    for name in sorted(set(names) - set(found)):
        if not free:  # more names than looks: marks come again
            free = list(_FREE)
        wanted = _FREE[int(hashlib.sha256(name.encode()).hexdigest(), 16) % len(_FREE)]
        place = next((i for i, look in enumerate(free) if look >= wanted), 0)
        found[name] = free.pop(place)
    return found
