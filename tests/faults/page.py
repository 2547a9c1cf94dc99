"""Write ``docs/faults.md`` from the kept verdicts: ``make faults-page``."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tests.faults.environments import PYTHONS, RESOLUTIONS
from tests.faults.processors import NEEDED
from tests.faults.verdicts import (
    BROKE,
    FILED,
    FOLDER,
    HELD,
    NOT_RUN,
    FaultTest,
    Verdict,
    list_tests,
    name_test,
    read_verdicts,
)

PAGE = FOLDER.parents[1] / "docs" / "faults.md"
MATRIX = "test_matrix.py"
NUMBERS = f"{MATRIX}::test_numbers_hold"
SUITE = f"{MATRIX}::test_the_default_fault_tests_hold"
INSTALLED, NATIVE = "installed", "as it is"
CHANGED = "the test, or what it uses of the tests, was changed since its last run"
NONE_KEPT = "no run of it is kept"
INTRODUCTION = f"""# Faults

What was done to dperm, and what came of it. `make faults-page` writes this page from the tests in
`tests/faults` and the verdicts that `make faults` keeps in `tests/faults/verdicts.json`.

- **{HELD}**: dperm does what the test asks. **{BROKE}**: it does not. **{FILED}**: it does not, for
  the reason that stands beside it.
- **{NOT_RUN}**: why not stands beside it. Where a test, or what it uses of the tests, was changed
  after its verdict, the verdict says nothing about it any more.

Which of these tests run when is said in [CONTRIBUTING.md](../CONTRIBUTING.md#what-runs-when).
"""
MATRIX_TEXT = f"""
## Processors, Pythons, libraries

In each place every generator of data and five sweeps run in a process whose libraries compute as
on another processor. Held: fingerprints, generated data and names of cells are the same bytes as
without that, and optima, risks and noise scales differ by less than 1e-9 relative. `{NATIVE}`
compares with this project's own environment (`constraints.txt`): there, names of cells
differ, because they hold the versions of the libraries. `lowest` are the least releases that
`pyproject.toml` allows and that are built for that Python, `newest` the latest. *Fault tests* are
the tests below that the default suite has, run in that environment.
"""


def render(tests: Sequence[FaultTest], verdicts: Mapping[str, Verdict]) -> str:
    """The page, from the tests as they are written and the verdicts as they are kept."""
    parts = [INTRODUCTION, *_render_counts(tests, verdicts), *_render_matrix(tests, verdicts)]
    for file in dict.fromkeys(test.file for test in tests if test.file != MATRIX):
        parts += _render_file(file, [test for test in tests if test.file == file], verdicts)
    machines = sorted({verdict.machine for verdict in verdicts.values()})
    parts += ["", "## Where they ran", "", *(f"- {machine}" for machine in machines)]
    return "\n".join(parts) + "\n"


def find_verdict(test: FaultTest, case: str, verdicts: Mapping[str, Verdict]) -> Verdict:
    """What is kept of a case, or why it says nothing."""
    kept = verdicts.get(case)
    if kept is None:
        return Verdict(NOT_RUN, NONE_KEPT, 0.0, test.digest, "")
    if kept.digest != test.digest:
        return Verdict(NOT_RUN, CHANGED, 0.0, test.digest, "")
    return kept


def list_cases(test: FaultTest, verdicts: Mapping[str, Verdict]) -> list[Verdict]:
    """The verdicts of all kept cases of a test; where there are none, that it was not run."""
    cases = [case for case in verdicts if name_test(case) == test.key] or [test.key]
    return [find_verdict(test, case, verdicts) for case in sorted(cases)]


def _render_counts(tests: Sequence[FaultTest], verdicts: Mapping[str, Verdict]) -> Iterator[str]:
    counts = Counter(one.verdict for test in tests for one in list_cases(test, verdicts))
    yield f"{len(tests)} tests: " + ", ".join(
        f"{counts[word]} case{'s' * (counts[word] > 1)} {word}"
        for word in (HELD, BROKE, FILED, NOT_RUN)
        if counts[word]
    ) + "."  # fmt: skip


def _render_matrix(tests: Sequence[FaultTest], verdicts: Mapping[str, Verdict]) -> Iterator[str]:
    named = {test.key: test for test in tests}
    if NUMBERS not in named:
        return
    columns = (NATIVE, *NEEDED)
    yield MATRIX_TEXT
    yield "| Python, libraries | " + " | ".join(columns) + " | fault tests |"
    yield "| :-- " * (len(columns) + 2) + "|"
    whys: Counter[str] = Counter()
    for place in list_places():
        found = [
            find_verdict(named[NUMBERS], f"{NUMBERS}[{place}-{column}]", verdicts)
            for column in columns
            if (place, column) != (INSTALLED, NATIVE)
        ]
        if place == INSTALLED:
            found.insert(0, Verdict("compared with", "", 0.0, "", ""))
        found.append(find_verdict(named[SUITE], f"{SUITE}[{place}]", verdicts))
        whys.update(f"{one.verdict}: {one.why}" for one in found if one.why)
        yield f"| {place} | " + " | ".join(_tell(one) for one in found) + " |"
    yield from _list_whys(whys)


def list_places() -> list[str]:
    """The rows of the matrix."""
    return [INSTALLED, *(f"{one}-{libraries}" for one in PYTHONS for libraries in RESOLUTIONS)]


def _tell(one: Verdict) -> str:
    return f"{one.verdict} ({one.seconds:.0f} s)" if one.seconds else one.verdict


def _render_file(
    file: str, tests: Sequence[FaultTest], verdicts: Mapping[str, Verdict]
) -> Iterator[str]:
    text = (ast.get_docstring(ast.parse((FOLDER / file).read_text())) or "").split("\n\n")[0]
    yield f"\n## {file}\n\n" + text.replace("\n", " ") + "\n"
    yield "| test | what came of it | seconds |"
    yield "| :-- | :-- | --: |"
    for test in tests:
        cases = list_cases(test, verdicts)
        counts = Counter((one.verdict, one.why or one.measured) for one in cases)
        told = [
            f"{many} {verdict}" + (f": {_escape(words)}" if words else "")
            for (verdict, words), many in sorted(counts.items())
        ]
        name = test.name.removeprefix("test_").replace("_", " ")
        name += f". {_escape(test.text)}" if test.text else ""
        seconds = sum(one.seconds for one in cases)
        yield f"| {name} | {'<br>'.join(told)} | {f'{seconds:.0f}' if seconds else ''} |"


def _list_whys(whys: Counter[str]) -> Iterator[str]:
    if whys:
        yield ""
    for why, many in sorted(whys.items()):
        yield f"- {many} {_escape(why)}"


def _escape(text: str) -> str:
    for letter in "|_*<`":
        text = text.replace(letter, f"\\{letter}")
    return text


def main(page: Path = PAGE) -> None:
    page.write_text(render(list_tests(), read_verdicts()))


if __name__ == "__main__":
    main()
