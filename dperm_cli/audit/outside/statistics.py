"""Statistics that tell the outputs on two tables apart. Each is a score of one output.

They are fitted on runs of their own. Scores that need no fit are coordinates, norms and the lowest
bits of a number; projections and a linear classifier follow from the runs' means and covariance;
exact values, forms and printed texts are scored by how often either table had them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, field
from typing import Any

import numpy as np

from dperm_cli.audit.outside.outputs import Sample
from dperm_cli.core.dataclass import dataclass

# What ``without=`` may name.
KINDS = (
    "coordinates", "norms", "projections", "classifier", "values", "low_bits", "form", "printed",
)  # fmt: skip
# What a mechanism shows beside its result: a difference there is no noise at all.
SIDE_CHANNELS = ("form", "printed")
_MOST_COORDINATES = 12
_MOST_TRAINED = 200  # coordinates that a classifier is trained on
_MOST_KEYS = 2000  # exact values that are remembered, the most telling ones
_RIDGE = 1e-9
_NO_BITS = 2000.0  # the lowest bit of zero


@dataclass(frozen=True)
class Statistic:
    """A score of outputs, made of plain numbers, so that it can be written down.

    Attributes:
        kind: One of ``KINDS``.
        rule: How it is computed: ``weights``, ``norm``, ``bits`` or ``keys``.
        parameters: What the rule needs.
        label: In words.
    """

    kind: str
    rule: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    label: str = ""

    def score(self, sample: Sample) -> np.ndarray:
        """The score of each run, [runs], finite."""
        found = _RULES[self.rule](sample, self.parameters)
        return np.nan_to_num(found, nan=0.0, posinf=1e300, neginf=-1e300)

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self) | {"parameters": dict(self.parameters)}


def fit_statistics(first: Sample, second: Sample, without: tuple[str, ...] = ()) -> list[Statistic]:
    """The statistics that these runs suggest.

    Args:
        first, second: Runs on either table, which are not to be judged by them.
        without: Kinds to leave out.
    """
    found = [*_fit_keys(first, second)]
    if first.width:
        found += [*_fit_numbers(first, second)]
    return [one for one in found if one.kind not in without]


def _fit_keys(first: Sample, second: Sample) -> Iterator[Statistic]:
    for name in SIDE_CHANNELS:
        yield _make_key_table(name, name, first, second)
    yield _make_key_table("values", "value", first, second)
    for place in range(min(first.width, _MOST_COORDINATES) if first.width > 1 else 0):
        yield _make_key_table("values", f"value {place}", first, second)


def _make_key_table(kind: str, name: str, first: Sample, second: Sample) -> Statistic:
    """Log ratios of how often either table had each key; 0 for a key that neither had."""
    counts = [Counter(sample.list_keys(name)) for sample in (first, second)]
    table = {
        key: math.log((counts[1][key] + 0.5) / (counts[0][key] + 0.5))
        for key in {*counts[0], *counts[1]}
    }
    told = sorted(table, key=lambda key: (-abs(table[key]), key))[:_MOST_KEYS]
    parameters = {"field": name, "table": {key: table[key] for key in told}}
    return Statistic(kind, "keys", parameters, f"exact {name}" if kind == "values" else name)


def _fit_numbers(first: Sample, second: Sample) -> Iterator[Statistic]:
    both = np.concatenate([_clean(first.matrix), _clean(second.matrix)])
    centre, spread = np.median(both, axis=0), _find_spread(both)
    means = [_clean(sample.matrix).mean(axis=0) for sample in (first, second)]
    width, shift = first.width, (means[1] - means[0]) / spread
    order = np.argsort(-np.abs(shift), kind="stable")[:_MOST_COORDINATES]
    for place in sorted(order.tolist()):
        weights = np.zeros(width)
        weights[place] = 1.0
        yield _make_weights("coordinates", np.zeros(width), weights, f"number {place}")
        yield Statistic("low_bits", "bits", {"place": place}, f"lowest bit of number {place}")
    middle = [np.zeros(width), *means]
    for power, name in ((2, "l2"), (1, "l1"), (math.inf, "largest entry")):
        for place, where in zip(middle, ("0", "the first mean", "the second mean"), strict=True):
            parameters = {"order": str(power), "centre": place.tolist()}
            yield Statistic("norms", "norm", parameters, f"{name} distance from {where}")
    if np.any(shift):
        yield _make_weights("projections", centre, shift / spread, "along the means' difference")
    ones = np.ones(width) / spread
    yield _make_weights("projections", centre, ones, "along the sum")
    yield from _train(first, second, centre, spread)


def _train(
    first: Sample, second: Sample, centre: np.ndarray, spread: np.ndarray
) -> Iterator[Statistic]:
    """Linear discriminants: on the numbers, and with their squares and bounded values beside."""
    if first.width > _MOST_TRAINED or min(len(first), len(second)) < 8:
        return
    for features, words in (("z", "numbers"), ("zts", "numbers, bounded values and squares")):
        parameters = {
            "features": features, "centre": centre.tolist(), "spread": spread.tolist(),
        }  # fmt: skip
        parts = [_make_features(sample, parameters) for sample in (first, second)]
        means = [part.mean(axis=0) for part in parts]
        inner = sum(
            (part - mean).T @ (part - mean) for part, mean in zip(parts, means, strict=True)
        )
        covariance = np.asarray(inner) / (len(first) + len(second))
        ridge = _RIDGE * (1.0 + np.trace(covariance) / len(covariance))
        matrix = covariance + ridge * np.eye(len(covariance))
        weights = np.linalg.lstsq(matrix, means[1] - means[0], rcond=None)[0]
        if np.all(np.isfinite(weights)) and np.any(weights):
            size = float(np.abs(weights).max())
            trained = parameters | {"weights": (weights / size).tolist()}
            yield Statistic("classifier", "weights", trained, f"classifier on {words}")


def _make_weights(kind: str, centre: np.ndarray, weights: np.ndarray, label: str) -> Statistic:
    parameters = {
        "features": "z", "centre": centre.tolist(), "spread": np.ones(len(centre)).tolist(),
        "weights": weights.tolist(),
    }  # fmt: skip
    return Statistic(kind, "weights", parameters, label)


def _make_features(sample: Sample, parameters: Mapping[str, Any]) -> np.ndarray:
    centre, spread = (np.array(parameters[key]) for key in ("centre", "spread"))
    z = (np.where(np.isnan(sample.matrix), centre, _clean(sample.matrix)) - centre) / spread
    if parameters["features"] == "z":
        return z
    bounded = np.clip(z, -30.0, 30.0)
    return np.concatenate([z, np.tanh(bounded), bounded**2], axis=1)


def _score_weights(sample: Sample, parameters: Mapping[str, Any]) -> np.ndarray:
    return _make_features(sample, parameters) @ np.array(parameters["weights"])


def _score_norm(sample: Sample, parameters: Mapping[str, Any]) -> np.ndarray:
    moved = _clean(sample.matrix) - np.array(parameters["centre"])
    return np.linalg.norm(moved, ord=float(parameters["order"]), axis=1)


def _score_bits(sample: Sample, parameters: Mapping[str, Any]) -> np.ndarray:
    """The exponent of the lowest bit that is set: -1 for 0.5 and 1.5, -2 for 0.75."""
    fraction, exponent = np.frexp(np.abs(_clean(sample.matrix)[:, int(parameters["place"])]))
    whole = (fraction * 2.0**53).astype(np.int64)
    lowest = np.frexp((whole & -whole).astype(float))[1]
    return np.where(whole == 0, _NO_BITS, exponent - 54 + lowest)


def _score_keys(sample: Sample, parameters: Mapping[str, Any]) -> np.ndarray:
    table = parameters["table"]
    return np.array([table.get(key, 0.0) for key in sample.list_keys(parameters["field"])])


_RULES = {"weights": _score_weights, "norm": _score_norm, "bits": _score_bits, "keys": _score_keys}


def _clean(matrix: np.ndarray) -> np.ndarray:
    """Finite numbers: large ones for infinities, 0 for nan."""
    return np.clip(np.nan_to_num(matrix, nan=0.0, posinf=1e150, neginf=-1e150), -1e150, 1e150)


def _find_spread(matrix: np.ndarray) -> np.ndarray:
    """A robust size of each column, above 0, [width]."""
    low, high = np.quantile(matrix, [0.1, 0.9], axis=0)
    spread = high - low
    spread = np.where(spread > 0.0, spread, np.ptp(matrix, axis=0))
    return np.where(spread > 0.0, spread, 1.0)
