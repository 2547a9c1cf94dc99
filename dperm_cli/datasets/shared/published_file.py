"""Data sets with a published file: where it is, what it must hold, and its parsed copy."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
from scipy import sparse

from dperm_cli.core.data_files import data_folder
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import InputError
from dperm_cli.core.fields import Choices, Help
from dperm_cli.core.package_paths import cache_dir
from dperm_cli.core.read_errors import report_read_errors
from dperm_cli.datasets.base import Size
from dperm_cli.datasets.shared import content_digest, parsed_cache, svmlight_reader
from dperm_cli.datasets.shared.row_pipeline import Raw, RowOptions, check_finite

ENDINGS = ("", ".bz2", ".gz", ".xz", ".txt", ".zip")
LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets"
OFFLINE = "DPERM_OFFLINE"
MIRROR = "DPERM_MIRROR"


@dataclass(frozen=True)
class Source:
    """One published file: how it may be called, where it comes from and what it must hold.

    names : accepted file names, each plain or with one of ENDINGS.
    n, p : records and columns; ``nnz`` non-zero entries and ``labels`` records per label, as
        published, None where that is not known for certain.
    digest : of the parsed records in any order (``content_digest.of_records``), None if never seen.
    url : a stable public address, or None; ``sha256`` of the archives known to be right.
    limit : bytes it may unpack to. ``archive_limit`` : bytes a download may have.
    member : base name of the file inside a zip or tar archive.
    """

    names: tuple[str, ...]
    n: int
    p: int
    limit: int
    nnz: int | None = None
    labels: Mapping[float, int] | None = field(default=None, hash=False)
    digest: str | None = None
    url: str | None = None
    sha256: tuple[str, ...] = ()
    archive_limit: int = 1 << 30
    member: str | None = None

    @property
    def address(self) -> str | None:
        """Where it is downloaded from: the mirror's folder if one is named, else ``url``."""
        mirror = os.environ.get(MIRROR)
        if self.url is None or not mirror:
            return self.url
        return f"{mirror.rstrip('/')}/{self.download_name}"

    @property
    def download_name(self) -> str:
        """The name a download is kept under."""
        tail = (self.url or "").rpartition("/")[2]
        known = any(tail == name + ending for name in self.names for ending in ENDINGS)
        return tail if known else self.names[0]

    def find(self, folder: Path) -> Path | None:
        """The first accepted name that is a regular file in the folder."""
        places = (folder / f"{name}{ending}" for name in self.names for ending in ENDINGS)
        return next((path for path in places if os.path.isfile(path)), None)


@dataclass(frozen=True, kw_only=True)
class Registered(RowOptions):
    """What all registered data sets share; a subclass declares its files and its labels.

    ``train`` and ``test`` are the files, ``upstream`` says in words where they come from.
    ``signs`` maps a file label to -1 or +1; ``class_labels`` lists the labels in class order.
    """

    where: ClassVar[str] = "registered"
    upstream: ClassVar[str]
    train: ClassVar[Source]
    test: ClassVar[Source | None] = None
    signs: ClassVar[Mapping[float, float]] = {-1.0: -1.0, 1.0: 1.0}
    class_labels: ClassVar[tuple[float, ...]] = ()
    target_bounds: ClassVar[tuple[float, float] | None] = None
    facts: ClassVar[tuple[str, ...]] = ()
    version: ClassVar[int] = 1

    @property
    def task(self) -> str:
        if self.target_bounds is not None:
            return "regression"
        return "multiclass" if self.classes == "all" else "binary"

    @classmethod
    def sources(cls) -> tuple[Source, ...]:
        """The files of the set."""
        return (cls.train,) if cls.test is None else (cls.train, cls.test)

    @property
    def size(self) -> tuple[int, int]:
        """Records and columns of the training file."""
        return self.train.n, self.train.p

    def find_size(self, data_dir: Path | None = None, count: bool = False) -> Size:
        files = self.sources()
        n, entries = sum(file.n for file in files), [file.nnz for file in files]
        held_out = self.test.n if self.test is not None else self.held_out(n)
        stored = None if None in entries else sum(filter(None, entries))
        svmlight = type(self).parse.__func__ is Registered.parse.__func__
        return Size(n, self.train.p, held_out, stored, dense=stored is None and not svmlight)

    def locate(self, data_dir: Path | None = None) -> Path:
        """The training file, in the data folder or else among the downloads."""
        for folder in folders(data_dir):
            if (path := self.train.find(folder)) is not None:
                return path
        raise InputError("dataset", self.name, explain_missing_file(self, data_dir))

    def list_files(self, data_dir: Path | None = None) -> Sequence[Path] | None:
        """The training file, and the test file where it is here."""
        path = self.locate(data_dir)
        held = self._find_test(path, data_dir)
        return (path,) if held is None else (path, held)

    def _find_test(self, path: Path, data_dir: Path | None) -> Path | None:
        if self.test is None:
            return None
        places = (path.parent, *folders(data_dir))
        return next((f for place in places if (f := self.test.find(place))), None)

    def raw(self, data_dir: Path | None = None) -> Raw:
        """The records, checked against what is published of them."""
        path = self.locate(data_dir)
        x, y = self._records(path, self.train)
        x_test = y_test = None
        found = self._find_test(path, data_dir)
        if self.test is not None and found is not None:
            x_test, y_test = self._records(found, self.test)
        return Raw(
            x=x, y=y, x_test=x_test, y_test=y_test, bounds=self.bounds(), longest=self.longest(),
            target_bounds=self.target_bounds, notes=self.facts,
            classes=len(self.class_labels) if self.task == "multiclass" else 2,
        )  # fmt: skip

    def bounds(self) -> np.ndarray | None:
        """Public bounds of the columns, [p, 2] or [2], or None."""
        return None

    def longest(self) -> float | None:
        """A public bound on the L2 norm of a raw row, or None."""
        return None

    @classmethod
    def parse(cls, path: Path, source: Source) -> tuple[Any, np.ndarray]:
        """(x, labels as numbers) of a file; whatever the options are."""
        blocks = svmlight_reader.read_blocks(
            "dataset", path, source.p, limit=source.limit, member=source.member
        )
        return svmlight_reader.join_blocks(blocks, path)

    def check(self, path: Path, source: Source) -> tuple[Any, np.ndarray]:
        """(x, labels) of one file; InputError unless they are the published ones."""
        parts = parsed_cache.fetch(
            path, f"{self.name}{self.version}", lambda: self._parse(path, source)
        )
        x = _assemble(parts)
        labels = parts["labels"]
        wrong = next(_differences(source, x, labels, bytes(parts["digest"]).decode()), None)
        if wrong is not None:
            allowed = f"{path.name} is not the published {source.names[0]}: {wrong}"
            raise InputError("dataset", self.name, allowed)
        return x, labels

    def _parse(self, path: Path, source: Source) -> dict[str, np.ndarray]:
        with report_read_errors("dataset", path):
            x, labels = self.parse(path, source)
        check_finite("dataset", path.name, x, labels)
        digest = np.frombuffer(content_digest.of_records(x, labels).encode(), dtype=np.uint8)
        shape = np.array(x.shape, dtype=np.int64)
        if not sparse.issparse(x):
            return {"x": x, "shape": shape, "labels": labels, "digest": digest}
        wide = np.int32 if max(x.nnz, *x.shape) < 2**31 else np.int64
        return {
            "data": x.data, "indices": x.indices.astype(wide), "indptr": x.indptr.astype(wide),
            "shape": shape, "labels": labels, "digest": digest,
        }  # fmt: skip

    def _records(self, path: Path, source: Source) -> tuple[Any, np.ndarray]:
        x, labels = self.check(path, source)
        return x, self.targets(labels)

    def targets(self, labels: np.ndarray) -> np.ndarray:
        """File labels as the task wants them: signs, class numbers or targets."""
        if self.task == "regression":
            return labels
        known = self.signs
        if self.task == "multiclass":
            known = {label: float(k) for k, label in enumerate(self.class_labels)}
        distinct, code = np.unique(labels, return_inverse=True)
        unknown = [float(label) for label in distinct if float(label) not in known]
        if unknown:
            raise InputError("dataset", self.name, f"label {unknown[0]:g} is not a published label")
        return np.array([known[float(label)] for label in distinct])[code.reshape(-1)]


