"""The colour and mark of each mechanism: the same in every study, in figures and on the page.

A look is a number below ``LOOKS``, from which ``chart_model`` takes hue and mark. Mechanisms of the
package have theirs in a table, in which those that are often compared differ in both. A name that
is not in it (a plug-in, a sampler, a mechanism in another) has one that follows from its letters,
with a mark that no mechanism of the table has. Where values are told apart (``hue=epsilon``), they
have colours from dark to light, which no mechanism has.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dperm_cli.core.digests import hash_sha256
from dperm_cli.results.charts.chart_model import HUES, LOOKS, TONES, index_mark
from dperm_cli.results.charts.marks import MARKS


def make_look(hue: int, mark: int) -> int:
    """The look with the place of a hue and the place of a mark.

    >>> from dperm_cli.results.charts.chart_model import Curve
    >>> curve = Curve("a", (), make_look(3, 5))
    >>> curve.hue == HUES[3], curve.mark == MARKS[5].drawn
    (True, True)
    """
    more = (mark - hue) % len(HUES)
    return len(MARKS) * more + (mark - more) % len(MARKS)


# place of the hue, place of the mark
_TABLE = {
    "noisy_gd": (0, 0),
    "noisy_sgd": (1, 1),
    "one_pass_sgd": (2, 2),
    "objective_perturbation": (3, 3),
    "output_perturbation": (4, 4),
    "newton": (5, 5),
    "phased_erm": (3, 11),
    "frank_wolfe": (6, 6),
    "mirror_descent": (7, 7),
    "exponential": (2, 8),
    "regularized_exponential": (6, 9),
    "approximate_minima_perturbation": (7, 10),
    "sufficient_statistics": (0, 9),
    "auto": (3, 13),
    "localization(noisy_gd)": (6, 12),
    "localization(exponential)": (6, 13),
    "localization(output_perturbation)": (1, 12),
    "huberized(objective_perturbation)": (7, 13),
    "high_probability(noisy_gd)": (1, 11),
    "high_probability(exponential)": (3, 10),
    "private_selection(noisy_gd)": (2, 11),
    "projected(objective_perturbation)": (5, 12),
    "standard_projection(objective_perturbation)": (4, 13),
    "kernel_release": (0, 8),
    "kernel_interactive": (1, 9),
    "kernel_semi_interactive": (4, 10),
    "kernel_non_interactive": (2, 12),
    "random_features(objective_perturbation)": (3, 12),
    "random_features(output_perturbation)": (5, 7),
    "local_sgd": (0, 2),
    "local_mirror_descent": (1, 4),
    "channel": (2, 1),
    "non_private": (5, 11),
    "exponential/closed_form": (0, 3),
    "exponential/grid_walk": (1, 2),
    "exponential/proximal": (4, 5),
    "exponential/rejection": (3, 0),
    "exponential/tangent_cells": (6, 1),
}
# A mechanism in another where what is inside is not said: it looks as it does around the first.
_PAIRS = [(name.partition("("), places) for name, places in reversed(_TABLE.items())]
_OUTER = {outer: places for (outer, inside, _), places in _PAIRS if inside}
SHIPPED = {name: make_look(*places) for name, places in (_TABLE | _OUTER).items()}
_OWN = 1 + max(index_mark(look) for look in SHIPPED.values())  # marks of shipped mechanisms
# Marks of values, those first that are told apart when they are small: no shipped mechanism's.
_VALUE_MARKS = (15, 16, 22, 23, 20, 21, 17, 14, 18, 19)


def choose_looks(names: Iterable[str]) -> dict[str, int]:
    """The look of each name; no two names of one figure have the same mark, as far as marks reach.

    Where two of them would have one mark, the later keeps its hue and takes another mark: shipped
    mechanisms come in the order of their table, then other names in that of the alphabet. A name
    from outside never changes the look of a shipped mechanism, nor a shipped one that of it.

    >>> choose_looks(["noisy_gd"])["noisy_gd"] == choose_looks(["mine", "noisy_gd"])["noisy_gd"]
    True
    """
    names = set(names)
    found: dict[str, int] = {}
    for name in [*(name for name in SHIPPED if name in names), *sorted(names - set(SHIPPED))]:
        tried = _list_looks(name)
        marks = {index_mark(look) for look in found.values()}
        free = [look for look in tried if index_mark(look) not in marks]
        free = free or [look for look in tried if look not in found.values()] or tried
        found[name] = free[0]
    return found


def choose_value_looks(names: Sequence[str]) -> dict[str, int]:
    """The looks of values in their order, from dark to light: none is that of a shipped mechanism.

    >>> from dperm_cli.results.charts.chart_model import Curve
    >>> looks = choose_value_looks(["epsilon 0.1", "epsilon 1"])
    >>> [Curve("", (), look).hue == tone for look, tone in zip(looks.values(), TONES[::5])]
    [True, True]
    """
    last = max(len(names) - 1, 1)
    return {
        name: LOOKS
        + len(MARKS) * (i * (len(TONES) - 1) // last)
        + _VALUE_MARKS[i % len(_VALUE_MARKS)]
        for i, name in enumerate(names)
    }


def _list_looks(name: str) -> list[int]:
    """All looks, the one of this name first, then those of its hue, nearest marks first."""
    other = int(hash_sha256(name), 16)
    hue, first = other % len(HUES), _OWN + other // len(HUES) % (len(MARKS) - _OWN)
    if name in SHIPPED:
        hue, first = SHIPPED[name] % len(HUES), index_mark(SHIPPED[name])
    low, high = (0, _OWN) if name in SHIPPED else (_OWN, len(MARKS))
    near = [*range(first, high), *range(low, first)]
    marks = [*near, *(mark for mark in range(len(MARKS)) if mark not in near)]
    return [make_look((hue + i) % len(HUES), mark) for i in range(len(HUES)) for mark in marks]
