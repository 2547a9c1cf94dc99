"""Plausible bugs of feature maps, data preparation, model files and logs. As in ``patches``; the
checks are those of ``checks_files``, and of ``checks_paths`` for feature maps.
"""

from __future__ import annotations

from tests.mutants.patches import Patch

DATA_AND_FILES = (
    # feature maps
    Patch(
        "the bandwidth is taken from the private records", "kernel_cells._prepare",
        "features, queries = map_choice.make_map_and_queries(kernel, facts, wanted)",
        """\
if hasattr(kernel, 'gamma'):
    kernel = replace(kernel, gamma=1.0 / float(np.asarray(data.x).std()))
features, queries = map_choice.make_map_and_queries(kernel, facts, wanted)""",
        "feature maps",
    ),
    Patch(
        "landmarks are training records", "kernel_cells._prepare",
        "features, queries = map_choice.make_map_and_queries(kernel, facts, wanted)",
        """\
features = map_choice.make_map(kernel, replace(facts, points=data.x), wanted)
queries = map_choice.make_map_and_queries(kernel, facts, wanted)[1]""",
        "feature maps",
    ),
    Patch(
        "queries are training records", "kernel_cells._prepare",
        "features, queries = map_choice.make_map_and_queries(kernel, facts, wanted)",
        """\
features = map_choice.make_map_and_queries(kernel, facts, wanted)[0]
queries = map_choice.make_queries(kernel, replace(facts, points=data.x), features)""",
        "feature maps",
    ),
    Patch(
        "the public n is the private one", "data.Data.facts",
        "self.n if n is None else n",
        "self.n",
        "feature maps",
    ),
    Patch(
        "features may be longer than their bound", "feature_maps.shorten_rows",
        "rows[over] *= ((1.0 - 1e-15) * bound / norms[over])[:, None]",
        "pass", "feature maps",
    ),
    # data preparation
    Patch(
        "columns are scaled by what occurs", "row_pipeline._scale_columns",
        "x = scale(x, bounds)",
        """\
seen = np.stack([x.min(axis=0), x.max(axis=0) + 1.0], axis=1)
x = scale(x, seen)""", "preparation",
    ),
    Patch(
        "targets are not clipped", "row_pipeline._map_targets",
        "np.clip(y, low, high)",
        "y",
        "preparation",
    ),
    Patch(
        "the constant comes after the row rule", "row_pipeline._finish_rows",
        """\
if options.intercept:
    x = row_rules.with_constant(x)
    in_place = True
x = row_rules.bound_rows(x, options.rows, bound, options.order, in_place=in_place)""",
        """\
x = row_rules.bound_rows(x, options.rows, bound, options.order, in_place=in_place)
if options.intercept:
    x = row_rules.with_constant(x)""", "preparation",
    ),
    Patch(
        "long sparse rows are not shortened", "row_rules._bound_block",
        "np.where(chosen, scaled.data, x.data)",
        "x.data", "preparation",
    ),
    Patch(
        "a bound on entries passes for one on the norm", "row_pipeline.prepare",
        "bound * (math.sqrt(x.shape[1]) if options.order == math.inf else 1.0)",
        "bound", "preparation",
    ),
    Patch(
        "held-out points are trained on", "row_pipeline._split",
        "order[:n - held_out]",
        "order", "preparation",
    ),
    Patch(
        "records are named after they were scaled", "row_pipeline.prepare",
        """\
names = name_records(x, y)
x, x_test, steps = _change_rows(options, raw.bounds, bound, x, x_test, in_place)""",
        """\
x, x_test, steps = _change_rows(options, raw.bounds, bound, x, x_test, in_place)
names = name_records(x, y)""", "readers",
    ),
    Patch(
        "the width is the largest index that occurs", "svmlight_reader._matrix",
        "(entries.counts.size, n_features)",
        "(entries.counts.size, int(columns.max()))", "readers",
    ),
    # runs
    Patch(
        "the seed is ignored", "cell_schema.build_cell",
        """\
if config['noise'] == 'secure':
    config = {key: value for key, value in config.items() if key != 'seed'}""",
        """\
config = {**config, 'seed': 0}
if config['noise'] == 'secure':
    config = {key: value for key, value in config.items() if key != 'seed'}""", "seeds",
    ),
    Patch(
        "trials have one seed", "run_cell.open_release",
        "seed_sequence(seed, 'noise', name, trial)",
        "seed_sequence(seed, 'noise', name, 0)", "seeds",
    ),
    Patch(
        "noise does not hang on the data", "prepared_cell.prepare",
        "[cell.identity(), named, *read]",
        "[cell.identity(), *read]", "seeds",
    ),
    # model files
    Patch(
        "a model file holds the number of records", "save_model.publishable",
        "row['steps']",
        "item.data.n",
        "model files",
    ),
    Patch(
        "a model's row bound is measured", "save_model.schema_of",
        "item.data.row_bound",
        "float(abs(item.data.x).max())", "model files",
    ),
    Patch(
        "a model without a declared population is saved", "publishable.Publishable.of",
        "relation == 'add_remove' and population != spec.n",
        "False", "model files",
    ),
    Patch(
        "held-out people are not named", "publishable.Publishable.published_inputs",
        "self.features.source != HELD_OUT",
        "self.features.source == HELD_OUT", "model files",
    ),
    # logs and ledgers
    Patch(
        "a release that is written over is forgotten", "release_log.list_unrecorded",
        "now[entry.cell] != entry.identity",
        "now[entry.cell] is None", "logs",
    ),
    Patch(
        "sessions are not logged", "release_log.has_fresh_noise",
        "statement.has_fresh_noise(rows[0])",
        "rows[0]['noise'] == 'secure'", "logs",
    ),
    Patch(
        "all releases have one name", "release_log_lines.new_name",
        "secrets.token_hex(_NAME_BYTES)",
        "'00' * _NAME_BYTES", "logs",
    ),
    Patch(
        "a ledger forgets what its log lost", "kept_ledger._find_lost",
        "same is None and has_fresh_noise(entry)",
        "False", "logs",
    ),
    Patch(
        "the log is written anew", "core.files.append_durably",
        "open(path, 'ab', buffering=0)",
        "open(path, 'wb', buffering=0)", "logs",
    ),
    Patch(
        "the log keeps what was released", "release_log._LOGGED_COLUMNS",
        "c.role in ('identity', 'public')",
        "c.role", "logs",
    ),
    Patch(
        "the record comes before the log", "store.Store.write",
        """\
self._log(cell, full)
data = encode(full, code)
write_atomically(path, data, sync)""",
        """\
data = encode(full, code)
write_atomically(path, data, sync)
self._log(cell, full)""",
        "logs",
    ),
    Patch(
        "trials count as one release", "ledger._total",
        "(cell.row, cell.trials)",
        "(cell.row, 1)",
        "ledgers",
    ),
    Patch(
        "a total leaves add_remove out", "ledger._totals",
        "group if relation == 'replace_one' else same",
        "same", "ledgers",
    ),
    Patch(
        "the ledger holds the number of records", "ledger._release",
        "None if row['population_source'] == 'declared' else row['n']",
        "row['n']",
        "ledgers",
    ),
    Patch(
        "repetitions cost nothing", "base.Event.repeat",
        "self.change_fields(count=self.count * times)",
        "self",
        "ledgers",
    ),
)  # fmt: skip
