"""A saved predictor as an ONNX graph: its row rule, its features and its scores.

The graph takes raw rows, in the units of the file that the model was fitted to, and gives what
``dperm predict`` gives. Of a table with a schema every feature column is an input of its own: a
number as it is and a day as days since 1970-01-01, both nan where missing; a word as
``label_names.canonical`` spells it, empty where missing.
"""

from __future__ import annotations

import datetime
import itertools
import json
import math
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from dperm_cli import __version__
from dperm_cli.core.errors import Unsupported
from dperm_cli.datasets.shared.column_kinds import (
    DROP,
    OTHER,
    OWN,
    ZERO,
    Category,
    ColumnKind,
    Date,
    Number,
    Ordinal,
    read_day,
)
from dperm_cli.datasets.shared.row_rules import ROUNDING_ROOM
from dperm_cli.kernels.base import Kernel
from dperm_cli.runner.models.input_schema import NORMS, InputSchema
from dperm_cli.runner.models.onnx_graph import OnnxGraph
from dperm_cli.runner.models.publishable import FeatureMap, Publishable

ROWS = "rows"  # the input of a model without a schema
_FIRST_DAY = datetime.date(1970, 1, 1)


def write_onnx(found: Publishable) -> bytes:
    """The file of a model's graph.

    Args:
        found: the model.

    Returns:
        A file whose graph has the outputs ``score``, ``label`` and ``probability`` of a
        classifier (the last where its loss is a likelihood) or ``value`` of a regression.

    Raises:
        Unsupported: its kernel cannot be written, or the package ``onnx`` is missing.
    """
    graph = OnnxGraph()
    schema, dropped = found.schema, None
    if schema.table is None:
        rows = graph.take(ROWS, schema.count)
    else:
        rows, dropped = _encode_table(graph, schema)
    rows = _apply_row_rule(graph, schema, rows)
    if found.features is not None:
        rows = _map_features(graph, found.features, schema, rows)
    _predict(graph, found, rows, dropped)
    facts = {"level": found.level(), "facts": json.dumps(found.plain(), sort_keys=True)}
    return graph.write(facts, "dperm", __version__)


def _encode_table(graph: OnnxGraph, schema: InputSchema) -> tuple[str, str | None]:
    """The encoded cells [rows, count], and which rows get no prediction [rows, 1]."""
    assert schema.table is not None
    parts, dropped = list[str](), list[str]()
    for column, kind in schema.table.features:
        values, missing = _ENCODERS[type(kind)](graph, column, kind)
        if kind.missing == DROP:
            dropped.append(missing)
        elif kind.missing == OWN:
            parts += [values, _numbers(graph, missing, kind.weight)]
            continue
        parts.append(values)
    if schema.table.intercept:
        parts.append(graph.add("Add", _write_zeros(graph, parts[0]), graph.constant(1.0)))
    rows = graph.add("Concat", *parts, axis=1)
    if not dropped:
        return rows, None
    whole = dropped[0]
    for other in dropped[1:]:
        whole = graph.add("Or", whole, other)
    return graph.choose(whole, graph.constant(0.0), rows), whole


def _numbers(graph: OnnxGraph, truth: str, weight: float = 1.0) -> str:
    """``weight`` where something holds, else 0."""
    return graph.choose(truth, graph.constant(weight), graph.constant(0.0))


def _fill(graph: OnnxGraph, kind: ColumnKind, value: str, missing: str) -> str:
    """A scaled column's values, with 0 or the declared value where the cell is missing."""
    stand_in = 0.0
    if kind.missing not in (OWN, DROP):
        stand_in = kind.find_place(str(kind.missing))
    filled = graph.choose(missing, graph.constant(stand_in), value)
    return graph.add("Mul", filled, graph.constant(kind.weight))


def _scale(graph: OnnxGraph, value: str, low: float, high: float) -> str:
    held = graph.add("Min", graph.add("Max", value, graph.constant(low)), graph.constant(high))
    moved = graph.add("Sub", held, graph.constant(low))
    share = graph.add("Div", moved, graph.constant(high - low))
    doubled = graph.add("Mul", share, graph.constant(2.0))
    return graph.add("Sub", doubled, graph.constant(1.0))


def _take_number(graph: OnnxGraph, column: str) -> tuple[str, str]:
    """A column of numbers with 0 where a cell is missing, and where that is."""
    cells = graph.take(column, 1)
    missing = graph.add("IsNaN", cells)
    return graph.choose(missing, graph.constant(0.0), cells), missing


def _encode_number(graph: OnnxGraph, column: str, kind: Number) -> tuple[str, str]:
    value, missing = _take_number(graph, column)
    return _fill(graph, kind, _scale(graph, value, *kind.bounds), missing), missing


def _encode_date(graph: OnnxGraph, column: str, kind: Date) -> tuple[str, str]:
    first, last = read_day(kind.first), read_day(kind.last)
    assert first is not None
    assert last is not None
    value, missing = _take_number(graph, column)
    since = graph.add("Sub", value, graph.constant(float((first - _FIRST_DAY).days)))
    scaled = _scale(graph, since, 0.0, float((last - first).days))
    return _fill(graph, kind, scaled, missing), missing


