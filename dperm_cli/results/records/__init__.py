"""Records: one row a trial, one file a cell."""
