"""Parts of the audit that run cells: made-up neighbours, whole runs, random configurations."""
