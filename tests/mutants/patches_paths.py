"""Plausible bugs off the beaten path: compiled and reduced loops, noise on a grid, feature maps,
data preparation, files and logs. As in ``patches``; the checks are those of ``checks_paths``.
"""

from __future__ import annotations

from tests.mutants.patches import BASE, STREAMS, SUMS, Patch

LOOP, FEW, LOCAL = "loops/sgd.py", "loops/reduced_sgd.py", "loops/local_learning.py"
NORMAL, EXPONENTIAL, INDICES = (
    "loops/gaussian_noise.py",
    "loops/exponential_noise.py",
    "loops/batch_indices.py",
)
ONE_PASS, KERNELS, CELL = (
    "mechanisms/gradient/one_pass_sgd.py",
    "runner/cells/kernel_cells.py",
    "runner/cells/run_cell.py",
)
DATA, PREPARE, RELEASES = (
    "problem/data.py",
    "datasets/shared/row_pipeline.py",
    "results/ledger/release_log.py",
)

LOOPS = (
    # compiled loops of noisy_sgd
    Patch(
        "a vector of coordinates gets no noise", LOOP,
        "noisy = lanes.add(value, lanes.mul(scale, lanes.load(noise, m + k)))", "noisy = value",
        "compiled steps",
    ),
    Patch(
        "the last coordinates get half the noise", LOOP,
        "noisy = value + rule.noise_scale * lanes.load_one(noise, m + k)",
        "noisy = value + 0.5 * rule.noise_scale * lanes.load_one(noise, m + k)", "compiled steps",
    ),
    Patch(
        "no noise beside a lasso", LOOP,
        "rule.decay * old + rule.noise_scale * noise\n        sign",
        "rule.decay * old\n        sign", "compiled steps",
    ),
    Patch(
        "one batch for a block of steps", LOOP, "step = np.uint64(start + s)",
        "step = np.uint64(start)", "compiled steps",
    ),
    Patch(
        "one record for a block of steps", LOOP, "start + np.uint64(s), rule.population",
        "start, rule.population", "compiled steps",
    ),
    Patch(
        "all compiled noise over n", LOOP, "noise_scale=float(noise.scale)",
        "noise_scale=float(noise.scale / noise.population)", "dense steps",
    ),
    # few rows
    Patch(
        "noise over n in the loop of few rows", FEW,
        "np.zeros((chains, n)), noise, **rule)",
        "np.zeros((chains, n)), noise._replace(scale=noise.scale / noise.population), **rule)",
        "few rows of noisy_sgd",
    ),
    Patch(
        "0.85 of the noise within the rows' span", FEW,
        "eta * (value + rule.noise_scale * noise)",
        "eta * (value + 0.85 * rule.noise_scale * noise)", "few rows of noisy_sgd",
    ),
    Patch(
        "the outside part forgets its past", FEW, "outside[c] = factor * math.sqrt(outer)",
        "outside[c] = factor * math.sqrt(rest)", "few rows of noisy_sgd",
    ),
    Patch(
        "0.85 of the noise in the frame", FEW, "+= noise.scale * drawn",
        "+= 0.85 * noise.scale * drawn", "full gradients of few rows",
    ),
    Patch(
        "the same draw at every step in the frame", FEW,
        "gaussian_noise.normals(noise.keys, step, 1, normals + 1)",
        "gaussian_noise.normals(noise.keys, 0, 1, normals + 1)", "full gradients of few rows",
    ),
    Patch(
        "one direction outside for all trials", FEW,
        "z = gaussian_noise.normals(keys, step, 1, len(basis))[:, 0, :]",
        "z = gaussian_noise.normals(keys[:1].repeat(len(keys), 0), step, 1, len(basis))[:, 0, :]",
        "full gradients of few rows",
    ),
    Patch(
        "the frame's size follows the rank", FEW, "basis, upper = np.linalg.qr(dense.T)",
        "basis, upper = np.linalg.qr(dense.T[:, dense.any(axis=1)])", "shapes of few rows",
    ),
    # users' devices
    Patch(
        "a user's second answer has the noise of the first", LOCAL,
        "channels.fill(keys[c, 0], keys[c, 1], np.uint64(t), first, second)",
        "channels.fill(keys[c, 0], keys[c, 1], np.uint64(t % users), first, second)",
        "local loops",
    ),
    Patch(
        "devices shorten no rows", LOCAL,
        "return norm_bound / norm if norm > norm_bound else 1.0", "return 1.0", "local loops",
    ),
    Patch(
        "one answer more after a compiled pass", STREAMS,
        "        self._asked[:] = self.messages\n", "", "local loops",
    ),
    Patch(
        "a compiled pass asks twice", STREAMS, "        if self._sent:\n            raise",
        "        if False:\n            raise", "local loops",
    ),
    Patch(
        "long vectors pass the channel as they are", "loops/local_channels.py",
        "            g[j] = factor * g[j] if factor > 0.0 else 0.0\n", "            g[j] = g[j]\n",
        "too long for a channel",
    ),
    # what is spent at the gate
    Patch(
        "a compiled loop uses no step up", STREAMS, "        self._steps.mark_all()\n", "",
        "spent once",
    ),
    Patch(
        "a step of noise can be drawn again", STREAMS,
        "        self._check_shape(value)\n        self._steps.mark(step)\n",
        "        self._check_shape(value)\n", "spent once",
    ),
    Patch(
        "a step in the frame can be drawn again", STREAMS,
        "        noise = self._seal_noise()\n        self._steps.mark(step)\n",
        "        noise = self._seal_noise()\n", "spent once",
    ),
    Patch(
        "compiled loops draw past the tape", STREAMS, "    if tape is not None:\n        raise",
        "    if False:\n        raise", "spent once",
    ),
    Patch(
        "single trials share their noise", "privacy/gate.py",
        "self._shared[number][self._trial : self._trial + 1]", "self._shared[number][:1]",
        "own gates",
    ),
    # laws
    Patch(
        "Laplace noise has one sign", EXPONENTIAL,
        "out[k, j] = -size if second >> _TOP else size", "out[k, j] = size", "laws",
    ),
    Patch(
        "a Gamma norm of one exponential less", EXPONENTIAL,
        "        radius = 0.0\n        for j in range(dim):",
        "        radius = 0.0\n        for j in range(dim - 1):", "laws",
    ),
    Patch(
        "both normals of a pair are one", NORMAL, "return length * cosine, length * sine",
        "return length * cosine, length * cosine", "normals",
    ),
    Patch(
        "a Poisson batch is too small", INDICES, "return -math.log1p(-batch / population)",
        "return batch / population", "draws of records",
    ),
    Patch(
        "the last record is never drawn", INDICES, "word(key0, key1, step, 0), population)",
        "word(key0, key1, step, 0), population - 1)", "draws of records",
    ),
    Patch(
        "an empty batch is an error", "views/central.py",
        "        if not len(batch):\n            return np.zeros(np.shape(theta))\n",
        "        if not len(batch):\n            raise IndexError('an empty batch')\n",
        "empty batches",
    ),
    # noise on a grid
    Patch(
        "noise on the grid x0.85", STREAMS, "scale / self._step, self._trials",
        "0.85 * scale / self._step, self._trials", "noise on the grid",
    ),
    Patch(
        "the sum leaves the grid", STREAMS, "total.astype(np.float64) * self._step",
        "value + drawn.reshape(self._trials, dim) * self._step", "grid",
    ),
    Patch(
        "secure noise is never negative", "loops/exact_noise.py",
        "size = -size if sign >= _HALF else size", "size = size", "grid",
    ),
    Patch(
        "a long gradient goes on the grid as it is", "loops/exact_noise.py",
        "return weight * (bound / length) if length < np.inf else 0.0",
        "return weight if length < np.inf else 0.0", "grid",
    ),
    Patch(
        "rounding is not counted", "privacy/secure_grid.py", "* slack + diagonal, gap=None",
        ", gap=None", "secure plans",
    ),
    Patch(
        "secure noise of the plan without rounding", "mechanisms/shared/secure_plan.py",
        "return replace(plan, events=events, noise_scale=scales[plan.noise_scale]), grid",
        "return plan, grid", "secure plans",
    ),
)  # fmt: skip

