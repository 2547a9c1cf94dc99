"""What several constraint sets share."""
