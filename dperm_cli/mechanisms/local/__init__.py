"""Mechanisms without a trusted holder of the data."""
