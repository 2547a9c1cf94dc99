"""What a plug-in does to its events, its settings and the streams after they were accounted for."""

from __future__ import annotations

import pytest

from tests.doors._doors import SMALL, dperm, json_lines
from tests.doors._plugins import CLASS, EVENT, NOISY, OWN, replaced

IMPORT = "\nfrom dperm_cli import Design, SampledGaussian\nfrom dataclasses import replace\n"
KEPT = "kept"
QUIET = (
    "\n\n@dataclass(frozen=True)\nclass {name}(Gaussian):\n"
    '    """Gaussian noise that costs next to nothing, it says."""\n\n'
    "    phrase = 'nothing of note'\n\n"
    "    def ratio(self, relation):\n        return 1e-9 * super().ratio(relation)\n"
)
TURNS = (
    "\n\n@dataclass(frozen=True)\nclass Turning(Gaussian):\n"
    '    """Noise whose scale is another number each time it is asked for."""\n\n'
    "    phrase = 'noise that turns'\n\n"
    "    def __getattribute__(self, name):\n"
    "        if name == 'scale':\n            ASKED.append(1)\n"
    "            return 1e-9 if len(ASKED) > LAST[0] else object.__getattribute__(self, name)\n"
    "        return object.__getattribute__(self, name)\n\n\nASKED, LAST = [], [10**9]\n"
)
# edits of the correct file; each would release with less noise than was accounted for
LIES = {
    "an event that is changed in the release": (
        (NOISY, "object.__setattr__(plan.events[0], 'scale', 1e-9)\n        " + NOISY),
    ),
    "an event that is kept and changed in the release": (
        (CLASS, "\n\nKEPT = []" + CLASS),
        (
            EVENT,
            EVENT.replace("return (", "KEPT[:] = [*KEPT, ").replace(
                ",)", "]\n        return (KEPT[-1],)"
            ),
        ),
        (
            NOISY,
            "for one in KEPT:\n            object.__setattr__(one, 'scale', 1e-9)\n        "
            + NOISY,
        ),
    ),
    "a stream with another scale": (
        (
            NOISY,
            "stream = gate.stream(plan.events[0], view.spec.p)\n        stream.scale = 1e-9\n"
            "        total = stream.add(view.gradient_sum(start), 0)",
        ),
    ),
    "an event of a class that no record can name": (
        (CLASS, QUIET.format(name="_Quiet") + CLASS),
        (EVENT, EVENT.replace("Gaussian(", "_Quiet(")),
    ),
    "an event that says it is a shipped one": (
        (
            CLASS,
            QUIET.format(name="_Quiet") + "\n\n_Quiet.__name__ = 'Gaussian'\n"
            "_Quiet.__module__ = Gaussian.__module__" + CLASS,
        ),
        (EVENT, EVENT.replace("Gaussian(", "_Quiet(")),
    ),
    "a scale that is another number later": (
        (CLASS, TURNS + CLASS),
        (EVENT, EVENT.replace("Gaussian(", "Turning(")),
        (NOISY, "LAST[0] = 0\n        " + NOISY),
    ),
    "events that are others when they are read again": (
        (
            CLASS,
            "\n\nclass Twice(tuple):\n    def __iter__(self):\n        if LATER:\n"
            "            return iter([replace(one, scale=1e-9) for one in tuple.__iter__(self)])\n"
            "        return tuple.__iter__(self)\n\n"
            "    def __getitem__(self, place):\n        return list(self)[place]\n\n\nLATER = []"
            + CLASS,
        ),
        (
            "    def release(self, view, plan, gate):",
            "    def design(self, spec, budget):\n        made = super().design(spec, budget)\n"
            "        LATER.clear()\n"
            "        return replace(made, events=Twice(made.events))\n\n"
            "    def check(self, spec, budget):\n        LATER.clear()\n\n"
            "    def release(self, view, plan, gate):\n        LATER.append(1)",
        ),
    ),
    "numbers that noise does not reach": (
        (
            NOISY,
            "values = view.gradient_sum(start)\n        "
            "total = gate.stream(plan.events[0], view.spec.p).add(values + 1j * values, 0).imag",
        ),
    ),
    "an array that takes no noise": (
        (
            CLASS,
            "\n\nclass Deaf(np.ndarray):\n    def __add__(self, other):\n        return self\n"
            + CLASS,
        ),
        (
            NOISY,
            "values = view.gradient_sum(start).view(Deaf)\n        "
            "total = np.asarray(gate.stream(plan.events[0], view.spec.p).add(values, 0))",
        ),
    ),
}


def run_plugin(tmp_path, edits, *words, code=None):
    text = replaced(OWN, "\nfrom dperm_cli import ", IMPORT + "from dperm_cli import ")
    for old, new in edits:
        text = replaced(text, old, new)
    (tmp_path / "mine.py").write_text(text)
    keys = ("mechanism=one_step", *SMALL, "format=json", "out=study", *words)
    return dperm("run", "--plugin", "mine.py", *keys, cwd=tmp_path, code=code)


