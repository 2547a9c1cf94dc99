"""Draw random cases for the fuzzer: a configuration, a data file and its neighbour."""

from __future__ import annotations

import dataclasses
import functools
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from dperm_cli.audit.hard_pairs import Records
from dperm_cli.core import registry
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.seeds import generator, seed_sequence

_TABLES = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text("utf-8"))
_LAST = 99  # of the places of losses and sets that are drawn from
MODEL = "model.npz"  # save=
READERS = ("csv", "npz", "svmlight", "parquet")
MODES = ("replace_one", "declared", "auto")  # the relation, and where the population is from
# What happens to the record in which the two files differ.
CHANGES = ("zeros", "extremes", "duplicate", "last of a class", "opposite", "missing")
NEED_SMOOTH = (
    "objective_perturbation", "approximate_minima_perturbation", "frank_wolfe", "newton",
)  # fmt: skip
PROJECTED = {"projected", "standard_projection"}
SPLITTING = ("batches", "m")  # without them few records are one batch, and nothing is projected
STEPS = (1, 4, 10)
FEW, MANY = (1, 2, 3, 5, 8, 12, 20), (4095, 4096, 4097)
# For many records: a pass over them takes no time.
QUICK = ("noisy_gd", "output_perturbation", "one_pass_sgd", "newton", "mirror_descent")
HELD_OUT = 6  # public rows in a file of their own
ROW_BOUNDS = (0.3, 1.0, 12.0, 100.0)


@dataclass(frozen=True)
class Target:
    """A mechanism, the names of those inside it from the outside in, and a mode."""

    chain: tuple[str, ...]
    mode: str


@dataclass(frozen=True)
class Draw:
    """One draw of the fuzzer.

    ``words`` are the arguments of ``dperm run``; ``first`` and ``second`` the records of the two
    files, which differ in record ``index``; ``held_out`` is the same public file beside both, or
    None; ``split`` says that a part of the records is held out instead. Of files of different
    lengths that is not the same part, and no neighbours train.
    """

    number: int
    target: Target
    words: tuple[str, ...]
    reader: str
    first: Records
    second: Records
    index: int
    held_out: Records | None
    split: bool

    @property
    def drops_record(self) -> bool:
        """Whether the second file has not got the record."""
        return self.target.mode == "declared"

    def write(self, folder: Path) -> tuple[Path, Path]:
        """The two folders with the data files."""
        places = folder / "first", folder / "second"
        for place, records in zip(places, (self.first, self.second), strict=True):
            place.mkdir(parents=True)
            records.write(place / f"records.{self.reader}")
            if self.held_out is not None:
                self.held_out.write(place / f"public.{self.reader}")
        return places


@functools.cache
def targets() -> tuple[Target, ...]:
    """Every mechanism that promises something, with every inner one, in every mode it may have."""
    chains = []
    for name in registry.list_protective():
        has_inner = "inner" in _fields(name)
        chains += [(name, one) for one in _TABLES["inner"]] if has_inner else [(name,)]
    chains += [(*outer, "noisy_gd") for outer in _TABLES["nested"]]
    return tuple(
        Target(chain, mode)
        for chain in chains
        for mode in MODES
        if all(_relation(mode) in registry.load("mechanism", n).relations for n in chain)
    )


def draw(seed: int, number: int, mechanism: str = "all") -> Draw:
    """Draw ``number`` of a seed: each pass over the targets takes them in an order of its own."""
    every = [t for t in targets() if mechanism in ("all", t.chain[0])]
    turn, place = divmod(number, len(every))
    order = generator(seed_sequence(seed, "fuzz", "order", turn)).permutation(len(every))
    target = every[int(order[place])]
    return _Drawing(generator(seed_sequence(seed, "fuzz", "draw", number))).draw(number, target)


def _relation(mode: str) -> str:
    return "replace_one" if mode == "replace_one" else "add_remove"


