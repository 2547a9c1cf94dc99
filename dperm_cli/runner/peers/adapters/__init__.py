"""A file for each method of others, and beside it NAME.lock: what its environment installs.

``ABOUT`` is a literal, read without running the file: how the guarantee, the intercept and the
clipping really are, and how the problem differs from the one in the table. ``fit(problem, rng)``
gives a point. A file without a lock needs numpy alone and runs in dperm's own environment.
"""
