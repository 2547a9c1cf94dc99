"""Certified (epsilon, delta) of events, and the least noise for a budget."""
