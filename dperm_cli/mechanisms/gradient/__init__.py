"""Mechanisms that follow noisy gradients."""
