"""Mechanisms that run another one inside."""
