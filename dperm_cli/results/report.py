"""Write the tables, figures, ledger and page of a study from its stored records."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from dperm_cli.core.errors import InputError, StorageError
from dperm_cli.core.files import read_bytes, remove_file, write_atomically
from dperm_cli.results.charts import drawn_figures, experiment_figure, figure_drawing, study_figure
from dperm_cli.results.charts.chart_model import Figure
from dperm_cli.results.charts.study_view import StudyView
from dperm_cli.results.claims import experiment_tables
from dperm_cli.results.kept_report import Report
from dperm_cli.results.ledger import kept_ledger, ledger
from dperm_cli.results.page import html_page, page_data
from dperm_cli.results.records import given_names
from dperm_cli.results.records.cell_claims import hold_ledger_lock
from dperm_cli.results.records.store import Snapshot, Store, list_old
from dperm_cli.results.records.study_lease import hold_lease
from dperm_cli.results.records.summary import summarise
from dperm_cli.results.study_files import CAPTION, CLAIMS, FIGURE_FORMATS, FIGURES, LEDGER, PAGE
from dperm_cli.results.tables import study_tables
from dperm_cli.results.tables.chosen_table import TableRequest


class _Files:
    """The files of a report as they are written: one that cannot be written stops no other."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.written: list[str] = []
        self._faults: dict[str, StorageError] = {}

    def write(self, name: str, data: bytes) -> None:
        """Write the file, or keep why it cannot be."""
        with self.keep_fault(name):
            write_atomically(self._folder / name, data)
            self.written.append(name)

    @contextlib.contextmanager
    def keep_fault(self, name: str) -> Iterator[None]:
        """Keep the block's StorageError as one of this file."""
        try:
            yield
        except StorageError as error:
            self._faults[name] = error

    def find_fault(self) -> StorageError | None:
        """The first error, and the names of all files that were not written."""
        for error in self._faults.values():
            return StorageError(f"{error}; not written: {', '.join(self._faults)}")
        return None


def write_report(
    out: str | os.PathLike[str],
    accountant: ledger.Accountant,
    figures: bool = True,
    trust: bool = False,
    page: bool = True,
    others: Sequence[Store] = (),
    allow_unwritten: bool = False,
    view: StudyView | None = None,
    table: TableRequest | None = None,
    width: str = "single",
    formats: Sequence[str] | None = None,
) -> Report:
    """Read the store under ``out`` and write ``table.csv .md .tex``, ``figure.png`` and more.

    Every record in the folder, also another study's, is checked by the accountant against its
    events, and ``ledger.json`` is written; one that contradicts the records is left as it is,
    unless ``trust`` says that they are this run's own. The page ``report.html``, which shows that
    ledger, is written too unless ``page`` is false. ``others`` are folders that were merged into
    this one: releases that only their ledgers know stay in this one's.

    ``view`` is what the figure shows and ``table`` what the tables do, but for ``table.csv``, which
    has every cell; None is what a study shows unasked. ``width`` is that of ``table.tex``.
    ``formats`` are those of the figure: None is all of an experiment's and a PNG of another
    study's. A format that stands in the folder is drawn again, so that no file shows older records.

    All is made and written as far as it can be. With ``allow_unwritten`` the report says what could
    not be written, otherwise that is a StorageError at the end.

    Raises InputError when no study is there or it lacks what is asked for, StorageError when it
    cannot be read or written.
    """
    store = Snapshot(out)
    manifest = store.read_manifest() or {}
    cells = manifest.get("cells") or store.cells()
    if not cells:
        raise InputError("out", str(out), "must be a folder that holds a study's records")
    with hold_lease(store.out):
        made = _write_files(store, manifest, cells, accountant, figures, trust, page, others,
                            view or StudyView(), table or TableRequest(), width,
                            formats)  # fmt: skip
    if made.unwritten is not None and not allow_unwritten:
        raise made.unwritten
    return made


