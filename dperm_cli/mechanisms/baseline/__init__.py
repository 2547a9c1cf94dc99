"""Baselines without protection."""
