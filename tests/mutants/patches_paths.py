"""Plausible bugs off the beaten path: compiled and reduced loops, noise on a grid, mechanisms.

As in ``patches``; the checks are those of ``checks_paths``. ``patches_files`` has the others.
"""

from __future__ import annotations

from tests.mutants.patches import Patch
from tests.mutants.patches_files import DATA_AND_FILES

LOOPS = (
    # compiled loops of noisy_sgd
    Patch(
        "a vector of coordinates gets no noise", "sgd._move_part",
        "lanes.add(value, lanes.mul(scale, lanes.load(noise, m + k)))",
        "value",
        "compiled steps",
    ),
    Patch(
        "the last coordinates get half the noise", "sgd._move_part",
        "rule.noise_scale * lanes.load_one(noise, m + k)",
        "0.5 * rule.noise_scale * lanes.load_one(noise, m + k)", "compiled steps",
    ),
    Patch(
        "no noise beside a lasso", "sgd._move_pulled",
        "rule.factor * g[0, k] + rule.decay * old + rule.noise_scale * noise",
        "rule.factor * g[0, k] + rule.decay * old", "compiled steps",
    ),
    Patch(
        "one batch for a block of steps", "sgd._block_of_batches",
        "np.uint64(start + s)",
        "np.uint64(start)", "compiled steps",
    ),
    Patch(
        "one record for a block of steps", "sgd._draw_block",
        "start + np.uint64(s)",
        "start", "compiled steps",
    ),
    Patch(
        "all compiled noise over n", "sgd.start",
        "float(noise.scale)",
        "float(noise.scale / noise.population)", "dense steps",
    ),
    # few rows
    Patch(
        "noise over n in the loop of few rows", "reduced_sgd.run",
        "plain.start(framed.rows, y, np.zeros((chains, n)), noise, **rule)",
        "plain.start(framed.rows, y, np.zeros((chains, n)), "
        "noise._replace(scale=noise.scale / noise.population), **rule)",
        "few rows of noisy_sgd",
    ),
    Patch(
        "0.85 of the noise within the rows' span", "reduced_sgd._walk",
        "rule.noise_scale * noise",
        "0.85 * rule.noise_scale * noise", "few rows of noisy_sgd",
    ),
    Patch(
        "the outside part forgets its past", "reduced_sgd._walk",
        "math.sqrt(outer)",
        "math.sqrt(rest)", "few rows of noisy_sgd",
    ),
    Patch(
        "0.85 of the noise in the frame", "reduced_sgd.add_noise",
        "noise.scale * drawn",
        "0.85 * noise.scale * drawn", "full gradients of few rows",
    ),
    Patch(
        "the same draw at every step in the frame", "reduced_sgd.add_noise",
        "gaussian_noise.normals(noise.keys, step, 1, normals + 1)",
        "gaussian_noise.normals(noise.keys, 0, 1, normals + 1)", "full gradients of few rows",
    ),
    Patch(
        "one direction outside for all trials", "reduced_sgd.outward",
        "gaussian_noise.normals(keys, step, 1, len(basis))",
        "gaussian_noise.normals(keys[:1].repeat(len(keys), 0), step, 1, len(basis))",
        "full gradients of few rows",
    ),
    Patch(
        "the frame's size follows the rank", "reduced_sgd.frame",
        "np.linalg.qr(dense.T)",
        "np.linalg.qr(dense.T[:, dense.any(axis=1)])", "shapes of few rows",
    ),
    # users' devices
    Patch(
        "a user's second answer has the noise of the first", "local_learning._advance",
        "np.uint64(t)",
        "np.uint64(t % users)",
        "local loops",
    ),
    Patch(
        "devices shorten no rows", "local_learning._row_factor",
        "norm_bound / norm if norm > norm_bound else 1.0",
        "1.0", "local loops",
    ),
    Patch(
        "one answer more after a compiled pass", "streams.ChannelStream.sealed_draws",
        "self._asked[:] = self.messages",
        "", "local loops",
    ),
    Patch(
        "a compiled pass asks twice", "streams.ChannelStream.sealed_draws",
        """\
if self._sent:
    raise PrivacyError('some users have answered: no loop may ask all of them')""",
        """\
if False:
    raise PrivacyError('some users have answered: no loop may ask all of them')""", "local loops",
    ),
    Patch(
        "long vectors pass the channel as they are", "local_channels._hold_to_bound",
        "factor * g[j] if factor > 0.0 else 0.0",
        "g[j]",
        "too long for a channel",
    ),
    # what is spent at the gate
    Patch(
        "a compiled loop uses no step up", "streams.SampledStream.sealed_draws",
        "self._steps.mark_all()",
        "",
        "spent once",
    ),
    Patch(
        "a step of noise can be drawn again", "streams.NoiseStream.add",
        "self._steps.mark(step)",
        "", "spent once",
    ),
    Patch(
        "a step in the frame can be drawn again", "streams.NoiseStream.add_in_frame",
        "self._steps.mark(step)",
        "", "spent once",
    ),
    Patch(
        "compiled loops draw past the tape", "streams.require_no_tape",
        "tape is not None",
        "False", "spent once",
    ),
    Patch(
        "single trials share their noise", "gate._OneTrial.keys",
        "self._shared[number][self._trial:self._trial + 1]",
        "self._shared[number][:1]",
        "own gates",
    ),
    # laws
    Patch(
        "Laplace noise has one sign", "exponential_noise._laplaces",
        "-size if second >> _TOP else size",
        "size", "laws",
    ),
    Patch(
        "a Gamma norm of one exponential less", "exponential_noise._gamma_norms",
        """\
for j in range(dim):
    block = np.uint64(j)
    first, _ = words(key0, key1, step, block)
    radius += draw_exponential(key0, key1, step, block, first)""",
        """\
for j in range(dim - 1):
    block = np.uint64(j)
    first, _ = words(key0, key1, step, block)
    radius += draw_exponential(key0, key1, step, block, first)""", "laws",
    ),
    Patch(
        "both normals of a pair are one", "gaussian_noise.on_circle",
        "length * sine",
        "length * cosine", "normals",
    ),
    Patch(
        "a Poisson batch is too small", "batch_indices.skip_rate",
        "-math.log1p(-batch / population)",
        "batch / population", "draws of records",
    ),
    Patch(
        "the last record is never drawn", "batch_indices.single",
        "scale_word(word(key0, key1, step, 0), population)",
        "scale_word(word(key0, key1, step, 0), population - 1)", "draws of records",
    ),
    Patch(
        "an empty batch is an error", "central.CentralView.batch_gradient",
        "return np.zeros(np.shape(theta))",
        "raise IndexError('an empty batch')",
        "empty batches",
    ),
    # noise on a grid
    Patch(
        "noise on the grid x0.85", "grid_noise.GridNoise.add",
        "scale / self._step",
        "0.85 * scale / self._step", "noise on the grid",
    ),
    Patch(
        "the sum leaves the grid", "grid_noise.GridNoise.add",
        "total.astype(np.float64) * self._step",
        "value + drawn * self._step", "grid",
    ),
    Patch(
        "secure noise is never negative", "exact_noise.fill",
        "-size if sign >= _HALF else size",
        "size", "grid",
    ),
    Patch(
        "a long gradient goes on the grid as it is", "exact_noise.clip_weight",
        "weight * (bound / length)",
        "weight", "grid",
    ),
    Patch(
        "rounding is not counted", "secure_grid.put_on_grid",
        "event.record_norm * slack + diagonal",
        "event.record_norm", "secure plans",
    ),
    Patch(
        "secure noise of the plan without rounding", "secure_plan.put_sums_on_grid",
        "replace(plan, events=events, noise_scale=scales[plan.noise_scale])",
        "plan", "secure plans",
    ),
    Patch(
        "curvature on the grid of twice the size", "grid.GridView.packed_curvature",
        "self._add_moments(weights, np.zeros(data.n), 0.0, spec.smoothness)",
        "self._add_moments(weights, np.zeros(data.n), 0.0, 2.0 * spec.smoothness)",
        "curvature on a grid",
    ),
    Patch(
        "a weight on the grid as it is", "exact_sums.moment_sum",
        "min(1.0, max(0.0, weights[i]))", "weights[i]", "curvature on a grid",
    ),
    Patch(
        "targets on the grid of twice the share", "exact_sums.moment_sum",
        "own = share * target", "own = 2.0 * share * target", "Wishart noise on a grid",
    ),
    Patch(
        "the second Wishart matrix is added", "secure_wishart._multiply_heads",
        "other[:, order + 1:] *= -1.0", "other[:, order + 1:] *= 1.0", "Wishart noise on a grid",
    ),
    Patch(
        "landmark features of many rows at once", "feature_maps.Landmarks.apply_alone",
        "self.kernel.gram_alone(rows[part], self.points)",
        "self.kernel.gram(rows[part], self.points)", "rows alone",
    ),
    Patch(
        "monomials are not held to their bound", "feature_maps.Explicit.apply_alone",
        "row_maps.shorten_rows(out, self.bound)", "pass", "rows alone",
    ),
)  # fmt: skip

