"""Budgets, events, accounting, calibration and the one gate through which noise is drawn."""
