"""Mechanisms that add noise to a minimiser or to its objective."""
