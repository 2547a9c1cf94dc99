"""Confidence intervals from noisy counts: pure functions of what was released."""
