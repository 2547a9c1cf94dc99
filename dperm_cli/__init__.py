"""dperm: differentially private convex empirical risk minimization."""

__version__ = "0.3.0"
