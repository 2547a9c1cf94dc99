"""A plug-in that changes the package while it is loaded is refused, and the change is undone."""

from __future__ import annotations

import pytest

from dperm_cli.core import plugin_sources
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import InputError
from dperm_cli.mechanisms import base
from dperm_cli.mechanisms.gradient import noisy_gd
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


@pytest.mark.parametrize(
    "line", ["noisy_gd.Late.__init__ = Mine.release", "del noisy_gd.Late.__init__"]
)
def test_a_constructor_that_nobody_has_used_yet_is_guarded_too(line, tmp_path, monkeypatch):
    @dataclass(frozen=True)
    class Late:
        """As one of the package's own."""

        a: int

    Late.__module__ = noisy_gd.__name__
    monkeypatch.setattr(noisy_gd, "Late", Late, raising=False)
    path = tmp_path / "mine.py"
    path.write_text(STEP + line + "\n")
    with plugin_sources.use_plugins(), pytest.raises(InputError, match=r"Late.__init__"):
        plugin_sources.add_file(path)
    assert Late(3).a == 3


def test_a_constructor_may_be_used_for_the_first_time(tmp_path, monkeypatch):
    @dataclass(frozen=True)
    class Late:
        """As one of the package's own."""

        a: int

    Late.__module__ = noisy_gd.__name__
    monkeypatch.setattr(noisy_gd, "Late", Late, raising=False)
    path = tmp_path / "mine.py"
    path.write_text(STEP + "assert noisy_gd.Late(4).a == 4\n")
    with plugin_sources.use_plugins():
        plugin_sources.add_file(path)
    assert Late(3).a == 3
