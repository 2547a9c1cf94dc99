"""Mechanisms on projected records."""
