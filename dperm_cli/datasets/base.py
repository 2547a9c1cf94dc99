"""The base class of data sets: the task, defaults and known facts that each declares."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

from dperm_cli.core import registry
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.fields import CheckedFields
from dperm_cli.problem.data import Data


@dataclass(frozen=True)
class Size:
    """How large a data set is, as far as that is declared, published or in a file's header.

    Attributes:
        n: records, held-out ones too.
        p: columns.
        held_out: how many of the records are held out.
        entries: numbers that sparse rows hold, at most; None where that is unknown.
        dense: whether rows are stored whole.
        unpacked: bytes of the text or arrays of its file.

    >>> Size(n=1000, p=20).cells
    20000
    """

    n: int | None = None
    p: int | None = None
    held_out: int = 0
    entries: int | None = None
    unpacked: int | None = None
    dense: bool = True

    @property
    def cells(self) -> int | None:
        """How many numbers its rows hold, at most."""
        if not self.dense:
            return self.entries
        return None if self.n is None or self.p is None else self.n * self.p


class DataSet(registry.Plugin, CheckedFields):
    """A source of records: a frozen dataclass whose fields are its YAML keys.

    A subclass gives ``task`` and ``load(data_dir)``.

    Attributes:
        task: ``binary``, ``regression``, ``multiclass`` or ``location``.
        where: the records come from: ``generated``, ``embedded``, ``registered`` or a ``file``.
        default_loss: what ``loss=auto`` means: that of the task, unless the data set names one.
        raw: ``raw(data_dir)``, the records before any preparation, of a published set.
        classes: which of the classes are told apart, where there is a choice.
        named_columns: ``named_columns()``, the columns' names and the target's, of a file.
        labels: the declared (file label, number) pairs; ``signs``, those of a published set.
        law: how responses follow from rows where the population's minimiser is known: ``log_odds``
            (y = 1 has the log odds <x, theta*>), ``even_noise`` (y = <x, theta*> + w, w uniform on
            [-``noise``, ``noise``]), both with ``row_sphere``, or ``mirrored`` (rows are symmetric
            about theta*).
        row_sphere: the pair (dimension, radius) of the sphere whose points' first coordinates the
            rows are, for points that are uniform on it; of the laws with a parameter.
        cube_half_side: of the cube that mirrored rows are uniform in.
        invalid: what becomes of a record with a cell that cannot be used, of a file.
        added_keys: keys that came after the first release, with the values of cells without them.
        size: the pair (records, columns) where it is declared or published.
        scalings: the candidates of a private choice among scalings that rows are made for.
        table: how raw cells become rows (``TableSchema``), of a table with a schema.
        is_raw: whether rows are scaled or shortened on columns of any units, of a file.
        split_later: how records are held out after ``load_parts`` (``row_pipeline.Split``); None
            where there are no parts.
        excess: ``excess(loss, theta, constraint)``, the exact risk above the least on a set.

    >>> class Coins(DataSet):
    ...     task = "binary"
    >>> Coins().default_loss
    'logistic'
    """

    group: ClassVar[str] = "dataset"
    added_keys: ClassVar[Mapping[str, Any]] = MappingProxyType({})
    task: Any = ""
    where: Any = "generated"
    rows: Any = "clip"
    norm: Any = 2
    scaling: Any = "none"
    centred: Any = True
    intercept: Any = False
    unsafe_scaling: Any = False
    scalings: Any = ()
    raw: Any = None
    classes: Any = "binary"
    named_columns: Any = None
    labels: Any = None
    signs: Any = None
    target_bounds: Any = None
    law: ClassVar[str] = ""
    row_sphere: Any = None
    cube_half_side: Any = None
    split_later: Any = None
    excess: Any = None
    is_raw: Any = False
    invalid: Any = "refuse"
    size: Any = None
    table: Any = None

    def find_size(self, data_dir: Path | None = None, count: bool = False) -> Size:
        """What is known of the size before the records are loaded.

        Args:
            data_dir: the data folder.
            count: whether to go through a file whose header does not say how many it holds.
        """
        n, p = self.size or (None, None)
        return Size(n, p)

    def find_folder(self, data_dir: Path | None = None) -> Path | None:
        """The folder of ``problem.data_folder`` that the records are mapped from, if any."""
        return None

    def load_parts(self, data_dir: Path | None = None, done: int = 0) -> Iterator[Data]:
        """The records a part at a time, none of them held out; for sets with ``split_later``.

        Args:
            data_dir: the data folder.
            done: how many records, of whole parts, are left out at the beginning.
        """
        raise NotImplementedError

    def list_files(self, data_dir: Path | None = None) -> Sequence[Path] | None:
        """The files that the records are read from; None where that is not known."""
        return () if self.where in ("generated", "embedded") else None

    @property
    def default_loss(self) -> str:
        return _find_default_loss(self.task)


@cache
def _find_default_loss(task: str) -> str:
    losses = registry.list_shipped("loss")  # a plug-in from outside is no default
    return next(one for one in losses if task in registry.load("loss", one).default_of)
