"""Plug-in files of these tests: correct ones, and each with one fault planted."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

FILES = Path(__file__).parents[1] / "core" / "plugin_files"
OWN = (FILES / "mine.py").read_text()
CLOUD = (FILES / "cloud.py").read_text()


def replaced(text: str, old: str, new: str) -> str:
    """Give ``text`` with ``old``, which must stand in it once, replaced by ``new``."""
    assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times"
    return text.replace(old, new)


class Fault(NamedTuple):
    """One edit that breaks a promise.

    Attributes:
        text: the correct file.
        edits: (old, new) pairs.
        plugin: the name of the plug-in that is broken by them.
        words: patterns of which every one must be found in what the check prints.
    """

    text: str
    edits: tuple[tuple[str, str], ...]
    plugin: str
    words: tuple[str, ...]

    def write(self, path: Path) -> Path:
        text = self.text
        for old, new in self.edits:
            text = replaced(text, old, new)
        path.write_text(text)
        return path


EVENT = "return (Gaussian(scale, spec.lipschitz, gap=spec.gradient_gap),)"
NOISY = "total = gate.stream(plan.events[0], view.spec.p).add(view.gradient_sum(start), 0)"
RETURNED = "return Release(view.spec.constraint.project(start - self.step_size * total))"
CLASS = "\n\n@dataclass(frozen=True)\nclass OneStep(Mechanism):"

MECHANISMS = {
    "half the sensitivity": Fault(
        OWN,
        (
            (
                EVENT,
                EVENT.replace("spec.lipschitz", "spec.lipschitz / 2").replace("_gap)", "_gap / 2)"),
            ),
        ),
        "one_step",
        ("sensitivity|moved|lipschitz",),
    ),
    "a made-up sensitivity": Fault(
        OWN,
        ((EVENT, "return (Gaussian(scale, 1e-3 * spec.lipschitz),)"),),
        "one_step",
        ("sensitivity|moved|lipschitz",),
    ),
    "noise that is not drawn through the gate": Fault(
        OWN,
        (
            (
                NOISY,
                "total = view.gradient_sum(start)\n        total = total + plan.noise_scale * "
                "np.random.default_rng(0).standard_normal(total.shape)",
            ),
        ),
        "one_step",
        ("gate",),
    ),
    "no noise at all": Fault(
        OWN,
        ((NOISY, "total = view.gradient_sum(start)"),),
        "one_step",
        ("gate", "stream|noise"),
    ),
    "a second look without noise": Fault(
        OWN,
        ((RETURNED, "total = total + view.gradient_sum(start - total)\n        " + RETURNED),),
        "one_step",
        ("gate|noise", "neighbour|record|data"),
    ),
    "more noise that no seed fixes": Fault(
        OWN,
        (
            (
                RETURNED,
                "total = total + np.random.default_rng().standard_normal(total.shape)\n        "
                + RETURNED,
            ),
        ),
        "one_step",
        ("seed|same bytes|gate",),
    ),
    "a plan that asks for records": Fault(
        OWN,
        ((EVENT, "scale = scale * (1 + abs(spec.data.y.mean()))\n        " + EVENT),),
        "one_step",
        ("plan|events", "public|records"),
    ),
    "a plan that remembers records": Fault(
        OWN,
        (
            (CLASS, "\n\nSEEN = {}" + CLASS),
            (
                EVENT,
                "spare = SEEN.get('length', 0.0)\n        "
                + EVENT.replace("scale,", "scale * (1 + spare),"),
            ),
            (
                RETURNED,
                "SEEN['length'] = float(np.linalg.norm(view.gradient_sum(start)))\n        "
                + RETURNED,
            ),
        ),
        "one_step",
        ("plan", "public|records|data"),
    ),
    "an output outside of the set": Fault(
        OWN,
        ((RETURNED, "return Release(start - self.step_size * total)"),),
        "one_step",
        ("outside|project|set",),
    ),
    "an output of another shape": Fault(
        OWN,
        ((RETURNED, "return Release(total[0])"),),
        "one_step",
        ("shape|trials",),
    ),
    "trials that see each other": Fault(
        OWN,
        ((RETURNED, "total = total + 0 * total + total.mean(axis=0)\n        " + RETURNED),),
        "one_step",
        ("trial",),
    ),
}

LOSSES = {
    "a slope that is not the value's": Fault(
        OWN,
        (
            (
                "np.where(z > y, 1 - self.tau, np.where(z < y, -self.tau, 0.0))",
                "np.where(z > y, self.tau, np.where(z < y, self.tau - 1, 0.0)) * 0.5",
            ),
        ),
        "quantile",
        ("slope", "value|difference"),
    ),
    "a conjugate of another loss": Fault(
        OWN,
        (("a * y, np.inf)", "-a * y, np.inf)"),),
        "quantile",
        ("conjugate",),
    ),
    "a slope bound that is too small": Fault(
        OWN,
        (("return max(self.tau, 1 - self.tau)", "return min(self.tau, 1 - self.tau) / 2"),),
        "quantile",
        ("slope_bound|lipschitz",),
    ),
    "a span that is too small": Fault(
        OWN,
        (("* min(2 * margin, margin + target)", "* 0.1 * margin"),),
        "quantile",
        ("span|oscillation",),
    ),
    "a value that is not convex": Fault(
        OWN,
        (
            (
                "return np.maximum(self.tau * (y - z), (1 - self.tau) * (z - y))",
                "return np.minimum(self.tau * np.abs(y - z), 0.1)",
            ),
        ),
        "quantile",
        ("convex|slope",),
    ),
    "a smoothness that a kink has not": Fault(
        OWN,
        (('("regression",), None', '("regression",), 1.0'),),
        "quantile",
        ("smooth",),
    ),
}

SETS = {
    "a projection in the wrong order": Fault(
        OWN,
        (
            (
                "return self._to(np.maximum(t, 0), self.radius)",
                "return np.maximum(self._to(t, self.radius), 0)",
            ),
        ),
        "nonnegative_ball",
        ("project", "nearest|distance|closer|optimal"),
    ),
    "a projection outside of the set": Fault(
        OWN,
        (("return self._to(np.maximum(t, 0), self.radius)", "return self._to(t, self.radius)"),),
        "nonnegative_ball",
        ("project",),
    ),
    "an oracle that finds another corner": Fault(
        OWN,
        (("np.maximum(-g, 0), 1e-300", "np.maximum(g, 0), 1e-300"),),
        "nonnegative_ball",
        ("lmo|linear oracle",),
    ),
    "a diameter that is too small": Fault(
        OWN,
        (("self.radius * (math.sqrt(2) if self.p > 1 else 1.0)", "self.radius / 2"),),
        "nonnegative_ball",
        ("diameter",),
    ),
    "a gauge of another set": Fault(
        OWN,
        (("axis=-1) / self.radius)", "axis=-1))"),),
        "nonnegative_ball",
        ("gauge",),
    ),
    "a centre outside of the set": Fault(
        OWN,
        (("np.full(self.p, self.inner_radius)", "np.full(self.p, -1.0)"),),
        "nonnegative_ball",
        ("centre",),
    ),
}

DATA_SETS = {
    "rows that no seed fixes": Fault(
        CLOUD,
        (("default_rng(self.seed)", "default_rng()"),),
        "cloud",
        ("seed|twice|same",),
    ),
    "rows beyond their bound": Fault(
        CLOUD,
        (
            (
                "x /= np.linalg.norm(x, axis=1, keepdims=True)",
                "x /= 0.5 * np.linalg.norm(x, axis=1, keepdims=True)",
            ),
        ),
        "cloud",
        ("row_bound|bound",),
    ),
    "labels that the task has not": Fault(
        CLOUD,
        (("< 0, -1.0, 1.0)", "< 0, 0.0, 7.0)"),),
        "cloud",
        ("label|target|task",),
    ),
    "one fingerprint for different rows": Fault(
        CLOUD,
        (('f"cloud-{self.n}-{self.p}-{self.seed}"', '"cloud"'),),
        "cloud",
        ("fingerprint",),
    ),
}
ALL_FAULTS = {**MECHANISMS, **LOSSES, **SETS, **DATA_SETS}

# Files that are no plug-ins, with what the one line on stderr must say of each.
BROKEN = {
    "a syntax error": ("class OneStep(:\n    pass\n", ("syntax", r"line 1|:1\b")),
    "a module that is not there": ("import no_such_module_here\n", ("no_such_module_here",)),
    "no plug-in inside": ("x = 1\n", ("no plug-in|no mechanism|subclass",)),
    "a file that ends the process": ("import sys\nsys.exit(0)\n", ("exit",)),
    "a file that fails": ("raise ZeroDivisionError('over')\n", ("ZeroDivisionError|over",)),
    "an interrupt": ("raise KeyboardInterrupt\n", ("KeyboardInterrupt|interrupt",)),
    "bytes that are no text": ("\udcff\udcfe\x00", ("utf-8|text|null|encod|syntax",)),
}
