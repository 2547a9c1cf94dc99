"""A sweep of cells: where they run and how far they are."""
