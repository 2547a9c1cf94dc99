"""Run what the command line asks for: from its words to cells, and from cells to rows."""
