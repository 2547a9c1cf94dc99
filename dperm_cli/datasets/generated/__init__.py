"""Data sets drawn from a seed, one file each."""
