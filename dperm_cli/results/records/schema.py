"""The record: one flat, typed row per trial.

``COLUMNS`` is the single description of a record; ``docs/records.md`` is checked against it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np

from dperm_cli.core.errors import nearest

SCHEMA_VERSION = 1
STATUSES = ("ok", "unsupported", "failed", "planned")
ROLES = ("identity", "public", "result", "diagnostic")


@dataclass(frozen=True)
class Column:
    """One column of a record or of a summary.

    ``kind`` is ``text``, ``int``, ``float``, ``bool``, ``list`` (of doubles) or ``json`` (text);
    ``unit`` is empty for plain numbers. ``role``: ``identity`` names the cell and what was asked,
    ``public`` follows from public facts alone, ``result`` depends on the records of the data set
    (and is no private release unless it says so), ``diagnostic`` may differ between two equal runs.
    """

    name: str
    kind: str
    unit: str
    doc: str
    role: str


def _columns(role: str, *entries: tuple[str, str, str, str]) -> tuple[Column, ...]:
    return tuple(Column(name, kind, unit, doc, role) for name, kind, unit, doc in entries)


COLUMNS: tuple[Column, ...] = (
    *_columns(
        "identity",
        ("cell", "text", "", "Hash of the cell's typed configuration; names the record file."),
        ("trial", "int", "", "Index of the trial inside its cell; null when nothing ran."),
        (
            "status",
            "text",
            "",
            "`ok`, `unsupported` (no such guarantee), `failed` (an error) or `planned` "
            "(accounted for, or a fact about sets: nothing released).",
        ),
        ("reason", "text", "", "Why the cell is unsupported or failed; null when `ok`."),
        ("dataset", "text", "", "Name of the data set."),
        ("task", "text", "", "`binary`, `multiclass`, `regression` or `location`, as declared."),
    ),
    *_columns(
        "public",
        (
            "n",
            "int",
            "records",
            "Training records that enter the sum; public under replace_one only.",
        ),
        ("population", "int", "records", "The n of the mechanism's formulas and of delta=auto."),
        (
            "population_source",
            "text",
            "",
            "`public` (replace_one), `declared`, or `from the data`: then n itself is disclosed.",
        ),
        ("p", "int", "", "Number of parameters, the intercept included."),
        ("row_bound", "float", "norm", "Bound every feature row is held to, before any fit."),
        ("target_bound", "float", "target", "Declared bound on the absolute target, if any."),
        ("preprocessing", "text", "", "What was done to the rows, and with which constants."),
        ("unsafe_scaling", "bool", "", "True when scaling was learnt from the data: NOT covered."),
        ("loss", "text", "", "Name of the loss; the objective is its sum over records."),
        ("constraint", "text", "", "Name of the constraint set."),
        ("constraint_radius", "float", "norm", "The set's radius as configured, in its own norm."),
        ("radius", "float", "L2 norm", "Largest L2 norm of a point of the set."),
        ("diameter", "float", "L2 norm", "Largest L2 distance between two points of the set."),
        ("ridge", "float", "per record", "Strength of the quadratic term added to each loss."),
        ("lasso", "float", "per record", "Strength of the L1 norm added to each loss."),
        ("lipschitz", "float", "per record", "Lipschitz constant of one record's loss on the set."),
        ("smoothness", "float", "per record", "Smoothness of one record's loss; null when none."),
        ("mechanism", "text", "", "Name of the mechanism."),
        ("calibration", "text", "", "`tight` (accounted) or `paper` (the scale as printed)."),
        (
            "settings",
            "json",
            "",
            "Public settings of the plan (step size, batch, averaging), and numbers released "
            "beside the point (`norm_estimate`).",
        ),
        ("privacy", "text", "", "Kind of guarantee asked for: `auto`, `pure`, `approx`, `local`."),
        ("relation", "text", "", "Neighbouring relation: `replace_one` or `add_remove`."),
        ("guarantee", "text", "", "Kind delivered: `pure`, `approx`, `local` or `none`."),
        (
            "epsilon",
            "float",
            "nats",
            "Epsilon asked for (nominal); where `information` was, the local epsilon it implies.",
        ),
        ("delta", "float", "probability", "Delta asked for."),
        ("epsilon_accounted", "float", "nats", "Epsilon recomputed from the plan's own events."),
        ("epsilon_chain", "float", "nats", "By BST14's lemmas as printed: no guarantee."),
        ("epsilon_chain_repaired", "float", "nats", "By BST14's lemmas repaired: valid, loose."),
        (
            "information",
            "float",
            "nats",
            "Information asked for: a bound on what a user's answers tell of the record. It is an "
            "average and NOT differential privacy; null where epsilon was asked for.",
        ),
        (
            "information_accounted",
            "float",
            "nats",
            "What all answers of one user tell at most, whatever the law of the records; null "
            "where the guarantee is not `local`.",
        ),
        ("channel", "text", "", "Channel of the answers: `l_inf`, `l_1` or `l_2`; null if none."),
        (
            "channel_multiplier",
            "float",
            "",
            "Norm of an answer over the bound on a subgradient, in the channel's norm: M of DJW12.",
        ),
        ("delta_accounted", "float", "probability", "Delta that goes with `epsilon_accounted`."),
        ("accountant", "text", "", "Theorem or accountant behind the accounted numbers."),
        ("certificate", "text", "", "What was proved of a sampler's law, or of a minimiser."),
        (
            "arithmetic",
            "text",
            "",
            "What values and noise are made of: `float64`, `grid 2^k`, or `signs` (of channels).",
        ),
        ("noise", "text", "", "`research`: seeded, in float64, not for release; or `secure`."),
        ("noise_scale", "float", "mechanism's", "Standard deviation or scale of one noise draw."),
        ("steps", "int", "", "Number of noisy steps, fixed before any record is seen."),
        ("seed", "int", "", "Base seed of the seed tree; null under `noise=secure`."),
        ("trials", "int", "", "Number of trials asked for in the cell."),
    ),
    *_columns(
        "result",
        ("optimum", "float", "loss sum", "Objective at the non-private minimiser over the set."),
        ("optimum_gap", "float", "loss sum", "Certified duality gap: most the optimum can be off."),
        ("floor_risk", "float", "loss sum", "Objective at the point chosen without any data."),
        ("floor_excess_risk", "float", "loss sum", "`floor_risk` minus `optimum`."),
        ("excess_risk", "float", "loss sum", "Objective at the released point minus `optimum`."),
        ("excess_risk_per_record", "float", "loss", "`excess_risk` divided by `n`."),
        (
            "population_excess_risk",
            "float",
            "loss",
            "Expected loss of a fresh record, without the regulariser, above its minimiser's.",
        ),
        (
            "population_excess_risk_error",
            "float",
            "loss",
            "Standard error of `population_excess_risk`: it is a mean over a fixed fresh sample.",
        ),
        (
            "records_exposed",
            "int",
            "records",
            "Training records on a kink of the loss at the released point: what a median equals, "
            "and the margins of a support vector machine.",
        ),
        (
            "tracing_score",
            "float",
            "standard deviations",
            "Mean score by which the code's rows are recognised in the released point "
            "(`bst14_fingerprint`; null for other data sets).",
        ),
        (
            "tracing_limit",
            "float",
            "standard deviations",
            "What the expected `tracing_score` cannot exceed at this epsilon and delta.",
        ),
        (
            "max_error",
            "float",
            "margin",
            "Largest error of an answer to a public query, against the certified minimiser.",
        ),
        (
            "rms_error",
            "float",
            "margin",
            "Root mean square error of the answers to the public queries.",
        ),
        ("train_metric", "float", "", "`metric` on the training records."),
        ("test_metric", "float", "", "`metric` on the held-out records; null without a split."),
        (
            "metric",
            "text",
            "",
            "`accuracy`, `r2`, of locations `mean_distance` (Euclidean), and of labels fitted by "
            "least squares `residual_norm` (both: smaller is better).",
        ),
    ),
    *_columns(
        "public",
        ("bound_upper", "float", "loss sum", "Upper bound with explicit constant; null if none."),
        (
            "bound_upper_id",
            "text",
            "",
            "Theorem of the upper bound, or `range of the objective` where that is less.",
        ),
        ("bound_lower", "float", "loss sum", "Lower bound with explicit constant; null if none."),
        ("bound_lower_id", "text", "", "Theorem of the lower bound."),
        ("bound_constant", "text", "", "Constant of `bound_upper`: `explicit`, `fitted`, `none`."),
        (
            "bound_factor",
            "float",
            "",
            "`bound_upper` over `bound_lower`: within this factor of the best possible worst case; "
            "null without both.",
        ),
        ("order_upper", "float", "loss sum", "Upper bound known up to a constant, constant one."),
        ("order_upper_id", "text", "", "Theorem of the order upper bound."),
        ("order_lower", "float", "loss sum", "Lower bound known up to a constant, constant one."),
        ("order_lower_id", "text", "", "Theorem of the order lower bound."),
        ("population_bound_upper", "float", "loss", "Explicit bound on the population risk."),
        ("population_bound_upper_id", "text", "", "Theorem of that bound."),
        (
            "population_bound_lower",
            "float",
            "loss",
            "Explicit lower bound on it, for the worst distribution of the class.",
        ),
        ("population_bound_lower_id", "text", "", "Theorem of that bound."),
    ),
    *_columns(
        "result",
        ("theta", "list", "", "The released point, `p` numbers: the private output."),
    ),
    *_columns(
        "public",
        ("events", "json", "", "Privacy events of the plan, from which the guarantee follows."),
        ("overrides", "json", "", "The cell's configuration: what to type to get it again."),
    ),
    *_columns(
        "result",
        ("data_fingerprint", "text", "", "Hash of the records as the mechanism saw them."),
    ),
    *_columns(
        "identity",
        ("version", "text", "", "Version of dperm that wrote the record."),
        (
            "release",
            "text",
            "",
            "Name of a release with fresh noise: 128 bits of the system's generator, drawn with "
            "it; null, and not in the file, where noise is seeded.",
        ),
    ),
    *_columns(
        "diagnostic",
        ("seconds", "float", "s", "Wall time of the cell's releases divided by its trials."),
        ("seconds_optimum", "float", "s", "Wall time of the non-private optimum (0 from cache)."),
    ),
)
BY_NAME: dict[str, Column] = {column.name: column for column in COLUMNS}
STABLE_COLUMNS: tuple[str, ...] = tuple(c.name for c in COLUMNS if c.role != "diagnostic")
# Columns that are neither in a file nor in its digest where they are null, so that the records of
# seeded runs keep their bytes.
OPTIONAL: tuple[str, ...] = ("release",)


def normalise(row: Mapping[str, Any]) -> dict[str, Any]:
    """A full record in column order: missing values become null.

    Raises ValueError for an unknown column and for a value of the wrong kind.
    """
    for name in row:
        if name not in BY_NAME:
            guess = nearest(name, BY_NAME)
            raise ValueError(f"record column {name!r} is unknown; nearest: {guess!r}")
    return {column.name: coerce(column, row.get(column.name)) for column in COLUMNS}


def coerce(column: Column, value: Any) -> Any:
    """The value as a plain Python object of the column's kind; ValueError when it is not one."""
    if value is None:
        return None
    try:
        return _COERCE[column.kind](value)
    except (TypeError, ValueError, OverflowError):
        message = f"record column {column.name!r} wants {column.kind}, got {value!r:.80}"
        raise ValueError(message) from None