def _encode_ordinal(graph: OnnxGraph, column: str, kind: Ordinal) -> tuple[str, str]:
    cells = graph.take(column, 1, text=True)
    held = _numbers(graph, graph.add("Equal", cells, graph.constant([list(kind.order)])))
    places = np.array([[kind.find_place(word)] for word in kind.order])
    value = graph.add("MatMul", held, graph.constant(places))
    count = graph.add("ReduceSum", held, graph.constant([1]), keepdims=1)
    missing = graph.add("Equal", count, graph.constant(0.0))
    return _fill(graph, kind, value, missing), missing


def _encode_category(graph: OnnxGraph, column: str, kind: Category) -> tuple[str, str]:
    cells = graph.take(column, 1, text=True)
    missing = graph.add("Equal", cells, graph.constant([[""]]))
    if kind.missing not in (OWN, DROP, ZERO):
        cells = graph.choose(missing, graph.constant([[str(kind.missing)]]), cells)
    held = graph.add("Equal", cells, graph.constant([list(kind.values)]))
    values = _numbers(graph, held, kind.weight)
    if OTHER in kind.own_names()[len(kind.values) :]:
        count = graph.add("ReduceSum", values, graph.constant([1]), keepdims=1)
        unknown = graph.add("Equal", count, graph.constant(0.0))
        if kind.missing in (OWN, DROP, ZERO):
            unknown = graph.add("And", unknown, graph.add("Not", missing))
        values = graph.add("Concat", values, _numbers(graph, unknown, kind.weight), axis=1)
    return values, missing


_ENCODERS: Mapping[type, Callable[[OnnxGraph, str, Any], tuple[str, str]]] = {
    Number: _encode_number,
    Date: _encode_date,
    Ordinal: _encode_ordinal,
    Category: _encode_category,
}


def _apply_row_rule(graph: OnnxGraph, schema: InputSchema, rows: str) -> str:
    if schema.scaling == "bounds":
        low, high = np.broadcast_to(np.asarray(schema.bounds), (schema.count, 2)).T
        held = graph.add("Min", graph.add("Max", rows, graph.constant(low)), graph.constant(high))
        share = graph.add("Div", graph.add("Sub", held, graph.constant(low)),
                          graph.constant(high - low))  # fmt: skip
        rows = share
        if schema.centred:
            doubled = graph.add("Mul", share, graph.constant(2.0))
            rows = graph.add("Sub", doubled, graph.constant(1.0))
    if schema.intercept:
        one = graph.add("Add", _write_zeros(graph, rows), graph.constant(1.0))
        rows = graph.add("Concat", rows, one, axis=1)
    return _bound_rows(graph, rows, schema.rows, schema.row_bound, NORMS[schema.norm])


def _bound_rows(graph: OnnxGraph, rows: str, rule: str, bound: float, norm: float) -> str:
    """As ``row_rules.bound_rows``."""
    axis, zero, one = graph.constant([1]), graph.constant(0.0), graph.constant(1.0)
    peak = graph.add("ReduceMax", graph.add("Abs", rows), axis, keepdims=1)
    direction = graph.add("Div", rows, graph.choose(graph.add("Greater", peak, zero), peak, one))
    if norm == 2.0:
        squares = graph.add("Mul", direction, direction)
        length = graph.add("Sqrt", graph.add("ReduceSum", squares, axis, keepdims=1))
    else:
        kind = "ReduceSum" if norm == 1.0 else "ReduceMax"
        length = graph.add(kind, graph.add("Abs", direction), axis, keepdims=1)
    safe = graph.choose(graph.add("Greater", length, zero), length, one)
    target = graph.add("Div", graph.constant(bound * (1.0 - ROUNDING_ROOM)), safe)
    scaled = graph.add("Mul", direction, target)
    if rule == "unit":
        return scaled
    long = graph.add("Greater", graph.add("Mul", peak, length), graph.constant(bound))
    return graph.choose(long, scaled, rows)


def _map_features(graph: OnnxGraph, features: FeatureMap, schema: InputSchema, rows: str) -> str:
    """psi of every row, held to its bound."""
    made = features.build_features(schema.width, schema.l2_bound)
    if features.kind == "fourier":
        table = np.asarray(features.arrays["frequencies"]).T
        angles = graph.add("MatMul", rows, graph.constant(table))
        # cos(a) = sin(a + pi/2): runtimes have the sine in float64
        turned = graph.add("Add", angles, graph.constant(0.5 * math.pi))
        waves = graph.add("Concat", graph.add("Sin", turned), graph.add("Sin", angles), axis=1)
        mapped = graph.add("Div", waves, graph.constant(math.sqrt(table.shape[1])))
    elif features.kind == "landmarks":
        points, basis = features.arrays["points"], features.arrays["basis"]
        gram = _write_gram(graph, features.kernel, rows, points)
        mapped = graph.add("MatMul", gram, graph.constant(basis))
    else:
        mapped = _write_monomials(graph, features.kernel, rows, schema.width)
    square = graph.add("ReduceSum", graph.add("Mul", mapped, mapped), graph.constant([1]),
                       keepdims=1)  # fmt: skip
    norm, bound = graph.add("Sqrt", square), graph.constant(made.bound)
    safe = graph.choose(graph.add("Greater", norm, bound), norm, bound)
    factor = graph.add("Div", graph.constant((1.0 - 1e-15) * made.bound), safe)
    long = graph.add("Greater", norm, bound)
    return graph.choose(long, graph.add("Mul", mapped, factor), mapped)