MECHANISMS = (
    Patch(
        "a replaced record costs one batch by content", SUMS,
        "return max(math.sqrt(2.0) * self.record_norm, together)", "return together", "contents",
    ),
    Patch(
        "a small gap serves Gamma noise by content", SUMS,
        '        if self.noise == "gamma_norm":\n            return 2.0 * self.record_norm\n', "",
        "contents",
    ),
    Patch(
        "batches by place pass under add_remove", SUMS,
        '            if relation == "add_remove":\n                raise Unsupported(\n'
        '                    "batches by place', '            if False:\n'
        '                raise Unsupported(\n                    "batches by place', "contents",
    ),
    Patch(
        "records are shared among batches", STREAMS,
        "        if indices.size != np.unique(indices).size:", "        if False:", "contents",
    ),
    Patch(
        "records are batched by place under add_remove", ONE_PASS,
        "view.parts(batches, by_content=by_content)", "view.parts(batches, by_content=False)",
        "contents",
    ),
    Patch(
        "means over the private size of a batch", ONE_PASS,
        "size = spec.n / batches if by_content else len(part)", "size = max(len(part), 1)",
        "replay one_pass_sgd",
    ),
    Patch(
        "noise of one batch for all", STREAMS,
        "self._noise.add(value, self.kind, self.scale, self.dim, step)\n"
        "        return self._hear(value, drawn, step)\n\n\nclass ChannelStream",
        "self._noise.add(value, self.kind, self.scale, self.dim, 0)\n"
        "        return self._hear(value, drawn, step)\n\n\nclass ChannelStream",
        "noise of passes",
    ),
    Patch(
        "names follow the features", KERNELS, "data.with_rows(x, x_test=x_test)",
        "data.with_records(np.asarray(x), problem.data.y, x_test=x_test)", "contents",
    ),
    Patch(
        "rows that fill up are in a batch", DATA, "np.full(extra, NO_RECORD)",
        "np.full(extra, np.uint64(7))", "contents",
    ),
    Patch(
        "names are taken in another order than rows", DATA, "names=self.names[batch],",
        "names=self.names[: len(batch)],", "contents",
    ),
    Patch(
        "mirror descent with half the gap", "mechanisms/gradient/mirror_descent.py",
        "steps, gap=spec.gradient_gap)", "steps, gap=spec.gradient_gap / 2.0)", "mirror_descent",
    ),
    Patch(
        "mirror steps along private gradients", "mechanisms/gradient/mirror_descent.py",
        "mirror.move(state, noisy, size)",
        "mirror.move(state, noisy + 1e-9 * view.gradient_sum(theta), size)", "mirror_descent",
    ),
    Patch(
        "curvature of half the size", "mechanisms/gradient/newton.py",
        "GaussianMatrix(moves / second, size, gap=math.sqrt(2.0) * size)",
        "GaussianMatrix(moves / second, size / 4, gap=math.sqrt(2.0) * size / 4)", "newton",
    ),
    Patch(
        "Newton's steps are not all counted", "mechanisms/gradient/newton.py",
        "first = Gaussian(scale, spec.lipschitz, self._steps, spec.gradient_gap)\n"
        "        bend = spec.smoothness or 0.0\n        if not",
        "first = Gaussian(scale, spec.lipschitz / 2, self._steps, spec.gradient_gap / 2)\n"
        "        bend = spec.smoothness or 0.0\n        if not", "newton",
    ),
    Patch(
        "vertices at half the oscillation", "mechanisms/gradient/frank_wolfe.py",
        "one, two = spec.lipschitz * across, spec.gradient_gap * across",
        "one, two = 0.5 * spec.lipschitz * across, 0.5 * spec.gradient_gap * across",
        "frank_wolfe",
    ),
    Patch(
        "the best vertex without noise", "mechanisms/gradient/frank_wolfe.py",
        "return law.release(vertices.take(chosen), step)",
        "return law.release(vertices.take(np.argmin(scores, axis=1)), step)", "frank_wolfe",
    ),
    Patch(
        "the choice among runs looks beyond the set", "mechanisms/combinators/high_probability.py",
        "Exponential(exponent, spec.variation, gap=spec.oscillation)",
        "Exponential(exponent, spec.variation / 8, gap=spec.oscillation / 8)", "high_probability",
    ),
    Patch(
        "a steeper law than the event", "mechanisms/sampling/regularized_exponential.py",
        "return draw(view, plan, target, stream)",
        "return draw(view, plan, replace(target, exponent=1.5 * target.exponent), stream)",
        "regularized_exponential",
    ),
    Patch(
        "half the stability of a kernel's minimiser", "mechanisms/shared/kernel_queries.py",
        "weight = spec.stability + 2.0 * spec.close", "weight = 0.3 * spec.stability",
        "kernel_release",
    ),
    Patch(
        "noisy predictions at half their sensitivity",
        "mechanisms/kernel/kernel_semi_interactive.py",
        "make_laplace(scale, moves.value, count",
        "make_laplace(scale, moves.value / 2.0, count", "kernel_semi_interactive",
    ),
    Patch(
        "coordinates of a session are not whitened", "mechanisms/kernel/kernel_release.py",
        "whitened = (value - float(along @ self._whitened)) / height",
        "whitened = value / height", "kernel sessions",
    ),
    Patch(
        "a session of sparse answers does not end", STREAMS, "self._made += far",
        "self._made += 0 * far", "kernel sessions",
    ),
    Patch(
        "queries of a session may be long", "mechanisms/kernel/kernel_interactive.py",
        "        dense = kernel_queries.check_queries(self._found.spec, rows)\n",
        "        dense = np.asarray(rows)\n", "kernel sessions",
    ),
)  # fmt: skip

