"""Checks of a mechanism against its claims: record and replay on neighbouring data sets."""
