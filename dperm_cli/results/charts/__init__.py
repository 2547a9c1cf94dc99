"""Figures of summary rows."""
