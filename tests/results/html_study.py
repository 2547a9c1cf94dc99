"""Studies for the page: a large one, a hostile one, an experiment; and its bytes."""

from __future__ import annotations

import itertools
import json
import random
import re
from pathlib import Path
from typing import Any

from dperm_cli.results.ledger import ledger
from dperm_cli.results.page import html_page, page_data
from dperm_cli.results.records.schema import normalise
from dperm_cli.results.records.summary import summarise
from dperm_cli.results.tables.summary_table import csv_text
from tests.results.conftest import refused, trial_rows

MECHANISMS = ("noisy_gd", "noisy_sgd", "output_perturbation", "objective_perturbation", "frank")
EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
NS = (500, 1000, 2000, 4000)
WORDS = (
    "200 x a sum over all records plus Gaussian noise of standard deviation 921.51 in every "
    "coordinate; a neighbouring data set moves it by at most 1.99991 (L2 norm)"
)
EVIL = "</script><script>document.title='owned'</script><img src=x onerror=alert(1)>\u2028&\"'"


class Adding:
    """An accountant that adds epsilons."""

    def events(self, row: Any) -> list[dict[str, Any]]:
        return [{"event": "Gaussian", "words": WORDS}]

    def restore_events(self, entries: Any) -> list[dict[str, Any]]:
        return [dict(entry) for entry in entries]

    def total(self, releases: Any, relation: str) -> dict[str, Any]:
        epsilon = sum(row["epsilon_accounted"] * times for row, times in releases)
        return {"kind": "approx", "epsilon": epsilon, "delta": 1e-4, "accountant": "sum"}

    def find_missing(self, row: Any) -> str | None:
        return None

    def fault(self, row: Any) -> str | None:
        return None


def large(data_sets: int = 5, trials: int = 3) -> list[dict[str, Any]]:
    """Records of 100 cells a data set: 5 mechanisms, 4 sizes, 5 epsilons; delta = 1/n^2."""
    rows: list[dict[str, Any]] = []
    grid = itertools.product(range(data_sets), MECHANISMS, NS, EPSILONS)
    for k, (d, mechanism, n, epsilon) in enumerate(grid):
        draw = random.Random(k)
        level = 40.0 * (1 + MECHANISMS.index(mechanism)) / epsilon
        config = {"dataset": {"name": f"data{d}", "n": n}, "mechanism": {"name": mechanism},
                  "epsilon": epsilon, "seed": 0}  # fmt: skip
        rows += trial_rows(
            f"{k:020x}", tuple(level * draw.lognormvariate(0, 0.2) for _ in range(trials)),
            dataset=f"data{d}", mechanism=mechanism, n=n, epsilon=epsilon, delta=1 / n**2,
            epsilon_accounted=0.999 * epsilon, delta_accounted=1 / n**2, floor_excess_risk=1e4,
            noise_scale=draw.lognormvariate(1, 1), bound_upper=1e3 / epsilon,
            bound_upper_id="[A12, Thm 2]", bound_lower=0.1 / epsilon,
            bound_lower_id="[A12, Thm 5]", overrides=json.dumps(config), seed=0, version="0.1.0",
            data_fingerprint=f"{d:032x}", settings='{"averaging":"last"}',
            accountant="analytic Gaussian", population_source="public", population=n,
            events="[]", arithmetic="float64", lipschitz=1.0, privacy="auto",
        )  # fmt: skip
    return [normalise(row) for row in [*rows, refused("no", reason="pure is not offered")]]


def manifest(study: str = "large", **more: Any) -> dict[str, Any]:
    return {
        "study": study, "argv": ["-m", "epsilon=0.1,1"], "seed_scheme": "Philox",
        "versions": {"python": "3.11.7", "dperm": "0.1.0"}, "git": None, **more,
    }  # fmt: skip


def payload(records: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    rows = summarise(records)
    released = ledger.build_ledger(records, Adding())
    return page_data.build_payload(rows, records, manifest(**more), None, csv_text(rows), released)


def page(records: list[dict[str, Any]], **more: Any) -> str:
    return html_page.page(payload(records, **more)).decode()


def embedded(text: str) -> dict[str, Any]:
    """What a page embeds, read back as a browser would."""
    (found,) = re.findall(r'<script type="application/json" id="study">(.*?)</script>', text, re.S)
    return json.loads(found)


def unpack_rows(columns: dict[str, Any], count: int) -> list[dict[str, Any]]:
    """The rows behind packed columns, as the page reads them."""
    full = {name: _unpack_column(column, count) for name, column in columns.items()}
    return [{name: values[i] for name, values in full.items()} for i in range(count)]


def _unpack_column(column: dict[str, Any], count: int) -> list[Any]:
    if "one" in column:
        return [column["one"]] * count
    return [column["of"][i] for i in column["at"]] if "of" in column else column["all"]


def rows_in(made: dict[str, Any]) -> list[dict[str, Any]]:
    """The cells of an embedded study, unpacked."""
    return unpack_rows(made["rows"]["columns"], made["rows"]["count"])


ABOUT: dict[str, Any] = {
    "id": "mine", "paper": "[A12, Fig. 1]", "text": "risk against n", "size": "small",
    "parts": [{"name": "all", "text": "every n", "absent": None, "cells": []}], "table": [],
    "plot": [{
        "part": ["all"], "x": "n", "y": "excess_risk", "statistic": "median", "where": {},
        "curve": ["mechanism"], "worst": [], "best": [], "pool": ["epsilon", "dataset"],
        "lines": ["floor", "bound_upper"], "slope": True, "title": "",
    }],
}  # fmt: skip


def experiment(records: list[dict[str, Any]]) -> dict[str, Any]:
    """The manifest's ``experiment`` for these records."""
    cells = list(dict.fromkeys(row["cell"] for row in records))
    return {**ABOUT, "parts": [{**ABOUT["parts"][0], "cells": cells}]}


def blank(folder: Path) -> Path:
    """A page with next to nothing on it."""
    path = folder / "blank.html"
    path.write_text('<!DOCTYPE html><html lang="en" data-ready="1"><title>blank</title></html>')
    return path
