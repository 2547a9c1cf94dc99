"""The example in the docstring of every mechanism: it is there, is short, and runs."""

from __future__ import annotations

import pytest

from dperm_cli.core import registry
from tests.structure.examples import find_faults


@pytest.mark.parametrize("name", registry.names("mechanism"))
def test_a_mechanism_has_an_example_that_runs(name):
    assert find_faults(registry.load("mechanism", name), most_lines=5) == []
