"""Small mechanisms with a fault, and sound ones, for the audit of foreign mechanisms."""
