"""Thirty faults that break a stated guarantee, and ten edits that change code but no law.

They measure what an audit finds by itself: ``dperm audit`` is run on a copy of the package with one
of them in it. So none is in the audit, in a test or in what is only printed, and none says which
check should catch it. A fault is one edit of one symbol, as ``edits`` describes it.

The copy must be one of the whole package. A loop takes in the loops it calls when it is compiled,
so that a module put in front of the others leaves their old machine code in use.
"""

from __future__ import annotations

from typing import NamedTuple


class Planted(NamedTuple):
    """One edit.

    Attributes
    ----------
    name : what was done.
    symbol, old, new : where the edit is, what is replaced there, and by what.
    why : why it breaks privacy, and which runs it touches; of a harmless edit, why it breaks none.
    run : arguments after ``dperm`` of a small case that goes through the edited lines.
        ``{svmlight}`` is a file of sparse records with labels -1 and 1, ``{rows}`` one of queries.
    """

    name: str
    symbol: str
    old: str
    new: str
    why: str
    run: tuple[str, ...]


# small problems; the first has more columns than twice its records
WIDE = ("dataset=synthetic_logistic", "dataset.n=6", "dataset.p=40", "dataset.n_test=10")
FEW = ("dataset=synthetic_logistic", "dataset.n=60", "dataset.p=4", "dataset.n_test=40")
PLANE = ("dataset=synthetic_logistic", "dataset.n=60", "dataset.p=2", "dataset.n_test=40")
SPARSE = ("dataset=sparse_linear", "dataset.n=50", "dataset.p=40", "dataset.signal=5")
SQUARES = ("dataset=diabetes",)
KERNEL = (*FEW, "kernel=rbf", "ridge=0.1", "kernel.queries=10")
ADD_REMOVE = "privacy.relation=add_remove"

