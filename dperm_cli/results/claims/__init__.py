"""What experiments claim, and the verdicts."""
