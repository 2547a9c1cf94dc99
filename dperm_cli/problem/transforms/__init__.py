"""Public linear maps of records, and the way back for what was learned from their images."""
