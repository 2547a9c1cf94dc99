"""Checks of a mechanism against its claims: record and replay on neighbouring data sets.

The package offers a function of this name, so that this room can be called:

>>> import dperm_cli
>>> report = dperm_cli.audit("--quick", mechanism="noisy_gd", epsilon=1, part="adversary")
>>> report.passed
True
"""
