"""Uniform numbers of one stream and of many."""

from __future__ import annotations

import numpy as np

from dperm_cli.loops import exponential_noise


def test_one_number_of_each_is_that_of_the_stream():
    keys = np.array([[1, 2], [3, 4], [5, 6]], dtype=np.uint64)
    for step, number in ((0, 0), (0, 3), (7, 2)):
        each = exponential_noise.uniform_of_each(keys, step, number)
        alone = [exponential_noise.uniforms(key, step, number, 1)[0] for key in keys]
        assert each.tolist() == alone
