"""dperm: differentially private convex empirical risk minimization."""

__version__ = "0.2.0"