DATA_AND_FILES = (
    # feature maps
    Patch(
        "the bandwidth is taken from the private records", KERNELS,
        "kernel, facts = cell.kernel, data.facts(cell.population)",
        "kernel, facts = cell.kernel, data.facts(cell.population)\n"
        "    if hasattr(kernel, 'gamma'):\n"
        "        kernel = replace(kernel, gamma=1.0 / float(np.asarray(data.x).std()))",
        "feature maps",
    ),
    Patch(
        "landmarks are training records", KERNELS, "map_choice.make_map(kernel, facts, wanted)",
        "map_choice.make_map(kernel, replace(facts, points=data.x), wanted)", "feature maps",
    ),
    Patch(
        "queries are training records", KERNELS, "map_choice.make_queries(kernel, facts, features)",
        "map_choice.make_queries(kernel, replace(facts, points=data.x), features)", "feature maps",
    ),
    Patch(
        "the public n is the private one", DATA, "n=self.n if n is None else n", "n=self.n",
        "feature maps",
    ),
    Patch(
        "features may be longer than their bound", "kernels/shared/feature_maps.py",
        "rows[over] *= ((1.0 - 1e-15) * bound / norms[over])[:, None]", "pass", "feature maps",
    ),
    # data preparation
    Patch(
        "columns are scaled by what occurs", PREPARE,
        "        x = column_rules.by_bounds(x, bounds, options.centred)\n",
        "        seen = np.stack([x.min(axis=0), x.max(axis=0) + 1.0], axis=1)\n"
        "        x = column_rules.by_bounds(x, seen, options.centred)\n", "preparation",
    ),
    Patch(
        "targets are not clipped", PREPARE, "(np.clip(y, low, high) - low)", "(y - low)",
        "preparation",
    ),
    Patch(
        "the constant comes after the row rule", PREPARE,
        "    if options.intercept:\n        x = row_rules.with_constant(x)\n"
        "    x = row_rules.bound_rows(x, options.rows, bound, options.order)\n",
        "    x = row_rules.bound_rows(x, options.rows, bound, options.order)\n"
        "    if options.intercept:\n        x = row_rules.with_constant(x)\n", "preparation",
    ),
    Patch(
        "long sparse rows are not shortened", "datasets/shared/row_rules.py",
        "np.where(chosen, scaled.data, x.data)", "x.data", "preparation",
    ),
    Patch(
        "a bound on entries passes for one on the norm", PREPARE,
        "row_bound=bound * (math.sqrt(x.shape[1]) if options.order == math.inf else 1.0)",
        "row_bound=bound", "preparation",
    ),
    Patch(
        "held-out points are trained on", PREPARE,
        "train, test = order[: n - held_out], order[n - held_out :]",
        "train, test = order, order[n - held_out :]", "preparation",
    ),
    Patch(
        "records are named after they were scaled", PREPARE,
        "    names = name_records(x, y)  # here, since from now on values are computed with\n"
        "    x, x_test, steps = _scale_columns(options, raw.bounds, x, x_test)\n",
        "    x, x_test, steps = _scale_columns(options, raw.bounds, x, x_test)\n"
        "    names = name_records(x, y)\n", "readers",
    ),
    Patch(
        "the width is the largest index that occurs", "datasets/shared/svmlight_reader.py",
        "x = sparse.csr_array(parts, shape=(entries.counts.size, n_features))",
        "x = sparse.csr_array(parts, shape=(entries.counts.size, int(columns.max())))", "readers",
    ),
    # runs
    Patch(
        "the seed is ignored", "runner/compose/cell_schema.py",
        '    if config["noise"] == "secure":\n',
        '    config = {**config, "seed": 0}\n    if config["noise"] == "secure":\n', "seeds",
    ),
    Patch(
        "trials have one seed", CELL, 'seed_sequence(seed, "noise", name, trial)',
        'seed_sequence(seed, "noise", name, 0)', "seeds",
    ),
    Patch(
        "noise does not hang on the data", CELL,
        "hash_facts([cell.identity(), named, *read])",
        "hash_facts([cell.identity(), *read])", "seeds",
    ),
    # model files
    Patch(
        "a model file holds the number of records", "runner/models/save_model.py",
        'row["noise_scale"], row["steps"], guarantee', 'row["noise_scale"], item.data.n, guarantee',
        "model files",
    ),
    Patch(
        "a model's row bound is measured", "runner/models/save_model.py",
        "row_bound=item.data.row_bound)\n",
        "row_bound=float(abs(item.data.x).max()))\n", "model files",
    ),
    Patch(
        "a model without a declared population is saved", "runner/models/publishable.py",
        'if relation == "add_remove" and population != spec.n:', "if False:", "model files",
    ),
    Patch(
        "held-out people are not named", "runner/models/publishable.py",
        "        if self.features.source != HELD_OUT:\n",
        "        if self.features.source == HELD_OUT:\n", "model files",
    ),
    # logs and ledgers
    Patch(
        "a release that is written over is forgotten", RELEASES,
        "if now[entry.cell] != entry.identity:", "if now[entry.cell] is None:", "logs",
    ),
    Patch(
        "sessions are not logged", RELEASES,
        "statement.has_fresh_noise(rows[0])", 'rows[0]["noise"] == "secure"', "logs",
    ),
    Patch(
        "all releases have one name", "results/ledger/release_log_lines.py",
        "return secrets.token_hex(_NAME_BYTES)", 'return "00" * _NAME_BYTES', "logs",
    ),
    Patch(
        "a ledger forgets what its log lost", "results/ledger/kept_ledger.py",
        "if same is None and has_fresh_noise(entry)", "if False", "logs",
    ),
    Patch(
        "the log is written anew", RELEASES, 'open(path, "ab"', 'open(path, "wb"', "logs",
    ),
    Patch(
        "the log keeps what was released", RELEASES,
        'if c.role in ("identity", "public")', "if c.role", "logs",
    ),
    Patch(
        "the record comes before the log", "results/records/store.py",
        "        self._log(cell, full)\n        write_atomically(path, encode(full, code), sync)\n",
        "        write_atomically(path, encode(full, code), sync)\n        self._log(cell, full)\n",
        "logs",
    ),
    Patch(
        "trials count as one release", "results/ledger/ledger.py",
        "[(cell.row, cell.trials) for cell in cells]", "[(cell.row, 1) for cell in cells]",
        "ledgers",
    ),
    Patch(
        "a total leaves add_remove out", "results/ledger/ledger.py",
        'counted = group if relation == "replace_one" else same', "counted = same", "ledgers",
    ),
    Patch(
        "the ledger holds the number of records", "results/ledger/ledger.py",
        '"n": None if row["population_source"] == "declared" else row["n"]', '"n": row["n"]',
        "ledgers",
    ),
    Patch(
        "repetitions cost nothing", BASE, "self.change_fields(count=self.count * times)", "self",
        "ledgers",
    ),
)  # fmt: skip

PATHS = (*LOOPS, *MECHANISMS, *DATA_AND_FILES)
