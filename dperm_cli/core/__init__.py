"""Helpers for every room: errors, input checks, the plug-in registry and the seed tree."""
