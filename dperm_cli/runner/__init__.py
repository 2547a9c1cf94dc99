"""From command-line arguments to cells, and from a cell to its rows."""
