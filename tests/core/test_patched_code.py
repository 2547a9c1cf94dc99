"""A plug-in that changes the package while it is loaded is refused, and the change is undone."""

from __future__ import annotations

import pytest

from dperm_cli.core import plugin_sources
from dperm_cli.core.errors import InputError
from dperm_cli.mechanisms import base
from dperm_cli.mechanisms.gradient.noisy_gd import NoisyGd

STEP = """
from dataclasses import dataclass
from dperm_cli import Mechanism
from dperm_cli.mechanisms import base
from dperm_cli.mechanisms.gradient import noisy_gd

@dataclass(frozen=True)
class Mine(Mechanism):
    def events(self, spec, scale, budget):
        return ()
    def release(self, view, plan, gate):
        return None
"""


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("noisy_gd.NoisyGd.release = Mine.release", "NoisyGd.release"),
        ("noisy_gd.NoisyGd.quiet = Mine.release", "NoisyGd.quiet"),
        ("noisy_gd.NoisyGd = Mine", "noisy_gd.NoisyGd"),
        ("base.Mechanism.events = Mine.events", "Mechanism.events"),
        ("del noisy_gd.NoisyGd.events", "NoisyGd.events"),
        ("noisy_gd.NoisyGd.release = Mine.release\n1 / 0", "cannot be loaded"),
    ],
)
def test_a_file_that_changes_the_package_is_refused_and_undone(line, name, tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(STEP + line + "\n")
    before = dict(vars(NoisyGd)), dict(vars(base.Mechanism))
    with plugin_sources.use_plugins(), pytest.raises(InputError, match=name):
        plugin_sources.add_file(path)
    assert (dict(vars(NoisyGd)), dict(vars(base.Mechanism))) == before


def test_a_file_that_only_uses_the_package_is_loaded(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(STEP)
    with plugin_sources.use_plugins():
        assert plugin_sources.add_file(path).names == (("mechanism", "mine"),)
