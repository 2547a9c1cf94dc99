"""How the package is built: rooms, imports, names and sizes, measured from its source text."""
