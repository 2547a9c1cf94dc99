"""What an audit runs: made-up neighbours, whole runs, random configurations."""
