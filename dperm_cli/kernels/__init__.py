"""Kernels: one plug-in per file, and the finite feature maps that stand for them."""
