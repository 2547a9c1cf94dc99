"""Examples in docstrings: every event class and every public channel has one, and it runs."""

from __future__ import annotations

import doctest
import sys

import pytest

from dperm_cli.privacy.channels import L1, L2, LInf
from dperm_cli.privacy.channels.polytope import PolytopeChannel
from dperm_cli.privacy.events import classes

SHOWN = [*classes().values(), L1, L2, LInf, PolytopeChannel]


@pytest.mark.parametrize("shown", SHOWN, ids=lambda shown: shown.__name__)
def test_its_docstring_has_an_example_that_runs(shown):
    names = dict(vars(sys.modules[shown.__module__]))
    finder = doctest.DocTestFinder(recurse=False)
    found = [test for test in finder.find(shown, shown.__name__, globs=names) if test.examples]
    assert found, f"no example in the docstring of {shown.__name__}"
    assert any(shown.__name__ in line.source for test in found for line in test.examples)
    for test in found:
        assert doctest.DocTestRunner().run(test).failed == 0