def _write_files(
    store: Snapshot,
    manifest: Mapping[str, Any],
    cells: Sequence[str],
    accountant: ledger.Accountant,
    figures: bool,
    trust: bool,
    page: bool,
    others: Sequence[Store],
    view: StudyView,
    table: TableRequest,
    width: str,
    formats: Sequence[str] | None,
) -> Report:
    states = {cell: store.state(cell) for cell in cells}
    records = given_names.name_rows(store.read_all(cells), manifest)
    rows, about = summarise(records), experiment_tables.read_about(manifest)
    # before anything is written: a reader may ask for what the study lacks
    texts = study_tables.make_tables(records, rows, about, table, width)
    figure, figure_note = None, None
    if figures:
        figure, figure_note = _describe_figure(records, rows, about, view)
    files = _Files(store.out)
    for ending, text in (("csv", texts.csv), ("md", texts.markdown), ("tex", texts.latex)):
        files.write(f"table.{ending}", text.encode())

    def state_ledger() -> kept_ledger.LedgerState:
        every = list(dict.fromkeys([*cells, *store.cells()]))
        return kept_ledger.state(store, every, accountant, trust, others)

    stated = None
    with files.keep_fault(LEDGER), hold_ledger_lock(store.out):
        stated = state_ledger()
        kept_ledger.write(store, stated)
        files.written += [LEDGER] if stated.found and not stated.faults else []
    stated = stated or state_ledger()  # where nobody may write, nobody has to be waited for
    found = stated.found
    notes = _list_gaps(store, states)
    notes += [f"lost: {store.out}{os.sep}{gap}" for gap in stated.gaps]
    if figures:
        if formats is None:
            formats = figure_drawing.DEFAULT_FORMATS if about is None else FIGURE_FORMATS
        _write_figures(files, store, figure, formats)
        notes += [figure_note] if figure_note else []
    if page:
        gaps = [note.replace(f"{store.out}{os.sep}", "") for note in notes]
        made = page_data.build_payload(
            rows,
            records,
            manifest,
            about,
            texts.csv,
            found,
            stated.faults,
            gaps,
            _claims(store),
            figure.notes if figure else (),
        )
        files.write(PAGE, html_page.page(made))
    return Report(
        summary=rows,
        text=texts.plain + "".join(f"{note}\n" for note in notes),
        files=tuple(str(store.out / name) for name in files.written),
        broken=tuple(cell for cell, state in states.items() if state == "broken"),
        faults=stated.faults,
        releases=sum(entry["trials"] for entry in found["releases"]) if found else 0,
        gaps=stated.gaps,
        notes=(*stated.notes, *_tell_old(store)),
        totals=tuple(ledger.fresh_totals(found)) if found else (),
        unwritten=files.find_fault(),
        short=texts.short,
        after=tuple(notes),
    )


def _tell_old(store: Store) -> list[str]:
    """What a run does about records whose names are of the old form, where there are some."""
    count = len(list_old(store.cells()))
    if not count:
        return []
    whose = "1 record has a name" if count == 1 else f"{count} records have names"
    words = "reports read them, but a run does not look them up and writes new ones beside them"
    return [f"{whose} of the old form, made of all code of that time: {words}"]


def _claims(store: Store) -> Any:
    """The verdicts that `dperm reproduce` wrote, or None."""
    data = read_bytes(store.out / CLAIMS)
    with contextlib.suppress(ValueError, RecursionError):
        return None if data is None else json.loads(data)
    return None


def _describe_figure(
    records: Sequence[dict[str, Any]], rows: Sequence[dict[str, Any]], about: Any, view: StudyView
) -> tuple[Figure | None, str | None]:
    """What the figure of an experiment or of a plain study shows, and a note on it.

    An experiment has a figure of its own, unless the view asks for another one.
    """
    if about is None or not view.is_default:
        return study_figure.build_figure(rows, view)
    shown = experiment_figure.select_panels(records, about)
    if shown:
        return experiment_figure.build_figure(shown, about, view.theme), None
    return None, "no figure: no panel of the experiment has a point"


def _write_figures(
    files: _Files, store: Store, figure: Figure | None, formats: Sequence[str]
) -> None:
    """Draw and write the figure and its caption; with nothing to draw, older ones are deleted."""
    found: dict[str, bytes] = {}
    names = [
        name for name in FIGURES if _ending(name) in formats or os.path.lexists(store.out / name)
    ]
    if figure is not None and drawn_figures.is_drawn(figure, store.out, (*names, CAPTION)):
        files.written += [*names, CAPTION]
        return
    if figure is not None:
        drawn = figure_drawing.draw_files(figure, [_ending(name) for name in names])
        found = {name: drawn[_ending(name)] for name in names}
        found[CAPTION] = f"{' '.join(figure.notes)}\n".encode()
    for name in (*FIGURES, CAPTION):
        if name in found:
            files.write(name, found[name])
            continue
        with files.keep_fault(name):
            remove_file(store.out / name)
    if figure is not None:
        drawn_figures.remember(figure, found)


def _ending(name: str) -> str:
    return name.rpartition(".")[2]


def _list_gaps(store: Store, states: Mapping[str, str]) -> list[str]:
    absent = sum(state == "absent" for state in states.values())
    broken = [store.path(cell) for cell, state in states.items() if state == "broken"]
    lines = [f"broken record, to be recomputed: {path}" for path in broken]
    if absent:
        lines.append(f"unfinished: {absent} of {len(states)} cells have no record yet")
    return lines
