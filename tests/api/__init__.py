"""The calls of ``import dperm_cli``."""