def _write_monomials(graph: OnnxGraph, kernel: Kernel, rows: str, width: int) -> str:
    """As ``Polynomial.explicit``; of the linear kernel the rows themselves."""
    if kernel.name == "linear":
        return rows
    if kernel.name != "polynomial":
        raise Unsupported(f"format=onnx: kernel={kernel.name} has no monomials to write")
    known: Any = kernel
    degree, root = int(known.degree), math.sqrt(known.offset)
    if root > 0.0:
        constant = graph.add("Add", _write_zeros(graph, rows), graph.constant(root))
        rows, width = graph.add("Concat", rows, constant, axis=1), width + 1
    chosen = list(itertools.combinations_with_replacement(range(width), degree))
    weights = [
        math.factorial(degree) / math.prod(math.factorial(n) for n in Counter(one).values())
        for one in chosen
    ]
    product = graph.constant(np.sqrt(weights))
    for place in range(degree):
        columns = graph.constant([one[place] for one in chosen])
        product = graph.add("Mul", graph.add("Gather", rows, columns, axis=1), product)
    return product


def _write_zeros(graph: OnnxGraph, rows: str) -> str:
    """A column of zeros as long as the rows [rows, 1]."""
    zeros = graph.add("Mul", rows, graph.constant(0.0))
    return graph.add("ReduceSum", zeros, graph.constant([1]), keepdims=1)


def _write_gram(graph: OnnxGraph, kernel: Kernel, rows: str, points: np.ndarray) -> str:
    """K(row, point), [rows, points]."""
    known: Any = kernel
    if kernel.name in ("linear", "polynomial"):
        products = graph.add("MatMul", rows, graph.constant(points.T))
        if kernel.name == "linear":
            return products
        moved = graph.add("Add", products, graph.constant(known.offset))
        return graph.add("Pow", moved, graph.constant(float(known.degree)))
    if kernel.name not in ("rbf", "laplacian"):
        raise Unsupported(f"format=onnx: kernel={kernel.name} cannot be written")
    wide = graph.add("Unsqueeze", rows, graph.constant([1]))
    apart = graph.add("Sub", wide, graph.constant(points[None]))
    sizes = graph.add("Mul", apart, apart) if kernel.name == "rbf" else graph.add("Abs", apart)
    distance = graph.add("ReduceSum", sizes, graph.constant([2]), keepdims=0)
    return graph.add("Exp", graph.add("Mul", distance, graph.constant(-known.gamma)))


def _predict(graph: OnnxGraph, found: Publishable, rows: str, dropped: str | None) -> None:
    """The outputs; rows that get no prediction have nan and an empty label."""
    assert found.theta is not None
    schema, several = found.schema, found.columns_of_theta
    theta = found.theta.reshape(-1, several)
    scores = graph.add("MatMul", rows, graph.constant(theta))
    narrow = graph.constant([1])
    usable = None if dropped is None else graph.add("Squeeze", dropped, narrow)
    likelihood = found.chances(np.zeros((1, several) if several > 1 else 1)) is not None

    def give(name: str, value: str, width: int | None = None, text: bool = False) -> None:
        mask, nothing = (usable if width is None else dropped), "" if text else math.nan
        if mask is not None:
            value = graph.choose(mask, graph.constant(nothing), value)
        graph.give(name, value, width, text)

    if schema.task == "multiclass":
        names = [str(schema.format_label(float(k))) for k in range(several)]
        best = graph.add("ArgMax", scores, axis=1, keepdims=0)
        give("label", graph.add("Gather", graph.constant(names), best), text=True)
        give("score", scores, several)
        if likelihood:
            give("probability", graph.add("Softmax", scores, axis=1), several)
        return
    score = graph.add("Squeeze", scores, narrow)
    if schema.task == "binary":
        yes, no = (graph.constant([str(schema.format_label(sign))]) for sign in (1.0, -1.0))
        positive = graph.add("GreaterOrEqual", score, graph.constant(0.0))
        give("label", graph.choose(positive, yes, no), text=True)
        give("score", score)
        if likelihood:
            give("probability", graph.add("Sigmoid", score))
        return
    low, high = schema.target_bounds or (-1.0, 1.0)
    raised = graph.add("Add", score, graph.constant(1.0))
    moved = graph.add("Mul", raised, graph.constant(0.5 * (high - low)))
    value = graph.add("Add", moved, graph.constant(low))
    give("value", graph.add("Exp", value) if schema.takes_logarithm else value)