FAULTS = (
    # --- descent with noise on all records
    Planted(
        "points are made of the records' span alone", "row_span.RowSpanView.out",
        """\
away = self._noise.draw_direction(self.frame)
length = np.linalg.norm(theta[:, self._n:], axis=1)
inside = reduced_sgd.map_each(theta[:, :self._n], self.frame.basis.T)
return inside + length[:, None] * away""",
        "return reduced_sgd.map_each(theta[:, :self._n], self.frame.basis.T)",
        "What is released lies in the span of the rows, so that a record outside of the span of the"
        " others is seen at once; noisy_gd on the ball with p > 2 (n + T).",
        ("run", *WIDE, "mechanism=noisy_gd", "mechanism.steps=8"),
    ),
    Planted(
        "gradients are taken beyond the set", "noisy_gd.descend",
        "project(moved + momentum * (moved - theta))",
        "moved + momentum * (moved - theta)",
        "Momentum carries a query out of the set, where a squared loss is steeper than the constant"
        " that the noise is for; noisy_gd with momentum, several steps, a loss whose slope grows.",
        ("run", *SQUARES, "constraint.radius=0.5", "mechanism=noisy_gd", "mechanism.steps=20",
         "mechanism.step_size=0.01"),
    ),
    Planted(
        "the step's own length is the unit of its noise", "newton._step_by_hidden_matrix.move",
        "return longest * noise.add(found / longest, step)",
        """\
length = np.maximum(np.linalg.norm(found, axis=1)[:, None], 1e-12)
return length * noise.add(found / length, step)""",
        "How large the noise is follows from the records and shows them, the more so the more"
        " noise there is; newton with curvature=direction, worst at small epsilon and where"
        " mechanism.strength is set to little more than one record's curvature.",
        ("run", *FEW, "mechanism=newton", "mechanism.curvature=direction", "mechanism.steps=3",
         "mechanism.strength=0.25", "epsilon=0.1"),
    ),
    # --- compiled loops
    Planted(
        "both halves of a step have the same noise", "sgd._move",
        "_move_part(rule, eta, theta, t + pairs, p - pairs, weight, x, r + pairs, right, m)",
        "_move_part(rule, eta, theta, t + pairs, p - pairs, weight, x, r + pairs, left, m)",
        "The difference of two coordinates has no noise at all; every compiled noisy_sgd with p > 1"
        " and no lasso, outside of the loop for few rows.",
        ("run", *FEW, "mechanism=noisy_sgd", "mechanism.steps=200"),
    ),
    Planted(
        "columns without an entry stay where they are", "sgd._block_of_batches",
        "_move(rule, eta, theta, c, 1.0, g, 0, left, right, s * pairs)",
        """\
if has_csr:
    for k in range(g.shape[1]):
        if g[0, k] != 0.0:
            at = s * pairs + (k if k < pairs else k - pairs)
            noise = left[c, at] if k < pairs else right[c, at]
            value = rule.factor * g[0, k] + rule.decay * theta[c, k]
            theta[c, k] -= eta * (value + rule.noise_scale * noise)
else:
    _move(rule, eta, theta, c, 1.0, g, 0, left, right, s * pairs)""",
        "A coordinate that is still zero says that no record drawn has an entry there; compiled"
        " noisy_sgd on sparse rows without a lasso.",
        ("run", *SPARSE, "loss=linear", "mechanism=noisy_sgd", "mechanism.steps=200"),
    ),
    Planted(
        "a step without records is left out", "reduced_sgd._walk",
        """\
for k in range(n):
    g[k] = 0.0""",
        """\
if size == 0:
    continue
for k in range(n):
    g[k] = 0.0""",
        "Noise is missing where the batch is empty, so that all the noise seen is of steps that may"
        " hold the record, at a higher rate than was accounted for; noisy_sgd with"
        " sampling=poisson on the ball with p > 2 (n + 1).",
        ("run", *WIDE, "mechanism=noisy_sgd", "mechanism.sampling=poisson"),
    ),
    # --- laws of noise
    Planted(
        "one thinning too few for a normal", "exact_noise._normal",
        "range(k + 1)",
        "range(k)",
        "The density has steps at the whole numbers, where a small move of the value changes it by"
        " a factor e^(1/2); Gaussian noise=secure.",
        ("run", *FEW, "mechanism=noisy_gd", "mechanism.steps=3", "noise=secure"),
    ),
    Planted(
        "words of a generator with a known state", "secure_noise.system_words",
        "np.frombuffer(os.urandom(8 * count), dtype='<u8').astype(np.uint64)",
        "np.random.default_rng(2024).integers(0, 2 ** 64, count, dtype=np.uint64)",
        "Everybody can draw the same noise and take it off, and all steps share it; every release"
        " with noise=secure, of local channels as well.",
        ("run", *FEW, "mechanism=noisy_gd", "mechanism.steps=3", "noise=secure"),
    ),
    Planted(
        "the norm of a vector is one exponential", "exponential_noise._gamma_norms",
        "radius += draw_exponential(key0, key1, step, block, first)",
        "radius = draw_exponential(key0, key1, step, block, first)",
        "The norm has the law for one coordinate, so that the density has a pole at the value and"
        " no factor bounds it; Gamma norms with p > 1: output_perturbation, one_pass_sgd and"
        " objective perturbation at delta = 0.",
        ("run", *FEW, "mechanism=output_perturbation", "ridge=0.1", "delta=0"),
    ),
    Planted(
        "half of the quadratic term", "base.Target.ridge",
        "self.exponent * self.spec.n * self.spec.ridge + self.kappa",
        "self.exponent * self.spec.n * self.spec.ridge + 0.5 * self.kappa",
        "The law that is drawn from is half as convex as the one that was accounted for, which has"
        " kappa / 2 already; regularized_exponential with kappa > 0.",
        ("run", *PLANE, "mechanism=regularized_exponential"),
    ),
    # --- local channels
    Planted(
        "another corner may be the same one", "local_channels._corner",
        "1 if at >= place else 0",
        "1 if at > place else 0",
        "A corner is skipped that should have some chance, so that an answer occurs under one input"
        " and never under another; the l_1 channel in two dimensions or more.",
        ("run", *FEW, "mechanism=local_sgd", "privacy=local"),
    ),
    Planted(
        "a device has the same coins for all its answers", "local_learning._advance",
        "np.uint64(t)",
        "np.uint64(i)",
        "Two answers of a user are turned round together or not at all, so that whether they agree"
        " shows the record; compiled local_sgd and local_mirror_descent with answers > 1.",
        ("run", *FEW, "mechanism=local_sgd", "privacy=local", "mechanism.answers=3"),
    ),
    # --- accounting
    Planted(
        "one record's norm for every kind of batch", "sums.SampledGaussian.loss",
        "self.record_norm / self.scale if self.sampling == 'poisson' else whole",
        "self.record_norm / self.scale",
        "A replaced record in a batch of fixed size moves the sum by two norms, and noise is for"
        " one; noisy_sgd with sampling=fixed.",
        ("run", *FEW, "mechanism=noisy_sgd", "mechanism.steps=200"),
    ),
    Planted(
        "a sign in the weight of the Laplace atoms", "bounded_laws.laplace",
        "1.0 + math.exp(-distance)",
        "1.0 - math.exp(-distance)",
        "Laplace steps are composed nearly as steps of half their range, so that there is too"
        " little noise; Laplace and Gamma-norm noise in several steps at delta > 0, as of the"
        " kernel mechanisms.",
        ("run", *KERNEL, "mechanism=kernel_semi_interactive", "mechanism.queries=8"),
    ),
    Planted(
        "a Hessian of many classes has rank one", "multinomial.Multinomial.hessian_rank",
        "bounds.classes - 1",
        "1",
        "The Jacobian has a factor for each class but one and one is accounted for, and Gaussian"
        " noise is taken where its proof fails; objective and approximate minima perturbation with"
        " loss=multinomial, worst where mechanism.strength is small.",
        ("run", "dataset=digits", "dataset.contrast=classes", "dataset.test_fraction=0.95",
         "mechanism=objective_perturbation", "delta=0", "epsilon=3", "mechanism.strength=0.1"),
    ),
    Planted(
        "half of the curvature at a rounded kink", "huber.RoundedPart.smoothness",
        "2.0 * self.width",
        "4.0 * self.width",
        "The Jacobian and curvature are those of a kink that is rounded twice as wide; huberized,"
        " and objective perturbation and newton on the huberized hinge.",
        ("run", *FEW, "loss=hinge", "mechanism=huberized"),
    ),
    Planted(
        "the best of the runs is chosen at twice its price",
        "high_probability._law",
        "spec.oscillation",
        "spec.variation",
        "Two records' losses differ by twice what one's varies, and the choice is charged for one;"
        " high_probability under replace_one.",
        ("run", *FEW, "mechanism=high_probability", "mechanism.inner.steps=5"),
    ),
    # --- sensitivities
    Planted(
        "the largest slope forgets how long rows are", "margin_loss.Glm.lipschitz_norm",
        "bounds.row * bounds.radius",
        "bounds.radius",
        "Margins reach the row bound times the radius, where slopes are larger than what the noise"
        " is for; squared and logistic losses with a row bound above 1, in all mechanisms that use"
        " a Lipschitz constant.",
        ("run", *SQUARES, "dataset.row_bound=12", "mechanism=mirror_descent",
         "constraint=l1_ball", "mechanism.steps=5"),
    ),
    Planted(
        "a square is least at an end of its range", "squared.Squared.span",
        "2.0 * margin * target if margin <= target else 0.5 * (margin + target) ** 2",
        "2.0 * margin * target",
        "Where margins pass the target the least loss is 0 and not that at the end, so that the"
        " exponent is too large; exponential and high_probability on the squared loss with row"
        " bound times radius above 1.",
        ("run", *SQUARES, "dataset.row_bound=12", "mechanism=high_probability",
         "mechanism.inner.steps=5"),
    ),
    Planted(
        "bounded entries pass for bounded rows", "row_pipeline.prepare",
        "bound * (math.sqrt(x.shape[1]) if options.order == math.inf else 1.0)",
        "bound",
        "Rows whose entries are at most b are as long as b sqrt(p), and noise is for b; every"
        " mechanism with dataset.norm=inf.",
        ("run", "dataset=diabetes", "dataset.norm=inf", "mechanism=noisy_gd",
         "mechanism.steps=5"),
    ),
    # --- what is public
    Planted(
        "entries are as large as the largest one", "data.Data.facts",
        "self.entry_bound",
        "self.entry_bound if self.entry_bound or not isinstance(self.x, np.ndarray) else "
        "float(np.abs(self.x).max())",
        "The largest entry of the records decides on steps and noise, which are printed; plans of"
        " frank_wolfe on the L1 ball and the simplex, dense rows.",
        ("run", *FEW, "mechanism=frank_wolfe", "constraint=l1_ball"),
    ),
    Planted(
        "the kernel's own minimiser for a declared population", "run_cell.open_release",
        "prepared.kernel if cell.population is None else None",
        "prepared.kernel",
        "That problem has the private number of records in its ridge, so that its minimiser moves"
        " by population / n times what the noise is for; output_perturbation and random_features on"
        " a kernel under add_remove with a declared population.",
        ("run", *FEW, "kernel=rbf", "kernel.features=fourier", "kernel.size=10", "ridge=0.1",
         "mechanism=output_perturbation", ADD_REMOVE, "privacy.population=1000"),
    ),
    Planted(
        "sums over rows from where each begins", "row_rules._row_sums",
        "sums[filled] = np.add.reduceat(values, x.indptr[filled])",
        "sums[:] = np.add.reduceat(values, x.indptr[:-1])",
        "A last record without entries begins past the end, and the run dies of it: one record"
        " decides whether anything is released; sparse files.",
        ("run", "dataset=svmlight", "dataset.path={svmlight}", "dataset.n_features=5",
         "mechanism=noisy_gd", "mechanism.steps=3"),
    ),
    # --- batches by content
    Planted(
        "the mean over a batch as it came out", "one_pass_sgd.OnePassSgd.release",
        "spec.n / batches if by_content else len(part)",
        "max(len(part), 1)",
        "Noise is divided by the private number of records of the batch, so that its scale shows"
        " it, and without delta no factor bounds that; one_pass_sgd under add_remove.",
        ("run", *FEW, "mechanism=one_pass_sgd", "mechanism.batches=20", ADD_REMOVE),
    ),
    Planted(
        "batches of equal size in the order of names", "central.CentralView.parts",
        """\
batch = batch_of(data.names[records], batches)
order = np.argsort(batch, kind='stable')
ends = np.searchsorted(batch[order], np.arange(1, batches))
return np.split(records[order], ends)""",
        """\
order = np.argsort(data.names[records], kind='stable')
return np.array_split(records[order], batches)""",
        "A record that comes or goes moves others across the ends of batches, and up to two sums"
        " for each batch move where one was accounted for; one_pass_sgd under add_remove.",
        ("run", *FEW, "mechanism=one_pass_sgd", "mechanism.batches=20", ADD_REMOVE),
    ),
    # --- combinators
    Planted(
        "the second stage begins with the first stream again", "gate._OneTrial.__init__",
        "whole._streams",
        "0",
        "Both stages have the same normal numbers, which a step of the right length cancels;"
        " localization with inner mechanisms that run trial by trial, where the minimiser is far"
        " from the middle of the set.",
        ("run", *FEW, "mechanism=localization", "ridge=0.1", "mechanism.inner.steps=1"),
    ),
    Planted(
        "rows are shortened before they are projected", "central.CentralView.map_rows",
        "clip_rows(rows(self._problem.data.x), row_bound)",
        "rows(clip_rows(self._problem.data.x, row_bound))",
        "A projection may make a row longer than the bound that the noise is for, and nothing"
        " shortens it after that; projected and standard_projection.",
        ("run", *WIDE, "mechanism=projected", "mechanism.inner=noisy_gd", "mechanism.m=3"),
    ),
    Planted(
        "what the solver found is near enough", "streams.PerturbedStream.find",
        "paid.add(found, step)",
        "found",
        "A solver's point is anywhere within a distance that grows with the set, and the noise that"
        " pays for it is left off; objective and approximate minima perturbation, worst on sets as"
        " wide as 1e12.",
        ("run", *FEW, "mechanism=objective_perturbation", "constraint.radius=1e12", "ridge=1",
         "delta=0"),
    ),
    # --- answers of a kernel's minimiser
    Planted(
        "an answer is the value and what is new of the noise",
        "kernel_release.ReleaseSession._answer_new_query",
        "float(along @ self._noisy[:-1]) + height * noisy",
        "value + height * (noisy - whitened)",
        "A query near an earlier one has hardly any noise of its own left, and its answer is the"
        " value itself; sessions of kernel_release.",
        ("ask", *KERNEL, "mechanism=kernel_release", "mechanism.queries=20", "{rows}"),
    ),
    Planted(
        "the value is tested and its noisy copy shown", "streams.SparseStream.answer",
        "drawn[:, 0] - known",
        "column[:, 0] - known",
        "Whether a query makes an update follows from the records without any noise;"
        " kernel_interactive, its sessions, and kernel_semi_interactive with"
        " perturbation=interactive.",
        ("run", *KERNEL, "mechanism=kernel_interactive", "mechanism.updates=5",
         "mechanism.threshold=1"),
    ),
)  # fmt: skip

