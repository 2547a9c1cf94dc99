"""The command line inside the test process, without figures; see tests/cli/conftest.py."""

from tests.cli.conftest import Outcome, dperm, no_figures

__all__ = ["Outcome", "dperm", "no_figures"]
