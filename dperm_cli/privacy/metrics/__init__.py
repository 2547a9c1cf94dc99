"""Metrics of a released model on held-out records: sums on a public grid, one file a metric."""
