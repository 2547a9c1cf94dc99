"""Compiled loops: counter-based Gaussians and the n^2-step stochastic gradient loop."""
