"""Mechanisms that draw from a law exp(-loss)."""
