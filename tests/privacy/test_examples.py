"""Examples in docstrings: every event class and every public channel has one, and it runs."""

from __future__ import annotations

import pytest

from dperm_cli.privacy.channels import L1, L2, LInf
from dperm_cli.privacy.channels.polytope import PolytopeChannel
from dperm_cli.privacy.events import classes
from tests.structure.examples import find_faults

SHOWN = [*classes().values(), L1, L2, LInf, PolytopeChannel]


@pytest.mark.parametrize("shown", SHOWN, ids=lambda shown: shown.__name__)
def test_its_docstring_has_an_example_that_runs(shown):
    assert find_faults(shown) == []