@pytest.mark.parametrize("lie", LIES)
def test_no_release_has_less_noise_than_was_accounted_for(lie, tmp_path):
    honest = (tmp_path / "honest", tmp_path / "lying")
    for folder in honest:
        folder.mkdir()
    (truth,) = json_lines(run_plugin(honest[0], (), "trials=9", code=0).stdout)
    done = run_plugin(honest[1], LIES[lie], "trials=9")
    (row,) = json_lines(done.stdout)
    if row["status"] == "failed":
        assert done.returncode == 1
        assert row["excess_risk_median"] is None
    else:  # the noise is the honest one, whatever the plug-in did
        assert row["excess_risk_median"] == pytest.approx(truth["excess_risk_median"])
        assert row["noise_scale"] == pytest.approx(truth["noise_scale"])


TOLD = {
    "an event": "gate.stream(replace(plan.events[0], scale=SECRET), view.spec.p)",
    "a class": "gate.stream(type(f's{SECRET}', (Gaussian,), {})(1.0, 1.0), view.spec.p)",
    "a step": "stream.add(np.zeros((gate.trials, view.spec.p)), SECRET)",
    "a shape": "stream.add(np.zeros(SECRET), 0)",
    "a release of a shape": "return Release(np.zeros((SECRET, 2)))",
    "a release of a class": "return type(f's{SECRET}', (), {})()",
}


@pytest.mark.parametrize("way", TOLD)
def test_no_words_of_a_failed_row_tell_a_value_that_the_release_saw(way, tmp_path):
    line = TOLD[way].replace("SECRET", "(271828 + 0 * len(view.y))")
    drawn = "stream = gate.stream(plan.events[0], view.spec.p)\n        total = stream.add("
    done = run_plugin(
        tmp_path, ((NOISY, drawn + "view.gradient_sum(start), 0)\n        " + line),), code=1
    )
    (row,) = json_lines(done.stdout)
    assert row["status"] == "failed"
    assert "271828" not in done.stdout + done.stderr
    assert not [
        path
        for path in (tmp_path / "study").rglob("*")
        if path.is_file() and b"271828" in path.read_bytes()
    ]


KEEPS = "SEEN.setdefault('view', view)\n        "
MEMORIES = {
    "the view of the first cell in a plan": (
        (CLASS, "\n\nSEEN = {}" + CLASS),
        (
            EVENT,
            "if 'view' in SEEN:\n            start = SEEN['view'].spec.constraint.centre()\n"
            "            spare = abs(SEEN['view'].gradient_sum(start)).sum()\n"
            "            "
            + EVENT.replace("(scale,", "(scale * (1 + spare),")
            + "\n        "
            + EVENT,
        ),
        (NOISY, KEEPS + NOISY),
    ),
    "a number of the first cell in a plan": (
        (CLASS, "\n\nSEEN = {}" + CLASS),
        (EVENT, EVENT.replace("(scale,", "(scale * (1 + SEEN.get('size', 0.0)),")),
        (NOISY, "SEEN.setdefault('size', float(abs(view.y).sum()))\n        " + NOISY),
    ),
    "settings of the plan that the release writes to": (
        (CLASS, "\n\nSEEN = {'size': 0.0}" + CLASS),
        (
            "    def release(self, view, plan, gate):",
            "    def settings(self, spec, events, budget):\n        return SEEN\n\n"
            "    def release(self, view, plan, gate):",
        ),
        (NOISY, "SEEN['size'] = float(abs(view.y).sum())\n        " + NOISY),
    ),
    "settings of the next plan": (
        (CLASS, "\n\nSEEN = {'size': 0.0}" + CLASS),
        (
            "    def release(self, view, plan, gate):",
            "    def settings(self, spec, events, budget):\n        return dict(SEEN)\n\n"
            "    def release(self, view, plan, gate):",
        ),
        (NOISY, "SEEN['size'] = float(abs(view.y).sum())\n        " + NOISY),
    ),
    "a number of the first cell in plans of other budgets": (
        (CLASS, "\n\nSEEN = {}" + CLASS),
        (
            "    def settings(self, spec, events, budget):" if False else EVENT,
            "size = 0.0 if SEEN.get('budget') == budget else SEEN.get('size', 0.0)\n        "
            + EVENT.replace("(scale,", "(scale * (1 + size),"),
        ),
        (
            NOISY,
            "SEEN.setdefault('size', float(abs(view.y).sum()))\n        "
            "SEEN['budget'] = plan.guarantee.epsilon\n        " + NOISY,
        ),
    ),
}


@pytest.mark.parametrize("memory", MEMORIES)
def test_no_plan_that_remembers_records_is_released(memory, tmp_path):
    """Neither the first cell, whose release writes it down, nor the next, which could use it."""
    done = run_plugin(tmp_path, MEMORIES[memory], "-m", "epsilon=0.5,1", "workers=1")
    rows = json_lines(done.stdout)
    assert [row["status"] for row in rows] == ["failed", "failed"], rows
    assert done.returncode == 1
    assert all("records" in row["reason"] for row in rows)
    assert all(not (row.get("settings") or {}).get("size") for row in rows)
