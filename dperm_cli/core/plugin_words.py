"""What records say of plug-ins from outside, in words that can be read back."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from dperm_cli.core import plugin_sources
from dperm_cli.core.plugin_sources import PluginSource

PROOF = "its guarantee rests on its own proof"
_BELIEVED = ("event", "sampler")  # what the accountant takes from them, it cannot compute itself
_USE = re.compile(r"(\w+) (\S[^;]*?) \((no version|version [^,;()]+), sha256 ([0-9a-f]{64})\)")


@dataclass(frozen=True)
class PluginUse:
    """One plug-in that made a record.

    >>> use = PluginUse("loss", "pinball", "1.0", "0" * 64)
    >>> read_uses(format_uses([use])) == (use,)
    True
    """

    kind: str
    name: str
    version: str
    digest: str

    def __str__(self) -> str:
        version = f"version {self.version}" if self.version else "no version"
        return f"{self.kind} {self.name} ({version}, sha256 {self.digest})"

    @property
    def short(self) -> str:
        """As the text of a record, with the first digits of the digest."""
        return str(self).replace(self.digest, self.digest[:12])

    @property
    def is_at_hand(self) -> bool:
        """Whether this process has loaded the plug-in, of the very same bytes."""
        source = plugin_sources.find_source(self.kind, self.name)
        return source is not None and source.digest == self.digest


def list_uses(source: PluginSource, kinds: Iterable[tuple[str, str]]) -> list[PluginUse]:
    """Some of the plug-ins of a source."""
    return [PluginUse(kind, name, source.version, source.digest) for kind, name in kinds]


def format_uses(uses: Iterable[PluginUse], short: bool = False) -> str | None:
    """What a record, a statement or a model file says of them; None where there are none."""
    return "; ".join(
        f"{use.short if short else use}: {_describe_trust(use.kind)}" for use in dict.fromkeys(uses)
    ) or None  # fmt: skip


def read_uses(text: str | None) -> tuple[PluginUse, ...]:
    """What ``format_uses`` wrote; () for anything else."""
    found = (match.groups() for match in _USE.finditer(text or ""))
    return tuple(
        PluginUse(kind, name, "" if version == "no version" else version[8:], digest)
        for kind, name, version, digest in found
    )


def shorten(text: str | None) -> str | None:
    """The same text with the first digits of each digest."""
    return format_uses(read_uses(text), short=True)


def list_missing(text: str | None, kinds: Iterable[str] = plugin_sources.KINDS) -> str | None:
    """What of a record cannot be computed again here, and what to type; None where all can.

    Installed packages are looked at for plug-ins that were not given.
    """
    wanted = [use for use in read_uses(text) if use.kind in tuple(kinds)]
    for use in wanted:
        if not use.is_at_hand:
            plugin_sources.find(use.kind, use.name)
    missing = [use for use in wanted if not use.is_at_hand]
    if not missing:
        return None
    names = "; ".join(use.short for use in missing)
    others = [use for use in missing if plugin_sources.find_source(use.kind, use.name)]
    hint = "the one given has other bytes" if others else "give --plugin FILE.py"
    return f"cannot be recomputed without plug-in {names}: {hint}"


def _describe_trust(kind: str) -> str:
    if kind == "bound":
        return "the bound rests on its own proof"
    return f"the accountant believes it, and {PROOF}" if kind in _BELIEVED else PROOF
