"""Samplers of exp(-f) on a convex set, and what each proves about the law of its draws."""
