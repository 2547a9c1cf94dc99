"""From the store to everything that is shown: the same code for a run and for a later report."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dperm_cli.core.errors import InputError
from dperm_cli.core.files import read_bytes, storage_errors, write_atomically
from dperm_cli.results.claims import experiment_tables
from dperm_cli.results.ledger import kept_ledger, ledger
from dperm_cli.results.page import html_page, page_data
from dperm_cli.results.records.cell_claims import hold_ledger_lock
from dperm_cli.results.records.store import Snapshot, Store, list_old
from dperm_cli.results.records.summary import summarise
from dperm_cli.results.tables import summary_table

FIGURES = ("figure.pdf", "figure.svg", "figure.png")
CLAIMS = "claims.json"


@dataclass(frozen=True)
class Report:
    """What a report found and wrote.

    ``summary`` has one JSON-able dict per cell; ``text`` is the terminal's; ``files`` are the
    paths written; ``missing`` and ``broken`` are the manifest's cells without a whole record;
    ``faults`` says, a line each, where records or ledger contradict their own events; ``gaps`` what
    is lost of ``releases.log``, so that totals are lower bounds; ``notes`` what left the ledger,
    and how many records have names of the old form;
    ``totals`` what several releases with fresh noise cost together, in words.
    """

    summary: list[dict[str, Any]]
    text: str
    files: tuple[str, ...]
    missing: tuple[str, ...]
    broken: tuple[str, ...]
    faults: tuple[str, ...] = ()
    releases: int = 0
    gaps: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    totals: tuple[str, ...] = ()


def write_report(
    out: str | os.PathLike[str],
    figures: bool = True,
    accountant: ledger.Accountant | None = None,
    trust: bool = False,
    page: bool = True,
    others: Sequence[Store] = (),
) -> Report:
    """Read the store under ``out`` and write ``table.csv .md .tex`` and ``figure.pdf .svg .png``.

    With an accountant every record in the folder, also another study's, is checked against its
    events and ``ledger.json`` is written; one that contradicts the records is left as it is,
    unless ``trust`` says that they are this run's own. The page ``report.html``, which shows that
    ledger, is written too unless ``page`` is false. ``others`` are folders that were merged into
    this one: releases that only their ledgers know stay in this one's.

    Raises InputError when no study is there, StorageError when it cannot be read or written.
    """
    store = Snapshot(out)
    manifest = store.read_manifest() or {}
    cells = manifest.get("cells") or store.cells()
    if not cells:
        raise InputError("out", str(out), "must be a folder that holds a study's records")
    states = {cell: store.state(cell) for cell in cells}
    records = store.read_all(cells)
    rows, about = summarise(records), experiment_tables.read_about(manifest)
    texts = _texts(rows) if about is None else experiment_tables.format_tables(records, about)
    files = [*_write_tables(store, texts)]
    stated = kept_ledger.LedgerState(None)
    if accountant:
        with hold_ledger_lock(store.out):
            every = list(dict.fromkeys([*cells, *store.cells()]))
            stated = kept_ledger.state(store, every, accountant, trust, others)
            kept_ledger.write(store, stated)
    faults, found = list(stated.faults), stated.found
    if accountant and not faults:
        files.append(str(store.out / ledger.LEDGER))
    lost = [f"lost: {store.out}{os.sep}{gap}" for gap in stated.gaps]
    notes = _gaps(store, states) + lost
    if figures:
        drawn, note = _write_figures(store, _figure(records, rows, about))
        files += drawn
        notes += [note] if note else []
    if page and accountant:
        gaps = [note.replace(f"{store.out}{os.sep}", "") for note in notes]
        made = page_data.build_payload(
            rows, records, manifest, about, texts["csv"], found, faults, gaps, _claims(store)
        )
        write_atomically(store.out / html_page.PAGE, html_page.page(made))
        files.append(str(store.out / html_page.PAGE))
    text = texts["terminal"] + "".join(f"{note}\n" for note in notes)
    absent, broken = _list_state(states, "absent"), _list_state(states, "broken")
    count = sum(entry["trials"] for entry in found["releases"]) if found else 0
    totals = tuple(ledger.fresh_totals(found)) if found else ()
    return Report(
        rows, text, tuple(files), absent, broken, tuple(faults), count, stated.gaps,
        (*stated.notes, *_tell_old(store)), totals,
    )  # fmt: skip


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


def _texts(rows: Sequence[dict[str, Any]]) -> dict[str, str]:
    writers = {
        "csv": summary_table.csv_text,
        "md": summary_table.markdown,
        "tex": summary_table.latex,
    }
    writers["terminal"] = summary_table.format_terminal
    return {ending: write(rows) for ending, write in writers.items()}


def _write_tables(store: Store, texts: dict[str, str]) -> list[str]:
    endings = ("csv", "md", "tex")
    for ending in endings:
        write_atomically(store.out / f"table.{ending}", texts[ending].encode())
    return [str(store.out / f"table.{ending}") for ending in endings]


def _figure(
    records: Sequence[dict[str, Any]], rows: Sequence[dict[str, Any]], about: Any
) -> tuple[dict[str, bytes], str | None]:
    """The figure by format, of an experiment or of a plain study, and a note."""
    if about is not None:
        from dperm_cli.results.charts.experiment_figure import draw_figure as panels

        drawn = panels(records, about)
        return drawn, None if drawn else "no figure: no panel of the experiment has a point"
    from dperm_cli.results.charts.study_figure import draw_figure

    return draw_figure(rows)


def _write_figures(
    store: Store, made: tuple[dict[str, bytes], str | None]
) -> tuple[list[str], str | None]:
    """Write the figures; with nothing to draw, an older figure goes, so that none lies about."""
    drawn, note = made
    for name in FIGURES:
        path = store.out / name
        data = drawn.get(name.rpartition(".")[2])
        if data is not None:
            write_atomically(path, data)
            continue
        with storage_errors(path), contextlib.suppress(FileNotFoundError):
            os.unlink(path)
    return [str(store.out / f"figure.{ending}") for ending in drawn], note


def _list_state(states: dict[str, str], state: str) -> tuple[str, ...]:
    return tuple(cell for cell, found in states.items() if found == state)


def _gaps(store: Store, states: dict[str, str]) -> list[str]:
    absent, broken = _list_state(states, "absent"), _list_state(states, "broken")
    lines = [f"broken record, to be recomputed: {store.path(cell)}" for cell in broken]
    if absent:
        lines.append(f"unfinished: {len(absent)} of {len(states)} cells have no record yet")
    return lines
