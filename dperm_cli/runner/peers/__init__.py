"""Methods of others: each runs in an environment of its own, on the problem that dperm solves."""