HARMLESS = (
    Planted(
        "a local variable has another name", "noisy_minimiser.release_minimiser",
        """\
noisy = noise.add(np.tile(found, (gate.trials, 1)), 0)
return view.spec.constraint.project(noisy)""",
        """\
released = noise.add(np.tile(found, (gate.trials, 1)), 0)
return view.spec.constraint.project(released)""",
        "The same calls with the same values.",
        ("run", *FEW, "mechanism=output_perturbation", "ridge=0.1"),
    ),
    Planted(
        "the noise comes first in a sum of two", "streams.KeyedNoise.add",
        "value + scale * noise",
        "scale * noise + value",
        "A sum of two numbers is rounded alike in either order.",
        ("run", *FEW, "mechanism=noisy_gd", "mechanism.steps=5"),
    ),
    Planted(
        "half over the width", "huber.RoundedPart.smoothness",
        "1.0 / (2.0 * self.width)",
        "0.5 / self.width",
        "Dividing by two is exact, before a quotient as after it.",
        ("run", *FEW, "loss=hinge", "mechanism=huberized"),
    ),
    Planted(
        "longer runs between looks at the keyboard", "reduced_sgd._CHUNK",
        "14",
        "16",
        "Noise and batches are numbered by step, wherever a run is cut.",
        ("run", *WIDE, "dataset.n=18", "dataset.p=80", "mechanism=noisy_sgd",
         "mechanism.steps=20000"),
    ),
    Planted(
        "fewer chains side by side", "sgd._LANES",
        "16",
        "4",
        "A chain follows from its own keys and not from its neighbours.",
        ("run", *FEW, "mechanism=noisy_sgd", "mechanism.steps=200"),
    ),
    Planted(
        "larger blocks of uniform numbers", "central._FIRST_BLOCK",
        "(64, 4096)",
        "(256, 16384)",
        "A number follows from its place in the stream and not from the block it is taken with.",
        ("run", *PLANE, "mechanism=exponential"),
    ),
    Planted(
        "a distance is kept once it is known", "kernel_problem.KernelSpec.target_distance",
        "property", "cached_property",
        "It follows from fields that never change.",
        ("run", *KERNEL, "mechanism=kernel_release"),
    ),
    Planted(
        "the streams of both noises are asked for the other way round",
        "perturbed_objective._noisy_minimiser",
        """\
noise = gate.stream(planned.event, view.spec.p)
paid = gate.stream(planned.second, view.spec.p)""",
        """\
paid = gate.stream(planned.second, view.spec.p)
noise = gate.stream(planned.event, view.spec.p)""",
        "Each event has a stream of its own as before: other numbers of the same law.",
        ("run", *FEW, "mechanism=objective_perturbation"),
    ),
    Planted(
        "batches by place from one sort and no loop", "central.CentralView.parts",
        "return [np.arange(start, data.n, batches) for start in range(batches)]",
        """\
place = np.arange(data.n) % batches
ends = np.cumsum(np.bincount(place, minlength=batches))[:-1]
return np.split(np.argsort(place, kind='stable'), ends)""",
        "The same records in the same batches, in the same order.",
        ("run", *FEW, "mechanism=one_pass_sgd", "mechanism.batches=20"),
    ),
    Planted(
        "the largest modulus from both ends of a row", "row_rules._row_peaks",
        "np.max(np.abs(x), axis=1, initial=0.0)",
        "np.maximum(x.max(axis=1, initial=0.0), -x.min(axis=1, initial=0.0))",
        "The largest modulus is the largest of the largest entry and of minus the least one.",
        ("run", *SQUARES, "mechanism=noisy_gd", "mechanism.steps=5"),
    ),
)  # fmt: skip
