"""``docs/architecture.md`` names files that are there, and trips that the code really takes.

The trips are three, under the headings ``## Trip: epsilon to noise``, ``## Trip: record to
gradient`` and ``## Trip: row to table``. A trip is a numbered list. Each step begins with a path
from the repository's top in backticks, with ``back in`` before it where an earlier file gets its
answer, and ``handed to`` where the file is given what the last one defines; without such words, the
last file calls this one. A name in backticks that ends in ``()`` is defined in the step's file:

    1. `dperm_cli/runner/cells/run_cell.py`: `run()` asks for a plan.
    2. `dperm_cli/privacy/accounting/calibrate.py`: the least noise that keeps to the budget.
    3. back in `dperm_cli/runner/cells/run_cell.py`: the plan is recomputed from its events.

What is held true is in ``tests/structure/trips.py``.
"""

from __future__ import annotations

import re

import pytest

from tests.structure.conftest import write_house
from tests.structure.measure import ROOT, House
from tests.structure.trips import BACK, CALLED, HANDED, Step, find_faults, read_trips

PAGE = ROOT / "docs" / "architecture.md"
# Where each trip begins and ends: a folder or a file that the path has in it
ENDS = {
    "epsilon to noise": ("runner/", "loops/"),
    "record to gradient": ("datasets/", "mechanisms/"),
    "row to table": ("runner/", "results/"),
}
MODULES = {
    "runner/cells/run_cell.py": """
        from house.mechanisms.base import Mechanism
        from house.runner import store
        def run(mechanism: Mechanism): return mechanism.release()
        def keep(rows): return store.write(rows)
    """,
    "runner/store.py": "def write(rows): ...\n",
    "mechanisms/base.py": """
        from house.privacy import Gate
        class Mechanism:
            def release(self): ...
    """,
    "mechanisms/steps.py": """
        from house.mechanisms.base import Mechanism
        from house.privacy import Gate
        class Steps(Mechanism):
            def release(self, gate: Gate): return gate.stream()
    """,
    "privacy/__init__.py": "from house.privacy.gate import Gate\n",
    "privacy/gate.py": "class Gate:\n    def stream(self): ...\n",
}
CELL, STORE, BASE, STEPS, GATE = (
    f"house/{name}" for name in MODULES if not name.endswith("__init__.py")
)


@pytest.fixture(scope="module")
def real() -> House:
    return House()


@pytest.fixture
def faults(tmp_path):
    """What is not true of a trip through a small package: ``faults(file, (reached, file))``."""
    texts = {name: re.sub(r"(?m)^ {8}", "", text) for name, text in MODULES.items()}
    names = write_house(tmp_path, texts).names

    def find(*stations, defines: tuple[str, ...] = ()) -> list[str]:
        pairs = [(CALLED, one) if isinstance(one, str) else one for one in stations]
        return find_faults([Step(file, reached, defines) for reached, file in pairs], names)

    return find


class TestPage:
    """The page of this repository."""

    def test_every_file_that_it_names_is_there(self):
        named = re.findall(r"`([\w./*-]+(?:\.py|\.md|\.yaml|/))`", PAGE.read_text("utf-8"))
        assert len(named) > 10
        # from the repository's top, or from somewhere inside: the row of a room shortens its paths
        folders = [ROOT / name for name in ("dperm_cli", "conf", "docs", "experiments", "tests")]
        missing = [
            name
            for name in (one.rstrip("/") for one in named)
            if not any(ROOT.glob(name)) and not any(any(f.rglob(name)) for f in folders)
        ]
        assert missing == []

    def test_it_has_three_trips(self):
        assert read_trips(PAGE.read_text("utf-8")).keys() == ENDS.keys()

    @pytest.mark.parametrize("name", ENDS)
    def test_the_code_takes_the_trip(self, name, real):
        steps = read_trips(PAGE.read_text("utf-8"))[name]
        assert find_faults(steps, real.names) == []
        assert len(steps) >= 4
        first, last = ENDS[name]
        assert first in steps[0].file
        assert last in steps[-1].file


class TestReadTrips:
    """The format of a trip."""

    def test_steps_and_what_they_name(self):
        page = (
            "# Page\n\n1. `not/a/trip.py`\n\n## Trip: there and back\n\nWords.\n\n"
            "1. `a/b.py`: `run()` calls `Gate.stream()`, and `text` is text;\n   also `more()`.\n"
            "2. handed to `c.py`\n3. back in `a/b.py`.\n\nWords on `d.py` and `other()`.\n\n"
            "## Else\n\n1. `e.py`\n"
        )
        assert read_trips(page) == {
            "there and back": [
                Step("a/b.py", CALLED, ("run", "stream", "more")),
                Step("c.py", HANDED, ()),
                Step("a/b.py", BACK, ()),
            ]
        }

    def test_a_step_without_a_path(self):
        with pytest.raises(ValueError, match=r"begin with a path in backticks: 2\. then"):
            read_trips("## Trip: x\n\n1. `a.py`\n2. then `b.py`\n")

    def test_a_page_without_trips(self):
        assert read_trips("# Page\n\n1. `a.py`\n") == {}


class TestFindFaults:
    """What makes a trip untrue."""

    def test_a_true_trip(self, faults):
        assert faults(CELL, BASE, STEPS, GATE, (BACK, STEPS), (BACK, CELL), STORE) == []
        assert faults(GATE, (HANDED, STEPS)) == []

    def test_a_wrong_order(self, faults):
        assert faults(BASE, CELL) == [f"{BASE} uses nothing of {CELL}"]
        assert faults(STEPS, (HANDED, GATE)) == [f"{GATE} uses nothing of {STEPS}"]

    def test_an_import_alone_is_no_use(self, faults):
        assert faults(BASE, GATE) == [f"{BASE} uses nothing of {GATE}"]

    def test_a_plugin_is_reached_from_its_base_only(self, faults):
        assert faults(CELL, STEPS) == [f"{CELL} uses nothing of {STEPS}"]

    def test_back_in_a_file_where_the_trip_was_not(self, faults):
        assert faults(CELL, (BACK, STORE)) == [f"{STORE} was not on the trip before"]

    def test_a_file_that_is_not_there(self, faults):
        assert faults(CELL, "house/lost.py") == ["house/lost.py is no file of the package"]

    def test_a_name_that_is_not_defined_there(self, faults):
        assert faults(GATE, defines=("stream", "draw")) == [f"{GATE} does not define draw"]

    def test_a_first_step_comes_from_nowhere(self, faults):
        assert faults((BACK, CELL)) == [f"{CELL} is the first step: nothing comes before it"]
