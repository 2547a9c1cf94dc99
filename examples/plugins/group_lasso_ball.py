"""The group-lasso ball as a plug-in of dperm: few groups of coefficients are other than zero.

    dperm check group_lasso_ball.py
    dperm run --plugin group_lasso_ball.py constraint=group_lasso_ball

Coefficients come in groups of ``group_size`` columns in a row (the last may be smaller). The ball
is {theta: sum over groups of |theta_group|_2 <= radius}; groups of one column give the L1 ball.
"""

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from scipy import sparse

from dperm_cli import AnyDimension, ConvexSet, Help, Radius, Range

__version__ = "1.0"


@dataclass(frozen=True)
class GroupLassoBall(ConvexSet):
    """sum over groups of |theta_group|_2 <= radius."""

    radius: Radius = 10.0
    p: AnyDimension = 1
    group_size: Annotated[int, Range(1, 10**6), Help("columns in a group")] = 2

    @property
    def groups(self):
        """How many groups there are."""
        return -(-self.p // self.group_size)

    @property
    def inner_radius(self):
        """The sum of norms is at most sqrt(groups) |theta|, with equality where all are equal."""
        return self.radius / math.sqrt(self.groups)

    def project(self, theta):
        """The norms of the groups are projected to the L1 ball; directions stay as they are."""
        theta = np.asarray(theta, dtype=float)
        norms = self._norms(theta)
        shrunk = norms - self._threshold(norms)[..., None]
        share = np.maximum(shrunk, 0.0) / np.where(norms > 0.0, norms, 1.0)
        inside = np.sum(norms, axis=-1, keepdims=True) <= self.radius
        return np.where(inside, theta, theta * self._spread(share))

    def lmo(self, g):
        """All of the radius in the group with the longest gradient, against it."""
        g = np.asarray(g, dtype=float)
        norms = self._norms(g)
        best = np.argmax(norms, axis=-1)[..., None] == np.arange(self.groups)
        share = np.where(best, self.radius / np.maximum(norms, 1e-300), 0.0)
        return -g * self._spread(share)

    def support(self, g):
        """The radius times the longest group."""
        return self.radius * np.max(self._norms(np.asarray(g, dtype=float)), axis=-1)

    def gauge(self, theta):
        """The sum of norms over the radius."""
        return np.sum(self._norms(np.asarray(theta, dtype=float)), axis=-1) / self.radius

    def add_cone_constraints(self, program, theta):
        """|theta_group| <= length_group for every group, and the lengths add up to the radius."""
        lengths = program.variables(self.groups, self.radius)
        for k in range(self.groups):
            columns = theta[k * self.group_size : (k + 1) * self.group_size]
            first = sparse.coo_array(([1.0], ([0], [0])), shape=(1 + columns.size, 1))
            empty = sparse.coo_array((1, columns.size))
            rest = sparse.vstack([empty, sparse.eye_array(columns.size)])
            terms = [(first, lengths[k : k + 1]), (rest, columns)]
            program.add("second_order", terms, np.zeros(1 + columns.size))
        program.add("nonnegative", [(-np.ones((1, self.groups)), lengths)], self.radius)

    def _norms(self, rows):
        """The norm of each group, [..., p] -> [..., groups]."""
        missing = self.groups * self.group_size - self.p
        padded = np.concatenate([rows, np.zeros((*rows.shape[:-1], missing))], axis=-1)
        return np.linalg.norm(
            padded.reshape(*rows.shape[:-1], self.groups, self.group_size), axis=-1
        )

    def _spread(self, share):
        """A number for each group, given to each of its columns."""
        return np.repeat(share, self.group_size, axis=-1)[..., : self.p]

    def _threshold(self, norms):
        """What is taken off every norm so that the rest adds up to the radius."""
        falling = -np.sort(-norms, axis=-1)
        over = (np.cumsum(falling, axis=-1) - self.radius) / np.arange(1, self.groups + 1)
        kept = np.sum(falling > over, axis=-1, keepdims=True)
        return np.take_along_axis(over, np.maximum(kept - 1, 0), axis=-1)[..., 0]
