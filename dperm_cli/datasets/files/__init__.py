"""Data sets of the user's own files, one file a format."""
