"""Plausible bugs that break privacy, each with the check that must catch it, and harmless edits.

A patch is (name, symbol, old, new, check of ``checks.py``): see ``edits`` for symbol, old and new.
A patch that no longer applies makes the test fail.
"""

from __future__ import annotations

from typing import NamedTuple


class Patch(NamedTuple):
    name: str
    symbol: str
    old: str
    new: str
    check: str


BROKEN = (
    # scales
    Patch("noise x0.5", "streams.KeyedNoise.add",
        "gaussian_noise.normals(self.keys, step, 1, dim)[:, 0, :]",
        "0.5 * gaussian_noise.normals(self.keys, step, 1, dim)[:, 0, :]", "attack noisy_gd"),
    Patch("noise x0.8", "streams.KeyedNoise.add",
        "gaussian_noise.normals(self.keys, step, 1, dim)[:, 0, :]",
        "0.8 * gaussian_noise.normals(self.keys, step, 1, dim)[:, 0, :]", "attack noisy_gd"),
    Patch("a sampler off by 1.05", "streams.KeyedNoise.add",
        "gaussian_noise.normals(self.keys, step, 1, dim)[:, 0, :]",
        "gaussian_noise.normals(self.keys, step, 1, dim)[:, 0, :] / 1.05", "noise law"),
    Patch(
        "noise drawn past the gate", "noisy_gd.descend",
        "noise.add(records.gradient_sum(query), step)",
        "view.gradient_sum(query) + plan.noise_scale * "
        "np.random.default_rng().standard_normal(query.shape)",
        "replay noisy_gd",
    ),
    Patch(
        "the compiled loop has another scale than the plain one",
        "streams.SampledStream.sealed_draws",
        "SealedBatches(noise.keys, self._batches.keys, noise.scale, noise.steps, self.population, "
        "self.batch, self.sampling == 'poisson')",
        "SealedBatches(noise.keys, self._batches.keys, 0.9 * noise.scale, noise.steps, "
        "self.population, self.batch, self.sampling == 'poisson')",
        "compiled loop",
    ),
    Patch(
        "noise of the mean on the sum", "noisy_sgd.NoisySgd.events",
        "spec.lipschitz * spec.n / self.batch",
        "spec.lipschitz", "replay noisy_sgd",
    ),
    Patch(
        "sigma rounded down", "calibrate._cut",
        """\
if value > 0.0:
    return (point, high, value, at_high)
return (low, point, at_low, value)""",
        """\
if value > 0.0:
    return (low, point, at_low, value)
return (point, high, value, at_high)""",
        "guarantee",
    ),
    # sensitivities
    Patch(
        "L for 2L", "noisy_gd.NoisyGd.events",
        "spec.lipschitz",
        "spec.lipschitz / 2",
        "replay noisy_gd",
    ),
    Patch(
        "L/n for L", "noisy_gd.NoisyGd.events",
        "spec.lipschitz",
        "spec.lipschitz / spec.n", "replay noisy_gd",
    ),
    Patch(
        "add_remove's sensitivity under replace_one", "base.largest_move",
        "2.0 * record if gap is None else min(gap, 2.0 * record)",
        "record if gap is None else min(gap, record)", "replay noisy_gd",
    ),
    Patch(
        "half the gap of two gradients", "noisy_gd.NoisyGd.events",
        "spec.gradient_gap",
        "spec.gradient_gap / 2", "replay noisy_gd",
    ),
    Patch(
        "half the sensitivity under add_remove", "base.largest_move",
        "return record",
        "return record / 2.0",
        "replay noisy_gd",
    ),
    Patch(
        "the Lipschitz constant forgets the row bound", "margin_loss.Glm.lipschitz_norm",
        "row_norm(bounds, norm)",
        "0.5", "replay noisy_gd",
    ),
    Patch(
        "long rows are not clipped", "row_rules._bound_block",
        "peak * length > bound",
        "peak * length > 2.0 * bound", "row rule",
    ),
    # what is public
    Patch(
        "the norm bound is taken from the data", "data.Data.facts",
        "self.row_bound",
        "float(np.sqrt((self.x * self.x).sum(axis=1).max()))", "public facts",
    ),
    Patch(
        "classes are read from y", "data.Data.facts",
        "self.classes",
        "len(np.unique(self.y))", "public facts",
    ),
    Patch(
        "the population follows the data under add_remove", "data.pad_with_zeros",
        "population - data.n",
        "0", "population",
    ),
    # what reaches the data past the gate
    Patch(
        "T is chosen by convergence", "noisy_gd.descend",
        "noisy = noisy + penalty.subgradient(query)",
        """\
if np.linalg.norm(view.gradient_sum(query)) < 2.0:
    break
noisy = noisy + penalty.subgradient(query)""",
        "replay noisy_gd",
    ),
    Patch(
        "the ridge is scaled by the data", "noisy_gd.descend",
        "penalty.subgradient(query)",
        "float(np.sum(view.y)) * spec.ridge * query", "replay noisy_gd",
    ),
    Patch(
        "step sizes come from private gradients", "noisy_gd.descend",
        "pace.choose_step(noisy, query)",
        "pace.choose_step(view.gradient_sum(query), query)", "replay noisy_gd",
    ),
    Patch(
        "one draw for all coordinates", "noisy_gd.descend",
        "gate.stream(plan.events[0], spec.p)",
        "gate.stream(plan.events[0], 1)",
        "replay noisy_gd",
    ),
    Patch(
        "a last step without noise", "noisy_gd.descend",
        "theta = schedule.output",
        "theta = schedule.output - 1e-09 * view.gradient_sum(theta)",
        "replay noisy_gd",
    ),
    Patch(
        "a private loss among the by-products", "noisy_gd.NoisyGd.release",
        "return descend(view, plan, gate)",
        "return Release(descend(view, plan, gate).theta, {'positives': int(np.sum(view.y > 0))})",
        "replay noisy_gd",
    ),
    Patch(
        "an error that tells of private values", "noisy_sgd._run_plain",
        "gradient, move = _parts(view, not on_sum)",
        """\
if np.all(view.y > 0):
    raise ValueError(f'one class only: {view.y}')
gradient, move = _parts(view, not on_sum)""", "replay noisy_sgd",
    ),
    Patch(
        "the noise scale follows the data", "noisy_gd.descend",
        "noise = gate.stream(plan.events[0], spec.p)",
        """\
few_labels = plan.noise_scale * min(1.0, abs(np.mean(view.y)))
noise = gate.stream(replace(plan.events[0], scale=few_labels), spec.p)""",
        "replay noisy_gd",
    ),
    # randomness
    Patch(
        "one key for two streams", "gate.Gate.keys",
        "stream_key(seed, number)",
        "stream_key(seed, 0)", "independence",
    ),
    Patch(
        "one key for all trials", "gate.Gate.keys",
        "[stream_key(seed, number) for seed in self._seeds]",
        "[stream_key(self._seeds[0], number) for _ in self._seeds]", "independence",
    ),
    Patch(
        "noise is reused across steps", "streams.KeyedNoise.add",
        "gaussian_noise.normals(self.keys, step, 1, dim)",
        "gaussian_noise.normals(self.keys, 0, 1, dim)", "independence",
    ),
    Patch(
        "a shuffle for uniform batches", "streams.KeyedBatches.draw",
        "batch_indices.batch(self.keys[trial], step, *self._law)",
        "(np.arange(self._law[1]) + step * self._law[1]) % self._law[0]", "batches",
    ),
    Patch(
        "the same batch at every step", "streams.KeyedBatches.draw",
        "batch_indices.batch(self.keys[trial], step, *self._law)",
        "batch_indices.batch(self.keys[trial], 0, *self._law)", "batches",
    ),
    Patch(
        "Poisson batches are drawn with a fixed size", "streams.SampledStream.sealed_draws",
        "self.sampling == 'poisson'",
        "False", "compiled loop",
    ),
    Patch(
        "batches of a fixed size are drawn with replacement", "batch_indices._subset",
        """\
if seen[index]:
    index = last""",
        "", "batches",
    ),
    # accounting
    Patch(
        "the sampling rate is wrong", "sums.SampledGaussian.rate",
        "self.population",
        "2.0 * self.population", "attack noisy_sgd",
    ),
    Patch(
        "composition is forgotten", "base.NoiseEvent.loss",
        "self.count * ratio ** 2",
        "ratio ** 2",
        "attack noisy_gd",
    ),
    Patch(
        "delta is spent twice", "gaussian_profile.epsilon",
        "math.log(delta)",
        "math.log(2.0 * delta)", "exact loss",
    ),
    Patch(
        "an epsilon of another relation is within the budget", "budget.Guarantee.within",
        "self.relation != budget.relation or self.kind == 'none'",
        "self.kind == 'none'", "budget",
    ),
    Patch(
        "an approximate guarantee passes for a pure one", "budget.Guarantee.within",
        "self.kind == 'approx' and (not budget.delta > 0)",
        "False", "budget",
    ),
    # local channels
    Patch(
        "a turned sign is too rare", "sign_bit.flip_chance",
        "(1 << 63) - kept",
        "(1 << 63) - int(1.05 * kept)", "local channels",
    ),
    Patch(
        "users answer as often as they are asked", "streams.ChannelStream.send",
        "self._asked[user] += 1",
        "self._asked[user] += 0", "local channels",
    ),
    Patch(
        "a user's answers cost as one", "black_boxes.Channel.loss",
        "self.messages",
        "1",
        "local channels",
    ),
    Patch(
        "any channel passes for the plan's", "base.Event.fits",
        "own == planned",
        "not self.sizes or own == planned",
        "local channels",
    ),
    Patch(
        "information passes for any budget", "budget.Guarantee.within",
        "not self.information <= budget.information",
        "False", "local channels",
    ),
    # draws from a law, and minimisers
    Patch(
        "the exponent is doubled", "exponential.Exponential.release",
        "Target(spec, event.exponent)",
        "Target(spec, 2.0 * event.exponent)",
        "replay exponential",
    ),
    Patch(
        "half the oscillation", "laws.Exponential.sensitivity",
        "largest_move(self.record_oscillation, self.gap, relation)",
        "0.5 * largest_move(self.record_oscillation, self.gap, relation)", "attack exponential",
    ),
    Patch(
        "half the noise of a perturbed objective", "streams.PerturbedStream.find",
        "point(drawn)",
        "point(0.5 * drawn)", "attack objective_perturbation",
    ),
    Patch(
        "the Jacobian is left out", "perturbed.PerturbedObjective.jacobian",
        "self.rank * math.log1p(self.curvature / self.strength) * (1.0 + 1e-15)",
        "0.0", "objective loss",
    ),
    Patch(
        "curvature by the norm of a row", "margin_loss.Glm.curvature_bound",
        "bounds.row * bounds.row",
        "bounds.row",
        "objective loss",
    ),
    Patch(
        "a perturbed minimiser may be anywhere", "central.CentralView.find_perturbed_minimisers",
        "not np.all(errors <= distance)",
        "False", "certificates",
    ),
    Patch(
        "a minimiser's gap is ignored", "central.find_certified_minimiser",
        "found.gap <= gap",
        "found.gap < np.inf",
        "certificates",
    ),
    Patch(
        "projected rows are as long as they come", "central.clip_rows",
        "bound_rows(rows, 'clip', bound)",
        "rows", "clip",
    ),
    Patch(
        "noise for an exact minimiser", "noisy_minimiser.stability",
        "Stability(record + 2.0 * error, gap + 2.0 * error, whole - lost, error)",
        "Stability(record, gap, whole - lost, error)",
        "certificates",
    ),
    # refusals
    Patch(
        "epsilon = nan is accepted", "checks.number",
        "not (math.isfinite(result) and above and below)",
        "result < low or result > high", "inputs",
    ),
    Patch(
        "the gate does not look at the plan", "gate.Gate._spend",
        "raise PrivacyError(f'{event} is no event of the plan that was accounted for')",
        """\
return event
raise PrivacyError(f'{event} is no event of the plan that was accounted for')""", "gate",
    ),
    Patch(
        "a nan epsilon is within the budget", "budget.Guarantee.within",
        "self.epsilon <= budget.epsilon and self.delta <= budget.delta",
        "not (self.epsilon > budget.epsilon or self.delta > budget.delta)", "budget",
    ),
)  # fmt: skip

HARMLESS = (
    Patch(
        "sums in another order", "noisy_gd.descend",
        "noisy + penalty.subgradient(query)",
        "penalty.subgradient(query) + noisy", "",
    ),
    Patch("another default number of steps", "noisy_gd.STEPS",
        "200",
        "240", ""),
    Patch(
        "a whole-number ceiling", "noisy_sgd.NoisySgd._steps",
        "math.ceil(spec.n ** 2 / self.batch)",
        "-(-spec.n ** 2 // self.batch)", "",
    ),
    Patch(
        "twice by adding", "base.largest_move",
        "2.0 * record if gap is None else min(gap, 2.0 * record)",
        "record + record if gap is None else min(gap, 2.0 * record)", "",
    ),
    Patch(
        "an array for a stack", "gate.Gate.keys",
        "np.stack([stream_key(seed, number) for seed in self._seeds])",
        "np.array([stream_key(seed, number) for seed in self._seeds])", "",
    ),
    Patch(
        "a squared norm of the row by hand", "row_rules.row_norms",
        "_sums_of_squares(x)",
        "(x * x).sum(axis=1)", "",
    ),
)  # fmt: skip
