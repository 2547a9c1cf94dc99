"""Write a made-up hospital table, and its schema, to try a release on.

    python make_hospital_table.py [FOLDER] [RECORDS] [TARGET]

writes FOLDER/hospital.csv and FOLDER/schema.yaml. TARGET is ``readmitted`` (yes or no), ``ward``
(five classes) or ``cost`` (a positive skewed number). All numbers are drawn from a fixed seed;
nobody's data is in it.
"""

from __future__ import annotations

import csv
import datetime
import sys
from pathlib import Path

import numpy as np

WARDS = ("cardiology", "general", "neurology", "oncology", "surgery")

SEVERITY = ("low", "middle", "high")
FIRST_DAY = datetime.date(2020, 1, 1)
DAYS = 1826
COLUMNS = (
    "patient_id", "age", "sex", "insurance", "severity", "admitted", "blood_pressure", "glucose",
    "earlier_stays", "notes", "readmitted", "ward", "cost",
)  # fmt: skip
TARGETS = {
    "readmitted": "{column: readmitted, kind: label, classes: [no, yes]}",
    "ward": f"{{column: ward, kind: label, classes: [{', '.join(WARDS)}]}}",
    "cost": "{column: cost, kind: number, bounds: [100, 1000000], transform: log}",
}
SCHEMA = """\
# what can be in the table, not what is: nothing here was read from the records
unit: record
target: {target}
columns:
  patient_id: {{kind: identifier}}
  age: {{kind: number, bounds: [0, 110], missing: own}}
  sex: {{kind: category, values: [f, m], missing: zero}}
  insurance: {{kind: category, values: [public, private, none at all], missing: zero}}
  severity: {{kind: ordinal, order: [low, middle, high], missing: middle}}
  admitted: {{kind: date, first: 2020-01-01, last: 2024-12-31, missing: own}}
  blood_pressure: {{kind: number, bounds: [60, 220], missing: own}}
  glucose: {{kind: number, bounds: [40, 400], missing: own}}
  earlier_stays: {{kind: number, bounds: [0, 12], missing: 0}}
  notes: {{kind: drop}}
{left_out}"""


def make_records(count: int, seed: int = 0) -> dict[str, list[str]]:
    """The columns of a table of ``count`` records, as texts."""
    rng = np.random.default_rng(seed)
    age = np.clip(rng.normal(58, 19, count), 0, 105)
    severity = rng.choice(3, count, p=[0.5, 0.35, 0.15])
    stays = rng.poisson(0.4 + 0.8 * severity)
    pressure = rng.normal(118 + 0.35 * age, 14)
    glucose = np.exp(rng.normal(4.55 + 0.12 * severity, 0.25))
    insurance = rng.choice(3, count, p=[0.7, 0.22, 0.08])
    day = rng.integers(0, DAYS, count)
    score = (
        0.05 * (age - 58) + 1.6 * (severity - 0.6) + 0.9 * (stays - 0.9) + 0.012 * (glucose - 100)
    )
    readmitted = rng.random(count) < 1.0 / (1.0 + np.exp(-1.4 * score + 0.4))
    pulls = np.stack(
        [
            0.05 * (age - 55), np.full(count, 0.8), 0.6 * (glucose < 85) - 0.02 * (age - 50),
            1.1 * (severity - 1) + 0.02 * (age - 60), 1.2 * (stays > 1) - 0.5 * severity,
        ],
        axis=1,
    )  # fmt: skip
    ward = np.argmax(1.5 * pulls + rng.gumbel(size=pulls.shape), axis=1)
    cost = np.exp(rng.normal(7.2 + 0.55 * severity + 0.012 * age + 0.15 * stays, 0.5))
    found = {
        "patient_id": [f"P{100000 + i}" for i in range(count)],
        "age": [f"{value:.0f}" for value in age],
        "sex": [("f", "m")[k] for k in rng.integers(0, 2, count)],
        "insurance": [("public", "private", "none at all")[k] for k in insurance],
        "severity": [SEVERITY[k] for k in severity],
        "admitted": [str(FIRST_DAY + datetime.timedelta(days=int(k))) for k in day],
        "blood_pressure": [f"{value:.0f}" for value in pressure],
        "glucose": [f"{value:.1f}" for value in glucose],
        "earlier_stays": [str(k) for k in stays],
        "notes": ['seen at night, "stable"' if k else "" for k in rng.integers(0, 2, count)],
        "readmitted": [("no", "yes")[int(k)] for k in readmitted],
        "ward": [WARDS[k] for k in ward],
        "cost": [f"{value:.2f}" for value in cost],
    }
    for name, share in (("age", 0.01), ("blood_pressure", 0.06), ("glucose", 0.12), ("sex", 0.02)):
        for i in np.flatnonzero(rng.random(count) < share):
            found[name][i] = ""
    return found


def write_schema(target: str) -> str:
    """The schema of the table for one of its targets; the other two are left out."""
    others = (name for name in TARGETS if name != target)
    left_out = "".join(f"  {name}: {{kind: drop}}\n" for name in others)
    return SCHEMA.format(target=TARGETS[target], left_out=left_out)


def main(words: list[str]) -> None:
    """Write both files."""
    folder = Path(words[0] if words else ".")
    count = int(words[1]) if len(words) > 1 else 20_000
    target = words[2] if len(words) > 2 else "readmitted"
    folder.mkdir(parents=True, exist_ok=True)
    records = make_records(count)
    with open(folder / "hospital.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        writer.writerows(zip(*(records[name] for name in COLUMNS), strict=True))
    (folder / "schema.yaml").write_text(write_schema(target), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
