"""The lazy grid walk with a tabulated acceptance probability for every cell and move."""

from __future__ import annotations

import numpy as np

from dperm_cli.loops.jit import compile_loop


def advance(accept: np.ndarray, jump: np.ndarray, at: int, uniforms: np.ndarray) -> int:
    """The cell after ``len(uniforms)`` steps from cell ``at``.

    Parameters
    ----------
    accept : [cells, 2 d], the chance that a proposed move is made; 0 where it leaves the grid.
    jump : [2 d] int64, what each move adds to the cell's number.
    uniforms : one per step, in (0, 1]: the first half of the interval picks one of the 2 d moves
        in equal parts, and how far the number lies within its part is the coin of the acceptance;
        the second half stays.
    """
    return int(_advance(accept, jump, at, uniforms))


@compile_loop
def _advance(accept, jump, at, uniforms):
    moves = jump.size
    for i in range(uniforms.size):
        x = 2.0 * moves * uniforms[i]
        k = int(x)
        if k < moves and x - k < accept[at, k]:
            at += jump[k]
    return at