def arrow_schema(without: Iterable[str] = ()):
    """The pyarrow schema of a record, without the columns named."""
    import pyarrow as pa

    kinds = {
        "text": pa.string(),
        "json": pa.string(),
        "int": pa.int64(),
        "float": pa.float64(),
        "bool": pa.bool_(),
        "list": pa.list_(pa.float64()),
    }
    columns = [column for column in COLUMNS if column.name not in without]
    return pa.schema([pa.field(column.name, kinds[column.kind]) for column in columns])


def canonical_json(value: Any) -> str:
    """JSON with sorted keys; infinities and nan become words, since JSON has no such numbers."""
    return json.dumps(
        _replace_nonfinite(value), sort_keys=True, separators=(",", ":"), allow_nan=False
    )


def json_lines(rows: Iterable[Any]) -> str:
    """Rows as ``canonical_json``, a line each."""
    return "\n".join(map(canonical_json, rows))


def markdown(columns: Iterable[Column]) -> str:
    """The columns as a Markdown table: what ``docs/records.md`` holds."""
    lines = ["| column | kind | unit | role | meaning |", "|---|---|---|---|---|"]
    for c in columns:
        lines.append(f"| `{c.name}` | {c.kind} | {c.unit} | {c.role} | {c.doc} |")
    return "\n".join(lines) + "\n"


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return str(value)


def _boolean(value: Any) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError
    return bool(value)


def _integer(value: Any) -> int:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Integral):
        raise TypeError
    return int(value)


def _number(value: Any) -> float:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
        raise TypeError
    return float(value)


def _numbers(value: Any) -> list[float]:
    array = np.asarray(value)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iuf"):
        raise TypeError
    return array.astype(np.float64).tolist()


def _json_text(value: Any) -> str:
    return value if isinstance(value, str) else canonical_json(value)


def _replace_nonfinite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _replace_nonfinite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [_replace_nonfinite(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    return value


_COERCE = {
    "text": _text,
    "json": _json_text,
    "int": _integer,
    "float": _number,
    "bool": _boolean,
    "list": _numbers,
}
