"""Tables of summary rows."""
