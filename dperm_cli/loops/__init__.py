"""Compiled loops: counter-based Gaussians and the n^2-step stochastic gradient loop."""

from pathlib import Path

from dperm_cli.core import private_folders

WIDTH = 4  # doubles in a vector of the compiled loops
# before any file of this room imports numba
KEEPS_CODE = private_folders.settle_numba(Path(__file__).parent)
