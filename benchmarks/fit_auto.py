"""The factor on noisy_gd's predicted risk in mechanism=auto: cells that are kept, and the fit.

    python -m benchmarks.fit_auto               the tables and the fits of docs/proofs/auto.md
    python -m benchmarks.fit_auto --keep FILE   FILE of bench_utility.py as CSV on standard output

``utility_medium.csv`` and ``utility_border.csv`` have a line for each cell: the problem, the floor,
the median risk of all that was released, and what is predicted and chosen from its public facts by
the code as it is. Risks are measured; predictions and choices are made anew by ``--keep``, so that
another factor needs no other releases as long as the mechanisms are the same.

The fit looks at cells of smooth losses where noisy_gd has a prediction: of it and of the best
predicted other mechanism the rule takes one, and its regret is its risk over the least of all.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import TextIO

import numpy as np

from benchmarks.bench_utility import LEAST_RISK, CellResult, Source, list_faults, summarise
from dperm_cli.core import registry
from dperm_cli.mechanisms.gradient import noisy_gd
from dperm_cli.mechanisms.shared.predicted_risk import typical_reach
from dperm_cli.privacy.budget import Budget
from dperm_cli.problem.problem import ProblemSpec

KEPT = {
    "medium": Path(__file__).with_name("utility_medium.csv"),
    "border": Path(__file__).with_name("utility_border.csv"),
}
SOURCE = tuple(field.name for field in fields(Source))
CELL = (*SOURCE, "relation", "epsilon", "columns", "reach", "floor", "chosen")
# what the fit tries: the least factor, and that of few columns with its two powers
LEASTS = (0.75, 0.8, 0.85, 0.9, 0.95, 1.0)
FEWS = tuple(round(float(one), 2) for one in np.geomspace(0.8, 4.0, 30))
POWERS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
Rule = tuple[float, float, float, float]
BEFORE = "0.85, and 1.2 in up to 3 columns, as it was"


@dataclass(frozen=True)
class Kept:
    """A cell with the public facts that the factor follows."""

    result: CellResult
    columns: int
    reach: float


@dataclass(frozen=True)
class Duel:
    """noisy_gd against the best predicted other, on many cells; arrays are [cells].

    ``bare`` is noisy_gd's predicted risk over the other's, without the factor; ``ours`` and
    ``other`` are logarithms of regrets.
    """

    columns: np.ndarray
    reach: np.ndarray
    bare: np.ndarray
    ours: np.ndarray
    other: np.ndarray

    def judge(self, rule: Rule) -> np.ndarray:
        """The logarithm of the regret of a rule (least, few, power of p, power of reach)."""
        least, few, columns, reach = rule
        return self.choose(np.maximum(least, few * self.columns**-columns * self.reach**-reach))

    def choose(self, factor: np.ndarray) -> np.ndarray:
        """The logarithm of the regret of factors [cells]."""
        return np.where(factor * self.bare < 1.0, self.ours, self.other)


def keep(results: Iterable[CellResult], file: TextIO) -> None:
    """Write cells as CSV, with predictions and choices of the code as it is.

    Args:
        results: what was measured.
        file: where to.
    """
    rows, labels = [], dict[str, None]()
    auto = registry.load("mechanism", "auto")()
    for one in results:
        spec = make_facts(Source(**one.source))
        settings = auto.plan(spec, Budget(one.epsilon, 1.0 / spec.n**2, one.relation)).settings
        row = dict(one.source) | {
            "relation": one.relation, "epsilon": one.epsilon, "columns": spec.p,
            "reach": f"{typical_reach(spec):.4g}", "floor": f"{one.floor:.4g}",
            "chosen": settings["chosen"],
        }  # fmt: skip
        row |= {label: f"{risk:.4g}" for label, risk in one.risks.items()}
        told = {f"predicted {name}": f"{risk:.5g}" for name, risk in settings["predicted"].items()}
        labels |= dict.fromkeys([*one.risks, *told])
        rows.append(row | told)
    names = [*CELL, *sorted(labels, key=lambda label: (label.startswith("predicted "), label))]
    writer = csv.DictWriter(file, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)


@lru_cache(maxsize=1)
def make_facts(source: Source) -> ProblemSpec:
    """The public facts of a problem."""
    return source.make().spec()


def read(path: Path) -> list[Kept]:
    """The cells of a file that ``keep`` wrote."""
    with path.open() as file:
        return [_read_row(row) for row in csv.DictReader(file)]


def _read_row(row: Mapping[str, str]) -> Kept:
    source = Source()
    found = {name: type(getattr(source, name))(row[name]) for name in SOURCE}
    numbers = {name: float(text) for name, text in row.items() if name not in CELL and text}
    risks = {name: risk for name, risk in numbers.items() if not name.startswith("predicted ")}
    predicted = {name.partition(" ")[2]: numbers[name] for name in numbers if name not in risks}
    result = CellResult(
        found, row["relation"], float(row["epsilon"]), float(row["floor"]), row["chosen"], risks,
        predicted,
    )  # fmt: skip
    return Kept(result, int(row["columns"]), float(row["reach"]))


def make_duel(cells: Iterable[Kept]) -> Duel:
    """The cells that the factor can decide."""
    rows = []
    for one in cells:
        predicted, risks = dict(one.result.predicted), one.result.risks
        least = min(risks.values())
        if one.result.source["loss"] == "hinge" or "noisy_gd" not in predicted:
            continue
        if len(predicted) == 1 or least < LEAST_RISK:
            continue
        factor = noisy_gd.foresee_share(one.columns, one.reach)
        ours = predicted.pop("noisy_gd") / factor
        other = min(predicted, key=lambda name: predicted[name])
        regrets = [math.log(risks[name] / least) for name in ("noisy_gd", other)]
        rows.append([one.columns, one.reach, ours / predicted[other], *regrets])
    return Duel(*np.array(rows).T)


def fit(duels: Sequence[Duel]) -> Rule:
    """The rule whose regrets have the least geometric mean, each duel weighing the same."""
    rules = [
        (least, few, columns, reach)
        for least in LEASTS for few in FEWS for columns in POWERS for reach in POWERS
    ]  # fmt: skip
    return min(rules, key=lambda rule: sum(float(np.mean(one.judge(rule))) for one in duels))


def split(cells: Sequence[Kept]) -> dict[str, list[Kept]]:
    """Parts to fit on and to judge on."""
    return {
        "generated": [one for one in cells if one.result.source["name"] == "generated"],
        "public": [one for one in cells if one.result.source["name"] != "generated"],
        "even": list(cells[::2]),
        "odd": list(cells[1::2]),
    }


def list_rules() -> dict[str, Rule]:
    """Rules by name: that of the code, and what would be without one of its parts."""
    least, few = noisy_gd.FORESEEN, noisy_gd.FORESEEN_FEW
    columns, reach = noisy_gd.COLUMNS_POWER, noisy_gd.REACH_POWER
    return {
        "as it is": (least, few, columns, reach),
        "without the radius": (least, few, columns, 0.0),
        "the least factor alone": (least, 0.0, columns, reach),
        "always `objective_perturbation`": (math.inf, 0.0, columns, reach),
        "always `noisy_gd`": (0.0, 0.0, columns, reach),
    }


def tabulate_regrets(cells: Sequence[Kept]) -> list[str]:
    """Markdown rows of the regret of what is chosen over the least of all, for each set."""
    found = summarise([one.result for one in cells])
    return [
        f"| {name.replace(' ', ', ')} | {row['cells']} | {row['mean']:.2f} | {row['share']:.3f} | "
        f"{row['max']:.2f} |"
        for name, row in found.items()
    ]


def tabulate_signals(cells: Sequence[Kept]) -> list[str]:
    """The same for each norm of the true parameter and radius."""
    groups: dict[str, list[CellResult]] = {}
    for one in cells:
        source = one.result.source
        name = f"signal {source['signal']:g}, radius {source['radius']:g}"
        groups.setdefault(name, []).append(one.result)
    found = {name: summarise(some)["all"] for name, some in groups.items()}
    return [
        f"| {name} | {row['cells']} | {row['mean']:.2f} | {row['share']:.3f} | {row['max']:.2f} |"
        for name, row in found.items()
    ]


def tabulate_faults(kept: Mapping[str, Sequence[Kept]]) -> list[str]:
    """How often the choice ends above the floor or grows with epsilon, and by how much."""
    rows = []
    for name, cells in kept.items():
        faults = list_faults([one.result for one in cells])
        for told, kind in (
            ("above the floor", "of the floor"),
            ("more with more epsilon", "of that"),
        ):
            sizes = [float(one.split()[0]) for one in faults if kind in one]
            rows.append(
                f"| {name}: {told} | {len(sizes)} of {len(cells)} | {max(sizes, default=1.0):.2f} |"
            )
    return rows


def tabulate_rules(kept: Mapping[str, Sequence[Kept]]) -> list[str]:
    """Rules against each other on both kinds of cells."""
    duels = [make_duel(cells) for cells in kept.values()]
    found = {name: [duel.judge(rule) for duel in duels] for name, rule in list_rules().items()} | {
        BEFORE: [duel.choose(np.where(duel.columns <= 3, 1.2, 0.85)) for duel in duels]
    }
    return [f"| {name} | " + " | ".join(map(_say, logs)) + " |" for name, logs in found.items()]


def tabulate_fits(kept: Mapping[str, Sequence[Kept]]) -> list[str]:
    """Rules that are fitted on one part and judged on another."""
    duels = {name: make_duel(cells) for name, cells in kept.items()}
    parts = {name: split(cells) for name, cells in kept.items()}
    made = {
        part: [make_duel(parts[name][part]) for name in kept if parts[name][part]]
        for part in ("generated", "public", "even", "odd")
    }
    made |= {name: [duel] for name, duel in duels.items()} | {"both": list(duels.values())}
    pairs = (("both", "both"), ("medium", "border"), ("border", "medium"), ("even", "odd"),
             ("odd", "even"), ("generated", "public"))  # fmt: skip
    rows = []
    for on, judged in pairs:
        rule = fit(made[on])
        told = ", ".join(f"{number:g}" for number in rule)
        logs = np.concatenate([duel.judge(rule) for duel in made[judged]])
        rows.append(f"| {on} | {told} | {judged} | {len(logs)} | {_say(logs)} |")
    return rows


def _say(logs: np.ndarray) -> str:
    """Geometric mean, share up to 1.5 and largest, of logarithms."""
    share = float(np.mean(logs <= math.log(1.5)))
    return f"{math.exp(float(np.mean(logs))):.3f}, {share:.3f}, {math.exp(float(np.max(logs))):.1f}"


TABLES: dict[str, Callable[[Mapping[str, Sequence[Kept]]], list[str]]] = {
    "what is left": lambda kept: tabulate_regrets(kept["medium"]),
    "the border": lambda kept: tabulate_signals(kept["border"]),
    "faults": tabulate_faults,
    "rules": tabulate_rules,
    "fits": tabulate_fits,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--keep", type=Path, metavar="FILE")
    asked = parser.parse_args()
    if asked.keep is None:
        kept = {name: read(path) for name, path in KEPT.items()}
        for title, tabulate in TABLES.items():
            print("\n".join([title, *tabulate(kept), ""]))
        return
    lines = asked.keep.read_text().splitlines()
    keep((CellResult(**json.loads(line)) for line in lines), sys.stdout)


if __name__ == "__main__":
    main()
