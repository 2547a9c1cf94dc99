"""Runs draw no figures here unless a test asks for ``figures``: tests/results tests drawing."""

from tests.cli.conftest import figures, no_figures

__all__ = ["figures", "no_figures"]
