"""Which plug-ins from outside made a record: for its name, and for its column ``plugins``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dperm_cli.core import plugin_sources
from dperm_cli.core.plugin_words import PluginUse, format_uses, list_uses
from dperm_cli.runner.cells.record_digest import list_classes


def list_digests(*parts: Any) -> list[str]:
    """The digests of all that a cell's record follows from, beside the package itself.

    They are those of the sources of its plug-ins, and of sources with bounds and events, which any
    cell may use.

    Args:
        parts: The objects that the cell is made of.
    """
    modules = {made.__module__ for part in parts for made in list_classes(part)}
    shared = [
        source
        for source in plugin_sources.list_sources()
        if any(kind in ("bound", "event") for kind, _ in source.names)
    ]
    found = [*plugin_sources.sources_of(modules), *shared]
    return sorted({source.digest for source in found})


def describe_parts(*parts: Any) -> str | None:
    """The column ``plugins`` of a cell made of these objects; None where all are shipped."""
    return format_uses(_find_uses(made for part in parts for made in list_classes(part)))


def add_uses(row: Mapping[str, Any], events: Iterable[Any]) -> str | None:
    """The column ``plugins`` of a row, with the events of its plan and the bounds that it names."""
    from dperm_cli.bounds.all_bounds import COLUMNS  # by need: bounds are many modules

    made = [type(event) for event in events]
    bounds = plugin_sources.classes("bound")
    named = (row.get(f"{column}_id") for column in COLUMNS)
    made += [bounds[name] for name in named if name in bounds]
    found = [row.get("plugins"), format_uses(_find_uses(made))]
    return "; ".join(filter(None, found)) or None


def _find_uses(objects: Iterable[Any]) -> list[PluginUse]:
    found: list[PluginUse] = []
    for made in objects:
        exact = plugin_sources.find_name(made)
        if exact is not None:
            found += list_uses(exact[0], [exact[1:]])
        elif isinstance(made, type):
            # a class beside a plug-in counts as all that its file offers
            for source in plugin_sources.sources_of([made.__module__]):
                found += list_uses(source, source.names)
    return found
