"""Faults of plug-ins, each one edit of a file that ``dperm new`` writes, or of an example.

``seen`` is a pattern of what ``dperm check`` must say of it: the promise, or what was seen.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from dperm_cli.core.new_plugin import fill_template

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "plugins"


class Fault(NamedTuple):
    """``base`` is a kind of ``dperm new`` or the name of an example; ``edits`` its (old, new)."""

    base: str
    edits: tuple[tuple[str, str], ...]
    seen: str

    def write(self, path: Path) -> Path:
        text = read_base(self.base)
        for old, new in self.edits:
            assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in {self.base}"
            text = text.replace(old, new)
        path.write_text(text)
        return path


def read_base(base: str) -> str:
    """The text of a template, or of an example."""
    if base.endswith(".py"):
        return (EXAMPLES / base).read_text()
    return fill_template(base, "mine")


def edit(base: str, old: str, new: str, seen: str) -> Fault:
    return Fault(base, ((old, new),), seen)


NOISY = "stream.add(view.gradient_sum(theta), step)"
LAST = "        return Release(theta)\n"
FAULTS = {
    # mechanisms
    "a step uphill": edit("mechanism", "project(theta - length", "project(theta + length",
                          "centre of the set"),
    "noise that is drawn and not used": edit(
        "mechanism", f"gradient = {NOISY}",
        f"{NOISY}; gradient = view.gradient_sum(theta)", "without passing the gate"),
    "an event of its own at the gate": edit(
        "mechanism", "gate.stream(plan.events[0], spec.p)",
        "gate.stream(Gaussian(1e-3, 1.0, self.steps), spec.p)", "gate refuses"),
    "a step that is drawn twice": edit("mechanism", f"gradient = {NOISY}",
                                       f"gradient = {NOISY.replace('step)', '0)')}",
                                       "second time"),
    "fewer steps at the gate than in the plan's words": edit(
        "mechanism", "spec.lipschitz, self.steps, gap", "spec.lipschitz, 1, gap", "gate refuses"),
    "half the noise": edit(
        "mechanism", NOISY,
        f"0.5 * ({NOISY} + view.gradient_sum(theta))", "without passing the gate"),
    "a scale of its own": edit(
        "mechanism", "    def settings", "    def scale(self, spec, budget):\n"
        "        return 1e-3\n\n    def settings", "more than the budget"),
    "a gap of a smaller problem": edit("mechanism", "gap=spec.gradient_gap",
                                       "gap=spec.gradient_gap / 4", "moved by"),
    "a length that follows the labels": edit(
        "mechanism", "theta = np.tile",
        "length *= 1.0 + abs(view.y.sum())\n        theta = np.tile",
        "without passing the gate"),
    "a length that follows a row": edit(
        "mechanism", "theta = np.tile", "length *= 1.0 + float(abs(view.x[0]).max())\n"
        "        theta = np.tile", "moved by|without passing the gate"),
    "a stop that follows the gradient": edit(
        "mechanism", "            gradient = ",
        "            if np.abs(view.gradient_sum(theta)).max() < 1.0:\n                break\n"
        "            gradient = ", "calls|gate"),
    "a number of numpy's shared generator": edit(
        "mechanism", LAST, "        return Release(spec.constraint.project("
        "theta + 1e-3 * np.random.standard_normal(theta.shape)))\n", "same bytes"),
    "a list of trials": edit("mechanism", LAST, "        return Release(theta.mean(axis=0))\n",
                             "shape"),
    "a number that is none": edit("mechanism", LAST, "        return Release(np.nan * theta)\n",
                                  "finite"),
    "a setting that JSON cannot hold": edit(
        "mechanism", '"step_size": self.step_size', '"step_size": np.float64, "radius": {1}',
        "settings"),
    "records that are written to": edit(
        "mechanism", "        spec = view.spec\n", "        spec = view.spec\n"
        "        view.y *= 1.0\n", "raised|wrote"),
    "a refusal in the release": Fault(
        "mechanism", (("        spec = view.spec\n", "        spec = view.spec\n"
                       "        if not view.x.any():\n            raise ValueError('no rows')\n"),),
        "raised ValueError: no rows"),
    "an error instead of a refusal": edit(
        "mechanism", "    def settings", "    def check(self, spec, budget):\n"
        "        if budget.delta == 0.0:\n            raise ValueError('delta')\n\n"
        "    def settings", "raised ValueError"),
    "a relation without a proof": edit(
        "mechanism", "return (Gaussian(scale, spec.lipschitz, self.steps, gap=spec.gradient_gap),)",
        "return (Gaussian(scale, spec.lipschitz / (1 + (budget.relation == 'add_remove')), "
        "self.steps),)", "add_remove: .*moved by"),
    "a guarantee that there is not": edit(
        "mechanism", '    """theta <- Project', '    guarantees = ("perfect",)\n'
        '    """theta <- Project', "guarantees"),
    "memory of the last release": Fault(
        "mechanism", (("@dataclass", "KEPT = {}\n\n\n@dataclass"),
                      ("theta = np.tile", "length *= KEPT.get('y', 1.0)\n"
                       "        KEPT['y'] = 1.0 + abs(view.x[0, 0])\n        theta = np.tile")),
        "gate|bytes"),
    "fields that are not checked": edit(
        "mechanism", "    def settings", "    def __post_init__(self):\n        pass\n\n"
        "    def settings", "no such thing"),
    "a pair that is none": edit(
        "mechanism", "first, second = linear_pair(budget.relation)",
        "first = second = linear_pair(budget.relation)[0]", "differ in 0 records"),
    "a node that looks at other batches": edit(
        "dp_ftrl.py", "below = range(node * 2**level, time)", "below = range(time)", "moved by"),
    "a level that the plan forgets": edit(
        "dp_ftrl.py", "for level in range(levels + 1)", "for level in range(levels)",
        "raised|refuses|moved|steps|plan"),
    # losses
    "a bound without its targets": edit(
        "loss", "float(self.slope(margin + target, 0.0))", "float(self.slope(margin, 0.0))",
        "slope_bound"),
    "a conjugate without its target": edit("loss", "a * y + lost", "lost", "conjugate"),
    "a finite conjugate everywhere": edit(
        "loss", "np.where(np.abs(a) <= self.width, a * y + lost, np.inf)", "a * y - lost",
        "conjugate"),
    "a smaller second derivative": edit("loss", "smoothness = 1.0", "smoothness = 0.5",
                                        "smoothness"),
    "a curvature of another width": edit("loss", "np.hypot(self.width, z - y)) ** 3",
                                         "np.hypot(self.width, z - y)) ** 2", "curvature"),
    "a slope that holds at one width only": edit(
        "loss", "return self.width * r / np.hypot(self.width, r)",
        "return 0.5 * r / np.hypot(0.5, r)", "slope"),
    "a sum in place of values": edit(
        "loss", "np.hypot(self.width, r))\n\n    def slope",
        "np.hypot(self.width, r)).sum()\n\n    def slope", "shape|raised|value"),
    "an exponential that overflows": Fault(
        "loss", (("return self.width * r * r / (self.width + np.hypot(self.width, r))",
                  "return np.log(np.exp(r) + np.exp(-r))"),
                 ("return self.width * r / np.hypot(self.width, r)", "return np.tanh(r)"),
                 ("(self.width / np.hypot(self.width, z - y)) ** 3", "np.cosh(z - y) ** -2.0"),
                 ("    def conjugate", "    def _conjugate")), "is not finite"),
    "an unknown task": edit("loss", '("regression",)', '("regresion",)', "tasks"),
    "pieces of another loss": edit("quantile.py", "1.0 - self.tau, self.tau\n",
                                   "self.tau, 1.0 - self.tau\n", "pieces|conjugate"),
    "a span of half the margin": edit("quantile.py", "min(2.0 * margin, margin + target)",
                                      "min(margin, margin + target)", "span"),
    # sets
    "an inner radius that is too large": edit(
        "constraint", "self.radius / (math.sqrt(self.p) + 1.0)", "self.radius / math.sqrt(self.p)",
        "inner_radius|centre"),
    "a symmetry that there is not": edit("constraint", "symmetric = False", "symmetric = True",
                                         "symmetric"),
    "a projection that writes to its argument": edit(
        "constraint", "self._scale(np.maximum(theta, 0.0), self.radius)",
        "self._scale(np.maximum(theta, 0.0, out=theta), self.radius)", "raised|written"),
    "a projection that forgets the other rows": edit(
        "constraint", "length = np.linalg.norm(rows, axis=-1, keepdims=True)",
        "length = np.linalg.norm(rows)", "row"),
    "cone constraints of a larger set": edit(
        "constraint", "        add_nonnegative(program, theta)\n", "", "add_cone_constraints"),
    "a radial projection": edit(
        "group_lasso_ball.py", "theta * self._spread(share)",
        "theta * self.radius / np.sum(norms, axis=-1, keepdims=True)", "nearest|nearer"),
    "a gauge that is squared": edit(
        "group_lasso_ball.py", "axis=-1) / self.radius\n", "axis=-1) ** 2 / self.radius\n",
        "gauge"),
    "a support of another group": edit("group_lasso_ball.py", "self.radius * np.max(",
                                       "self.radius * np.min(", "support"),
    "an inner radius of one group": edit("group_lasso_ball.py",
                                         "return self.radius / math.sqrt(self.groups)",
                                         "return self.radius", "inner_radius|centre"),
    # data sets
    "a bound that is measured": edit(
        "dataset", "row_bound=1.0", "row_bound=float(abs(x).max()) * 2", "row_bound"),
    "numpy's shared generator": edit("dataset", "rng = np.random.default_rng(self.seed)",
                                     "rng = np.random", "np.random"),
    "a key that the fingerprint forgets": edit(
        "dataset", "(self.n, self.p, self.n_test, self.signal, self.seed)",
        "(self.n, self.p, self.n_test, self.seed)", "fingerprint"),
    "single precision": edit("dataset", "x=x[: self.n]", 'x=x[: self.n].astype("float32")',
                             "float32"),
    "a size without what is held out": edit("dataset", "return self.n + self.n_test, self.p",
                                            "return self.p, self.n", "it says"),
    "held-out rows beyond the bound": edit("dataset", "x_test=x[self.n :]",
                                           "x_test=3.0 * x[self.n :]", "row_bound"),
    "another task": edit("dataset", "task=self.task", 'task="regression"', "task"),
    "targets that are not clipped": edit(
        "spiked_rows.py",
        "np.clip(x @ theta + self.noise * rng.standard_normal(len(x)), -1.0, 1.0)",
        "x @ theta + self.noise * rng.standard_normal(len(x))", "target_bound"),
    # kernels
    "a kernel that is not semidefinite": edit("kernel", "return 1.0 / (1.0 + self.gamma *",
                                              "return 1.0 - 0.5 * (self.gamma *", "eigenvalue"),
    "a kernel that is not symmetric": edit("kernel", "cdist(_dense(a), _dense(b)",
                                           "cdist(_dense(a), 0.9 * _dense(b)",
                                           "symmetric|diagonal"),
    "frequencies of the Gaussian kernel": edit(
        "kernel", "rng.standard_exponential((count, 1))", "np.ones((count, 1))", "frequencies"),
    "features that move faster": edit("kernel", "math.sqrt(2.0 * self.gamma)\n\n",
                                      "math.sqrt(0.5 * self.gamma)\n\n", "lipschitz"),
    "dense rows only": edit(
        "kernel", "rows.toarray() if sparse.issparse(rows) else np.asarray(rows)",
        "np.asarray(rows)", "raised|sparse"),
}  # fmt: skip