Classes = Annotated[str, Choices("binary", "all"), Help("binary: the set's contrast")]


@dataclass(frozen=True, kw_only=True)
class WithClasses(Registered):
    """A registered set with more than two classes.

    classes : ``binary`` (the contrast that the set describes) or ``all``.
    """

    classes: Classes = "binary"


def downloads() -> Path | None:
    """Where ``dperm data fetch`` puts files; None when there is no cache folder."""
    cache = cache_dir()
    return None if cache is None else cache / "downloads"


def offline() -> bool:
    """Whether DPERM_OFFLINE forbids the network."""
    return os.environ.get(OFFLINE, "").strip().lower() not in ("", "0", "false", "no")


def folders(data_dir: Path | None) -> list[Path]:
    """Where files are looked for: the data folder first, then the downloads."""
    return [folder for folder in (data_folder(data_dir), downloads()) if folder is not None]


def explain_missing_file(dataset: Registered, data_dir: Path | None) -> str:
    """What to do about a file that is not here."""
    names = " and ".join(source.names[0] for source in dataset.sources())
    folder = data_folder(data_dir)
    place = "the folder that DPERM_DATA_DIR names" if folder is None else f"the folder {folder}"
    by_hand = f"put {names} ({dataset.upstream}) into {place}"
    if all(source.url is None for source in dataset.sources()):
        return f"is not here and has no address to download from: {by_hand}"
    if offline():
        return f"is not here, and {OFFLINE} forbids a download: {by_hand}"
    return f"is not here: run `dperm data fetch {dataset.name}`, or {by_hand}"


def _assemble(parts: Mapping[str, np.ndarray]) -> Any:
    if "x" in parts:
        return parts["x"]
    shape = tuple(int(v) for v in parts["shape"])
    x = sparse.csr_array((parts["data"], parts["indices"], parts["indptr"]), shape=shape)
    x.has_sorted_indices = True
    x.has_canonical_format = True
    return x


def _differences(source: Source, x: Any, labels: np.ndarray, digest: str) -> Iterator[str]:
    """What differs from the published facts, the plainest first."""
    n, p = x.shape
    if n != source.n:
        yield f"{n} records; published: {source.n}"
    if p != source.p:
        yield f"{p} columns; published: {source.p}"
    nnz = x.nnz if sparse.issparse(x) else None
    if source.nnz is not None and nnz is not None and nnz != source.nnz:
        yield f"{nnz} non-zero entries; published: {source.nnz}"
    if source.labels is not None:
        for label, count in source.labels.items():
            found = int(np.sum(labels == label))
            if found != count:
                yield f"{found} records of label {label:g}; published: {count}"
    if source.digest is not None and digest != source.digest:
        yield f"its records have digest {digest}; published: {source.digest}"