MECHANISMS = (
    Patch(
        "a replaced record costs one batch by content", "sums.DisjointBatches.sensitivity",
        "max(math.sqrt(2.0) * self.record_norm, together)",
        "together", "contents",
    ),
    Patch(
        "a small gap serves Gamma noise by content", "sums.DisjointBatches.sensitivity",
        """\
if self.noise == 'gamma_norm':
    return 2.0 * self.record_norm""",
        "",
        "contents",
    ),
    Patch(
        "batches by place pass under add_remove", "sums.DisjointBatches.sensitivity",
        (
            "if relation == 'add_remove':\n"
            "    raise Unsupported('batches by place are not private under add_remove: '\n"
            "        'a record that comes or goes moves others to another batch')"
        ),
        "",
        "contents",
    ),
    Patch(
        "records are shared among batches", "streams.BatchStream.__init__",
        "indices.size != np.unique(indices).size",
        "False", "contents",
    ),
    Patch(
        "records are batched by place under add_remove", "one_pass_sgd.OnePassSgd.release",
        "view.parts(batches, by_content=by_content)",
        "view.parts(batches, by_content=False)",
        "contents",
    ),
    Patch(
        "means over the private size of a batch", "one_pass_sgd.OnePassSgd.release",
        "spec.n / batches if by_content else len(part)",
        "max(len(part), 1)",
        "replay one_pass_sgd",
    ),
    Patch(
        "noise of one batch for all", "streams.BatchStream.release",
        "self._noise.add(value, self.kind, self.scale, self.dim, step)",
        "self._noise.add(value, self.kind, self.scale, self.dim, 0)",
        "noise of passes",
    ),
    Patch(
        "names follow the features", "kernel_cells.make_feature_rows",
        "problem.data.with_rows(x, x_test=x_test)",
        "problem.data.with_records(np.asarray(x), problem.data.y, x_test=x_test)", "contents",
    ),
    Patch(
        "rows that fill up are in a batch", "data.pad_with_zeros",
        "np.full(extra, NO_RECORD)",
        "np.full(extra, np.uint64(7))", "contents",
    ),
    Patch(
        "names are taken in another order than rows", "data.Data.take",
        "self.names[batch]",
        "self.names[:len(batch)]", "contents",
    ),
    Patch(
        "mirror descent with half the gap", "mirror_descent._event",
        "spec.gradient_gap",
        "spec.gradient_gap / 2.0", "mirror_descent",
    ),
    Patch(
        "mirror steps along private gradients", "mirror_descent.MirrorDescent.release",
        "mirror.move(state, noisy, size)",
        "mirror.move(state, noisy + 1e-09 * view.gradient_sum(theta), size)", "mirror_descent",
    ),
    Patch(
        "curvature of half the size", "newton.Newton.events",
        "GaussianMatrix(moves / second, size, gap=math.sqrt(2.0) * size)",
        "GaussianMatrix(moves / second, size / 4, gap=math.sqrt(2.0) * size / 4)", "newton",
    ),
    Patch(
        "Newton's steps are not all counted", "newton.Newton.events",
        "Gaussian(scale, spec.lipschitz, self._steps, spec.gradient_gap)",
        "Gaussian(scale, spec.lipschitz / 2, self._steps, spec.gradient_gap / 2)", "newton",
    ),
    Patch(
        "moments move as X'X alone does", "sufficient_statistics._make_event",
        'GaussianMoments(scale, joint_sensitivity("add_remove"), '
        'gap=joint_sensitivity("replace_one"))',
        'GaussianMoments(scale, joint_sensitivity("add_remove"), '
        'gap=joint_sensitivity("replace_one", cross=0.0))', "sufficient_statistics",
    ),
    Patch(
        "half the nuclear norm of a record", "sufficient_statistics._make_event",
        "WishartDifference(scale, 1.0 + TARGET_SHARE)",
        "WishartDifference(scale, 0.5 + TARGET_SHARE / 2.0)", "sufficient_statistics",
    ),
    Patch(
        "rows of zeros count with their labels", "central.CentralView.moment_sum",
        "np.where(has_entries(x), t, 0.0)",
        "t + 0.0 * has_entries(x)", "sufficient_statistics",
    ),
    Patch(
        "the larger noise is taken", "noise_law.choose_least",
        "min(found, key=moment)", "max(found, key=moment)", "noise laws",
    ),
    Patch(
        "a Gamma norm counts as a Gaussian", "noise_law.noise_moment",
        "p + 1.0 if gamma else 1.0", "1.0", "noise laws",
    ),
    Patch(
        "inner noise is chosen before the budget is split", "inner_noise.choose_design",
        "len(laws) < 2", "True", "noise laws",
    ),
    Patch(
        "pure epsilon at a delta", "ledger_totals.find_guarantee",
        'recompute(events, kind="pure", delta=0.0, **facts)',
        'recompute(events, kind="pure", delta=budget.delta, **facts)', "noise laws",
    ),
    Patch(
        "vertices at half the oscillation", "frank_wolfe._event",
        "(spec.lipschitz * across, spec.gradient_gap * across)",
        "(0.5 * spec.lipschitz * across, 0.5 * spec.gradient_gap * across)",
        "frank_wolfe",
    ),
    Patch(
        "the best vertex without noise", "frank_wolfe._make_choice_oracle.vertex",
        "vertices.take(chosen)",
        "vertices.take(np.argmin(scores, axis=1))", "frank_wolfe",
    ),
    Patch(
        "the choice among runs looks beyond the set", "high_probability._law",
        "Exponential(exponent, spec.variation, gap=spec.oscillation)",
        "Exponential(exponent, spec.variation / 8, gap=spec.oscillation / 8)", "high_probability",
    ),
    Patch(
        "a choice among runs is not paid for", "random_stopping.SelectionLoss.log_m",
        "one + self.runs.added_log_m(tilt, self.mu)",
        "one", "private_selection",
    ),
    Patch(
        "a pure choice costs as much as one run", "random_stopping.NegativeBinomial.pure_epsilon",
        "(2.0 + self.eta) * epsilon",
        "epsilon", "private_selection",
    ),
    Patch(
        "a run has the noise of a single one", "private_selection.PrivateSelection._split",
        "calibrate.selection_mu(law, budget.epsilon, budget.delta)",
        "calibrate.mu(budget.epsilon, budget.delta)", "private_selection",
    ),
    Patch(
        "losses of a score are as long as they are", "central.CentralView.clipped_losses",
        "np.clip(moved, -bound, bound)",
        "moved", "private_selection",
    ),
    Patch(
        "every run has the numbers of the first", "gate.Gate._make_run",
        "np.random.SeedSequence(entropy, spawn_key=(run,))",
        "np.random.SeedSequence(entropy, spawn_key=(0,))", "private_selection",
    ),
    Patch(
        "the best score without its noise", "private_selection.PrivateSelection._select",
        "own.stream(last, 1).add(values, 0)[:, 0]",
        "values[:, 0]", "private_selection",
    ),
    Patch(
        "a steeper law than the event", "regularized_exponential.RegularizedExponential.release",
        "draw(view, plan, target, stream)",
        "draw(view, plan, replace(target, exponent=1.5 * target.exponent), stream)",
        "regularized_exponential",
    ),
    Patch(
        "half the stability of a kernel's minimiser", "kernel_queries.bound_moves",
        "spec.stability + 2.0 * spec.close",
        "0.3 * spec.stability",
        "kernel_release",
    ),
    Patch(
        "noisy predictions at half their sensitivity",
        "kernel_semi_interactive.KernelSemiInteractive._event",
        "kernel_queries.make_laplace(scale, moves.value, count)",
        "kernel_queries.make_laplace(scale, moves.value / 2.0, count)", "kernel_semi_interactive",
    ),
    Patch(
        "coordinates of a session are not whitened",
        "kernel_release.ReleaseSession._answer_new_query",
        "value - float(along @ self._whitened)",
        "value", "kernel sessions",
    ),
    Patch(
        "a session of sparse answers does not end", "streams.SparseStream.answer",
        "self._made += far",
        "self._made += 0 * far", "kernel sessions",
    ),
    Patch(
        "queries of a session may be long", "kernel_interactive.InteractiveSession.ask",
        "kernel_queries.check_queries(self._found.spec, rows)",
        "np.asarray(rows)", "kernel sessions",
    ),
)  # fmt: skip

PATHS = (*LOOPS, *MECHANISMS, *DATA_AND_FILES)
