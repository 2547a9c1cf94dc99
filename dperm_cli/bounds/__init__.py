"""Risk bounds of the papers, one object per theorem."""
