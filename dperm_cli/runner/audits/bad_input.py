"""Check that the readers of `dperm run` refuse bad input: one case of the audit."""

from __future__ import annotations

from dperm_cli.audit.case_report import Report
from dperm_cli.core.errors import InputError
from dperm_cli.runner.compose import study_plan
from dperm_cli.runner.verbs import run

NAME = "bad input"
# Each must be refused before anything is planned.
WORDS = (
    "epsilon=nan", "epsilon=inf", "epsilon=0", "epsilon=-1", "epsilon=true", "epsilon=1e300",
    "epsilon=1e-300", "delta=nan", "delta=-0.1", "delta=1", "delta=2", "ridge=nan", "ridge=-1",
    "ridge=1e300", "lasso=-1", "constraint.radius=nan", "constraint.radius=0",
    "constraint.radius=-1", "constraint.radius=1e300", "dataset.row_bound=nan",
    "dataset.row_bound=-1", "dataset.row_bound=1e300", "trials=0", "seed=-1", "seed=1.5",
    "mechanism.steps=-1", "mechanism.steps=nan", "privacy.population=0",
    "privacy.relation=neither", "dataset.scaling=standardise", "dataset.scaling=minmax",
)  # fmt: skip
# Two words that are refused together.
TOGETHER = (
    ("privacy=pure", "delta=1e-5"), ("privacy=approx", "delta=0"), ("noise=secure", "seed=1"),
    ("privacy.relation=add_remove", "privacy.population=3"),
)  # fmt: skip


def examine_inputs() -> Report:
    """A report with a fault for everything that passes."""
    report = Report(NAME, "what `dperm run` must refuse", relation="-")
    for words in [*((word,) for word in WORDS), *TOGETHER]:
        report.trials += 1
        try:
            _, study = study_plan.parse_request(list(words))
            run.prepare(study.cells)
        except InputError:
            continue
        except Exception as error:
            report.faults.append(f"{' '.join(words)} ends with {type(error).__name__}")
            continue
        report.faults.append(f"{' '.join(words)} is not refused")
    return report
