"""Forecasts of the excess risk of mechanisms, before any private record is read."""
