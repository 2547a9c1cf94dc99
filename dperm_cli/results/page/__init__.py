"""The offline page of a study."""
