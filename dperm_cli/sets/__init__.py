"""Convex constraint sets, one file each."""
