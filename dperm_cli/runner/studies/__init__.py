"""Folders of studies and experiments."""
