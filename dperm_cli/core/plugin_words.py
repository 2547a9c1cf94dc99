"""What records say of plug-ins from outside, in words that can be read back."""

from __future__ import annotations

import re
from collections.abc import Iterable

from dperm_cli.core import plugin_files, plugin_sources
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.plugin_sources import PluginSource

PROOF = "the guarantee rests on its own proof"
_BELIEVED = ("event", "sampler")  # what the accountant takes from them, it cannot compute itself
_USE = re.compile(
    r"(\w+) (\S[^;]*?) of ([^;]+?) \((no version|version [^,;()]+), sha256 ([0-9a-f]{64})\)"
)


@dataclass(frozen=True)
class PluginUse:
    """One plug-in that made a record.

    >>> use = PluginUse("loss", "pinball", "mine.py", "1.0", "0" * 64)
    >>> read_uses(format_uses([use])) == (use,)
    True
    """

    kind: str
    name: str
    label: str
    version: str
    digest: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name} of {self._describe_source(self.digest)}"

    @property
    def source(self) -> str:
        """The file or package, with the first digits of its digest."""
        return self._describe_source(self.digest[:12])

    def _describe_source(self, digest: str) -> str:
        version = f"version {self.version}" if self.version else "no version"
        label = re.sub(r"[^\w.+ -]", "?", self.label)[:100]
        return f"{label} ({version}, sha256 {digest})"

    @property
    def is_at_hand(self) -> bool:
        """Whether this process has loaded the plug-in, of the very same bytes."""
        source = plugin_sources.find_source(self.kind, self.name)
        return source is not None and source.digest == self.digest


def list_uses(source: PluginSource, kinds: Iterable[tuple[str, str]]) -> list[PluginUse]:
    """Some of the plug-ins of a source."""
    return [
        PluginUse(kind, name, source.label, source.version, source.digest) for kind, name in kinds
    ]


def format_uses(uses: Iterable[PluginUse]) -> str | None:
    """What a record or a model file says of them; None where there are none."""
    told = (f"{use}: {_describe_trust(use.kind)}" for use in dict.fromkeys(uses))
    return "; ".join(told) or None


def read_uses(text: str | None) -> tuple[PluginUse, ...]:
    """What ``format_uses`` wrote; () for anything else."""
    found = (match.groups() for match in _USE.finditer(text or ""))
    return tuple(
        PluginUse(kind, name, label, "" if version == "no version" else version[8:], digest)
        for kind, name, label, version, digest in found
    )


def summarise_uses(uses: Iterable[PluginUse]) -> str | None:
    """The same for a reader, file by file, with the first digits of each digest."""
    files = _group_by_source(uses).items()
    return "; ".join(_summarise_file(source, found) for source, found in files) or None


def _summarise_file(source: str, uses: list[PluginUse]) -> str:
    told = PROOF if {use.kind for use in uses} != {"bound"} else _describe_trust("bound")
    believed = _name_all(use for use in uses if use.kind in _BELIEVED)
    more = f", and the accountant believes {believed}" if believed else ""
    return f"{_name_all(uses)} of {source}: {told}{more}"


def _group_by_source(uses: Iterable[PluginUse]) -> dict[str, list[PluginUse]]:
    files: dict[str, list[PluginUse]] = {}
    for use in dict.fromkeys(uses):
        files.setdefault(use.source, []).append(use)
    return files


def _name_all(uses: Iterable[PluginUse]) -> str:
    return ", ".join(f"{use.kind} {use.name}" for use in uses)


def list_missing(text: str | None, kinds: Iterable[str] = plugin_files.KINDS) -> str | None:
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
    files = _group_by_source(missing).items()
    names = "; ".join(f"{_name_all(found)} of {source}" for source, found in files)
    others = [use for use in missing if plugin_sources.find_source(use.kind, use.name)]
    hint = "the one given has other bytes" if others else "give --plugin FILE.py"
    return f"cannot be recomputed without plug-in {names}: {hint}"


def _describe_trust(kind: str) -> str:
    if kind == "bound":
        return "the bound rests on its own proof"
    return f"the accountant believes it, and {PROOF}" if kind in _BELIEVED else PROOF
