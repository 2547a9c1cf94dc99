"""How far seeded noise reaches, in a file that does without numba."""

from __future__ import annotations

import math

LARGEST_RADIUS = math.sqrt(128.0 * math.log(2.0))  # of a pair of normals, at most

CELL, DEPTHS = 52.0 * math.log(2.0), 256  # an exponential has a cell, and at most so many before
LARGEST_EXPONENTIAL = DEPTHS * CELL  # at most
MOST_COORDINATES = 1 << 23  # of one draw, at most
