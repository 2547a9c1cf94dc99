"""Checks of a mechanism against its claims: record and replay on neighbouring data sets.

``dperm_cli.audit`` is the public call of that name; say ``from dperm_cli.audit import replay``.
"""