class _Drawing:
    """The choices of one draw, in a fixed order.

    Most draws are configurations that a mechanism supports. One in eight (``_wild``) may be any
    configuration, since a refusal must depend on public facts alone too.
    """

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self._wild = self._chance(0.125)

    def draw(self, number: int, target: Target) -> Draw:
        head = registry.load("mechanism", target.chain[0])
        local = head.guarantees == ("local",)
        points = head.space == "kernel" or head.features is not None
        mapped = not points and not local and self._chance(0.1)
        kernel = points or mapped
        task = self._task(target, kernel)
        delta = self._delta(target.chain, local)
        reader = self._one(READERS)
        n, p = self._sizes(target)
        n = max(n, 2) if target.mode == "declared" else n
        split = target.mode != "auto" and not points and self._chance(0.2)
        first, second, index = self._pair(n, p, task, target.mode, reader, split)
        held_out, words = self._draw_held_out(p, task, reader, kernel, split)
        words += self._dataset(task, reader, p, target.mode)
        words += self._mechanism(target, n, delta)
        words += self._problem(target, task, kernel, delta)
        words += self._privacy(target.mode, n, delta)
        words += self._noise(target.chain) + self._study(task, target.mode)
        return Draw(number, target, tuple(words), reader, first, second, index, held_out, split)

    def _one(self, choices: Any) -> Any:
        return choices[int(self._rng.integers(len(choices)))]

    def _chance(self, share: float) -> bool:
        return bool(self._rng.random() < share)

    def _power(self, low: float, high: float) -> float:
        """Ten to a uniform power, with two digits."""
        return float(f"{10.0 ** self._rng.uniform(low, high):.2g}")

    def _task(self, target: Target, kernel: bool) -> str:
        tasks = ["binary", "binary", "binary", "regression"]
        margins = kernel or (PROJECTED | {"huberized"}) & set(target.chain)
        if not margins or (self._wild and not kernel):
            tasks += ["multiclass"] + (["location"] if target.mode == "replace_one" else [])
        return self._one(tasks)

    def _delta(self, chain: tuple[str, ...], local: bool) -> str:
        pure = all("pure" in registry.load("mechanism", name).guarantees for name in chain)
        choices = ("auto", "1e-6", "0") if pure or self._wild else ("auto", "1e-6")
        return "0" if local else self._one(choices)

    def _sizes(self, target: Target) -> tuple[int, int]:
        """(n, p): few records, or about 4096; few columns, or more than twice the records."""
        if target.chain[-1] in QUICK and len(target.chain) == 1 and self._chance(0.1):
            return self._one(MANY), self._one((1, 2, 3))
        n = self._one(FEW)
        if "one_pass_sgd" in target.chain and not self._wild:
            n = max(n, 5)  # records that can be in another batch
        if self._chance(0.15):
            return n, 2 * n + self._one((1, 8))
        # something to project, and else fewer
        return n, self._one((3, 5) if PROJECTED & set(target.chain) else (1, 2, 3, 5))

    def _pair(
        self, n: int, p: int, task: str, mode: str, reader: str, split: bool
    ) -> tuple[Records, Records, int]:
        """Two files that differ in one training record, and its place."""
        rng = self._rng
        x = rng.standard_normal((n, p)) * self._power(-1.0, 1.0)
        x[rng.random((n, p)) < 0.3] = 0.0
        index = int(rng.integers(n))
        if split and mode == "replace_one":
            index = _pick_trained(n, index)
        first, second = self._change_record(Records(x, _labels(rng, n, task)), index, task, reader)
        if mode == "replace_one":
            return first, second, index
        first = self._one((first, second))
        if mode == "auto":  # the n of the formulas stays: nothing in the record's place
            return first, first.replace(index, (np.zeros(p), first.y[index])), index
        return first, first.drop(index), index

    def _change_record(
        self, records: Records, index: int, task: str, reader: str
    ) -> tuple[Records, Records]:
        """The records, and the same with another one in this place."""
        x, y, rng = records.x, records.y, self._rng
        row, label = x[index], y[index]
        change = self._one(CHANGES if reader == "svmlight" else CHANGES[:-1])
        if change == "last of a class" and task in ("binary", "multiclass"):
            # all of one class but this record, and then all
            after = Records(x, np.full(len(y), label))
            other = -label if task == "binary" else (label + 1) % 3
            return after.replace(index, (row, other)), after
        if change in ("zeros", "missing"):
            row = np.zeros(len(row))
        elif change == "extremes":
            sizes = (1e300, -1e300, 1e-300, -1e-300, 5e-324, 1e16, -1e16)
            row = rng.choice(sizes, len(row))
        elif change == "duplicate":
            same = int(rng.integers(len(y)))
            row, label = x[same], y[same]
        elif change == "opposite":
            row = -row
        else:
            label = -label
        return records, records.replace(index, (row, label))

    def _draw_held_out(
        self, p: int, task: str, reader: str, kernel: bool, split: bool
    ) -> tuple[Records | None, list[str]]:
        """Public rows in a file, a part of the records, or none."""
        if split:
            return None, ["dataset.test_fraction=0.25"]
        if not kernel and self._chance(0.7):
            return None, ["dataset.test_fraction=0"]
        x = self._rng.standard_normal((HELD_OUT, p))
        words = [f"dataset.test_path=public.{reader}"]
        return Records(x, _labels(self._rng, HELD_OUT, task)), words

    def _dataset(self, task: str, reader: str, p: int, mode: str) -> list[str]:
        words = [f"dataset={reader}", f"dataset.path=records.{reader}", f"dataset.task={task}"]
        words += ["dataset.header=false"] if reader == "csv" else []
        if reader == "svmlight":
            words += [
                f"dataset.n_features={p}",
                f"dataset.storage={self._one(('sparse', 'dense'))}",
            ]
        words += ["dataset.labels=[0, 1, 2]"] if task == "multiclass" else []
        words += ["dataset.target_bounds=[-1, 1]"] if task == "regression" else []
        words += [f"dataset.rows={self._one(('unit', 'clip'))}"]
        words += [f"dataset.row_bound={self._one(ROW_BOUNDS):g}"] if self._chance(0.5) else []
        # in place of a record that goes stands a row of zeros, and no constant
        one = mode != "auto" and task != "location" and self._chance(0.2)
        return [*words, f"dataset.intercept={str(one).lower()}"]

    def _mechanism(self, target: Target, n: int, delta: str) -> list[str]:
        words, prefix = [f"mechanism={target.chain[0]}"], "mechanism"
        for depth, name in enumerate(target.chain):
            if depth:
                prefix += ".inner"
                words.append(f"{prefix}={name}")
            for key, values in _TABLES["keys"].get(name, {}).items():
                if self._chance(0.9 if key in SPLITTING else 0.4):
                    words += self._key(f"{prefix}.{key}", self._one(values), target.mode, delta)
            if "steps" in _fields(name):
                words.append(f"{prefix}.steps={self._one(STEPS)}")
            if name == "noisy_sgd":
                words += self._batch(words, f"{prefix}.", n, target.mode)
        if any("sampler" in _fields(name) for name in target.chain):
            words.append("sampler.most_seconds=1")
        return words

    def _batch(self, words: list[str], prefix: str, n: int, mode: str) -> list[str]:
        found = [f"{prefix}batch=2"] if n > 2 and self._chance(0.3) else []
        sampled = any(word.startswith(f"{prefix}sampling") for word in words)
        if mode != "replace_one" and not sampled and not self._wild:
            found.append(f"{prefix}sampling=poisson")
        return found

    def _key(self, key: str, value: Any, mode: str, delta: str) -> list[str]:
        """The key with this value, where it goes with relation and delta."""
        clash = value == "gaussian" and key.endswith(".noise") and delta == "0"
        clash = clash or (value == "fixed" and mode != "replace_one")
        return [] if clash and not self._wild else [f"{key}={value}"]

    def _loss(self, target: Target, task: str, kernel: bool) -> str:
        named = {
            name: registry.load("loss", name)() for name in registry.list_audited("loss", _LAST)
        }
        if kernel:
            fitting = [
                n for n, one in named.items() if one.radial_slope_bound and task in one.tasks
            ]
        else:
            fitting = [name for name, one in named.items() if one.tasks[0] == task]
            often = fitting[:1] if named[fitting[0]].code is not None else []
            fitting = [*often, *fitting]  # the first one twice
        if "huberized" in target.chain and not self._wild:
            fitting = [n for n in fitting if named[n].smoothness or named[n].round_kink]
        elif set(NEED_SMOOTH) & set(target.chain) and not self._wild:
            fitting = [name for name in fitting if named[name].smoothness] or fitting
        elif not self._wild and any(
            "quadratic" in registry.load("mechanism", name).requires for name in target.chain
        ):
            curved = [n for n, one in named.items() if one.quadratic and one.smoothness]
            known = {n: (*named[n].tasks, *named[n].extra_tasks) for n in curved}
            fitting = [name for name in curved if task in known[name]] or fitting
        return self._one(fitting)

    def _problem(self, target: Target, task: str, kernel: bool, delta: str) -> list[str]:
        """Loss, regulariser and set; with a kernel, its ball."""
        words = [f"loss={self._loss(target, task, kernel)}"]
        curved = kernel or any(
            "strong_convexity" in registry.load("mechanism", name).requires for name in target.chain
        )
        ridge = self._one((0.1, 1.0)) if curved or self._chance(0.3) else 0.0
        words.append(f"ridge={ridge:g}")
        if kernel:
            return words + self._kernel(registry.load("mechanism", target.chain[0]))
        plain = self._wild or len(target.chain) == 1
        words += ["lasso=0.05"] if plain and self._chance(0.1) else []
        radius = self._power(-3.0, 12.0) if self._chance(0.4) else self._power(-0.5, 1.5)
        sets = registry.list_audited("constraint", _LAST)
        sets = (sets[0], *sets)
        if not self._wild and (
            {"local_mirror_descent", "mirror_descent"} & set(target.chain)
            or ("frank_wolfe" in target.chain and delta == "0")
        ):
            sets = registry.list_offering("constraint", "axis_hull")
        return [*words, f"constraint={self._one(sets)}", f"constraint.radius={radius:g}"]

    def _kernel(self, head: Any) -> list[str]:
        """A kernel, and the finite map in its place: that of the mechanism, or any."""
        if head.space == "kernel":
            return [f"kernel={self._one(KERNELS)}", f"kernel.queries={self._one((2, 4))}"]
        if head.features is not None:
            return [f"kernel={self._one(('rbf', 'laplacian'))}", "kernel.size=3"]
        words = [f"kernel={self._one(KERNELS)}", f"kernel.features={self._one(MAPS)}"]
        return words + ([f"kernel.size={self._one((3, 50))}"] if self._chance(0.5) else [])

    def _privacy(self, mode: str, n: int, delta: str) -> list[str]:
        words = [f"privacy.relation={_relation(mode)}"] if mode != "replace_one" else []
        if mode == "declared":
            words.append(f"privacy.population={n + self._one((0, 1, 5, 60))}")
        words.append(f"epsilon={self._power(-2.0, 1.3):g}")
        return [*words, f"delta={delta}"]

    def _noise(self, chain: tuple[str, ...]) -> list[str]:
        cls = registry.load("mechanism", chain[0])
        can = cls.secure or cls.guarantees == ("local",)
        return ["noise=secure"] if can and self._chance(0.4) else []

    def _study(self, task: str, mode: str) -> list[str]:
        words = ["trials=1", f"format={self._one(('table', 'json'))}"]
        # a model whose noise follows a private number of records is refused
        saved = mode != "auto" and task in ("binary", "regression") and self._chance(0.6)
        return [*words, f"save={MODEL}"] if saved else words


KERNELS = ("linear", "rbf", "polynomial")
MAPS = ("auto", "landmarks", "landmarks")


def _fields(name: str) -> set[str]:
    return {field.name for field in dataclasses.fields(registry.load("mechanism", name))}


def _labels(rng: np.random.Generator, n: int, task: str) -> np.ndarray:
    if task == "binary":
        return rng.choice([-1.0, 1.0], n)
    if task == "multiclass":
        return rng.integers(3, size=n).astype(float)
    return np.round(rng.uniform(-1.0, 1.0, n), 3) if task == "regression" else np.zeros(n)


def _pick_trained(n: int, index: int) -> int:
    """The record ``index`` of the training part, in the order of the file."""
    held_out = int(n * 0.25)
    order = np.random.default_rng(0).permutation(n)
    return int(order[index % (n - held_out)]) if held_out else index
