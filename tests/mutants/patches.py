"""Plausible bugs that break privacy, each with the check that must catch it, and harmless edits.

A patch is (name, file in the package, old text, new text, check of ``checks.py``). The old text
must stand in the file exactly once: a patch whose text has moved makes the test fail.
"""

from __future__ import annotations

from typing import NamedTuple


class Patch(NamedTuple):
    name: str
    file: str
    old: str
    new: str
    check: str


GD, SGD = "mechanisms/gradient/noisy_gd.py", "mechanisms/gradient/noisy_sgd.py"
STREAMS, NOISE = "privacy/streams.py", "privacy/gate.py"
BASE, SUMS, LAWS = (f"privacy/events/{name}.py" for name in ("base", "sums", "laws"))
VIEWS = "views/central.py"
NORMALS = "gaussian_noise.normals(self.keys, step, 1, dim)[:, 0, :]"
STREAM = "noise = gate.stream(plan.events[0], spec.p)"
NOISY = "noisy = noise.add(records.gradient_sum(query), step)"

BROKEN = (
    # scales
    Patch("noise x0.5", STREAMS, NORMALS, f"0.5 * {NORMALS}", "attack noisy_gd"),
    Patch("noise x0.8", STREAMS, NORMALS, f"0.8 * {NORMALS}", "attack noisy_gd"),
    Patch("a sampler off by 1.05", STREAMS, NORMALS, f"{NORMALS} / 1.05", "noise law"),
    Patch(
        "noise drawn past the gate", GD, NOISY,
        "noisy = view.gradient_sum(query)"
        " + plan.noise_scale * np.random.default_rng().standard_normal(query.shape)",
        "replay noisy_gd",
    ),
    Patch(
        "the compiled loop has another scale than the plain one", STREAMS,
        "self._choice, noise.scale, noise.steps", "self._choice, 0.9 * noise.scale, noise.steps",
        "compiled loop",
    ),
    Patch(
        "noise of the mean on the sum", SGD, "record_norm=spec.lipschitz * spec.n / self.batch",
        "record_norm=spec.lipschitz", "replay noisy_sgd",
    ),
    Patch(
        "sigma rounded down", "privacy/accounting/calibrate.py",
        "return point, high, value, at_high\n    return low, point, at_low, value",
        "return low, point, at_low, value\n    return point, high, value, at_high",
        "guarantee",
    ),
    # sensitivities
    Patch(
        "L for 2L", GD, "Gaussian(scale, spec.lipschitz, ", "Gaussian(scale, spec.lipschitz / 2, ",
        "replay noisy_gd",
    ),
    Patch(
        "L/n for L", GD, "Gaussian(scale, spec.lipschitz, ",
        "Gaussian(scale, spec.lipschitz / spec.n, ", "replay noisy_gd",
    ),
    Patch(
        "add_remove's sensitivity under replace_one", BASE,
        "return 2.0 * record if gap", "return record if gap", "replay noisy_gd",
    ),
    Patch(
        "half the sensitivity under add_remove", BASE,
        "        return record\n    return 2.0", "        return record / 2.0\n    return 2.0",
        "replay noisy_gd",
    ),
    Patch(
        "the Lipschitz constant forgets the row bound", "losses/shared/margin_loss.py",
        "return row_norm(bounds, norm) * slope", "return 0.5 * slope", "replay noisy_gd",
    ),
    Patch(
        "long rows are not clipped", "datasets/shared/row_rules.py", "long = peak * length > bound",
        "long = peak * length > 2.0 * bound", "row rule",
    ),
    # what is public
    Patch(
        "the norm bound is taken from the data", "problem/data.py", "row_bound=self.row_bound",
        "row_bound=float(np.sqrt((self.x * self.x).sum(axis=1).max()))", "public facts",
    ),
    Patch(
        "classes are read from y", "problem/data.py", "classes=self.classes",
        "classes=len(np.unique(self.y))", "public facts",
    ),
    Patch(
        "the population follows the data under add_remove", "problem/data.py",
        "extra = population - data.n", "extra = 0", "population",
    ),
    # what reaches the data past the gate
    Patch(
        "T is chosen by convergence", GD, NOISY,
        f"{NOISY}\n        if np.linalg.norm(view.gradient_sum(query)) < 2.0:\n            break",
        "replay noisy_gd",
    ),
    Patch(
        "the ridge is scaled by the data", GD, "noisy + penalty.subgradient(query)",
        "noisy + float(np.sum(view.y)) * spec.ridge * query", "replay noisy_gd",
    ),
    Patch(
        "step sizes come from private gradients", GD, "eta = pace.choose_step(noisy, query)",
        "eta = pace.choose_step(view.gradient_sum(query), query)", "replay noisy_gd",
    ),
    Patch(
        "one draw for all coordinates", GD, STREAM, STREAM.replace("spec.p", "1"),
        "replay noisy_gd",
    ),
    Patch(
        "a last step without noise", GD, '"adaptive": pace.output if pace else theta',
        '"adaptive": (pace.output if pace else theta) - 1e-9 * view.gradient_sum(theta)',
        "replay noisy_gd",
    ),
    Patch(
        "a private loss among the by-products", GD,
        'return Release(descend(view, plan, gate)[plan.settings["averaging"]])',
        'return Release(descend(view, plan, gate)[plan.settings["averaging"]],'
        ' {"positives": int(np.sum(view.y > 0))})', "replay noisy_gd",
    ),
    Patch(
        "an error that tells of private values", SGD,
        "gradient, move = _parts(view)",
        "if np.all(view.y > 0):\n        raise ValueError(f'one class only: {view.y}')\n"
        "    gradient, move = _parts(view)", "replay noisy_sgd",
    ),
    Patch(
        "the noise scale follows the data", GD, STREAM,
        "few_labels = plan.noise_scale * min(1.0, abs(np.mean(view.y)))\n"
        "    noise = gate.stream(replace(plan.events[0], scale=few_labels), spec.p)",
        "replay noisy_gd",
    ),
    # randomness
    Patch(
        "one key for two streams", NOISE, "stream_key(seed, number) for seed in self._seeds",
        "stream_key(seed, 0) for seed in self._seeds", "independence",
    ),
    Patch(
        "one key for all trials", NOISE, "stream_key(seed, number) for seed in self._seeds",
        "stream_key(self._seeds[0], number) for _ in self._seeds", "independence",
    ),
    Patch(
        "noise is reused across steps", STREAMS, NORMALS,
        "gaussian_noise.normals(self.keys, 0, 1, dim)[:, 0, :]", "independence",
    ),
    Patch(
        "a shuffle for uniform batches", STREAMS,
        "drawn = batch_indices.batch(\n            self._choice[trial], step, self.population, "
        'self.batch, self.sampling == "poisson"\n        )',
        "drawn = (np.arange(self.batch) + step * self.batch) % self.population", "batches",
    ),
    Patch(
        "the same batch at every step", STREAMS, "self._choice[trial], step, self.population",
        "self._choice[trial], 0, self.population", "batches",
    ),
    Patch(
        "Poisson batches are drawn with a fixed size", STREAMS,
        'self.population, self.batch, self.sampling == "poisson",\n',
        "self.population, self.batch, False,\n", "compiled loop",
    ),
    Patch(
        "batches of a fixed size are drawn with replacement", "loops/batch_indices.py",
        "        if seen[index]:\n            index = last\n", "", "batches",
    ),
    # accounting
    Patch(
        "the sampling rate is wrong", SUMS, "return self.batch / self.population",
        "return self.batch / (2.0 * self.population)", "attack noisy_sgd",
    ),
    Patch(
        "composition is forgotten", BASE, "mu2=self.count * ratio**2", "mu2=ratio**2",
        "attack noisy_gd",
    ),
    Patch(
        "delta is spent twice", "privacy/accounting/gaussian_profile.py",
        "    target = math.log(delta)\n    if log_delta(0.0, mu)",
        "    target = math.log(2.0 * delta)\n    if log_delta(0.0, mu)", "exact loss",
    ),
    Patch(
        "an epsilon of another relation is within the budget", "privacy/budget.py",
        "self.relation != budget.relation or ", "", "budget",
    ),
    Patch(
        "an approximate guarantee passes for a pure one", "privacy/budget.py",
        'if self.kind == "approx" and not budget.delta > 0:', "if False:", "budget",
    ),
    # local channels
    Patch(
        "a turned sign is too rare", "privacy/channels/sign_bit.py",
        "return (1 << 63) - kept", "return (1 << 63) - int(1.05 * kept)", "local channels",
    ),
    Patch(
        "users answer as often as they are asked", STREAMS, "self._asked[user] += 1",
        "self._asked[user] += 0", "local channels",
    ),
    Patch(
        "a user's answers cost as one", "privacy/events/black_boxes.py",
        "bounded_laws.pure(self.epsilon, self.messages)", "bounded_laws.pure(self.epsilon, 1)",
        "local channels",
    ),
    Patch(
        "any channel passes for the plan's", BASE,
        "            return own == planned", "            return not self.sizes or own == planned",
        "local channels",
    ),
    Patch(
        "information passes for any budget", "privacy/budget.py",
        "not self.information <= budget.information", "False", "local channels",
    ),
    # draws from a law, and minimisers
    Patch(
        "the exponent is doubled", "mechanisms/sampling/exponential.py",
        "Target(spec, event.exponent), stream", "Target(spec, 2.0 * event.exponent), stream",
        "replay exponential",
    ),
    Patch(
        "half the oscillation", LAWS, "return largest_move(self.record_oscillation",
        "return 0.5 * largest_move(self.record_oscillation", "attack exponential",
    ),
    Patch(
        "half the noise of a perturbed objective", STREAMS, "found = point(drawn)",
        "found = point(0.5 * drawn)", "attack objective_perturbation",
    ),
    Patch(
        "the Jacobian is left out", "privacy/events/perturbed.py",
        "return self.rank * math.log1p(self.curvature / self.strength) * (1.0 + 1e-15)",
        "return 0.0", "objective loss",
    ),
    Patch(
        "curvature by the norm of a row", "losses/shared/margin_loss.py",
        "self.smoothness * (bounds.row * bounds.row)", "self.smoothness * bounds.row",
        "objective loss",
    ),
    Patch(
        "a perturbed minimiser may be anywhere", VIEWS, "if not np.all(errors <= distance):",
        "if False:", "certificates",
    ),
    Patch(
        "a minimiser's gap is ignored", VIEWS, "if found.gap <= gap:", "if found.gap < np.inf:",
        "certificates",
    ),
    Patch(
        "projected rows are as long as they come", VIEWS,
        'return bound_rows(rows, "clip", bound)', "return rows", "clip",
    ),
    Patch(
        "noise for an exact minimiser", "mechanisms/shared/noisy_minimiser.py",
        "Stability(record + 2.0 * error, gap + 2.0 * error,", "Stability(record, gap,",
        "certificates",
    ),
    # refusals
    Patch(
        "epsilon = nan is accepted", "core/checks.py",
        "if not (math.isfinite(result) and above and below):",
        "if result < low or result > high:", "inputs",
    ),
    Patch(
        "the gate does not look at the plan", NOISE,
        "        raise PrivacyError(f\"{event} is no event", "        return event\n"
        "        raise PrivacyError(f\"{event} is no event", "gate",
    ),
    Patch(
        "a nan epsilon is within the budget", "privacy/budget.py",
        "self.epsilon <= budget.epsilon and self.delta <= budget.delta",
        "not (self.epsilon > budget.epsilon or self.delta > budget.delta)", "budget",
    ),
)  # fmt: skip

HARMLESS = (
    Patch(
        "sums in another order", GD, "noisy = noisy + penalty.subgradient(query)",
        "noisy = penalty.subgradient(query) + noisy", "",
    ),
    Patch("another default number of steps", GD, "\nSTEPS = 200\n", "\nSTEPS = 240\n", ""),
    Patch(
        "a whole-number ceiling", SGD, "math.ceil(spec.n**2 / self.batch)",
        "-(-(spec.n**2) // self.batch)", "",
    ),
    Patch(
        "twice by adding", BASE, "return 2.0 * record if gap",
        "return record + record if gap", "",
    ),
    Patch(
        "an array for a stack", NOISE, "return np.stack([stream_key",
        "return np.array([stream_key", "",
    ),
    Patch(
        "a squared norm of the row by hand", "datasets/shared/row_rules.py",
        'return np.sqrt(np.einsum("ij,ij->i", x, x))', "return np.sqrt((x * x).sum(axis=1))", "",
    ),
)  # fmt: skip
