"""Mechanisms for kernel problems."""
